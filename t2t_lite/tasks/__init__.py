"""Tasks that models can learn, such as translation or classification; see `task`."""

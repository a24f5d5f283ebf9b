"""Tasks: what a model learns from a problem, such as translation or classification; see `task`."""

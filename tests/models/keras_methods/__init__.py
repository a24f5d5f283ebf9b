"""The table of what Keras' own models can do: one row per method of Keras' public API, tried with every model."""

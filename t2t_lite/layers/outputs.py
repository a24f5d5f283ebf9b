"""Symbolic calls of layers that return more than their output on request."""

import keras

_MORE = ("return_attention_scores", "return_hidden_states", "cache")


class OutputsOnRequest:
    """Mixed into a layer whose `call` takes `return_attention_scores`, `return_hidden_states` or `cache`.

    Keras takes the shape of a symbolic call's result from `compute_output_shape`, which is that of the output alone.
    """

    def compute_output_spec(self, *args, **kwargs):
        """Returns what `call` would, symbolic: found by tracing it where more than the output is asked for."""
        if any(kwargs.get(name) not in (None, False) for name in _MORE):
            return keras.Operation.compute_output_spec(self, *args, **kwargs)
        return super().compute_output_spec(*args, **kwargs)

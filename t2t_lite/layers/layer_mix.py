"""A learned mean of a model's layers, as features for a task (Peters et al. 2018, "ELMo", equation 1)."""

import keras
from keras import ops

from t2t_lite.layers.base import Layer
from t2t_lite.layers.checks import check_sizes
from t2t_lite.layers.masks import masked_softmax


@keras.saving.register_keras_serializable("t2t_lite")
class LayerMix(Layer):
    """γ · Σ softmax(w)_j · h_j over the layers h_j of a model; it begins as their mean.

    Args:
        num_layers: int, how many h_j there are, the embeddings included where they are one of them.
    """

    def __init__(self, num_layers: int, **kwargs):
        super().__init__(**kwargs)
        check_sizes(num_layers=num_layers)
        self.num_layers = num_layers
        self.supports_masking = True

    def build(self, input_shape=None):
        """Creates w, zeros, and γ, 1."""
        self.weight = self.add_weight(name="weight", shape=(self.num_layers,), initializer="zeros")
        self.gamma = self.add_weight(name="gamma", shape=(), initializer="ones")

    def call(self, states):
        """A list of `num_layers` tensors of one shape -> a tensor of that shape."""
        shares = ops.unstack(ops.cast(masked_softmax(self.weight) * self.gamma, states[0].dtype), self.num_layers)
        return sum(share * state for share, state in zip(shares, states, strict=True))

    def compute_mask(self, states, mask=None):
        """Returns the mask of the first of the states."""
        return mask[0] if mask else None

    def compute_output_shape(self, input_shape):
        """Returns the shape of one state."""
        return input_shape[0]

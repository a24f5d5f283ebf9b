"""The mask that Keras carries with a tensor."""

import keras


class _Masked(keras.layers.Layer):
    def __init__(self):
        super().__init__(autocast=False)
        self.supports_masking = True

    def call(self, inputs, mask=None):
        return inputs


def with_mask(tensor, mask):
    """Returns a tensor that carries `mask`, bool. (By a layer: Keras has no other public way on every backend.)"""
    return _Masked()(tensor, mask=mask)

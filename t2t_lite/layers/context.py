"""What self-attention reads beside its inputs."""

from typing import Any, NamedTuple

from keras import ops


class Context(NamedTuple):
    """States before the inputs of a layer, which its self-attention sees as well (Dai et al. 2019, "Transformer-XL").

    A stack gets a list with one context per layer. Stacks, layers and residual connections hand them on to attention.

    Attributes:
        earlier: [B, M, hidden], inputs of this layer at the M positions before those of the call.
        visible: bool [B, M], which of them are there; (): all.
    """

    earlier: Any
    visible: Any = ()

    def normalized(self, normalization):
        """Returns the context with normalized states: they pass what the inputs of a pre-norm layer pass."""
        return self._replace(earlier=normalization(self.earlier))

    def before(self, inputs):
        """Returns the states and then the inputs [B, T, hidden]: [B, M + T, hidden]."""
        return ops.concatenate([ops.cast(self.earlier, inputs.dtype), inputs], axis=1)

    def mask(self, length, mask=None):
        """Returns bool [B, M + T]: which states and which of T inputs are there; `mask`: bool [B, T], or None."""
        batch, size, _ = ops.shape(self.earlier)
        seen = ops.ones((batch, size), "bool") if isinstance(self.visible, tuple) else ops.cast(self.visible, "bool")
        mask = ops.ones((batch, length), "bool") if mask is None else ops.cast(mask, "bool")
        return ops.concatenate([seen, mask], axis=1)

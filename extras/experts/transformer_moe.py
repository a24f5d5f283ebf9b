"""A Transformer with mixtures of experts (mirrors tensor2tensor's models/research/transformer_moe.py)."""

from typing import ClassVar

import keras

from t2t_lite.layers.feed_forward import PLAIN, kinds_of
from t2t_lite.models.arguments import shared_options
from t2t_lite.models.transformer import Transformer
from t2t_lite.registry import register_model


@register_model("transformer_moe")
@keras.saving.register_keras_serializable("t2t_lite")
class TransformerMoe(Transformer):
    """A `Transformer` in which some or all feed-forward networks are mixtures of experts (Shazeer et al. 2017).

    The class exists only so that tensor2tensor's name can be used: with the argument `feed_forward`, any model of
    Transformer layers can have experts.

    Args:
        vocab_size: int, number of ids of the inputs, and of the targets if they share the vocabulary.
        target_vocab_size: int, number of ids of the targets; None means one vocabulary for both.
        {options}

    Raises:
        ValueError: an argument is out of its range, or no layer has experts; the message states the argument's name and
            value.

    Example:
        >>> model = TransformerMoe(vocab_size=20, hidden_size=8, filter_size=16, num_heads=2, num_encoder_layers=1,
        ...                        num_decoder_layers=1, feed_forward={"type": "local_moe", "num_experts": 4})
        >>> outputs = model({"inputs": keras.ops.ones((1, 3), "int32"), "targets": keras.ops.ones((1, 4), "int32")})
        >>> outputs["targets"].shape, outputs["costs"]["inputs"].shape
        ((1, 4, 20), (1, 3))
    """

    OPTIONS: ClassVar = shared_options(without=["num_layers"], feed_forward="local_moe")

    def __init__(self, vocab_size: int, target_vocab_size: int | None = None, **options):
        super().__init__(vocab_size, target_vocab_size, **options)
        feed_forward = self.config["feed_forward"]
        if all(name == PLAIN for name, _ in kinds_of(feed_forward)):
            raise ValueError(
                "`feed_forward` must be a mixture of experts (such as local_moe) in at least one layer: received "
                f"feed_forward={feed_forward!r}."
            )

"""The family of Blenderbot, a pre-norm Marian. Its stored position table can hold any of our position encodings.

Blenderbot's epsilon is always 1e-5. A pre-norm Transformer reads the hidden states only through normalizations. If the
hidden states are multiplied by c,

    (c·x - mean) / √(c²·variance + 1e-5) = (x - mean) / √(variance + 1e-5 / c²).

Therefore, all weights whose outputs are added to the hidden states (embeddings, positions, outputs of sub-layers) are
multiplied by c = √(1e-5 / epsilon) before they are stored. The outputs of the last normalization are divided by c,
because the softmax multiplies them by the embeddings. The outputs equal those of our model with its own epsilon.
"""

from t2t_lite import registry
from t2t_lite.extras.hugging_face import marian
from t2t_lite.extras.hugging_face.family import choice, number, only

# Below this value, the factors that compensate for the fixed epsilon would overflow.
_LEAST_EPSILON = 1e-12


def _limits(config):
    has_epsilon = config["norm_epsilon"] >= _LEAST_EPSILON
    return {
        "norm_epsilon": None if has_epsilon else (f"{_LEAST_EPSILON} or more",),
        "position": ("sinusoidal", "learned", "none"),
        "position_layout": None,
        "target_space_embedding": (False, True),
        # Inputs and targets share one matrix.
        "target_vocab_size": (None,),
    }


def _positions(config):
    return config["max_position"] if config["position"] == "learned" else marian.SINUSOIDS


@registry.register_family("blenderbot")
def blenderbot():
    """Returns the Family of Blenderbot."""
    return marian.marian()._replace(
        class_prefix="Blenderbot",
        matches=lambda config: config["norm"] == "pre",
        heads={"ForConditionalGeneration": (None, {})},
        fields=marian.fields(
            number("max_position_embeddings", "max_position", usual=128, value=_positions),
            only("encoder_no_repeat_ngram_size", 0, is_read=False),  # the default of Blenderbot is 3, for chat
            only("share_encoder_decoder_embeddings", True, usual=True, is_written=False),
            tie=choice("tie_word_embeddings", "tie_embeddings", {True: True}),
        ),
        options={"norm": "pre", "attention_bias": True, "softmax_bias": True},
        limits=_limits,
        weights={
            **marian.marian().weights,
            "encoder_norm": "model.encoder.layer_norm",
            "decoder_norm": "model.decoder.layer_norm",
            "encoder_position": "model.encoder.embed_positions",
            "decoder_position": "model.decoder.embed_positions",
        },
        unused=marian.marian().unused[:3],
    )

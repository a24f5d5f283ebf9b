"""The hook by which a model shows what it attends to, in pictures, alignments and tables."""

from t2t_lite.errors import UserError

# Kind of attention: (the feature that attends, the feature that is attended to).
KINDS = {"encoder": ("inputs", "inputs"), "decoder": ("targets", "targets"), "memory": ("targets", "inputs")}


def attention_weights(model, features):
    """Returns the attention weights of every layer and head, from one teacher-forced pass without dropout.

    Any model has them that has a method `attention_weights(features)` with this result:

    * "encoder": self-attention over `inputs`; "decoder": self-attention over `targets`; "memory": from `targets` to
      `inputs`. A model returns the kinds that it has: a language model "decoder", an encoder "encoder". Each is a
      list with one entry per layer that attends, float [B, heads, queries, keys], whose rows sum up to 1; columns of
      padding are 0.
    * Row t of "decoder" and "memory" is the step that predicts target t. Its input is target t - 1, so column t of
      "decoder" stands for target t - 1, and column 0 for the beginning, where there is no target yet.

    Args:
        model: a keras.Model or an `Ensemble`.
        features: dict of int32 ids [B, length], padded with 0, as the model is called with: "inputs" and "targets"
            of a translation model.

    Raises:
        UserError: the model does not show its attention.
    """
    if not hasattr(model, "attention_weights"):
        raise UserError(
            f"The model {type(model).__name__} does not show its attention. Expected a model with a method "
            "attention_weights(features), such as t2t_lite.models.Transformer has."
        )
    return model.attention_weights(features)

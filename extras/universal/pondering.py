"""In how many steps a model thought about each piece, where that depends on the piece: adaptive computation time."""

import tensorflow as tf

from t2t_lite.decoding.scoring import GivenTargets
from t2t_lite.errors import UserError
from t2t_lite.text.vocabulary import EOS_ID


class PonderSteps:
    """Runs a model's `ponder_steps` on pairs of a source and an output of it.

    Args:
        model: a model with a method `ponder_steps(features)`, which returns {"inputs": [B, S], "targets": [B, T]} of
            the features that it is called with: in how many steps each position was running. Number t of the targets is
            of the step that predicts target t. Such a model is `t2t_lite.models.UniversalTransformer`.

    Raises:
        UserError: it has no such method.
    """

    def __init__(self, model):
        if not hasattr(model, "ponder_steps"):
            raise UserError(
                f"return_ponder_steps: {type(model).__name__} has none. Expected one model with a method "
                "ponder_steps(features), such as universal_transformer."
            )
        self._run = GivenTargets(self._steps)
        self._model = model

    def _steps(self, inputs, targets):
        """Returns int32 [B, T, 1 + S]: the steps of a target, and of all sources."""
        steps = self._model.ponder_steps({"inputs": inputs, "targets": targets})
        source, target = (tf.cast(tf.round(steps[feature]), tf.int32) for feature in ("inputs", "targets"))
        shape = tf.shape(targets)
        return tf.concat([target[:, :, None], tf.tile(source[:, None], [1, shape[1], 1])], axis=2)

    def __call__(self, sources, targets):
        """Returns a list of (steps of the source's pieces, of the output's), lists of int without those of EOS.

        Args:
            sources: list of lists of ids, each ending in EOS.
            targets: list of as many lists of ids, none empty.
        """
        found = self._run(sources, targets)
        return [
            (rows[0, 1 : len(source)].tolist(), rows[: len(ids) - (ids[-1] == EOS_ID), 0].tolist())
            for source, ids, rows in zip(sources, targets, found, strict=True)
        ]


def ponder_text(steps):
    """Returns the steps of a source and an output as "3 2 5<TAB>4 4"."""
    return "\t".join(" ".join(map(str, side)) for side in steps)

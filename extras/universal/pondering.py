"""In how many steps a model thought about each piece, where that depends on the piece: adaptive computation time."""

from t2t_lite.decoding.hypothesis import Teller
from t2t_lite.errors import UserError
from t2t_lite.registry import register_teller
from t2t_lite.text.vocabulary import EOS_ID


@register_teller("ponder_steps")
class PonderSteps(Teller):
    """Runs a model's `ponder_steps` on pairs of a source and an output of it.

    Args:
        model: a model with a method `ponder_steps(features)`, which returns {"inputs": [B, S], "targets": [B, T]} of
            the features that it is called with: in how many steps each position was running. Number t of the targets is
            of the step that predicts target t. Such a model is `t2t_lite.models.UniversalTransformer`.

    Raises:
        UserError: it has no such method.
    """

    flag = "ponder_file"
    help = (
        "Where to write in how many steps the model thought about each piece, 3 2 …<TAB>4 4 …, a line for each line: a "
        "universal_transformer."
    )
    own = "steps of its own"
    without = "takes the same steps for every piece"

    def __init__(self, model):
        from t2t_lite.decoding.scoring import GivenTargets

        if not hasattr(model, "ponder_steps"):
            raise UserError(
                f"return_ponder_steps: {type(model).__name__} has none. Expected one model with a method "
                "ponder_steps(features), such as universal_transformer."
            )
        super().__init__(model)
        self._run = GivenTargets(self._steps)

    def _steps(self, inputs, targets):
        """Returns int32 [B, T, 1 + S]: the steps of a target, and of all sources."""
        import tensorflow as tf

        steps = self.model.ponder_steps({"inputs": inputs, "targets": targets})
        source, target = (tf.cast(tf.round(steps[feature]), tf.int32) for feature in ("inputs", "targets"))
        shape = tf.shape(targets)
        return tf.concat([target[:, :, None], tf.tile(source[:, None], [1, shape[1], 1])], axis=2)

    def __call__(self, sources, targets):
        """Returns a list of (steps of the source's pieces, of the output's), lists of int without those of EOS."""
        found = self._run(sources, targets)
        return [
            (rows[0, 1 : len(source)].tolist(), rows[: len(ids) - (ids[-1] == EOS_ID), 0].tolist())
            for source, ids, rows in zip(sources, targets, found, strict=True)
        ]

    @staticmethod
    def joined(values):
        """Returns the steps of all parts, one after the other."""
        return tuple([n for of_part in values for n in of_part[side]] for side in (0, 1))

    @staticmethod
    def text(value):
        """Returns the steps of a source and an output as "3 2 5<TAB>4 4"."""
        return "\t".join(" ".join(map(str, side)) for side in value)

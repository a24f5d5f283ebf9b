"""Reports how many steps a model took for each piece (adaptive computation time), as text and as a bar chart."""

from t2t_lite.decoding.hypothesis import Teller
from t2t_lite.errors import UserError
from t2t_lite.registry import register_teller
from t2t_lite.text.vocabulary import EOS_ID
from t2t_lite.visualization.drawing import FAINT, Drawing, color, text_width

_ROW, _STEP, _MARGIN, _PAD = 20, 24, 14, 6


@register_teller("ponder_steps")
class PonderSteps(Teller):
    """Computes the number of steps per piece for sources and their outputs, using the model's `ponder_steps`.

    Args:
        model: a model, such as `t2t_lite.models.UniversalTransformer`, whose method `ponder_steps(features)` returns
            the number of steps for each position, {"inputs": [B, S], "targets": [B, T]}. Entry t of "targets" belongs
            to the prediction of target t.

    Raises:
        UserError: the model has no method `ponder_steps`.
    """

    flag = "ponder_file"
    help = (
        "Where to write the number of steps for each piece, one line per input line: 3 2 …<TAB>4 4 …. Only for a "
        "universal_transformer."
    )
    own = "its own number of steps"
    without = "takes the same number of steps for every piece"

    def __init__(self, model):
        from t2t_lite.decoding.scoring import GivenTargets

        if not hasattr(model, "ponder_steps"):
            raise UserError(
                f"return_ponder_steps: {type(model).__name__} has no ponder steps. Expected one model with a method "
                "ponder_steps(features), such as universal_transformer."
            )
        super().__init__(model)
        self._run = GivenTargets(self._steps)

    def _steps(self, inputs, targets):
        """Returns int32 [B, T, 1 + S]: the steps of each target, followed by the steps of all inputs."""
        import tensorflow as tf

        steps = self.model.ponder_steps({"inputs": inputs, "targets": targets})
        source, target = (tf.cast(tf.round(steps[feature]), tf.int32) for feature in ("inputs", "targets"))
        shape = tf.shape(targets)
        return tf.concat([target[:, :, None], tf.tile(source[:, None], [1, shape[1], 1])], axis=2)

    def __call__(self, sources, targets):
        """Returns a list of (steps of the source's pieces, steps of the output's pieces): lists of int, without EOS."""
        steps = self._run(sources, targets)
        return [
            (rows[0, 1 : len(source)].tolist(), rows[: len(ids) - (ids[-1] == EOS_ID), 0].tolist())
            for source, ids, rows in zip(sources, targets, steps, strict=True)
        ]

    @staticmethod
    def joined(values):
        """Concatenates the steps of the parts that a long line was split into."""
        return tuple([n for part_steps in values for n in part_steps[side]] for side in (0, 1))

    @staticmethod
    def text(value):
        """Formats the steps of a source and an output, e.g. as "3 2 5<TAB>4 4"."""
        return "\t".join(" ".join(map(str, side)) for side in value)


def draw_ponder_steps(translation, hypothesis=0):
    """Draws one bar per piece that shows its number of steps: first the source's pieces, then the output's.

    Args:
        translation: `Translation` with ponder steps (`return_ponder_steps` of `Translator.translate`).
        hypothesis: int, the index of the output to draw.

    Raises:
        UserError: the translation has no ponder steps.
    """
    output = translation.hypotheses[hypothesis]
    if output.ponder_steps is None:
        raise UserError("This translation has no ponder steps. Use translate(…, return_ponder_steps=True).")
    source, target = output.ponder_steps
    # There may be more steps than pieces, because a stop string or the length limit removes pieces.
    sides = [("source", translation.source_tokens, source), ("output", output.tokens, target)]
    most = max([*source, *target], default=1)
    words = max((text_width(token) for _, tokens, _ in sides for token in tokens), default=0)
    title = "Steps per piece"
    width = max(words + 2 * _PAD + _STEP * (most + 1), text_width(title, 14, None), 160)
    rows = sum(len(steps) + 2 for _, _, steps in sides)
    drawing = Drawing(width + 2 * _MARGIN, _ROW * (rows + 1) + 2 * _MARGIN, title)
    left, y = _MARGIN + words + _PAD, _MARGIN + _ROW / 2
    drawing.text(_MARGIN, y, title, None, size=14, bold=True)
    for number, (name, tokens, steps) in enumerate(sides):
        y += _ROW * (2 if number else 1.5)
        drawing.text(_MARGIN, y, f"{name}, mean {sum(steps) / max(len(steps), 1):.2f}", None, size=11, color="#555555")
        for token, count in zip(tokens, steps, strict=False):
            y += _ROW
            drawing.text(left - _PAD, y, token, anchor="right")
            drawing.rectangle(left, y - _ROW / 2 + 3, _STEP * most, _ROW - 6, FAINT, 0.4)
            note = f"{token}: {count} {'step' if count == 1 else 'steps'}"
            drawing.rectangle(left, y - _ROW / 2 + 3, _STEP * count, _ROW - 6, color(number), 1.0, note)
            drawing.text(left + _STEP * most + _PAD, y, str(count), size=11)
    return drawing

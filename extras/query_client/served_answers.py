"""Answers of a server: checks of its outputs, and joining the answers to the sentences of a text."""

import dataclasses
import math

from t2t_lite.corpora.sentences import answers_to_parts, checked_choice, join_texts, ranks, sentence_parts
from t2t_lite.decoding.texts import valid_unicode
from t2t_lite.errors import Failure, UserError, counted
from t2t_lite.files.safe_json import check_schema

# In any two scripts, an answer with less than a sixth of the bytes of a text of 200 bytes or more is short.
_SHORT, _LEAST_BYTES = 6, 200
_COLUMNS = {"outputs": [str], "scores": [float], "truncated": [bool]}
_ROW = {"outputs": [str], "scores": [float], "truncated": bool}  # of the signature n_best
_LOWEST = -3e38  # lower scores are padding where a text has fewer hypotheses


class NoTranslations(Failure):
    """The model answers with something other than translations, such as an encoder's classes."""


@dataclasses.dataclass(frozen=True)
class ServedAnswer:
    """The translation of one text.

    Attributes:
        text: str.
        score: float, log-probability in nats / length penalty.
        truncated: bool, whether the export truncated the text because it was too long.
        is_short: bool, whether it is so much shorter than the text that part of the text is probably not translated.
        parts: int, the number of parts that were translated; 0: the text is blank.
        hypotheses: tuple of one or more, best first, each with `text` and `score`.
    """

    text: str
    score: float
    truncated: bool
    is_short: bool = False
    parts: int = dataclasses.field(default=1, compare=False)
    others: tuple = dataclasses.field(default=(), repr=False)  # the hypotheses after the best one

    hypotheses = property(lambda self: (self, *self.others))

    def checked(self, text):
        """Returns the answer to a text, after comparing how long the two are."""
        parts = 1 if text.strip() or self.text else 0
        return dataclasses.replace(self, is_short=is_short(text, self.text), parts=parts)


def answers_of(outputs, count, where):
    """Returns the `ServedAnswer` of each of `count` texts.

    Args:
        outputs: {name of the output: list}, of a signature that makes texts.
        count: int.
        where: str, the server and the model, for messages.

    Raises:
        Failure: the outputs are not those of an exported model that makes texts; `NoTranslations` if the model is of
            another kind.
    """
    try:
        check_schema(outputs, _COLUMNS, where)
    except UserError as error:
        expected = f"Expected outputs, scores and truncated of {counted(count, 'text')}"
        if "outputs" not in outputs and "truncated" in outputs:
            raise NoTranslations(
                f"{where}: answers with {', '.join(outputs)}. {expected}, as a model that makes texts has; "
                "Client.predict returns the answers of others."
            ) from None
        raise Failure(f"{error} {expected}, as exports of t2t-exporter have.") from None
    if sizes := [f"{len(outputs[name])} {name}" for name in _COLUMNS if len(outputs[name]) != count]:
        raise Failure(f"{where}: answers {', '.join(sizes)} for {counted(count, 'text')}. Expected one for each text.")
    _check_finite(outputs["scores"], where)
    texts = map(valid_unicode, outputs["outputs"])
    return [ServedAnswer(*row) for row in zip(texts, outputs["scores"], outputs["truncated"], strict=True)]


def n_best_of(row, count, where):
    """Returns the `ServedAnswer` of one text, with at most `count` hypotheses.

    Args:
        row: {name of the output: value} of the text, of the signature n_best.
        count: int, or None for all hypotheses.
        where: as for `answers_of`.

    Raises:
        Failure: the outputs are not those of n_best.
        UserError: the export has fewer hypotheses.
    """
    try:
        check_schema(row, _ROW, where)
    except UserError as error:
        raise Failure(f"{error} Expected outputs, scores and truncated, as exports of t2t-exporter have.") from None
    texts, scores = row["outputs"], row["scores"]
    if not 0 < len(texts) == len(scores):
        raise Failure(f"{where}: {len(texts)} outputs and {len(scores)} scores for a text. Expected equally many.")
    if count is not None and count > len(texts):
        raise UserError(f"n_best={count}: the export has the {len(texts)} best, its beam_size. Expected at most that.")
    _check_finite(scores, where)
    pairs = zip(map(valid_unicode, texts[:count]), scores, strict=False)
    first, *others = [
        ServedAnswer(text, score, row["truncated"])
        for rank, (text, score) in enumerate(pairs)
        if score > _LOWEST or rank == 0
    ]
    return dataclasses.replace(first, others=tuple(others))


def _check_finite(scores, where):
    if not all(map(math.isfinite, scores)):
        raise Failure(f"{where}: a score is not finite: the model is damaged. Export it from another checkpoint.")


def is_short(text, answer):
    """Returns whether an answer is so much shorter than its text that part of that is probably not translated."""
    size = len(text.encode())
    return size >= _LEAST_BYTES and len(answer.encode()) * _SHORT < size


def parts_of(texts, split_sentences, wants_sentences):
    """Returns the list of sentences of each text; None if all texts are to be sent as they are.

    Args:
        texts: list of str.
        split_sentences: one of `SPLIT_SENTENCES`, or None for "auto".
        wants_sentences: function without arguments that returns whether the export's model expects single sentences;
            for "auto" it is called if a text has several.

    Raises:
        UserError: the choice is unknown.
    """
    if checked_choice(split_sentences) == "never":
        return None
    parts = list(map(sentence_parts, texts))
    if not any(len(of_text) > 1 for of_text in parts):
        return None
    return parts if split_sentences == "always" or wants_sentences() else None


def answer_parts(translate, parts, on_progress=None):
    """Translates the parts of texts, and returns the ServedAnswer of each text.

    A text's k-th hypothesis joins the k-th ones of its parts, or the last one of a part that has fewer; its score is
    the sum of theirs.

    Args:
        translate: function of a list of str and `on_progress`: see `Client.translate`.
        parts: list of lists of str, the parts of each text.
        on_progress: as for `Client.translate`.
    """
    return [*map(_joined, answers_to_parts(translate, parts, on_progress))]


def _joined(answers):
    if len(answers) == 1:
        return answers[0]
    flags = {name: any(getattr(answer, name) for answer in answers) for name in ("truncated", "is_short")}
    first, *others = [
        ServedAnswer(
            join_texts([one.text for one in of_rank])[0], sum(one.score for one in of_rank), **flags, parts=len(answers)
        )
        for of_rank in ranks([answer.hypotheses for answer in answers])
    ]
    return dataclasses.replace(first, others=tuple(others))

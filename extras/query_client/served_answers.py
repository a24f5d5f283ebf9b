"""Checks the outputs of a server, and joins the answers to the sentences of a text."""

import dataclasses
import math

from t2t_lite.corpora.sentences import answers_to_parts, checked_choice, join_texts, ranks, sentence_parts
from t2t_lite.decoding.texts import valid_unicode
from t2t_lite.errors import Failure, UserError
from t2t_lite.files.safe_json import check_schema

# An answer counts as short if it has less than a sixth of the bytes of its text, and the text has at least 200 bytes.
# These limits suit any pair of scripts.
_SHORT, _LEAST_BYTES = 6, 200
_LISTS = ("outputs", "scores")
_ROW = {"outputs": [str], "scores": [float], "truncated": bool}
_LOWEST = -3e38  # lower scores are padding for texts with fewer hypotheses


class NoTranslations(Failure):
    """Raised if a model's answers are not translations, for example an encoder's classes."""


@dataclasses.dataclass(frozen=True)
class ServedAnswer:
    """The translation of a text by a server.

    Attributes:
        text: str, the best hypothesis.
        score: float, log-probability in nats / length penalty.
        truncated: bool, whether the export truncated the text because it was too long.
        is_short: bool, whether the translation is so short that part of the text was probably not translated.
        parts: int, the number of parts that were translated, or 0 if the text is blank.
        hypotheses: tuple of at least one ServedAnswer, best first.
    """

    text: str
    score: float
    truncated: bool
    is_short: bool = False
    parts: int = dataclasses.field(default=1, compare=False)
    others: tuple = dataclasses.field(default=(), repr=False)  # all hypotheses except the best

    hypotheses = property(lambda self: (self, *self.others))

    def checked(self, text):
        """Returns a copy in which `is_short` and `parts` are set for the text."""
        parts = 1 if text.strip() or self.text else 0
        return dataclasses.replace(self, is_short=is_short(text, self.text), parts=parts)


def answer_of(row, where, count=None):
    """Checks a server's outputs for a text, and returns a `ServedAnswer` with at most `count` hypotheses.

    Args:
        row: {output: value} for the text. The values of outputs and scores are lists if the signature is n_best.
        where: str, the server and the model, for error messages.
        count: int, or None for all hypotheses.

    Raises:
        Failure: the outputs do not have the format of an exported model that generates texts. If they have the format
            of another kind of model, the error is a `NoTranslations`.
        UserError: the export has fewer hypotheses.
    """
    row = row | {name: row[name] if isinstance(row[name], list) else [row[name]] for name in _LISTS if name in row}
    try:
        check_schema(row, _ROW, where)
    except UserError as error:
        if "outputs" not in row and "truncated" in row:
            raise NoTranslations(
                f"{where}: answers with {', '.join(row)}. Expected outputs, scores and truncated, as from a model that "
                "generates texts; use Client.predict for other models."
            ) from None
        raise Failure(f"{error} Expected outputs, scores and truncated, as from an export of t2t-exporter.") from None
    texts, scores = row["outputs"], row["scores"]
    if not 0 < len(texts) == len(scores):
        raise Failure(f"{where}: {len(texts)} outputs and {len(scores)} scores for a text. Expected the same number.")
    if count is not None and count > len(texts):
        raise UserError(f"n_best={count}: the export has beam_size={len(texts)}. Expected at most {len(texts)}.")
    if not all(map(math.isfinite, scores)):
        raise Failure(f"{where}: a score is not finite, so the model is damaged. Export another checkpoint.")
    pairs = zip(map(valid_unicode, texts[:count]), scores, strict=False)
    first, *others = [
        ServedAnswer(text, score, row["truncated"])
        for rank, (text, score) in enumerate(pairs)
        if score > _LOWEST or rank == 0
    ]
    return dataclasses.replace(first, others=tuple(others))


def is_short(text, answer):
    """Returns whether an answer is so short that part of its text was probably not translated."""
    size = len(text.encode())
    return size >= _LEAST_BYTES and len(answer.encode()) * _SHORT < size


def parts_of(texts, split_sentences, wants_sentences):
    """Returns a list of sentences for each text, or None if all texts are to be sent unchanged.

    Args:
        texts: list of str.
        split_sentences: one of `SPLIT_SENTENCES`, or None for "auto".
        wants_sentences: function without arguments that returns whether the model expects single sentences. It is
            called only for "auto", and only if a text has several sentences.

    Raises:
        UserError: `split_sentences` has another value.
    """
    if checked_choice(split_sentences) == "never":
        return None
    parts = list(map(sentence_parts, texts))
    if not any(len(group) > 1 for group in parts):
        return None
    return parts if split_sentences == "always" or wants_sentences() else None


def answer_parts(translate, parts, on_progress=None):
    """Translates the parts of texts, and returns the ServedAnswer of each text.

    The k-th hypothesis of a text joins the k-th hypotheses of its parts; a part with fewer hypotheses contributes its
    last one. The scores of the parts are added.

    Args:
        translate: function that takes a list of str and `on_progress`, see `Client.translate`.
        parts: list of lists of str, the parts of each text.
        on_progress: see `Client.translate`.
    """
    return [*map(_joined, answers_to_parts(translate, parts, on_progress))]


def _joined(answers):
    if len(answers) == 1:
        return answers[0]
    flags = {name: any(getattr(answer, name) for answer in answers) for name in ("truncated", "is_short")}
    first, *others = [
        ServedAnswer(
            join_texts([one.text for one in rank])[0], sum(one.score for one in rank), **flags, parts=len(answers)
        )
        for rank in ranks([answer.hypotheses for answer in answers])
    ]
    return dataclasses.replace(first, others=tuple(others))

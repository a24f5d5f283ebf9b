"""Answers of a server; and texts of several sentences, which a client sends one by one, and their answers."""

import dataclasses

from t2t_lite.corpora.sentences import checked_choice, join_texts, progress_in_wholes, sentence_parts

_SHORT, _LEAST_BYTES = (
    6,
    200,
)  # an answer of less than a sixth of the bytes of a text of at least 200 is short, in any two scripts


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
        """Returns the answer to a text, after looking at how long both are."""
        parts = 1 if text.strip() or self.text else 0
        return dataclasses.replace(self, is_short=is_short(text, self.text), parts=parts)


def parts_of(texts, split_sentences, wants_sentences):
    """Returns the list of sentences of each text; None if all are to be sent as they are.

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


def joined(translate, parts, on_progress=None):
    """Translates the parts of texts, and returns the ServedAnswer of each text.

    A text's k-th hypothesis joins the k-th ones of its parts, or the last one of a part that has fewer; its score is
    the sum of theirs.

    Args:
        translate: function of a list of str and `on_progress`: see `Client.translate`.
        parts: list of lists of str, the parts of each text.
        on_progress: as for `Client.translate`.
    """
    flat = [part for of_text in parts for part in of_text]
    translations = iter(
        translate(flat, on_progress=on_progress and progress_in_wholes(on_progress, len(parts), len(flat)))
    )
    return [_joined([next(translations) for _ in of_text]) for of_text in parts]


def _joined(answers):
    if len(answers) == 1:
        return answers[0]
    flags = {name: any(getattr(answer, name) for answer in answers) for name in ("truncated", "is_short")}
    hypotheses = [answer.hypotheses for answer in answers]
    ranks = [
        [of_part[min(rank, len(of_part) - 1)] for of_part in hypotheses] for rank in range(max(map(len, hypotheses)))
    ]
    texts = [join_texts([one.text for one in of_rank])[0] for of_rank in ranks]
    pairs = zip(texts, (sum(one.score for one in of_rank) for of_rank in ranks), strict=True)
    first, *others = [ServedAnswer(text, score, **flags, parts=len(answers)) for text, score in pairs]
    return dataclasses.replace(first, others=tuple(others))


def is_short(text, answer):
    """Returns whether an answer is so much shorter than its text that part of that is probably not translated."""
    size = len(text.encode())
    return size >= _LEAST_BYTES and len(answer.encode()) * _SHORT < size

"""Splits long contexts into overlapping windows, and encodes positions within a row as ids."""

import functools
import hashlib
import re
from typing import NamedTuple

from t2t_lite.errors import UserError, shown
from t2t_lite.text.offsets import encode_with_offsets
from t2t_lite.text.rows import encode_beginning
from t2t_lite.text.vocabulary import EOS_ID

LONGEST_QUESTION = 64  # maximum number of ids, as in BERT's run_squad.py; longer questions are truncated
DOC_STRIDE = 128


class Window(NamedTuple):
    """One row of ids: a question, id 1, a part of the question's context, and id 1 again.

    Attributes:
        ids: list of int.
        before: int, number of ids in the row that precede the part of the context.
        spans: list of (start, end), the characters of the whole context that each id of the part stands for.
        start: int, number of context ids before the part.
        is_last: bool, whether this is the last part of the context.
    """

    ids: list
    before: int
    spans: list
    start: int
    is_last: bool

    def at(self, start, end):
        """Returns the positions, counted from 1, of the first and the last id that overlap the characters [start, end).

        Returns None if no id overlaps these characters, or if the characters extend beyond the window.
        """
        inside = [i for i, (a, b) in enumerate(self.spans) if a < end and b > start]
        if not inside:
            return None
        first, last = inside[0], inside[-1]
        begins_before = first == 0 and self.spans[0][0] > start and self.start > 0
        ends_behind = last == len(self.spans) - 1 and self.spans[last][1] < end and not self.is_last
        return None if begins_before or ends_behind else (self.before + first + 1, self.before + last + 1)


def windows(encoder, question, context, longest, stride):
    """Splits a question and its context into rows, a list of `Window`.

    Args:
        encoder: TextEncoder.
        question, context: str.
        longest: int, maximum length of a row in ids.
        stride: int, number of ids from the start of one window to the start of the next. The stride is reduced if
            windows would have gaps between them.

    Raises:
        UserError: the question leaves no room for a context in a row.
    """
    question_ids = [*encode_beginning(encoder, question, LONGEST_QUESTION)[:LONGEST_QUESTION], EOS_ID]
    ids, spans = _encoded(encoder, context)
    room = longest - len(question_ids) - 1
    if room < 1:
        raise UserError(
            f"{shown(question)}: its {len(question_ids)} ids leave no room for a context in a row of {longest} ids."
        )
    last = max(0, len(ids) - room)
    starts = [*range(0, last, min(stride, room)), last]  # the last one overlaps more, so that it is full, too
    return [
        Window([*question_ids, *ids[at : at + room], EOS_ID], len(question_ids), spans[at : at + room], at, at == last)
        for at in starts
    ]


@functools.lru_cache(maxsize=4)
def _encoded(encoder, context):
    """Caches `encode_with_offsets`, because successive questions are often about the same context."""
    return encode_with_offsets(encoder, context)


class PositionEncoder:
    """Encodes positions within a row, for example "3 5" as [3, 5]. Positions are counted from 1; 0 is padding.

    Args:
        longest: int, the largest position.
    """

    unknown_id = None

    def __init__(self, longest):
        self.vocab_size = longest + 1

    @property
    def fingerprint(self):
        """The SHA-256 of the largest position, in hex."""
        return hashlib.sha256(f"{type(self).__name__} {self.vocab_size}".encode()).hexdigest()

    def encode(self, text):
        """Encodes numbers separated by spaces. Raises `UserError` for anything else."""
        words = text.split()
        for word in words:
            if not re.fullmatch(r"[0-9]{1,9}", word) or not 1 <= int(word) < self.vocab_size:
                raise UserError(f"{shown(word)} is not a position. Expected numbers from 1 to {self.vocab_size - 1}.")
        return list(map(int, words))

    def decode(self, ids):
        """Returns the positions, without padding, separated by spaces."""
        return " ".join(str(int(i)) for i in ids if i)

    def pieces(self, ids):
        """Returns the position for each id, and `<pad>` for 0."""
        return [str(int(i)) if i else "<pad>" for i in ids]

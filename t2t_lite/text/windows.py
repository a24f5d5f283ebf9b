"""The rows in which a question and a long context are read: windows of the context, which overlap."""

import functools
from typing import NamedTuple

from t2t_lite.errors import UserError, shown
from t2t_lite.text.beginnings import encode_beginning
from t2t_lite.text.offsets import encode_with_offsets
from t2t_lite.text.vocabulary import EOS_ID

LONGEST_QUESTION = 64  # ids, as in BERT's run_squad.py; what a longer one has beyond them is left out
DOC_STRIDE = 128


class Window(NamedTuple):
    """A row: a question, 1, a part of its context, 1.

    Attributes:
        ids: list of int.
        before: int, the ids before the context.
        spans: list of (start, end), the characters of the whole context that each id of the part stands for.
        start: int, ids of the context before the part.
        is_last: bool, whether the part is the context's last one.
    """

    ids: list
    before: int
    spans: list
    start: int
    is_last: bool

    def at(self, start, end):
        """Returns the positions, from 1, of the first and the last id that have characters of [start, end).

        None if there are none, or if the characters go on outside of the window.
        """
        inside = [i for i, (a, b) in enumerate(self.spans) if a < end and b > start]
        if not inside:
            return None
        first, last = inside[0], inside[-1]
        begins_before = first == 0 and self.spans[0][0] > start and self.start > 0
        ends_behind = last == len(self.spans) - 1 and self.spans[last][1] < end and not self.is_last
        return None if begins_before or ends_behind else (self.before + first + 1, self.before + last + 1)


def windows(encoder, question, context, longest, stride):
    """Returns the rows in which a question and its context are read, a list of `Window`.

    Args:
        encoder: TextEncoder.
        question, context: str.
        longest: int, the most ids of a row.
        stride: int, ids from the start of a window to that of the next one; windows leave no gaps.

    Raises:
        UserError: a row has no room for a context.
    """
    asked = [*encode_beginning(encoder, question, LONGEST_QUESTION)[:LONGEST_QUESTION], EOS_ID]
    ids, spans = _encoded(encoder, context)
    room = longest - len(asked) - 1
    if room < 1:
        raise UserError(f"{shown(question)}: its {len(asked)} ids leave no room for a context in {longest}.")
    last = max(0, len(ids) - room)
    starts = [*range(0, last, min(stride, room)), last]  # the last window is full, too
    return [
        Window([*asked, *ids[at : at + room], EOS_ID], len(asked), spans[at : at + room], at, at == last)
        for at in starts
    ]


@functools.lru_cache(maxsize=4)
def _encoded(encoder, context):
    """See `encode_with_offsets`; questions on one context follow one another."""
    return encode_with_offsets(encoder, context)

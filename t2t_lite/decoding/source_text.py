"""A text that was read to be translated: its ids, and the protected texts that symbols stand for."""

import dataclasses

from t2t_lite.extras.protect.protected_texts import Hidden, blocks
from t2t_lite.text.offsets import moved_spans, piece_spans, spans_in_blocks


@dataclasses.dataclass(frozen=True)
class SourceText:
    """A text that was read, see `Translator.read`.

    Attributes:
        text: str, as it was given.
        prepared: str, what the problem makes of it, which is encoded.
        ids: list of int, without EOS; [] of a blank text, and of one of only protected texts; of one that is longer
            than is read more than these.
        hidden: `Hidden`, what was replaced by symbols, with `prepared` as its text; None: nothing is protected.
    """

    text: str
    prepared: str
    ids: list[int]
    hidden: Hidden | None = None

    def __len__(self):
        return len(self.text)

    @property
    def unchanged(self):
        """The output if there is nothing to translate: a text of only protected texts as it is, of a blank one ""."""
        return self.hidden.original if self.hidden and self.hidden.is_only_protected else ""

    def prefix(self, prefix):
        """Returns what an output has to begin with, a text with the symbols of this one's protected texts, or ids."""
        if not (self.hidden and isinstance(prefix, str)):
            return prefix
        return self.hidden.protection.hide_as(prefix, self.hidden.texts)

    def spans(self, encoder, ids):
        """Returns where the text has the pieces of the first of its ids, a list of (start, end)."""
        spans = piece_spans(encoder, ids, self.prepared)
        if not self.hidden:
            return moved_spans(spans, self.prepared, self.text)
        spans = spans_in_blocks(spans, [block[2:] + block[:2] for block in blocks(self.hidden.segments)])
        return moved_spans(spans, self.hidden.original, self.text)

    def restored(self, pieces, output, spans=None):
        """Returns an output with the protected texts of what was read, those of lost symbols, and its pieces' spans.

        Args:
            pieces: list of str, what was read.
            output: str.
            spans: list of (start, end) in it, or None.
        """
        if not self.hidden:
            return output, [], spans
        found = self.hidden.protection.restore(output, self.hidden.read(pieces))
        return found.text, found.lost, spans and spans_in_blocks(spans, blocks(found.segments))

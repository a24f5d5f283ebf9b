"""A text that was read to be translated: what is encoded of it, and what an output has of it.

A problem may have symbols of the vocabulary stand for parts of texts, such as URLs: then its `substitution` has

    symbols                             list of str, that the vocabulary needs
    kinds                               names of what they stand for, for messages
    source_text(text, prepared)         the SourceText, of a subclass
    pairs(pairs, is_training, log)      pairs of a split with symbols, see `translate_own`
    signatures                          the class of an export's signatures that does the same in a graph
"""

import dataclasses

from t2t_lite.text.offsets import moved_spans, piece_spans


@dataclasses.dataclass(frozen=True)
class SourceText:
    """A text that was read, see `Problem.source_text` and `Translator.read`.

    Attributes:
        text: str, as it was given.
        prepared: str, what the problem makes of it, which is encoded.
        ids: list of int, without EOS; [] of a text with nothing to translate; of one that is longer than is read more
            than these.
        unchanged: str, the output if there is nothing to translate.
        whole: list of (start, end) in `text` where no sentence ends.
        restores: bool, whether `restored` may change an output.
    """

    text: str
    prepared: str
    ids: list[int] = ()
    unchanged, whole, restores = "", (), False

    def __len__(self):
        return len(self.text)

    @property
    def is_blank(self):
        """Whether there is nothing to translate."""
        return not self.prepared.strip()

    def target(self, target):
        """Returns what is encoded of a given target, or beginning of one, a text or ids."""
        return target

    def spans(self, encoder, ids):
        """Returns where the text has the pieces of the first of its ids, a list of (start, end)."""
        return moved_spans(piece_spans(encoder, ids, self.prepared), self.prepared, self.text)

    def restored(self, pieces, output, spans=None):
        """Returns an output with what symbols stand for, a list of the texts that it lacks, and its pieces' spans.

        Args:
            pieces: list of str, what was read.
            output: str.
            spans: list of (start, end) in it, or None.
        """
        return output, [], spans

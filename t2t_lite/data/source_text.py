"""Holds a source text, its prepared form and its ids, and restores its replaced parts in the output.

A problem may replace parts of texts, such as URLs, with symbols of the vocabulary. Its `substitution` then has these
attributes and methods:

    symbols                             list of str, the pieces that the vocabulary needs
    kinds                               names of the kinds of replaced parts, for messages
    source_text(text, prepared)         returns an instance of a subclass of `SourceText`
    pairs(pairs, is_training, log)      returns the pairs of a split with their parts replaced, see `translate_own`
    signatures                          the class that defines an export's signatures, which replace and restore parts
"""

import dataclasses

from t2t_lite.text.offsets import moved_spans, piece_spans


@dataclasses.dataclass(frozen=True)
class SourceText:
    """A source text that has been read and prepared, see `Problem.source_text` and `Translator.read`.

    Attributes:
        text: str, the text as given by the user.
        prepared: str, the text as the problem prepares it for encoding.
        ids: list of int, without EOS; [] if nothing is to be translated. The ids are not truncated to the length that
            the model reads.
        unchanged: str, the output if there is nothing to translate.
        whole: list of (start, end), the parts of `text` within which no sentence ends.
    """

    text: str
    prepared: str
    ids: list[int] = ()
    unchanged, whole = "", ()

    def __len__(self):
        return len(self.text)

    @property
    def is_blank(self):
        """Whether the text has no ids, so that there is nothing to translate."""
        return not self.prepared.strip()

    def target(self, target):
        """Converts a target or its beginning, supplied as text or ids, to the form in which it is encoded."""
        return target

    def spans(self, encoder, ids):
        """Returns the spans of ids in the text, a list of (start, end); `ids` are all or the first ids of the text."""
        return moved_spans(piece_spans(encoder, ids, self.prepared), self.prepared, self.text)

    def restored(self, pieces, output, spans=None):
        """Replaces the symbols in an output with the parts of the source for which they stand.

        Returns (output, list of missing parts, spans).

        Args:
            pieces: list of str, the pieces of the source.
            output: str.
            spans: list of (start, end) in the output, or None.
        """
        return output, [], spans

"""A text to be translated: its form that is encoded, and the parts of it that return in an output.

A problem may replace parts of texts, such as URLs, by symbols of the vocabulary. Its `substitution` then has

    symbols                             list of str, the pieces that the vocabulary needs
    kinds                               names of the kinds of replaced parts, for messages
    source_text(text, prepared)         a SourceText, of a subclass
    pairs(pairs, is_training, log)      pairs of a split with symbols, see `translate_own`
    signatures                          the class of an export's signatures that does the same in a graph
"""

import dataclasses

from t2t_lite.text.offsets import moved_spans, piece_spans


@dataclasses.dataclass(frozen=True)
class SourceText:
    """A text that was read, see `Problem.source_text` and `Translator.read`.

    Attributes:
        text: str, the given text.
        prepared: str, the text as the problem prepares it for encoding.
        ids: list of int, without EOS; [] if nothing is to be translated. If the text is longer than the model reads,
            there are more ids than the model reads.
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
        """Returns the form of a target that is encoded; the target, or its beginning, may be a text or ids."""
        return target

    def spans(self, encoder, ids):
        """Returns where the pieces of the text's first ids stand in it, a list of (start, end)."""
        return moved_spans(piece_spans(encoder, ids, self.prepared), self.prepared, self.text)

    def restored(self, pieces, output, spans=None):
        """Returns an output in which symbols are replaced by their texts, a list of the texts that it lacks, and spans.

        Args:
            pieces: list of str, the pieces of the source.
            output: str.
            spans: list of (start, end) in it, or None.
        """
        return output, [], spans

"""Applies translate_own's --protect to source texts and sentence pairs.

A `Protection` is the `substitution` of the problem; it replaces protected texts with symbols.
"""

import collections
import dataclasses
import functools

from t2t_lite import files
from t2t_lite.corpora.filters import pair_hash
from t2t_lite.data.source_text import SourceText
from t2t_lite.data.splits import VocabType
from t2t_lite.errors import UserError
from t2t_lite.extras.protect.protected_texts import MOST_NUMBERS, NUMBERS, Hidden, ProtectedTexts, blocks
from t2t_lite.text import vocabulary_files
from t2t_lite.text.offsets import moved_spans, piece_spans, spans_in_blocks


@dataclasses.dataclass(frozen=True)
class ProtectedSource(SourceText):
    """A source text with symbols instead of protected texts; `hidden.text` equals `prepared`."""

    hidden: Hidden = None

    @property
    def is_blank(self):
        """Whether there is nothing to translate because the text is blank or consists of protected texts."""
        return super().is_blank or self.hidden.is_only_protected

    @property
    def unchanged(self):
        """The output if there is nothing to translate: the text itself if it consists of protected texts, else ""."""
        return self.hidden.original if self.hidden.is_only_protected else ""

    @property
    def whole(self):
        """The spans of the protected texts, a list of (start, end)."""
        return self.hidden.protection.find(self.text)

    def target(self, target):
        """Returns a target, str, with the symbols of this text; a target of ids is returned unchanged."""
        return self.hidden.protection.hide_as(target, self.hidden.texts) if isinstance(target, str) else target

    def spans(self, encoder, ids):
        """See `SourceText.spans`."""
        spans = piece_spans(encoder, ids, self.prepared)
        spans = spans_in_blocks(spans, [block[2:] + block[:2] for block in blocks(self.hidden.segments)])
        return moved_spans(spans, self.hidden.original, self.text)

    def restored(self, pieces, output, spans=None):
        """See `SourceText.restored`; restores the protected texts that the model read; also returns the lost ones."""
        restored = self.hidden.protection.restore(output, self.hidden.read(pieces))
        return restored.text, restored.lost, spans and spans_in_blocks(spans, blocks(restored.segments))


class Protection(ProtectedTexts):
    """The `substitution` of a problem with protected texts: see `t2t_lite.data.source_text`."""

    def source_text(self, text, prepared):
        """Returns the `ProtectedSource` of a text; `prepared` is the text after the problem's preprocessing."""
        hidden = self.hide(prepared)
        return ProtectedSource(text, hidden.text, hidden=hidden)

    def pairs(self, pairs, is_training, log):
        """Yields pairs in which symbols replace what occurs equally often on both sides; logs the counts.

        In half of the training pairs, the numbers of the symbols begin at a random number. Without this, the model
        would rarely see symbols with large numbers, since few sentences have so many protected texts.

        Args:
            pairs: iterable of {"inputs": str, "targets": str}.
            is_training: bool.
            log: function that takes a message.
        """
        replaced, left, fewest = 0, 0, min(self.numbers.values())
        most = collections.Counter()  # the largest number of replaced texts per kind in a pair
        for pair in pairs:
            first = 0
            if is_training and self.find(pair["inputs"]):
                number = pair_hash(pair, "protected texts")
                first = number // 2 % max(self.numbers.values()) if number % 2 else 0
            inputs, targets, of_both, of_one = self.hide_pair(pair["inputs"], pair["targets"], first)
            replaced, left = replaced + of_both, left + of_one
            if of_both > fewest:
                most |= self.counts(inputs)
            yield {**pair, "inputs": inputs, "targets": targets}
        message = (
            f"{replaced:,} protected texts were replaced by symbols on both sides; {left:,} were kept, because they do "
            "not occur equally often on both sides"
        )
        more = {kind: min(most[kind], MOST_NUMBERS) for kind in self.kinds}
        if more := [f"{kind}:{number}" for kind, number in more.items() if number > self.numbers[kind]]:
            message += (
                ". Some pairs have more protected texts than there are symbols, so texts share symbols; with "
                f"{','.join(more)} in --protect, each text has its own symbol"
            )
        log(message)

    @property
    def signatures(self):
        """The class that defines an export's signatures."""
        from t2t_lite.extras.protect.protected_graph import ProtectedSignatures

        return ProtectedSignatures


@functools.cache
def protection_of(kinds):
    """Returns the `Protection` for a tuple of kinds; None for ()."""
    return Protection(kinds) if kinds else None


def check_kinds(values):
    """Checks the kinds in `values["protect"]`, and returns them in the order of `KINDS`, or None if there are none.

    The number of symbols is part of a returned kind only if it is not the default: "urls", "placeholders:30".

    Args:
        values: dict, the settings, see `OwnCorpus.check_settings`.

    Raises:
        UserError: a kind is unknown or has two numbers, a number is out of range, or the vocabulary lacks the symbols
            or cannot contain them.
    """
    words = values["protect"]
    if not words:
        return None
    flag, protection = f"--protect={','.join(words)}", ProtectedTexts(words)
    symbols = protection.symbols
    if reserved := [one for one in values.get("user_defined_symbols") or () if one in symbols]:
        raise UserError(f"--user_defined_symbols: {reserved[0]} is a symbol of {flag}. Remove it.")
    if values.get("vocab_type") == VocabType.BYTE_LEVEL_BPE.value:
        raise UserError(f"{flag} needs symbols, but --vocab_type={values['vocab_type']} has none. Remove one of them.")
    for path in sorted({*(values.get("vocab_from") or {}).values()}):
        if not {*symbols} <= _symbols_in(path):
            raise UserError(
                f"{flag}: the vocabulary {path} lacks some of the symbols {symbols[0]} to {symbols[-1]}. Remove "
                "--vocab_from to learn a vocabulary with the symbols, or choose one that was learned with the same "
                "--protect, or one that spm_train learned with the symbols as --user_defined_symbols."
            )
    return [kind if number == NUMBERS else f"{kind}:{number}" for kind, number in protection.numbers.items()]


def _symbols_in(path):
    """Returns the user-defined symbols of a SentencePiece vocabulary, each one piece; none for other kinds."""
    from t2t_lite.text.sentencepiece_model import ModelProto

    if vocabulary_files.ending_of(path) != vocabulary_files.SENTENCEPIECE:
        return set()
    pieces = ModelProto.FromString(files.read_bytes(path)).pieces
    return {one.piece for one in pieces if one.type == one.USER_DEFINED}

"""What translate_own's --protect makes of a problem: texts to translate, and pairs of sentences, with symbols.

`Protection` is the problem's `substitution`.
"""

import dataclasses
import functools

from t2t_lite import files
from t2t_lite.corpora.filters import pair_hash
from t2t_lite.data.source_text import SourceText
from t2t_lite.data.splits import VocabType
from t2t_lite.errors import UserError, nearest, shown
from t2t_lite.extras.protect.protected_texts import KINDS, NUMBERS, Hidden, ProtectedTexts, blocks
from t2t_lite.text import vocabulary_files
from t2t_lite.text.offsets import moved_spans, piece_spans, spans_in_blocks


@dataclasses.dataclass(frozen=True)
class ProtectedSource(SourceText):
    """A text that was read. `hidden` is the `Hidden` with what was replaced, and with `prepared` as its text."""

    hidden: Hidden = None
    restores = True

    @property
    def is_blank(self):
        """Whether there is nothing to translate: also in a text of only protected texts."""
        return super().is_blank or self.hidden.is_only_protected

    @property
    def unchanged(self):
        """The output if there is nothing to translate: a text of only protected texts as it is, of a blank one ""."""
        return self.hidden.original if self.hidden.is_only_protected else ""

    @property
    def whole(self):
        """Where the text has protected texts, a list of (start, end)."""
        return self.hidden.protection.find(self.text)

    def target(self, target):
        """Returns a given target with the symbols of this text's protected texts; ids as they are."""
        return self.hidden.protection.hide_as(target, self.hidden.texts) if isinstance(target, str) else target

    def spans(self, encoder, ids):
        """See `SourceText.spans`."""
        spans = piece_spans(encoder, ids, self.prepared)
        spans = spans_in_blocks(spans, [block[2:] + block[:2] for block in blocks(self.hidden.segments)])
        return moved_spans(spans, self.hidden.original, self.text)

    def restored(self, pieces, output, spans=None):
        """See `SourceText.restored`: with the protected texts of what was read, and those of lost symbols."""
        found = self.hidden.protection.restore(output, self.hidden.read(pieces))
        return found.text, found.lost, spans and spans_in_blocks(spans, blocks(found.segments))


class Protection(ProtectedTexts):
    """The `substitution` of a problem with protected texts, see `t2t_lite.data.source_text`."""

    def source_text(self, text, prepared):
        """Returns the `ProtectedSource` of a text, and of what the problem makes of it."""
        hidden = self.hide(prepared)
        return ProtectedSource(text, hidden.text, hidden=hidden)

    def pairs(self, pairs, is_training, log):
        """See `hidden_pairs`."""
        return hidden_pairs(pairs, self, is_training, log)

    @property
    def signatures(self):
        """The class of signatures of an export."""
        from t2t_lite.extras.protect.protected_graph import ProtectedSignatures

        return ProtectedSignatures


@functools.cache
def protection_of(kinds):
    """Returns the `Protection` of a tuple of kinds, or None if there are none."""
    return Protection(kinds) if kinds else None


def check_kinds(values):
    """Returns the kinds that `values["protect"]` names, in the order of `KINDS`, or None.

    Args:
        values: the settings, see `OwnCorpus.check_settings`.

    Raises:
        UserError: there is no such kind, or the vocabulary does not or cannot have the symbols.
    """
    words = values["protect"] or ()
    for word in words:
        if word not in KINDS:
            raise UserError(f"--protect: {shown(word)}: {nearest(word, KINDS, end=' ')}Expected {', '.join(KINDS)}.")
    if not words:
        return None
    flag, symbols = f"--protect={','.join(words)}", ProtectedTexts(words).symbols
    if taken := [one for one in values.get("user_defined_symbols") or () if one in symbols]:
        raise UserError(f"--user_defined_symbols: {taken[0]} is one of {flag}. Leave it out.")
    if values.get("vocab_type") == VocabType.BYTE_LEVEL_BPE.value:
        raise UserError(
            f"{flag} together with --vocab_type={values['vocab_type']}, which has no symbols. Leave out one of the two."
        )
    from t2t_lite.text.sentencepiece_model import has_symbols

    for path in sorted({*(values.get("vocab_from") or {}).values()}):
        is_sentencepiece = vocabulary_files.ending_of(path) == vocabulary_files.SENTENCEPIECE
        if not (is_sentencepiece and has_symbols(files.read_bytes(path), symbols)):
            raise UserError(
                f"{flag}: the vocabulary {path} lacks its symbols, such as {symbols[0]}. Expected one that was learned "
                "with the same --protect, or by spm_train with them as --user_defined_symbols; or learn one without "
                "--vocab_from."
            )
    return [kind for kind in KINDS if kind in words]


def hidden_pairs(pairs, protection, is_training, log):
    """Yields pairs with symbols for what both sides have equally often; at the end tells what was left as it is.

    Half of the training pairs count symbols from another number than 1, so that those with large numbers, which few
    sentences need, are learned, too.

    Args:
        pairs: iterable of {"inputs": str, "targets": str}.
        protection: ProtectedTexts.
        is_training: bool.
        log: function of a message.
    """
    replaced = left = 0
    for pair in pairs:
        first = 0
        if is_training and protection.find(pair["inputs"]):
            number = pair_hash(pair, "protected texts")
            first = number // 2 % NUMBERS if number % 2 else 0
        inputs, targets, of_both, of_one = protection.hide_pair(pair["inputs"], pair["targets"], first)
        replaced, left = replaced + of_both, left + of_one
        yield {**pair, "inputs": inputs, "targets": targets}
    log(
        f"{replaced:,} protected texts have symbols on both sides; {left:,} were left as they are: the other side "
        "lacks them or has a different number of them"
    )

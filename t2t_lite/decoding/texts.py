"""Texts, and lists of texts, that are given in Python: what is read of one, and checks."""

import dataclasses

from t2t_lite.errors import UserError, counted, nearest
from t2t_lite.text.offsets import moved_spans, piece_spans, spans_in_blocks
from t2t_lite.text.protected_texts import Hidden, blocks


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
        read = {*pieces}
        texts = {symbol: text for symbol, text in self.hidden.texts.items() if symbol in read}
        found = self.hidden.protection.restore(output, texts)
        return found.text, found.lost, spans and spans_in_blocks(spans, blocks(found.segments))


def check_texts(texts, name="texts", may_be_none=False):
    """Returns a list of str, each valid Unicode.

    Args:
        texts: the user's value.
        name: str, the argument's name.
        may_be_none: bool, whether an item may be None, which then becomes "".

    Raises:
        TypeError: any other value; also a single str, which would pass for a list of characters.
    """
    check_list(texts, name)
    return ["" if text is None and may_be_none else check_text(text, number, name) for number, text in enumerate(texts)]


def check_list(texts, name="texts"):
    """Raises `TypeError` unless a value may be a list of texts: a single str would pass for a list of characters."""
    if isinstance(texts, str | bytes | dict) or not hasattr(texts, "__iter__"):
        advice = " For one sentence: [text]." if isinstance(texts, str | bytes) else ""
        raise TypeError(f"`{name}` must be a list of str, received one {type(texts).__name__}.{advice}")


def one_for_each(values, count, name, expected="one for each"):
    """Returns a list of the user's values, one for each of `count` texts.

    Raises:
        TypeError: as `check_list`.
        UserError: there are more or fewer.
    """
    check_list(values, name)
    values = list(values)
    if len(values) != count:
        raise UserError(f"{counted(count, 'text')}, but {name}: {len(values)}: expected {expected}.")
    return values


def check_text(text, number, name="texts"):
    """Returns an item of a list, number `number`, as valid Unicode. Raises `TypeError` unless it is a str."""
    if not isinstance(text, str):
        advice = " Decode it: .decode('utf-8')." if isinstance(text, bytes) else ""
        raise TypeError(f"`{name}`, item {number}: must be str, received {type(text).__name__}.{advice}")
    return valid_unicode(str(text))  # not a subclass such as NumPy's, which protocols and JSON would have to know


def check_options(given, known, where):
    """Raises `TypeError` for an unknown argument, and suggests the nearest one.

    Args:
        given, known: names.
        where: str, the function's name.
    """
    for name in given:
        if name not in known:
            advice = nearest(name, known) or f"Expected some of {', '.join(known)}."
            raise TypeError(f"{where}() has no argument `{name}`. {advice}")


def valid_unicode(text):
    """Returns a text with lone surrogates, which UTF-8 cannot encode, replaced by U+FFFD."""
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

"""Protected texts: URLs, e-mail addresses, markup tags and placeholders, which come through a translation unchanged.

Before a text is encoded, each of them is replaced by a symbol of the vocabulary, `⟦url1⟧`, `⟦url2⟧`, `⟦tag1⟧`. The
model moves symbols as it moves words, and each is put back where its symbol stands in the output. Symbols are numbered,
as users of Marian are advised to do, and not put back by position: then a language may have them in another order, and
one that the model leaves out does not shift all others. From the 11th text of a kind on, the numbers begin anew, and
texts with the same symbol keep their order. `protected_graph` does the same in a graph.
"""

import collections
import itertools
import re
import typing

NUMBERS = 10  # symbols of each kind; further texts of a kind share them
LOST_SEPARATOR = " "
_OPEN, _CLOSE = "⟦", "⟧"  # no normalization of SentencePiece makes them from other characters

BROKEN = (_OPEN, f"{_OPEN} ")  # what in other text is replaced by what

# RE2 and Python's `re` read these alike (see `test_protected_texts`): no \s, \d, (?i) or look-around, whose meanings
# differ. Each runs in linear time: repetitions are bounded, or end at characters that cannot start a match.
_LETTERS = "0-9A-Za-z\u00c0-\u058f"  # of Latin, Greek, Cyrillic and Armenian; others follow a URL without a space
_INSIDE = rf"(?:[{_LETTERS}!#$%&*+,./:;=?@_~'-]|\([{_LETTERS}!#$%&*+,./:;=?@_~'-]*\))"
_LAST = rf"(?:[{_LETTERS}#$%&*+/=@_~-]|\([{_LETTERS}!#$%&*+,./:;=?@_~'-]*\))"  # no full stop behind a URL
_NAME = r"[0-9A-Za-z_.:$#@!,\[\]-]"
PATTERNS = {
    "urls": rf"(?:[Hh][Tt][Tt][Pp][Ss]?://|[Ff][Tt][Pp]://|\b[Ww][Ww][Ww]\.){_INSIDE}*{_LAST}",
    "emails": r"[0-9A-Za-z._%+-]{1,64}@(?:[0-9A-Za-z-]{1,63}\.){1,8}[A-Za-z]{2,24}",
    "tags": r"</?[A-Za-z][0-9A-Za-z:._-]*(?:[ \t\r\n][^<>]*)?/?>",
    "placeholders": rf"\{{\{{ ?{_NAME}* ?\}}\}}|\$?\{{{_NAME}*\}}"
    r"|%(?:\([0-9A-Za-z_]{1,64}\)|[0-9]{1,2}\$)?[sd]\b",
}
KINDS = tuple(PATTERNS)


class Hidden(typing.NamedTuple):
    """A text with symbols.

    Attributes:
        text: str.
        texts: list of (symbol, protected text), in the order of the text.
        segments: list of (original part, its part of `text`), which cover both.
        protection: the `ProtectedTexts` that replaced them.
    """

    text: str
    texts: dict
    segments: list
    protection: object

    @property
    def original(self):
        """The text without symbols."""
        return "".join(part for part, _ in self.segments)

    @property
    def is_only_protected(self):
        """Whether there is nothing to translate: only protected texts and spaces."""
        symbols = {one for one, _ in self.texts}
        return bool(symbols) and not "".join(part for _, part in self.segments if part not in symbols).strip()

    def read(self, pieces):
        """Returns those of `texts` that were read, if only the first pieces were.

        Args:
            pieces: list of str.
        """
        count = sum(piece in self.protection.symbols for piece in pieces)
        return self.texts[:count]


class Restored(typing.NamedTuple):
    """An output with the protected texts of its input, each as often as there.

    Attributes:
        text: str.
        lost: list of str, the texts whose symbols the model did not write; they stand at the end.
        segments: list of (part of the output, part of `text`), which cover both.
    """

    text: str
    lost: list
    segments: list


class ProtectedTexts:
    """Replaces protected texts by symbols, and puts them back.

    Args:
        kinds: those of `KINDS` to protect.

    Attributes:
        kinds: tuple of str, in the order of `KINDS`.
        symbols: list of str, `NUMBERS` of each kind, that the vocabulary needs.
        pattern, symbol_pattern: regular expressions of a protected text and of a symbol, for `re` and RE2.
    """

    def __init__(self, kinds):
        self.kinds = tuple(kind for kind in KINDS if kind in kinds)
        self.symbols = [symbol(kind, number) for kind in self.kinds for number in range(1, NUMBERS + 1)]
        # A text that looks like a symbol is a protected text itself, and so comes through as it is.
        self.patterns = {kind: f"{_symbols_of(kind)}|{PATTERNS[kind]}" for kind in self.kinds}
        self.pattern = "|".join(f"(?:{pattern})" for pattern in self.patterns.values())
        self.symbol_pattern = "|".join(map(_symbols_of, self.kinds))
        # ASCII: as in RE2, a word (\b) has no other letters.
        self._pattern = re.compile(self.pattern, re.ASCII)
        self._symbol = re.compile(self.symbol_pattern)
        self._kinds = {kind: re.compile(pattern, re.ASCII) for kind, pattern in self.patterns.items()}

    def find(self, text):
        """Returns [(start, end)] of the protected texts, which do not overlap."""
        return [found.span() for found in self._pattern.finditer(text)]

    def hide(self, text):
        """Returns the `Hidden` of a text to be translated: all are replaced."""
        found = self._found(text)
        return self._hidden(text, self._numbered(found, range(len(found)), 0))

    def hide_pair(self, inputs, targets, first=0):
        """Replaces the protected texts of a training pair that both sides have equally often.

        One that a side lacks, or has more often than the other, was translated, or left out, or added: with a symbol
        on one side alone the model would learn to lose symbols, and to invent them.

        Args:
            inputs, targets: str.
            first: int, from which number on to count, modulo `NUMBERS`, so that the symbols with large numbers occur
                in training, too.

        Returns:
            (inputs, targets, number of replaced texts, number of texts that were left as they are).
        """
        of_inputs, of_targets = self._found(inputs), self._found(targets)
        counts = [collections.Counter(text for _, _, text in side) for side in (of_inputs, of_targets)]
        common = [at for at, (_, _, text) in enumerate(of_inputs) if counts[0][text] == counts[1][text]]
        replaced = self._numbered(of_inputs, common, first)
        inputs = self._hidden(inputs, replaced)
        targets = self._hidden(targets, _matched(of_targets, inputs.texts))
        count = len(inputs.texts)
        return inputs.text, targets.text, count, len(of_inputs) + len(of_targets) - 2 * count

    def hide_as(self, text, texts):
        """Returns the text in which the texts of an input have its symbols: a target to be scored, a prefix.

        The k-th occurrence has the symbol of the input's k-th. What the input does not have stays as it is.

        Args:
            text: str.
            texts: list of (symbol, protected text).
        """
        return self._hidden(text, _matched(self._found(text), texts)).text

    def restore(self, output, texts):
        """Returns the `Restored` of a decoded text.

        The k-th occurrence of a symbol becomes the k-th text that has it. One that occurs more often than in the input
        is removed, and a space before it.

        Args:
            output: str.
            texts: list of (symbol, protected text) of its input.
        """
        left = collections.defaultdict(collections.deque)  # the places in `texts` of each symbol
        for at, (one, _) in enumerate(texts):
            left[one].append(at)
        segments, end, removes = [], 0, False
        for found in self._symbol.finditer(output):
            between, end = output[end : found.start()], found.end()
            if left[found[0]]:
                segments += [(between, between), (found[0], texts[left[found[0]].popleft()][1])]
                continue
            removes = True
            kept = between.removesuffix(" ")
            segments += [(kept, kept), (between[len(kept) :], ""), (found[0], "")]
        segments.append((output[end:],) * 2)
        if removes:
            segments = _without_spaces_before(segments)
        lost = [texts[at][1] for at in sorted(itertools.chain(*left.values()))]
        for text in lost:
            is_empty = not any(new for _, new in segments)
            segments.append(("", text if is_empty else LOST_SEPARATOR + text))
        return Restored("".join(new for _, new in segments), lost, segments)

    def _found(self, text):
        """Returns [(start, end, text)] of the protected texts."""
        return [(*found.span(), found[0]) for found in self._pattern.finditer(text)]

    def _numbered(self, found, chosen, first):
        """Returns [(start, end, symbol, text)] of those of the found texts that get one; `chosen` are indices."""
        counts, replaced = collections.Counter(), []
        for at in chosen:
            start, end, text = found[at]
            kind = next(kind for kind, pattern in self._kinds.items() if pattern.fullmatch(text))
            replaced.append((start, end, symbol(kind, (first + counts[kind]) % NUMBERS + 1), text))
            counts[kind] += 1
        return replaced

    def _hidden(self, text, replaced):
        """Returns the Hidden of a text with its replaced parts."""
        segments, texts, done = [], [], 0
        for start, end, one, found in replaced:
            segments += [*_apart(text[done:start]), (found, one)]
            texts.append((one, found))
            done = end
        segments += _apart(text[done:])
        return Hidden("".join(part for _, part in segments), texts, segments, self)


def symbol(kind, number):
    """Returns a symbol, such as ⟦url1⟧."""
    return f"{_OPEN}{kind[:-1]}{number}{_CLOSE}"


def _apart(text):
    """Returns segments in which nothing can be a symbol, not after a normalization either: a space is in its way."""
    return [BROKEN if part == _OPEN else (part, part) for part in re.split(f"({_OPEN})", text)]


def blocks(segments):
    """Returns [(old start, old end, new start, new end)] of segments, for `offsets.spans_in_blocks`."""
    sides = [list(itertools.accumulate(map(len, side), initial=0)) for side in zip(*segments, strict=True)]
    old, new = map(itertools.pairwise, sides)
    return [(*a, *b) for a, b in zip(old, new, strict=True)]


def _symbols_of(kind):
    return f"{_OPEN}{kind[:-1]}(?:{'|'.join(map(str, range(NUMBERS, 0, -1)))}){_CLOSE}"


def _matched(found, texts):
    """Returns [(start, end, symbol, text)] of found texts that an input with (symbol, text) has, k-th to k-th."""
    left = collections.defaultdict(collections.deque)
    for one, text in texts:
        left[text].append(one)
    return [(start, end, left[text].popleft(), text) for start, end, text in found if left[text]]


def _without_spaces_before(segments):
    """Removes spaces at the very beginning."""
    parts = []
    for at, (old, new) in enumerate(segments):
        kept = new.lstrip(" ")
        if kept == new:
            parts.append((old, new))
        else:
            spaces = len(new) - len(kept)
            parts += [(old[:spaces], ""), (old[spaces:], kept)]
        if kept:
            return [*parts, *segments[at + 1 :]]
    return parts

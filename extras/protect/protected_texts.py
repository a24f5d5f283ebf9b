"""Finds protected texts (URLs, markup, placeholders and others), replaces them with symbols, and restores them.

Before a text is encoded, each protected text is replaced by a symbol of the vocabulary: `⟦url1⟧`, `⟦url2⟧`, `⟦tag1⟧`.
The model moves symbols as it moves words, and afterwards each symbol in the output is replaced by its protected text.
Symbols are numbered, as Marian recommends, so that the target language can reorder them, and so that a symbol that the
model drops does not shift the others. By default, a kind has 10 symbols, its 11th text gets the first symbol again, and
texts with the same symbol keep their order; `placeholders:30` sets the number of symbols to 30. `protected_graph` does
the same in a TensorFlow graph.
"""

import collections
import itertools
import re
import typing

from t2t_lite.errors import UserError, nearest, shown

NUMBERS = 10  # default number of symbols per kind; additional texts of a kind share them
MOST_NUMBERS = 100  # limited because the model must learn an embedding for each symbol
LOST_SEPARATOR = " "
_OPEN, _CLOSE = "⟦", "⟧"  # SentencePiece's normalization never turns another character into these

BROKEN = (_OPEN, f"{_OPEN} ")  # a bracket in other text, and a replacement that cannot open a symbol

# RE2 and Python's `re` agree on these patterns (see `test_protected_texts`), which avoid \s, \d, (?i) and look-around
# because the two differ there. Each pattern runs in linear time: its repetitions are bounded, or end at characters that
# cannot start a match.
_LETTERS = "0-9A-Za-z\u00c0-\u058f"  # Latin, Greek, Cyrillic, Armenian; other scripts may follow a URL without a space
_INSIDE = rf"(?:[{_LETTERS}!#$%&*+,./:;=?@_~'-]|\([{_LETTERS}!#$%&*+,./:;=?@_~'-]*\))"
_LAST = rf"(?:[{_LETTERS}#$%&*+/=@_~-]|\([{_LETTERS}!#$%&*+,./:;=?@_~'-]*\))"  # excludes a full stop after a URL
_NAME = r"[0-9A-Za-z_.:$#@!,\[\]-]"
# printf: the flag `-` needs a width, and the flag " " does not match, because "50%-off" and "50% discount" are text.
_STAR = r"\*(?:[0-9]{1,2}\$)?"
_PRINTF = (
    r"%(?:\([0-9A-Za-z_.]{1,64}\)|[0-9]{1,2}\$)?(?:#@[0-9A-Za-z_.]{1,64}@|"
    rf"(?:[-+#0',]{{0,5}}(?:[1-9][0-9]{{0,3}}|{_STAR})|[+#0',]{{0,4}})(?:\.(?:[0-9]{{1,4}}|{_STAR})?)?"
    r"(?:hh|h|ll|l|q|j|z|t|L)?[diouxXeEfFgGaAcCsSpn@])"
)
NOT_PROTECTED = "%%"  # `printf` matches this text, so that "%%d" is not read as "%d", but it stays in the text
# ICU messages: an argument, `{n, plural, one {`, `} other {`, `}}`, and a `#` that is not part of a word.
_SPACE = r"[ \t\r\n]*"
_ARGUMENT = rf"\{{{_SPACE}[0-9A-Za-z_.-]{{1,64}}{_SPACE}"
_SELECTOR = rf"(?:=[0-9]{{1,4}}|[A-Za-z_][0-9A-Za-z_-]{{0,63}}){_SPACE}\{{"
PATTERNS = {
    "urls": rf"(?:[Hh][Tt][Tt][Pp][Ss]?://|[Ff][Tt][Pp]://|\b[Ww][Ww][Ww]\.){_INSIDE}*{_LAST}",
    "emails": r"[0-9A-Za-z._%+-]{1,64}@(?:[0-9A-Za-z-]{1,63}\.){1,8}[A-Za-z]{2,24}",
    "tags": r"</?[A-Za-z][0-9A-Za-z:._-]*(?:[ \t\r\n][^<>]*)?/?>",
    "placeholders": rf"\{{\{{ ?{_NAME}* ?\}}\}}|\$?\{{{_NAME}*\}}"
    r"|%(?:\([0-9A-Za-z_]{1,64}\)|[0-9]{1,2}\$)?[sd]\b",
    "printf": f"{NOT_PROTECTED}|{_PRINTF}",
    "icu": rf"{_ARGUMENT}(?:\}}|,{_SPACE}(?:number|date|time|spellout|ordinal|duration|list){_SPACE}(?:,[^{{}}]*)?\}}"
    rf"|,{_SPACE}(?:plural|selectordinal|select){_SPACE},{_SPACE}(?:offset:[0-9]{{1,4}}{_SPACE})?{_SELECTOR})"
    rf"|\}}{_SPACE}(?:{_SELECTOR}|\}})|\B#\B",
    "entities": r"&(?:[A-Za-z][0-9A-Za-z]{1,31}|#[0-9]{1,7}|#[Xx][0-9A-Fa-f]{1,6});",
    # A comment that is not closed is not protected. Another "<!-" ends the search, which keeps the time linear.
    "comments": r"<!---?>|<!--(?:[^<]|<+(?:!*[^<!-]|-[^<-]|--[^<>-]))*?<*-->",
}
KINDS = tuple(PATTERNS)
_SINGULAR = {"printf": "printf", "icu": "icu", "entities": "entity"}


class Hidden(typing.NamedTuple):
    """A text whose protected texts are replaced by symbols.

    Attributes:
        text: str, the text with symbols.
        texts: list of (symbol, protected text), in order.
        segments: list of (part of the original, part of `text`), which together cover both texts.
        protection: the `ProtectedTexts` that made the replacements.
    """

    text: str
    texts: list
    segments: list
    protection: object

    @property
    def original(self):
        """The original text, without symbols."""
        return "".join(part for part, _ in self.segments)

    @property
    def is_only_protected(self):
        """Whether there is nothing to translate because the text consists of protected texts and spaces."""
        symbols = {one for one, _ in self.texts}
        return bool(symbols) and not "".join(part for _, part in self.segments if part not in symbols).strip()

    def read(self, pieces):
        """Returns the entries of `texts` whose symbols are among the pieces that the model read.

        Args:
            pieces: list of str.
        """
        count = sum(piece in self.protection.symbols for piece in pieces)
        return self.texts[:count]


class Restored(typing.NamedTuple):
    """An output into which the protected texts of its input were put back, each as often as in the input.

    Attributes:
        text: str.
        lost: list of str, the protected texts whose symbols the output lacks; they are appended to `text`.
        segments: list of (part of the output, part of `text`), which together cover both texts.
    """

    text: str
    lost: list
    segments: list


class ProtectedTexts:
    """Replaces protected texts with symbols, and restores them in outputs.

    Args:
        kinds: the kinds to protect, such as "urls", or "placeholders:30" to set the number of symbols.

    Attributes:
        kinds: tuple of str, the names of the kinds in the order of `KINDS`.
        numbers: dict, the number of symbols for each kind; the default number is `NUMBERS`.
        symbols: list of str, the symbols that the vocabulary needs, kind by kind.
        pattern, symbol_pattern: regular expressions for a protected text and a symbol, valid in `re` and RE2.

    Raises:
        UserError: a kind is unknown or has two numbers, or a number is out of range.
    """

    def __init__(self, kinds):
        numbers = {}
        for kind, number in map(kind_and_number, kinds):
            if numbers.setdefault(kind, number) != number:
                raise UserError(f"--protect: {kind} occurs with two numbers of symbols. Remove one of them.")
        self.kinds = tuple(kind for kind in KINDS if kind in numbers)
        self.numbers = {kind: numbers[kind] for kind in self.kinds}
        self.symbols = [symbol(kind, number) for kind in self.kinds for number in range(1, numbers[kind] + 1)]
        # A text that looks like a symbol is itself a protected text, so that it stays unchanged.
        self.patterns = {kind: f"{_symbols_of(kind, numbers[kind])}|{PATTERNS[kind]}" for kind in self.kinds}
        self.pattern = "|".join(f"(?:{pattern})" for pattern in self.patterns.values())
        self.symbol_pattern = "|".join(itertools.starmap(_symbols_of, self.numbers.items()))
        # With re.ASCII, \b means the same as in RE2.
        self._pattern = re.compile(self.pattern, re.ASCII)
        self._symbol = re.compile(self.symbol_pattern)
        self._kinds = {kind: re.compile(pattern, re.ASCII) for kind, pattern in self.patterns.items()}

    def find(self, text):
        """Returns the spans of the protected texts, [(start, end)], which do not overlap."""
        return [(start, end) for start, end, _ in self._occurrences(text)]

    def counts(self, text):
        """Counts the symbols of each kind in a text with symbols; returns a Counter."""
        kinds = {f"{_OPEN}{_singular(kind)}": kind for kind in self.kinds}
        return collections.Counter(kinds[one.rstrip(f"0123456789{_CLOSE}")] for one in self._symbol.findall(text))

    def hide(self, text):
        """Replaces all protected texts in a text to be translated, and returns its `Hidden`."""
        occurrences = self._occurrences(text)
        return self._hidden(text, self._numbered(occurrences, range(len(occurrences)), 0))

    def hide_pair(self, inputs, targets, first=0):
        """Replaces those protected texts of a training pair that occur equally often in inputs and targets.

        Any other protected text was translated, dropped or added. If only one side had its symbol, the model would
        learn to drop and to invent symbols.

        Args:
            inputs, targets: str.
            first: int, added to the symbols' numbers (modulo the number of symbols), so that symbols with large numbers
                also occur in training.

        Returns:
            (inputs, targets, number of replaced texts, number of protected texts that were not replaced).
        """
        in_inputs, in_targets = self._occurrences(inputs), self._occurrences(targets)
        counts = [collections.Counter(text for _, _, text in side) for side in (in_inputs, in_targets)]
        common = [at for at, (_, _, text) in enumerate(in_inputs) if counts[0][text] == counts[1][text]]
        replaced = self._numbered(in_inputs, common, first)
        inputs = self._hidden(inputs, replaced)
        targets = self._hidden(targets, _matched(in_targets, inputs.texts))
        count = len(inputs.texts)
        return inputs.text, targets.text, count, len(in_inputs) + len(in_targets) - 2 * count

    def hide_as(self, text, texts):
        """Replaces protected texts in a target or prefix with the symbols that they have in the input.

        The k-th occurrence of a text gets the symbol of its k-th occurrence in the input. Protected texts that the
        input lacks stay unchanged.

        Args:
            text: str, the target or prefix.
            texts: list of (symbol, protected text) of the input.
        """
        return self._hidden(text, _matched(self._occurrences(text), texts)).text

    def restore(self, output, texts):
        """Puts the protected texts back into a decoded text, and returns a `Restored`.

        The k-th occurrence of a symbol becomes the k-th text with this symbol. Any further occurrence is removed, along
        with a space before it.

        Args:
            output: str.
            texts: list of (symbol, protected text) of the input.
        """
        left = collections.defaultdict(collections.deque)  # symbol -> indices in `texts`
        for at, (one, _) in enumerate(texts):
            left[one].append(at)
        segments, end, removes = [], 0, False
        for match in self._symbol.finditer(output):
            between, end = output[end : match.start()], match.end()
            if left[match[0]]:
                segments += [(between, between), (match[0], texts[left[match[0]].popleft()][1])]
                continue
            removes = True
            stripped = between.removesuffix(" ")
            segments += [(stripped, stripped), (between[len(stripped) :], ""), (match[0], "")]
        segments.append((output[end:],) * 2)
        if removes:
            segments = _without_spaces_before(segments)
        lost = [texts[at][1] for at in sorted(itertools.chain(*left.values()))]
        for text in lost:
            is_empty = not any(new for _, new in segments)
            segments.append(("", text if is_empty else LOST_SEPARATOR + text))
        return Restored("".join(new for _, new in segments), lost, segments)

    def _occurrences(self, text):
        """Returns [(start, end, text)] for all protected texts in a text."""
        return [(*match.span(), match[0]) for match in self._pattern.finditer(text) if match[0] != NOT_PROTECTED]

    def _numbered(self, occurrences, chosen, first):
        """Returns [(start, end, symbol, text)] for the entries of `occurrences` with the indices `chosen`."""
        counts, replaced = collections.Counter(), []
        for at in chosen:
            start, end, text = occurrences[at]
            kind = next(kind for kind, pattern in self._kinds.items() if pattern.fullmatch(text))
            replaced.append((start, end, symbol(kind, (first + counts[kind]) % self.numbers[kind] + 1), text))
            counts[kind] += 1
        return replaced

    def _hidden(self, text, replaced):
        """Returns the Hidden of a text, given [(start, end, symbol, text)] of the parts to replace."""
        segments, texts, done = [], [], 0
        for start, end, one, protected in replaced:
            segments += [*_apart(text[done:start]), (protected, one)]
            texts.append((one, protected))
            done = end
        segments += _apart(text[done:])
        return Hidden("".join(part for _, part in segments), texts, segments, self)


def symbol(kind, number):
    """Returns a symbol, such as ⟦url1⟧."""
    return f"{_OPEN}{_singular(kind)}{number}{_CLOSE}"


def _singular(kind):
    return _SINGULAR.get(kind, kind[:-1])


def kind_and_number(word):
    """Splits a word of --protect, such as "placeholders:30", into the kind and the number of symbols.

    Raises `UserError` if the kind is unknown or the number is not from 1 to `MOST_NUMBERS`.
    """
    kind, colon, number = word.partition(":")
    if kind not in KINDS:
        raise UserError(f"--protect: {shown(word)}: {nearest(kind, KINDS, end=' ')}Expected {', '.join(KINDS)}.")
    if not colon:
        return kind, NUMBERS
    if not re.fullmatch("[1-9][0-9]{0,2}", number) or int(number) > MOST_NUMBERS:
        raise UserError(f"--protect: {shown(word)}: expected from 1 to {MOST_NUMBERS} symbols, such as {kind}:30.")
    return kind, int(number)


def _apart(text):
    """Splits unprotected text into segments, and adds a space to brackets so that they cannot form symbols."""
    return [BROKEN if part == _OPEN else (part, part) for part in re.split(f"({_OPEN})", text)]


def blocks(segments):
    """Returns [(old start, old end, new start, new end)] for segments, as `offsets.spans_in_blocks` expects."""
    sides = [list(itertools.accumulate(map(len, side), initial=0)) for side in zip(*segments, strict=True)]
    old, new = map(itertools.pairwise, sides)
    return [(*a, *b) for a, b in zip(old, new, strict=True)]


def _symbols_of(kind, numbers):
    return symbol(kind, f"(?:{'|'.join(map(str, range(numbers, 0, -1)))})")


def _matched(occurrences, texts):
    """Pairs the k-th occurrence of each found text with the k-th (symbol, text) in `texts` that has the same text.

    Returns [(start, end, symbol, text)] for the pairs.
    """
    left = collections.defaultdict(collections.deque)
    for one, text in texts:
        left[text].append(one)
    return [(start, end, left[text].popleft(), text) for start, end, text in occurrences if left[text]]


def _without_spaces_before(segments):
    """Returns the segments without the spaces at the beginning of their joined new text."""
    parts = []
    for at, (old, new) in enumerate(segments):
        stripped = new.lstrip(" ")
        if stripped == new:
            parts.append((old, new))
        else:
            spaces = len(new) - len(stripped)
            parts += [(old[:spaces], ""), (old[spaces:], stripped)]
        if stripped:
            return [*parts, *segments[at + 1 :]]
    return parts

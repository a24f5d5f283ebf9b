"""Finds the texts to translate in an HTML document, and replaces only these texts with translations."""

import collections
import html
import html.parser
import itertools
import re

from t2t_lite.extras.serving.refusals import Refusal

# Elements that can occur within a sentence. All other elements end the sentence.
_INLINE = {
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font", "i", "ins", "kbd",
    "label", "mark", "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup",
    "time", "tt", "u", "var", "wbr", "img",
}  # fmt: skip
_VOID = {
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
}  # fmt: skip
# Elements whose end tags are optional in HTML.
_MAY_STAY_OPEN = {
    "body", "caption", "colgroup", "dd", "dt", "head", "html", "li", "optgroup", "option", "p", "rb", "rp", "rt",
    "rtc", "tbody", "td", "tfoot", "th", "thead", "tr",
}  # fmt: skip
_NOT_TRANSLATED = {"code", "script", "style", "textarea", "svg", "math"}
_BLANKS = re.compile(r"[ \t\n\f\r]+")  # HTML's white space; a no-break space is text
_EDGE = " \t\n\f\r"
_LINE_END = re.compile(r"\r\n|\n|\r")
_UNFINISHED = re.compile(r"<(?:[A-Za-z/!?])[^<>]*\Z")
_Item = collections.namedtuple("_Item", "kind raw text")  # kind: "text", "tag" (inline), "block" or "raw"


class HTMLTexts:
    """Divides a document into texts and tags.

    Elements such as `<p>` or `<br>` divide the document into sentences or paragraphs, each of which is a piece.

    Args:
        text: str, a document or a part of a document.
        protects_tags: bool, whether the model copies tags in a text unchanged. Otherwise, every tag divides the
            document.

    Attributes:
        text: str, the argument `text`.
        pieces: list of str, the texts to translate. Entities are decoded. Pieces contain tags only with
            `protects_tags`.

    Raises:
        Refusal: a tag, a comment or an element is not closed.
    """

    def __init__(self, text, protects_tags):
        self.text = text
        self._parts = []  # unchanged str, or (list of items, index of the piece, whether the piece has tags)
        self.pieces = []
        run = []
        for item in _items(text):
            if item.kind in ("text", "tag"):
                run.append(item)
            else:
                self._add(run, protects_tags)
                self._parts.append(item.raw)
                run = []
        self._add(run, protects_tags)

    def with_translations(self, translations):
        """Returns the document with `pieces` replaced by their translations, a list of str.

        Returns None if the tags of a translation differ from those of its piece, or the elements of a translation
        overlap or have lost all their text.
        """
        parts = []
        for part in self._parts:
            if isinstance(part, str):
                parts.append(part)
                continue
            items, at, has_tags = part
            translation = translations[at]
            if has_tags:
                translation = _with_tags(translation, self.pieces[at], _tags(items))
                if translation is None:
                    return None
            else:
                translation = html.escape(translation, quote=False)
            whole = "".join(item.raw for item in items)
            parts.append(around(whole, translation, _EDGE))
        return "".join(parts)

    def _add(self, run, protects_tags):
        """Adds the items of one sentence or paragraph."""
        run = _joined(run)
        inner = _within(run) if protects_tags else slice(0)
        tags = _tags(run[inner])
        is_plain = not any("<" in item.text for item in run)  # a literal < in a text could be mistaken for a tag
        if tags and is_plain and _is_balanced(tags):
            self._parts += [item.raw for item in run[: inner.start]]
            self._add_piece(run[inner], True)
            self._parts += [item.raw for item in run[inner.stop :]]
            return
        for item in run:
            if _is_text(item):
                self._add_piece([item], False)
            else:
                self._parts.append(item.raw)

    def _add_piece(self, items, has_tags):
        text = "".join(item.text if item.kind == "text" else item.raw for item in items)
        self._parts.append((items, len(self.pieces), has_tags))
        self.pieces.append(_BLANKS.sub(" ", text).strip(" "))


def around(text, translation, blanks=None):
    """Returns a translation with the leading and trailing white space of its source text: see `str.strip`."""
    return text[: len(text) - len(text.lstrip(blanks))] + translation + text[len(text.rstrip(blanks)) :]


def _is_text(item):
    return item.kind == "text" and bool(item.text.strip())


def _within(run):
    """Returns the slice of items without the spaces, single tags and pairs of tags that surround the whole sentence."""
    first, last = 0, len(run)
    ends = _ends([item.raw if item.kind == "tag" else "" for item in run])
    while first < last:
        begin, end = run[first], run[last - 1]
        if not _is_text(begin) and (begin.kind == "text" or _name(begin.raw) in _VOID):
            first += 1
        elif not _is_text(end) and (end.kind == "text" or _name(end.raw) in _VOID):
            last -= 1
        elif ends.get(first) == last - 1:
            first, last = first + 1, last - 1
        else:
            break
    return slice(first, last)


def _tags(items):
    return [item.raw for item in items if item.kind == "tag"]


def _joined(items):
    """Joins adjacent texts, which the parser divides at entities."""
    pieces = []
    for is_text, group in itertools.groupby(items, key=lambda item: item.kind == "text"):
        if is_text:
            raws, texts = zip(*((item.raw, item.text) for item in group), strict=True)
            group = [_Item("text", "".join(raws), "".join(texts))]
        pieces += group
    return pieces


def _with_tags(text, piece, tags):
    """Returns a translation as HTML, or None if its tags are not those of its piece, or its elements overlap.

    None is also returned if an element has become empty: a SavedModel appends the tags that its model has lost. In a
    piece, white space inside a tag is one space; the result has the original tags.
    """
    originals = collections.defaultdict(collections.deque)
    for tag in tags:
        originals[_BLANKS.sub(" ", tag)].append(tag)
    tags = [_BLANKS.sub(" ", tag) for tag in tags]
    any_tag = "(" + "|".join(map(re.escape, sorted({*tags}, key=len, reverse=True))) + ")"
    parts = re.split(any_tag, text)
    kept, others = parts[1::2], parts[::2]
    if sorted(kept) != sorted(tags) or not _is_balanced(kept) or any("<" in part for part in others):
        return None
    if _count_empty(parts) > _count_empty(re.split(any_tag, piece)):
        return None
    return "".join(
        originals[part].popleft() if at % 2 else html.escape(part, quote=False) for at, part in enumerate(parts)
    )


def _count_empty(parts):
    """Counts the elements without text in a list of texts with tags between them."""
    pairs = zip(parts[1:-2:2], parts[2:-2:2], parts[3::2], strict=True)
    return sum(_opens(tag) and not text.strip() and end.startswith("</") for tag, text, end in pairs)


def _is_balanced(tags):
    """Returns whether each start tag has an end tag, and elements do not overlap."""
    return 2 * len(_ends(tags)) == sum(tag.startswith("</") or _opens(tag) for tag in tags)


def _ends(tags):
    """Returns {index of a start tag: index of its end tag} for the elements that overlap no other element.

    Args:
        tags: list of str, in which "" stands for a text.
    """
    ends, starts = {}, []
    for at, tag in enumerate(tags):
        if tag.startswith("</"):
            if starts and _name(tags[starts[-1]]) == _name(tag):
                ends[starts.pop()] = at
            else:
                starts.clear()  # their elements would overlap the one that ends here
        elif tag and _opens(tag):
            starts.append(at)
    return ends


def _opens(tag):
    """Returns whether a tag is the start of an element that has an end tag."""
    return not tag.startswith("</") and not tag.endswith("/>") and _name(tag) not in _VOID


def _name(tag):
    return re.match(r"</?([A-Za-z][^\s/>]*)", tag)[1].lower()


def _items(text):
    """Returns the `_Item`s of a document, which is the concatenation of their `raw` texts."""
    parser = _Parser(text)
    parser.feed(text)
    if unfinished := _UNFINISHED.search(text[parser.end :] if parser.end < len(text) else ""):
        raise Refusal(f"Invalid request: q: {unfinished[0][:40]} is not closed. Expected >")
    parser.close()
    return parser.finished()


class _Parser(html.parser.HTMLParser):
    """Collects the start positions and kinds of the items into which a document is divided."""

    def __init__(self, text):
        super().__init__(convert_charrefs=False)
        self._text, self._lines = text, [0]
        for match in re.finditer("\n", text):
            self._lines.append(match.end())
        self._starts = []  # (start position, kind) of each item
        self._open = []  # names of open elements
        self._num_open = collections.Counter()  # how often each name is in `_open`, which may be too long to search
        self._closed_to = None  # number of open elements after the end of an untranslated element

    @property
    def end(self):
        """The position up to which the text has been parsed."""
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def finished(self):
        """Returns the items. Raises `Refusal` if an element is not closed."""
        if left := [name for name in self._open if name not in _MAY_STAY_OPEN]:
            raise Refusal(f"Invalid request: q: <{left[-1]}> is not closed. Expected </{left[-1]}>")
        # The parser passes over some characters, such as </>, without an event.
        places = [0, *(position for position, _ in self._starts[1:]), len(self._text)]
        kinds = [kind for _, kind in self._starts] or ["raw"]
        items = []
        for kind, (start, end) in zip(kinds, itertools.pairwise(places), strict=True):
            raw = self._text[start:end]
            if kind != "raw" and raw.startswith("<!--") and not raw.endswith("-->"):
                raise Refusal("Invalid request: q: <!-- is not closed. Expected -->")
            items.append(_Item(kind, raw, html.unescape(raw) if kind == "text" else ""))
        return items

    def handle_starttag(self, tag, attrs):
        """See `html.parser`."""
        attributes = dict(attrs)
        kind = self._kind("tag" if tag in _INLINE else "block")
        if tag not in _VOID:
            is_kept = tag in _NOT_TRANSLATED or attributes.get("translate") == "no"
            is_kept |= "notranslate" in (attributes.get("class") or "").split()
            if is_kept and self._closed_to is None:
                self._closed_to, kind = len(self._open), "raw"
            self._open.append(tag)
            self._num_open[tag] += 1
        self._starts.append((self.end, kind))

    def handle_startendtag(self, tag, attrs):
        """See `html.parser`."""
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self._close()
            if self._closed_to == len(self._open):
                self._closed_to = None

    def handle_endtag(self, tag):
        """See `html.parser`."""
        kind = self._kind("tag" if tag in _INLINE else "block")
        if self._num_open[tag]:
            while (name := self._close()) != tag:
                if name not in _MAY_STAY_OPEN:
                    raise Refusal(f"Invalid request: q: <{name}> is not closed before </{tag}>")
        elif tag not in _VOID and tag != "p":  # </p> without <p> is an empty paragraph
            raise Refusal(f"Invalid request: q: </{tag}> has no start tag. Expected <{tag}> before it")
        self._starts.append((self.end, kind))
        if self._closed_to is not None and len(self._open) <= self._closed_to:
            self._closed_to = None

    def handle_data(self, data):
        """See `html.parser`."""
        self._starts.append((self.end, self._kind("text")))
        if self._num_open["pre"]:  # browsers show its line ends, so each of its lines is a text
            for match in _LINE_END.finditer(data):
                places = ((self.end + match.start(), "block"), (self.end + match.end(), "text"))
                self._starts += [(place, self._kind(kind)) for place, kind in places]

    handle_entityref = handle_charref = handle_data

    def handle_comment(self, data):
        """See `html.parser`."""
        self._starts.append((self.end, self._kind("raw")))

    handle_decl = handle_pi = unknown_decl = handle_comment

    def _close(self):
        """Ends the innermost open element and returns its name."""
        name = self._open.pop()
        self._num_open[name] -= 1
        return name

    def _kind(self, kind):
        return kind if self._closed_to is None else "raw"

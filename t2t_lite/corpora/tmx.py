"""Reads translation memories (`.tmx`), whose units `<tu>` have a variant `<tuv>` for each language.

The parser is the standard library's expat. Only one unit is held in memory at a time, so memory use does not grow with
the file. A file that declares entities is refused, since a few lines of declarations can expand to gigabytes. An
external document type to which a file refers is not loaded.
"""

import codecs
import collections
import contextlib
import functools
import html.entities
import re
from typing import NamedTuple
from xml.parsers import expat

from t2t_lite.corpora import encodings, plain_text
from t2t_lite.corpora.scripts import subtags
from t2t_lite.errors import UserError, shown

_BLOCK = 2**16
_DECLARED = re.compile(rb"""\s*<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:\-]+)["']""")
# Characters and numeric references that some programs write although XML 1.0 does not allow them.
_NOT_XML = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|&#(?:x0*(?:[0-8bcef]|1[0-9a-f])|0*(?:[0-8]|1[1245-9]|2[0-9]|3[01]));",
    re.IGNORECASE,
)
# Elements inside a segment whose text is skipped: formatting codes and secondary text. The text of `hi` and similar
# elements is kept.
_CODES = frozenset(("bpt", "ept", "it", "ph", "ut", "sub"))
_LANGUAGES_SHOWN = 20
EMPTY, UNTRANSLATED, OTHER = "empty", "units that lack one of the languages", "segments of other languages"


class _Variant(NamedTuple):
    """A translation unit's segment in one language; `language` is "" if the file does not name the language."""

    language: str
    text: str


def read_pairs(source, languages=None, removed=None, on_bad_line=None):
    """Yields {"inputs": str, "targets": str} for every unit that has a segment in each of two languages.

    The segments are matched by language, in any order. `en` and `en-US` match each other. If several segments match, an
    exact match is preferred, then the first match.

    Args:
        source: as for `plain_text.read_lines`.
        languages: (code of the inputs' language, code of the targets' language). If None, they are the languages of the
            first unit with two languages, in the order of that unit. If a file has no language codes, its segments are
            taken in order.
        removed: None, or a Counter in which skipped units and segments are counted: units that lack a language or have
            an empty segment, and segments in other languages.
        on_bad_line: None, or a function called with a message about each unit with bytes that are invalid in the file's
            encoding; the unit is skipped.

    Raises:
        UserError: the file is missing or damaged, is not XML, has an encoding that Python does not know, declares
            entities, or has no unit in the two languages.
    """
    removed = collections.Counter() if removed is None else removed
    count, languages_of_file = 0, {}  # {language: None}, in order of occurrence
    for variants in _Units(source, on_bad_line).read():
        present = dict.fromkeys(variant.language for variant in variants)
        languages_of_file |= present if len(languages_of_file) < _LANGUAGES_SHOWN else {}
        if languages is None and len(present) > 1:
            languages = [*present][:2]
        pair = _pair(variants, languages)
        if pair is None:
            removed[UNTRANSLATED] += 1
            continue
        count += 1
        if others := sum(not any(_rank(code, language) for language in languages or ()) for code in present if code):
            removed[OTHER] += others
        texts = [_joined_lines(variant.text) for variant in pair]
        if all(texts):
            yield {"inputs": texts[0], "targets": texts[1]}
        else:
            removed[EMPTY] += 1
    if not count:
        segments = f"in {' and '.join(map(shown, languages))}" if languages else "with two segments"
        codes = ", ".join(filter(None, languages_of_file))
        remark = f"Its languages are {shown(codes)}. " if codes else ""
        raise UserError(
            f'{source}: no unit {segments}. {remark}Expected units such as <tu><tuv xml:lang="en"><seg>…</seg></tuv>'
            '<tuv xml:lang="de"><seg>…</seg></tuv></tu>.'
        )


def _joined_lines(text):
    """Joins the lines of a text into one, without their indentation."""
    if text.isprintable():  # this test saves time, since most texts pass it
        return text.strip()
    return plain_text.clean(" ".join(filter(None, map(str.strip, re.split("[\r\n]", text)))))


def _pair(variants, languages):
    """Returns a unit's variants for inputs and targets, or None if the unit lacks one of the languages."""
    if not any(variant.language for variant in variants):
        return variants if len(variants) == 2 else None
    pair = []
    for language in languages or ():
        ranks = [(_rank(variant.language, language), -at) for at, variant in enumerate(variants)]
        rank, at = max(ranks)
        if not rank:
            return None
        pair.append(variants[-at])
    return pair if len(pair) == 2 and pair[0] is not pair[1] else None


@functools.lru_cache(maxsize=1024)
def _rank(language, target):
    """Returns how well a language matches the target, from 0 (no match) to 3 (the same code)."""
    language, target = subtags(language), subtags(target)
    if language == target:
        return 3
    shared = min(len(language), len(target))
    if language[:shared] == target[:shared]:
        return 2
    return int(language[0] == target[0])


class _Units:
    """A parser of a translation memory, which iterates over the file's units in order."""

    def __init__(self, source, on_bad_line):
        self._source, self._on_bad_line = source, on_bad_line
        self._codes, self._text, self._size = 0, None, 0
        self._language, self._variants, self._finished, self._count = "", None, [], 0
        self._parser = xml_parser(source, self._start, self._end, self._characters)
        self._parser.SkippedEntityHandler = self._entity

    def read(self):
        """Yields each unit as a list of its `_Variant`s."""
        with plain_text.naming_errors(self._source), plain_text.open_binary(self._source) as file:
            encoding = _encoding(self._source, file.peek(encodings.HEAD))
            for part, is_last in self._decoded(file, encoding):
                with xml_errors(self._source, "a translation memory, <tmx>"):
                    self._parser.Parse(part, is_last)
                units, self._finished = self._finished, []
                for number, variants in units:
                    if self._on_bad_line and any("\ufffd" in variant.text for variant in variants):
                        self._on_bad_line(f"{self._source}: unit number {number:,} has bytes that are not {encoding}.")
                    else:
                        yield variants

    def _decoded(self, file, encoding):
        """Yields (part of a file, whether it is the last part); no part ends within a tag or a character reference."""
        decoder = codecs.getincrementaldecoder(encoding)("replace" if self._on_bad_line else "strict")
        rest, position = "", 0
        while True:
            data = file.read(_BLOCK)
            try:
                text = rest + decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                line = self._parser.CurrentLineNumber
                raise UserError(
                    f"{self._source}, after line {line:,}: byte 0x{error.object[error.start]:02x} is not {encoding}, "
                    "the encoding that the file declares. Declare the right encoding, or skip such units: t2t-datagen "
                    "--skip_bad_lines."
                ) from None
            if not position:
                # leading spaces are removed, since expat does not allow text before the declaration
                text = text.removeprefix("\ufeff").lstrip()
            position += len(data)
            if not data:
                yield _NOT_XML.sub(" ", text), True
                return
            if len(text) > plain_text.LONGEST_LINE:
                raise UserError(f"{self._source}: {plain_text.LONGEST_LINE:,} characters without a tag. Expected TMX.")
            end = text.rfind(">") + 1
            rest = text[end:]
            if end:
                yield _NOT_XML.sub(" ", text[:end]), False

    # The callbacks that expat calls for tags, text and entities.

    def _start(self, name, attributes):
        name = _local(name)
        if name in _CODES and self._text is not None:
            self._codes += 1
        elif name == "tu":
            self._count, self._variants, self._language = self._count + 1, [], ""
        elif name == "tuv":
            self._language = next((text for key, text in attributes.items() if _local(key) == "lang"), "").strip()
        elif name == "seg" and self._variants is not None:
            self._text, self._size = [], 0

    def _end(self, name):
        name = _local(name)
        if name in _CODES and self._text is not None:
            self._codes -= 1
        elif name == "seg" and self._text is not None:
            self._variants.append(_Variant(self._language, "".join(self._text)))
            self._text = None
        elif name == "tuv":
            self._language = ""
        elif name == "tu" and self._variants is not None:
            self._finished.append((self._count, self._variants))
            self._variants = None

    def _characters(self, text):
        if self._text is not None and not self._codes:
            self._size += len(text)
            if self._size > plain_text.LONGEST_LINE:
                raise plain_text.too_long(self._source, self._parser.CurrentLineNumber)
            self._text.append(text)

    def _entity(self, name, is_parameter):
        """Replaces HTML's entities with characters, because the document type that defines them is not loaded."""
        if is_parameter:
            return
        if name not in html.entities.name2codepoint:
            raise UserError(
                f"{self._source}, line {self._parser.CurrentLineNumber}: the entity &{name}; is not declared. Expected "
                "a character in its place."
            )
        self._characters(chr(html.entities.name2codepoint[name]))


@functools.lru_cache(maxsize=1024)
def _local(name):
    """Returns the name of an element or attribute in lower case, without its namespace prefix."""
    return name.rpartition(":")[2].lower()


def _encoding(source, head):
    """Detects the encoding of an XML file from a byte order mark, UTF-16's NULs, or the file's declaration."""
    if encoding := encodings.wide_encoding(head):
        return encoding
    match = _DECLARED.match(head.removeprefix(codecs.BOM_UTF8))
    declared = match[1].decode("ascii") if match else "UTF-8"
    # If the declaration "UTF-16" can be read as ASCII, it is wrong: some programs declare UTF-16 but write UTF-8.
    declared = "UTF-8" if declared.upper().startswith(("UTF-16", "UTF-32", "UCS-")) else declared
    try:
        b"<".decode(declared, "ignore")
    except LookupError:
        raise UserError(
            f"{source}: declares the encoding {shown(declared)}, which Python does not know. Convert the file to UTF-8 "
            "and declare UTF-8."
        ) from None
    return declared


@contextlib.contextmanager
def xml_errors(source, expected):
    """Context manager that turns the errors of an expat parser into a `UserError`.

    Args:
        source: the file, for the message.
        expected: str, such as "a translation memory, <tmx>".
    """
    try:
        yield
    except expat.ExpatError as error:
        raise UserError(
            f"{source}, line {error.lineno}, column {error.offset + 1}: not XML: {expat.ErrorString(error.code)}. "
            f"Expected {expected}."
        ) from None
    except (UserError, KeyError, IndexError):
        raise
    except (LookupError, ValueError) as error:  # from Python, which expat asks for encodings that it does not know
        raise UserError(f"{source}: {error}. Convert the file to UTF-8 and declare UTF-8.") from None


def xml_parser(source, start, end, characters):
    """Returns an expat parser that calls three functions for the start tags, end tags and text of `source`.

    It raises `UserError` if the file declares an entity, since a few entities can expand to gigabytes.
    """

    def refuse(name, *_):
        raise UserError(
            f"{source}, line {parser.CurrentLineNumber}: declares the entity {shown(name)}. Entities are not "
            "supported, since they may expand to any amount of text. Expected a file without <!ENTITY …>."
        )

    parser = expat.ParserCreate()
    parser.buffer_text, parser.EntityDeclHandler = True, refuse
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, characters
    return parser

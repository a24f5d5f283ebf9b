"""Reads WMT's test sets: `.sgm` files with one side, and XML files with a source, its references and translations.

An XML file contains `<dataset>`, which contains documents `<doc>` with `<src lang>`, `<ref lang translator>` and `<hyp
system>`; these contain segments `<seg id>`. The parser is expat. As in `tmx`, a file that declares entities
is refused.
"""

import re

from t2t_lite.corpora import encodings, plain_text
from t2t_lite.corpora.scripts import subtags
from t2t_lite.corpora.tmx import xml_errors, xml_parser
from t2t_lite.errors import LOGGER, UserError, counted, shown
from t2t_lite.files.pipes import is_device

SOURCE, REFERENCE, TRANSLATION = "source", "reference", "translation"
SGM, XML = (".sgm", ".sgml"), ".xml"
_TAGS = {"src": SOURCE, "ref": REFERENCE, "hyp": TRANSLATION}
_SETS = {b"srcset": SOURCE, b"refset": REFERENCE, b"tstset": TRANSLATION}
_SET = re.compile(rb"<(srcset|refset|tstset)\b", re.IGNORECASE)
_DATASET = re.compile(rb"<dataset\b")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_DOC = re.compile(r"<doc\b([^<>]*)>", re.IGNORECASE)
_SEG = re.compile(r"<seg\b([^<>]*)>", re.IGNORECASE)
_SEG_END = re.compile(r"</seg\s*>", re.IGNORECASE)
_ID = {name: re.compile(rf"\b{name}\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE) for name in ("docid", "id")}


def is_test_set(path):
    """Returns whether a file is a WMT test set, judged by its extension and, for `.xml`, by its beginning."""
    kind = plain_text.kind(path)
    if kind != XML or is_device(path):
        return kind in SGM
    return bool(_DATASET.search(_head(path).replace(b"\0", b"")))  # NULs are removed, because the file may be UTF-16


def read_side(path, side, on_bad_line=None):
    """Returns the segments of one side of a test set, list of str. Of the references, the first complete one is used.

    Args:
        path: path of a file for which `is_test_set` is true.
        side: `SOURCE`, `REFERENCE` or `TRANSLATION`.
        on_bad_line: None, or a function called with a message about each segment of an `.sgm` file that is not UTF-8;
            the segment becomes None.

    Raises:
        UserError: the file is missing, damaged or empty, lacks the requested side, or contains several translations.
    """
    if plain_text.kind(path) == XML:
        return _TestSet(path).sides(side)[0]
    match = None if is_device(path) else _SET.search(_head(path))  # a pipe can be read only once
    if match and (other := _SETS[match[1].lower()]) != side:
        raise UserError(f"{path}: contains the {other} of a test set, <{match[1].decode()}>. Expected a {side}.")
    return [text and plain_text.clean(text) for _, text in read_segments(path, on_bad_line)]


def read_sides(path, side):
    """Returns all complete references of an XML file, or the file's only source or translation, as lists of str.

    Raises:
        UserError: see `read_side`.
    """
    return _TestSet(path).sides(side) if plain_text.kind(path) == XML else [read_side(path, side)]


def language_of(path, side):
    """Returns the language of a test set as stated in XML or implied by an `.sgm` file's name, or "" if unknown."""
    if plain_text.kind(path) != XML:
        return plain_text.kind(plain_text.without_packing(path).rpartition(".")[0]).removeprefix(".")
    return _TestSet(path).languages.get(side, "")


def read_pairs(path, languages):
    """Yields {"inputs": str, "targets": str}: the source and the first complete reference of an XML file.

    Args:
        path: str.
        languages: (code of the inputs' language, code of the targets' language). If the file is for the opposite
            direction, its sides are swapped.

    Raises:
        UserError: see `read_side`; also if the file's languages differ from `languages`.
    """
    test_set, sides = _TestSet(path), [SOURCE, REFERENCE]
    codes = [test_set.languages.get(side, "") for side in sides]
    if all(codes) and not _agree(codes, languages):
        if not _agree(codes[::-1], languages):
            raise UserError(f"{path}: is a test set from {codes[0]} to {codes[1]}. Expected {' to '.join(languages)}.")
        sides.reverse()
    for inputs, targets in zip(*(test_set.sides(side)[0] for side in sides), strict=True):
        yield {"inputs": inputs, "targets": targets}


def _agree(stated, languages):
    first = [[subtags(code)[0] for code in codes] for codes in (stated, languages)]
    return first[0] == first[1]


def _head(path):
    with plain_text.naming_errors(path), plain_text.open_binary(path) as file:
        return file.peek(encodings.HEAD)[: encodings.HEAD]


class _TestSet:
    """The parsed documents of an XML file. Raises `UserError` if the file is damaged or has no document.

    Attributes:
        documents: list of {(side, name): {segment id: text}}. The name is that of the translator or system, or
            "" for the source.
        languages: {side: the first language that the file names for this side}.
    """

    def __init__(self, path):
        self.path, self.documents, self.languages = path, [], {}
        self._segments = self._id = self._text = None
        parser = self._parser = xml_parser(path, self._start, self._end, self._characters)
        expected = "a test set of WMT, <dataset>. Download it again"
        with plain_text.naming_errors(path), plain_text.open_binary(path) as file, xml_errors(path, expected):
            parser.ParseFile(file)
        if not self.documents:
            raise UserError(f"{path}: has no document. Expected a WMT test set that contains <doc> and <seg>.")

    def sides(self, side):
        """Returns all complete versions of a side, each a list of segments: see `read_sides`."""
        documents = self.documents
        names = sorted({name for document in documents for tag, name in document if tag == side})
        complete = {
            name: [text for document in documents for text in document.get((side, name), {}).values()]
            for name in names
            if all([*document.get((side, name), ())] == [*document.get((SOURCE, ""), ())] for document in documents)
        }
        incomplete = f" (not all segments: {', '.join(names)})" if names else ""
        if not complete:
            raise UserError(
                f"{self.path}: no {side} covers all {counted(len(documents), 'document')}{incomplete}. Expected a "
                "complete version, or a file with one sentence per line."
            )
        if side == TRANSLATION and len(complete) > 1:
            raise UserError(
                f"{self.path}: has {len(complete)} translations, by {', '.join(complete)}. Expected one per file."
            )
        if len(names) > 1:
            rest = [name for name in names if name not in complete]
            left_out = f"; skipped, because segments are missing: {', '.join(rest)}" if rest else ""
            LOGGER.info(f"{self.path}: has references by {', '.join(complete)}{left_out}")
        return list(complete.values())

    # The callbacks that expat calls for tags and text.

    def _start(self, tag, attributes):
        if tag == "doc":
            self.documents.append({})
        elif tag in _TAGS and self.documents:
            side = _TAGS[tag]
            name = "" if side == SOURCE else attributes.get("translator") or attributes.get("system") or ""
            self._segments = self.documents[-1].setdefault((side, name), {})
            self.languages.setdefault(side, attributes.get("lang", ""))
        elif tag == "seg" and self._segments is not None:
            self._id, self._text = attributes.get("id") or f"number {len(self._segments) + 1}", []
            if self._id in self._segments:
                raise UserError(
                    f"{self.path}, line {self._parser.CurrentLineNumber}: the segment {shown(self._id)} occurs twice "
                    "in its document. Expected different ids. Download the file again."
                )

    def _end(self, tag):
        if tag in _TAGS:
            self._segments = None
        elif tag == "seg" and self._text is not None:
            self._segments[self._id] = plain_text.clean(" ".join("".join(self._text).split("\n")))
            self._text = None

    def _characters(self, text):
        if self._text is not None:
            self._text.append(text)


def unescape(text):
    """Replaces SGML's five named entities and numeric references with characters.

    `html.unescape` is not used, because the files are not HTML, and it would also replace words without a semicolon,
    such as `&copy`.
    """
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(match):
    name, decimal, hexadecimal = match.groups()
    if name:
        return _ENTITIES[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else match[0]


def read_segments(source, on_bad_line=None):
    """Yields ((document id, segment id), text) for every `<seg>` in the file, in order; ids are str, "" if missing.

    Args:
        source: see `plain_text.read_lines`.
        on_bad_line: None, or a function called with a message about each segment that is not UTF-8; its text is None.

    Raises:
        UserError: a segment is not closed, or the file has no segment; see also `plain_text.read_lines`.
    """
    document, has_segment, number = "", False, 0
    lines = enumerate(plain_text.read_lines(source, on_bad_line, keeps_bad=True), 1)
    for number, line in lines:
        position = 0
        while tag := _SEG.search(line, position):
            for around in _DOC.finditer(line, position, tag.start()):
                document = around[1]
            begun, start, position = number, tag.end(), tag.end()
            while not (end := _SEG_END.search(line, position)):
                number, more = next(lines, (0, None))
                if more is None or _SEG.search(_SEG_END.split(more)[0]):
                    raise UserError(
                        f"{source}, line {begun}: the segment that begins here has no </seg>. The file is damaged: "
                        "download it again."
                    )
                position = max(start, len(line) - len("</seg"))  # only the end has not been searched
                line += f" {more}"
            key, text = (_attribute("docid", document), _attribute("id", tag[1])), line[start : end.start()]
            if is_bad := plain_text.SURROGATE.search(text):
                on_bad_line(f"{source}, segment {key[1]} of document {key[0]} contains bytes that are not UTF-8.")
            yield key, None if is_bad else unescape(text)
            has_segment, position = True, end.end()
        for around in _DOC.finditer(line, position):
            document = around[1]
    if not has_segment:
        raise UserError(
            f'{source}: no segment in {counted(number, "line")}. Expected lines such as <seg id="1">…</seg>.'
        )


def _attribute(name, text):
    match = _ID[name].search(text)
    return match[1] if match else ""


def read_segment_pairs(inputs_source, targets_source, on_bad_line=None):
    """Yields {"inputs": str, "targets": str} from two parallel `.sgm` files.

    Args:
        inputs_source, targets_source: see `plain_text.read_lines`.
        on_bad_line: None, or a function called with a message about each segment that is not UTF-8; its pair is
            skipped.

    Raises:
        UserError: see `read_segments`; also if the ids or numbers of segments differ (the message names the first
            difference).
    """
    sides = read_segments(inputs_source, on_bad_line), read_segments(targets_source, on_bad_line)
    pairs = plain_text.numbered(sides, (inputs_source, targets_source), "segments")
    for number, (key, inputs), (other_key, targets) in pairs:
        if key != other_key:
            where = [f"segment {segment} of document {document}" for document, segment in (key, other_key)]
            raise UserError(
                f"{inputs_source} has {where[0]} as its segment number {number:,}, but {targets_source} has "
                f"{where[1]}. Expected the same documents and segments in the same order."
            )
        if inputs is not None and targets is not None:
            yield {"inputs": plain_text.clean(inputs), "targets": plain_text.clean(targets)}

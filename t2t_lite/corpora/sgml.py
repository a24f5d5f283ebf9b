"""Segments of the `.sgm` files of WMT's news tests: `<seg id="1">…</seg>` inside `<doc docid="…">`."""

import itertools
import re

from t2t_lite.corpora import plain_text
from t2t_lite.errors import UserError, counted

_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ENTITY = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_DOC = re.compile(r"<doc\b([^<>]*)>", re.IGNORECASE)
_SEG = re.compile(r"<seg\b([^<>]*)>", re.IGNORECASE)
_SEG_END = re.compile(r"</seg\s*>", re.IGNORECASE)
_ID = {name: re.compile(rf"\b{name}\s*=\s*[\"']?([^\"'\s>]+)", re.IGNORECASE) for name in ("docid", "id")}


def unescape(text):
    """Replaces SGML's five named entities and numeric ones by characters.

    `html.unescape` is not used: the files are not HTML, and it also replaces words such as `&copy` without a semicolon.
    """
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(match):
    name, decimal, hexadecimal = match.groups()
    if name:
        return _ENTITIES[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else match[0]


def read_segments(source, errors="strict"):
    """Yields ((document id, segment id), text) of every `<seg>` in the order of the file; ids are str, "" if missing.

    Args:
        source, errors: as for `plain_text.read_lines`.

    Raises:
        UserError: as `plain_text.read_lines`, or a segment is not closed, or the file has none.
    """
    document, has_segment, number = "", False, 0
    lines = enumerate(plain_text.read_lines(source, errors=errors), 1)
    for number, line in lines:
        position = 0
        while tag := _SEG.search(line, position):
            for around in _DOC.finditer(line, position, tag.start()):
                document = around[1]
            begun, position = number, tag.end()
            while not (end := _SEG_END.search(line, position)):
                number, more = next(lines, (0, None))
                if more is None or _SEG.search(_SEG_END.split(more)[0]):
                    raise UserError(
                        f"{source}, line {begun}: a segment without </seg>. Expected one. Download the file again."
                    )
                line = f"{line[position:]} {more}"
                position = 0
            yield (_attribute("docid", document), _attribute("id", tag[1])), unescape(line[position : end.start()])
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
        inputs_source, targets_source: as for `plain_text.read_lines`.
        on_bad_line: None, or a function called with a message about each segment that is not UTF-8, whose pair is
            skipped.

    Raises:
        UserError: as `read_segments`, or if ids or numbers of segments differ; the message names the first difference.
    """
    errors = "strict" if on_bad_line is None else "replace"
    sides = read_segments(inputs_source, errors), read_segments(targets_source, errors)
    for number, (inputs, targets) in enumerate(itertools.zip_longest(*sides), 1):
        if inputs is None or targets is None:
            raise plain_text.unequal(inputs_source, targets_source, inputs is None, number, sides, "segments")
        where = [f"segment {key[1]} of document {key[0]}" for key, _ in (inputs, targets)]
        if inputs[0] != targets[0]:
            raise UserError(
                f"{inputs_source} has {where[0]} as its segment number {number:,}, {targets_source} has {where[1]}. "
                "Expected the same documents and segments in the same order."
            )
        if on_bad_line is not None and "\ufffd" in inputs[1] + targets[1]:
            on_bad_line(f"{inputs_source} and {targets_source}, {where[0]}: bytes that are not UTF-8.")
            continue
        yield {"inputs": plain_text.clean(inputs[1]), "targets": plain_text.clean(targets[1])}

"""Reads and fills in XLIFF 1.2 (`.xlf`, `.xliff`) with translate-toolkit: `<source>` and `<target>`."""

import copy

from t2t_lite import registry
from t2t_lite.corpora.catalogs import Catalog, joined_lines
from t2t_lite.corpora.tmx import xml_errors, xml_parser
from t2t_lite.errors import UserError, needs, shown
from t2t_lite.extras.catalogs.catalog_files import UNFINISHED, UNTRANSLATED, read_catalog
from t2t_lite.extras.catalogs.text_pieces import TextPieces

with needs("translate-toolkit", "catalogs", "an XLIFF file"):
    from translate.storage.xliff import xlifffile

_STATE = "needs-review-translation"
_UNFINISHED_STATES = {_STATE, "new", "needs-translation", "needs-adaptation", "needs-l10n", "needs-review-l10n"}
_UNFINISHED_STATES |= {"needs-review-adaptation"}
_WITH_TEXT = {"g", "mrk"}  # inline elements whose text is translated; the text of other elements is code


@registry.register_catalog("xlf")
@registry.register_catalog("xliff")
class XliffCatalog(Catalog):
    """An XLIFF file; see `Catalog`. Inline elements such as `<x id="1"/>` keep their places between the texts."""

    def __init__(self, source, keeps=None):
        self._store, self._slots = _parsed(source), []  # (unit, target, [(node, "text" or "tail", TextPieces)])
        for unit in self._store.units:
            node = unit.source_dom
            if node is None or not unit.istranslatable() or not "".join(node.itertext()).strip():
                continue
            if unit.target_dom is not None and (len(unit.target_dom) or (unit.target_dom.text or "").strip()):
                continue
            target = copy.deepcopy(node)
            target.tail = None
            target.attrib.clear()
            target.tag = node.tag.replace("source", "target")
            texts = [(*where, TextPieces(getattr(*where), keeps)) for where in _texts(target)]
            self._slots.append((unit, target, texts))
        self.lines = [piece for *_, texts in self._slots for *_, pieces in texts for piece in pieces.pieces]

    def translated(self, lines):
        """See `Catalog`."""
        remaining, count = iter(lines), 0
        for unit, target, texts in self._slots:
            translations = [pieces.joined([next(remaining) for _ in pieces.pieces]) for *_, pieces in texts]
            # An ICU message around an inline element is divided, so that its keywords would be translated.
            is_divided = len(texts) > 1 and any(pieces.has_open_braces for *_, pieces in texts)
            if is_divided or None in translations:
                continue
            count += 1
            for (node, place, _), translation in zip(texts, translations, strict=True):
                setattr(node, place, translation)
            unit.target = "?"  # creates <target> in the right place
            element = unit.target_dom
            element.text = target.text
            element.extend(target)
            element.set("state", _STATE)
            unit.markapproved(False)
        return bytes(self._store), count, len(self._slots) - count

    @classmethod
    def pairs(cls, source, removed):
        """See `Catalog`. Inline elements are left out."""
        for unit in _parsed(source).units:
            inputs, targets = ("" if node is None else _plain(node) for node in (unit.source_dom, unit.target_dom))
            is_open = unit.target_dom is not None and unit.target_dom.get("state") in _UNFINISHED_STATES
            if not (inputs and targets):
                removed[UNTRANSLATED] += 1
            elif is_open:
                removed[UNFINISHED] += 1
            else:
                yield {"inputs": inputs, "targets": targets}


def _texts(element):
    """Yields (node, "text" or "tail") for each text in an element, except code, in the order of the document."""
    if element.text:
        yield element, "text"
    for child in element:
        if isinstance(child.tag, str) and child.tag.rpartition("}")[2] in _WITH_TEXT:
            yield from _texts(child)
        if child.tail:
            yield child, "tail"


def _plain(element):
    return joined_lines("".join(getattr(*where) for where in _texts(element)))


def _parsed(source):
    """Returns translate-toolkit's store of a file. Raises `UserError` unless the file is XLIFF 1.0 to 1.2."""
    data = read_catalog(source, "Divide it into several files, each with some of its <file> elements.")
    roots = []

    def start(name, attributes):
        if not roots:
            roots.append((name.rpartition(":")[2], attributes.get("version", "")))

    with xml_errors(source, "an XLIFF file, <xliff>"):
        xml_parser(source, start, None, None).Parse(data, True)
    name, version = roots[0]
    if name != "xliff" or version not in ("1.0", "1.1", "1.2"):
        kind = f"XLIFF {shown(version)}" if name == "xliff" else f"<{name[:40]}>"
        raise UserError(f"{source}: found {kind}. Expected XLIFF 1.2. Convert the file, or export it as XLIFF 1.2.")
    try:
        return xlifffile.parsestring(data)
    except Exception as error:  # translate-toolkit and lxml raise many kinds of errors
        raise UserError(f"{source}: not XLIFF 1.2: {shown(str(error))}. Expected <trans-unit> with <source>.") from None

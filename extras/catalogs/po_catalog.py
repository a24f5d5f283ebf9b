"""Reads and fills in gettext's catalogs (`.po`) with polib: `msgid` and `msgstr`, including plural forms."""

import codecs
import gettext
import re

from t2t_lite import registry
from t2t_lite.corpora.catalogs import Catalog, joined_lines
from t2t_lite.errors import LOGGER, UserError, needs, shown
from t2t_lite.extras.catalogs.catalog_files import UNFINISHED, UNTRANSLATED, read_catalog
from t2t_lite.extras.catalogs.text_pieces import TextPieces, placeholders

with needs("polib", "catalogs", "a .po file"):
    import polib

_CHARSET = re.compile(rb'^"?Content-Type:[^"\n]*?charset=([^\s;"\\]+)', re.IGNORECASE | re.MULTILINE)
_KEYWORD = r"(?:msgctxt|msgid|msgid_plural|msgstr(?:\[[0-9]+\])?)"
_LINE = re.compile(rf'\s*(?:#.*|(?:{_KEYWORD}\s*)?"(?:[^"\\]|\\.)*"|)\s*')
_PLURAL_FORMS = re.compile(r"\s*nplurals\s*=\s*([1-9])\s*;\s*plural\s*=\s*([^;]+);?\s*")


@registry.register_catalog("po")
class PoCatalog(Catalog):
    """A `.po` file; see `Catalog`.

    The form for the number 1 gets the translation of `msgid`, and all other forms get the translation of
    `msgid_plural`. If the form for 1 is also used for other numbers, and `msgid` lacks a placeholder, this form also
    gets the translation of `msgid_plural`. Only empty forms are filled in.

    Attributes:
        encoding: str, the charset of the header.
    """

    def __init__(self, source, keeps=None):
        self._file, self.encoding, self._has_crlf = _parsed(source)
        self._slots = []  # (entry, index of the plural form or None, TextPieces)
        forms = None
        for entry in self._file:
            if entry.obsolete or not entry.msgid:
                continue
            if not entry.msgid_plural:
                if not entry.msgstr:
                    self._slots.append((entry, None, TextPieces(entry.msgid, keeps)))
                continue
            forms = forms or _plural_forms(source, self._file.metadata.get("Plural-Forms"), entry.linenum)
            for index in range(forms.count):
                if not entry.msgstr_plural.get(index):
                    entry.msgstr_plural[index] = ""
                    text = entry.msgid if forms.takes_singular(index, entry) else entry.msgid_plural
                    self._slots.append((entry, index, TextPieces(text, keeps)))
        self.lines = [piece for _, _, pieces in self._slots for piece in pieces.pieces]

    def translated(self, lines):
        """See `Catalog`."""
        translations, count = iter(lines), 0
        for entry, index, pieces in self._slots:
            text = pieces.joined([next(translations) for _ in pieces.pieces])
            if text is None:
                continue
            count += 1
            if index is None:
                entry.msgstr = text
            else:
                entry.msgstr_plural[index] = text
            if "fuzzy" not in entry.flags:
                entry.flags.insert(0, "fuzzy")
        return self._encoded(), count, len(self._slots) - count

    def _encoded(self):
        """Returns the file's bytes. If its charset lacks a character of a translation, the file becomes UTF-8."""
        text = str(self._file)
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError as error:
            lacking = shown(error.object[error.start])
            LOGGER.warning(f"charset={self.encoding} lacks {lacking}, so the catalog is written as charset=UTF-8.")
            metadata, self.encoding = self._file.metadata, "UTF-8"
            name = next(name for name in metadata if name.lower() == "content-type")
            metadata[name] = re.sub(r"(?i)charset=[^\s;]+", "charset=UTF-8", metadata[name])
            text = str(self._file)
        return (text.replace("\n", "\r\n") if self._has_crlf else text).encode(self.encoding)

    @classmethod
    def pairs(cls, source, removed):
        """See `Catalog`; an entry with plural forms yields two pairs, one for `msgid` and one for `msgid_plural`.

        Only `msgid_plural` has a pair if the language has a single form, or if the translation of `msgid` has other
        placeholders.
        """
        file, _, _ = _parsed(source)
        for entry in file:
            if not entry.msgid:
                continue
            if entry.obsolete or entry.fuzzy:
                removed[UNFINISHED] += 1
                continue
            pairs = [(entry.msgid, entry.msgstr)]
            if entry.msgid_plural:
                forms = _plural_forms(source, file.metadata.get("Plural-Forms"), entry.linenum)
                texts = [entry.msgstr_plural.get(index, "") for index in range(forms.count)]
                one = texts[forms.of_one]
                # A form that is used for 1 and 21 may have a placeholder for the number, which `msgid` lacks.
                is_of_one = forms.count > 1 and (not one or placeholders(one) == placeholders(entry.msgid))
                pairs = [(entry.msgid, one)] * is_of_one + [(entry.msgid_plural, texts[forms.of_many])]
            for inputs, targets in pairs:
                pair = {"inputs": joined_lines(inputs), "targets": joined_lines(targets)}
                if all(pair.values()):
                    yield pair
                else:
                    removed[UNTRANSLATED] += 1


class _Forms:
    """The plural forms of a language.

    Args:
        count: int, the number of forms.
        form_of: function of a number that returns the index of its form.

    Attributes:
        count: int, the number of forms.
        of_one: int, the index of the form for 1.
        of_many: int, the index of the last other form; 0 if there is only one form.
        is_for_one_alone: bool, whether this form is used only for 1. In Russian, it is also used for 21.
    """

    def __init__(self, count, form_of):
        self.count, self.of_one = count, form_of(1)
        self.of_many = max({*range(count)} - {self.of_one}, default=0)
        self.is_for_one_alone = not any(form_of(number) == self.of_one for number in (0, *range(2, 1000)))

    def takes_singular(self, index, entry):
        """Returns whether a form of an entry translates `msgid` instead of `msgid_plural`.

        A form for several numbers must contain the number, which is missing from a `msgid` such as "one file".
        """
        if self.count == 1 or index != self.of_one:
            return False
        return self.is_for_one_alone or placeholders(entry.msgid) == placeholders(entry.msgid_plural)


def _plural_forms(source, header, line):
    match = _PLURAL_FORMS.fullmatch(header or "")
    try:
        forms = _Forms(int(match[1]), gettext.c2py(match[2]))
        if not 0 <= forms.of_one < forms.count:
            raise ValueError
    except (TypeError, ValueError, ZeroDivisionError, RecursionError):
        has = f"has Plural-Forms: {shown(header)}" if header else "has no Plural-Forms"
        raise UserError(
            f"{source}, line {line}: an entry has plural forms, but the header {has}. Expected a line like "
            '"Plural-Forms: nplurals=2; plural=(n != 1);\\n" for the target language.'
        ) from None
    return forms


class _Text(str):
    """A text that polib divides only at line feeds, not at the other characters at which `str` divides lines."""

    def splitlines(self, keepends=False):
        return self.split("\n")


def _parsed(source):
    """Returns (polib's POFile, its encoding, whether its lines end with CR LF). Raises `UserError`."""
    data = read_catalog(source, "Divide the file.").removeprefix(codecs.BOM_UTF8)
    declared = _CHARSET.search(data)
    name = declared[1].decode("ascii", "replace") if declared else ""
    if not declared or name == "CHARSET":
        fault = "has charset=CHARSET, as templates do" if declared else "does not name a charset"
        raise UserError(
            f'{source}: the header {fault}. Expected the line "Content-Type: text/plain; charset=UTF-8\\n" in the '
            'msgstr of the first entry, msgid "".'
        )
    try:
        text = data.decode(name)
    except LookupError:
        raise UserError(f"{source}: unknown charset {shown(name)}. Convert the file: msgconv -t UTF-8.") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{source}, line {line:,}: byte 0x{data[error.start]:02x} is not {name}, the charset in the header. "
            "Correct the header or the line."
        ) from None
    has_crlf, text = "\r\n" in text, text.replace("\r\n", "\n")
    for number, line in enumerate(text.split("\n"), 1):
        if not _LINE.fullmatch(line):
            raise UserError(
                f"{source}, line {number:,}: found {shown(line)}. Expected msgid or msgstr, then a text in quotes."
            )
    try:
        return polib.pofile(_Text(text), encoding=name), name, has_crlf
    except (OSError, ValueError, IndexError, AttributeError) as error:  # such as an entry without msgid
        raise UserError(f"{source}: not a .po file: {shown(str(error))}. Expected msgid and msgstr.") from None

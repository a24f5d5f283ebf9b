"""First lines of tables that name the columns, and which columns a table that has others than expected may mean.

A header that is mistaken for data would become a class or a sentence pair, so a first line that looks like one is
refused until the user has said what it is.
"""

import re

from t2t_lite.corpora import plain_text
from t2t_lite.errors import shown

_NAME = re.compile(r"[^\W\d][\w.\-/]*( [^\W\d][\w.\-/]*){0,2}")
_TEXTS = """
    text texts sentence sentences title body content review comment tweet utterance document headline description
    question questions answer answers premise hypothesis first second query passage
"""
# What headers call the columns of a layout.
_WORDS = {
    "label": "label labels class category categories topic intent sentiment polarity target targets gold",
    "number": "score scores rating stars number value similarity relatedness label gold",
    **dict.fromkeys(("text", "first", "second"), _TEXTS),
    "inputs": "source src input inputs original",
    "targets": "target targets tgt trg output outputs translation reference",
    "word": "word words token tokens form text",
    "tag": "tag tags pos upos xpos ner chunk label labels",
}
_IDS = {"id", "ids", "index", "idx", "guid", "uid", "pairid", "qid", "split"}
_LANGUAGES = """
    english german french spanish italian portuguese dutch russian ukrainian polish czech slovak romanian hungarian
    finnish swedish danish norwegian greek turkish arabic hebrew persian hindi bengali urdu chinese japanese korean
    vietnamese thai indonesian
"""
_HEADER_WORDS = {*_IDS, *_LANGUAGES.split(), "lemma", *(word for words in _WORDS.values() for word in words.split())}
_LABELS = ("label", "tag")  # of which a table has few different ones
LOOKED_AT = 1000  # rows for a guess


def looks_like_header(cells, layout):
    """Returns whether the cells of a first line look like names of columns; `layout` is a `tables.Layout`."""
    names = [plain_text.clean(cell).casefold() for cell in cells]
    if len(names) < len(layout.names) or not all(map(_NAME.fullmatch, names)):
        return False
    words = _HEADER_WORDS | {code.casefold() for code in layout.languages}
    are_known = [_is_known(name, words) for name in names]
    # A line of a dictionary may be `text<TAB>Text`; a label or text is seldom one of these words.
    return all(are_known) if layout.languages else are_known[0] or (len(are_known) > 1 and all(are_known[1:]))


def _is_known(name, words):
    """Returns whether the words of a name, or the first or last part of `gold_label`, are among `words`."""
    parts = [re.split(r"[_./-]", word.rstrip("0123456789")) for word in name.split(" ")]
    return name in words or all(words & {part[0], part[-1]} for part in parts)


def is_name(cell):
    """Returns whether a cell is a single word, as in a header."""
    return bool(_NAME.fullmatch(cell)) and " " not in cell


def header_question(where, cells, layout, rows=(), mark="<TAB>"):
    """Returns the message for a first line that looks like a header.

    Args:
        where: str, its place.
        cells: list of str.
        layout: `tables.Layout`.
        rows: lists of str, some of the next lines.
        mark: str that shows what separates its cells.
    """
    names = [plain_text.clean(cell) for cell in cells]
    places = likely_columns(layout, names, rows)
    in_order = places is None or places == [*range(len(names))]
    chosen = [names[at] for at in places or range(len(layout.names))]
    return (
        f"{where}: {shown(mark.join(names))} looks like a header. Say what it is: --header=false for data; "
        f"{'--header, or ' if in_order else ''}names such as --columns={','.join(chosen)}, for names of the columns."
    )


def columns_hint(layout, names, rows):
    """Returns a sentence that proposes --columns for a table with other columns than expected, or "".

    Args:
        layout, rows: see `header_question`.
        names: list of str, those of the columns; None: there is no header.
    """
    places = likely_columns(layout, names, rows)
    columns = places and [names[at] if names else str(at + 1) for at in places]
    return f" Choose them, perhaps --columns={','.join(columns)}." if columns else ""


def named_columns(layout, names):
    """Returns {name of the layout: index of the column that means it}, as far as a header says it.

    Args:
        layout: `tables.Layout`.
        names: list of str, those of the columns.
    """
    chosen = {}
    for name, language in zip(layout.names, layout.languages or layout.names, strict=False):
        words = {*_WORDS.get(name, name).split(), language.casefold()}
        known = (at for at, one in enumerate(names) if at not in chosen.values() and _is_known(one.casefold(), words))
        if (at := next(known, None)) is not None:
            chosen[name] = at
    return chosen


def likely_columns(layout, names, rows):
    """Returns the index of the column that each of the layout's names may mean, or None if that is unclear.

    Names of columns decide first. Then labels are the column with the fewest different cells, and texts those with the
    most text. A column of ids, which has as many different words as rows, is neither.

    Args:
        layout, names, rows: see `columns_hint`.
    """
    width = len(names or rows[0])
    columns = [*zip(*(row for row in rows if len(row) == width), strict=True)] or [()] * width
    chosen = named_columns(layout, names or ())
    ids = {at for at, name in enumerate(names or ()) if _is_known(name.casefold(), _IDS)}
    free = [at for at in range(width) if at not in ids and at not in chosen.values()]
    unnamed = [name for name in layout.names if name not in chosen]
    for name in unnamed:
        others = [at for at in free if not _are_ids(columns[at])]
        if name == "number":
            found = sorted(filter(lambda at: _are_numbers(columns[at]), free), key=lambda at: at not in others)
        elif name in _LABELS:
            found = sorted(others, key=lambda at: len({*columns[at]}))
            if len(found) > 1 and len({*columns[found[0]]}) == len(columns[found[0]]):
                return None
        else:
            found = sorted(others, key=lambda at: _size(columns[at]), reverse=True)
        if not found:
            return None
        chosen[name] = found[0]
        free.remove(found[0])
    texts = [name for name in unnamed if name not in (*_LABELS, "number")]
    chosen |= dict(zip(texts, sorted(chosen[name] for name in texts), strict=True))
    return [chosen[name] for name in layout.names]


def _is_text(cell):
    return " " in cell.strip() or not cell.isascii()


def _size(cells):
    """Returns a measure of how much text cells have."""
    return sum(map(_is_text, cells)), sum(map(len, cells))


def _are_ids(cells):
    is_decimal = any("." in cell for cell in cells) and _are_numbers(cells)
    return len({*cells}) == len(cells) > 2 and not any(map(_is_text, cells)) and not is_decimal


def _are_numbers(cells):
    try:
        return bool([float(cell) for cell in cells])
    except ValueError:
        return False

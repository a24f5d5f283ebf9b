"""Reads tagged sentences from CoNLL files, with one line per word and a blank line after each sentence.

Two formats are supported. In the older format (as in CoNLL-2003), columns are separated by tabs or spaces; the first
column is the word, the last is its tag, and -DOCSTART- lines are skipped. CoNLL-U has ten columns, the first of which
numbers the words; the word is in FORM and its tag in UPOS. Comments are skipped in both formats; in CoNLL-U,
ranges of multiword tokens (`1-2`) and empty words (`1.1`) are skipped, too.
"""

import re
from typing import NamedTuple

from t2t_lite.corpora import plain_text, tables
from t2t_lite.corpora.plain_text import report
from t2t_lite.errors import UserError, counted

CONLL_U = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
LAYOUT = tables.Layout(("word", "tag"))
_NO_WORD = re.compile(r"\d+[-.]\d+")  # ID of a multiword token or an empty word
_NAMED_COLUMNS = re.compile(r"# *global\.columns *= *(.+)")
_METADATA = re.compile(r"#\s*([\w.:\[\]-]+\s*=|(newdoc|newpar|sent_id|id)\b)")  # `# text = …`, `# newdoc id …`
_HEADER_WORDS = tables.header_words("word", "tag") | {"lemma", "id"}


class TaggedSentence(NamedTuple):
    """A sentence from a CoNLL file.

    Attributes:
        words, tags: lists of str, of the same length.
        place: str, the file and line of its first word.
    """

    words: list
    tags: list
    place: str


def read_conll(path, with_tags=True, layout=LAYOUT, on_bad_line=None):
    """Yields the sentences of a CoNLL file as `TaggedSentence` objects.

    Args:
        path: path of the file, which may be compressed.
        with_tags: bool, whether every word needs a tag; if False, a column of words is enough.
        layout: `tables.Layout`, which may choose the columns of words and tags by number, by CoNLL-U's names, or by the
            names in a header.
        on_bad_line: None, or a function called with a message about each bad line, whose sentence is skipped.

    Raises:
        UserError: as for `plain_text.read_lines`, or a word has no tag, a line does not have as many columns as the
            first line, or the first line looks like a header.
    """
    form, waiting = None, []
    for block in _blocks(path, on_bad_line):
        waiting.append(block)
        form = form or _form(path, block, with_tags, layout)
        if form:
            yield from _sentences(form, waiting, on_bad_line)
            waiting = []
    if waiting:  # every line of the file begins with #
        words = [(number, line) for block in waiting for number, line in block if not _METADATA.match(line)]
        if words:
            yield from _sentences(_old_form(path, words, with_tags, layout), waiting, on_bad_line)


def _blocks(path, on_bad_line):
    """Splits a file at blank lines; yields lists of (number, line), without bad blocks and -DOCSTART- lines."""
    block, is_bad = [], False
    for number, line in enumerate(plain_text.read_lines(path, on_bad_line), 1):
        if line is None:
            is_bad = True
        elif not line.strip():
            if block and not is_bad:
                yield block
            block, is_bad = [], False
        elif not re.match(r"-DOCSTART-(\s|$)", line):
            block.append((number, line))
    if block and not is_bad:
        yield block


def _sentences(form, blocks, on_bad_line):
    for block in blocks:
        try:
            sentence = form.sentence(block)
        except UserError as error:
            report(str(error), on_bad_line)
            continue
        if sentence.words:
            yield sentence


class _Form(NamedTuple):
    """The format of the lines in a file.

    Attributes:
        path: str.
        is_conll_u: bool.
        is_tabbed: bool, whether the columns are separated by tabs (rather than spaces).
        width: int, the number of columns.
        word, tag: ints, the columns' indices.
        header: int, the number of the line that names the columns; 0 if there is no header.
        has_features: bool, whether tags have the form key=value.
    """

    path: str
    is_conll_u: bool
    is_tabbed: bool
    width: int
    word: int
    tag: int
    header: int = 0
    has_features: bool = False

    def sentence(self, block):
        """Parses a block, a list of (number, line), into a `TaggedSentence`, which may be empty. Raises `UserError`."""
        words, tags, place = [], [], ""
        for number, line in block:
            if number == self.header or (not words and line.startswith("#") and self._is_comment(line)):
                continue
            where = f"{self.path}, line {number}"
            cells = _cells(line, self.is_conll_u or "\t" in line)
            if self.is_conll_u and _NO_WORD.fullmatch(cells[0]):
                continue
            self._check(cells, where)
            place = place or where
            words.append(cells[self.word])
            tags.append(cells[self.tag])
        return TaggedSentence(words, tags, place)

    def _is_comment(self, line):
        """Returns whether a line that precedes a sentence and begins with # is a comment, not a word such as #tag."""
        cells = _cells(line, self.is_tabbed)
        # Separated by tabs, the word # with the tag Case=Nom would look like the comment "# Case=Nom".
        if self.is_conll_u or len(cells) != self.width or _METADATA.match(cells[0] if self.is_tabbed else line):
            return True
        return cells[0].startswith("# ") or ("=" in cells[self.tag] and not self.has_features)

    def _check(self, cells, where):
        is_complete = len(cells) == self.width
        word_and_tag = [cells[at] for at in (self.word, self.tag)] if is_complete else []
        lacks_tag = self.is_conll_u and self.tag != self.word and word_and_tag[1:] == ["_"]
        if is_complete and all(word_and_tag) and not lacks_tag:
            return
        detail = ", the tag is _" if lacks_tag else "" if all(cells) else ", one of them blank"
        expected = f"{self.width}, with the word first and its tag last, and a blank line after each sentence."
        if self.is_conll_u:
            expected = f"the {self.width} of CoNLL-U; a flag such as --columns=FORM,XPOS selects the word and its tag."
        raise UserError(f"{where}: found {counted(len(cells), 'column')}{detail}. Expected {expected}")


def _form(path, block, with_tags, layout):
    """Determines a file's `_Form` from its first block; returns None if all lines of the block begin with #."""
    words = [(number, line) for number, line in block if not line.startswith("#")]
    headers = filter(None, (_NAMED_COLUMNS.match(line) for _, line in block))
    names = next((header[1].split() for header in headers), None)
    if not words and not names:
        return None
    number, line = words[0] if words else block[0]
    cells = _cells(line, is_tabbed=True)
    is_conll_u = len(cells) == len(CONLL_U) and (cells[0] == "1" or _NO_WORD.fullmatch(cells[0]))
    if not names and not is_conll_u:
        return _old_form(path, words, with_tags, layout)
    names = names or list(CONLL_U)
    columns = (layout.columns or ("FORM", "UPOS"))[: 1 + with_tags]
    places = [tables.column_index(f"{path}, line {number}", names, column) for column in columns]
    return _Form(path, True, True, len(names), places[0], places[with_tags])


def _old_form(path, words, with_tags, layout):
    """Determines the `_Form` of a file that is not CoNLL-U. Raises `UserError` for a header or numbered words."""
    number, line = words[0]
    is_tabbed, where = "\t" in line, f"{path}, line {number}"
    cells = _cells(line, is_tabbed)
    if layout.has_header is None and with_tags and {*map(str.casefold, cells)} <= _HEADER_WORDS:
        raise UserError(tables.header_question(where, cells, layout))
    first_cells = [_cells(line, "\t" in line)[0] for _, line in words]
    numbers = [str(n) for n in range(1, 1 + len(words))]
    if not layout.columns and len(cells) > 2 and len(words) > 1 and first_cells == numbers:
        raise UserError(
            f"{where}: the first column numbers the words. Expected words in the first column, the ten columns of "
            "CoNLL-U, or a flag such as --columns=2,4, which selects the word and its tag."
        )
    word, tag = 0, -1
    if layout.columns:
        word, *tags = (tables.column_index(where, cells, column) for column in layout.columns[: 1 + with_tags])
        tag = tags[0] if tags else word
        if max(word, tag) >= len(cells):
            raise UserError(
                f"{where}: found {counted(len(cells), 'column')}. Expected the columns of "
                f"--columns={','.join(layout.columns)}."
            )
    header, has_features = (number if layout.has_header else 0), "=" in cells[tag]
    width = max(1 + with_tags, len(cells))
    return _Form(path, False, is_tabbed, width, word, tag if with_tags else word, header, has_features)


def _cells(line, is_tabbed):
    parts = line.split("\t") if is_tabbed else re.split(" +", line.strip(" "))
    return [plain_text.clean(part) for part in parts]

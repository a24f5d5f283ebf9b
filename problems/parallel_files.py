"""Groups the files of `translate_own` into corpora, and checks their languages."""

import logging
import os
import re

from t2t_lite.corpora import archives, cells, wmt_files
from t2t_lite.corpora.plain_text import kind, without_packing
from t2t_lite.corpora.scripts import is_language
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.splits import FLAGS
from t2t_lite.errors import UserError

TABLES = (".tsv", cells.CSV, *cells.JSON_LINES)
WITH_BOTH = (*TABLES, ".tmx", wmt_files.XML)  # kinds of files that hold both sides, as archives do
_LOGGER = logging.getLogger("t2t_lite")


def group_files(split, paths):
    """Returns the [path, …] of each corpus: one file or archive with both sides, or two. Raises `UserError`."""
    flag, rest, groups = f"--{FLAGS[split]}={','.join(paths)}", list(paths), []
    while rest:
        count = 1 if _holds_both(rest[0]) else 2
        group, rest = rest[:count], rest[count:]
        if len(group) < count or any(map(_holds_both, group[1:])):
            raise UserError(
                f"{flag}: {group[0]} has no other side (found {len(paths)}). Expected two files that go together "
                "(a.en,a.de), or one .tsv, .csv, .jsonl, .tmx or .zip file, for each corpus."
            )
        groups.append(group)
    return groups


def _holds_both(path):
    return kind(path) in WITH_BOTH or archives.is_archive(path)


def check_sides(files, languages):
    """Raises `UserError` if two files of a corpus are the same, or if their names have the languages in reverse order.

    Args:
        files: {split: list of paths}.
        languages: [of inputs, of targets].
    """
    pairs = [(split, group) for split, paths in files.items() for group in group_files(split, paths) if len(group) == 2]
    trained_on = next((group for split, group in pairs if split == DatasetSplit.TRAIN), ())
    for split, group in pairs:
        flag = f"--{FLAGS[split]}: {','.join(group)}"
        if os.path.realpath(group[0]) == os.path.realpath(group[1]):
            raise UserError(f"{flag}: one file for both sides. Expected inputs, and their translation.")
        ends = [kind(path) for path in group]
        is_swapped = _names(group, languages[::-1]) and not _names(group, languages)
        has_swapped_ends = ends[0] != ends[1] and ends[::-1] == [kind(path) for path in trained_on]
        if is_swapped or has_swapped_ends:
            is_known = has_swapped_ends or _names(trained_on, languages)
            other = ",".join(trained_on) if is_known else f"--languages={','.join(languages)}"
            raise UserError(f"{flag} go the other way than {other}. Swap the two.")


def warn_of_other_languages(files, languages):
    """Warns of files that are named after a third language; the arguments are those of `check_sides`."""
    for split, paths in files.items():
        for group in group_files(split, paths):
            for path, language in zip(group, languages, strict=False):  # a table is a group of one
                end = kind(path)[1:]
                if is_language(end) and end not in _words(language):
                    flag = f"--{FLAGS[split]}"
                    _LOGGER.warning(f"{flag}: {path}: found .{end}, where the language is {language}. Check the files.")


def _names(paths, languages):
    """Returns whether two paths differ in words of the first and of the second language."""
    first, second = ({*_words(language)} for language in languages)
    differing = [pair for pair in zip(*(_words(path)[::-1] for path in paths), strict=False) if pair[0] != pair[1]]
    return any(first_word in first - second and second_word in second - first for first_word, second_word in differing)


def _words(name):
    return re.split(r"[\W_]+", without_packing(name).casefold())


def check_languages(languages, train_files):
    """Returns [language of inputs, of targets], by default from the files' extensions. Raises `UserError`."""
    flag = f"--train_files={','.join(train_files)}"
    pairs = [paths for paths in group_files(DatasetSplit.TRAIN, train_files) if len(paths) == 2]
    endings = [[os.path.splitext(without_packing(path))[1][1:] for path in paths] for paths in pairs]
    for paths, codes in zip(pairs, endings, strict=True):
        if _are_languages(endings[0]) and codes == endings[0][::-1]:
            raise UserError(f"{flag}: {','.join(paths)} go the other way than {','.join(pairs[0])}. Swap the two.")
    if languages:
        if _are_languages(languages):
            return list(languages)
        raise UserError(
            f"--languages={','.join(languages)}: expected two different codes, inputs first, such as en,de."
        )
    if endings and _are_languages(endings[0]) and all(codes == endings[0] for codes in endings):
        return endings[0]
    raise UserError(f"{flag}: the endings do not name two languages. Add --languages=en,de (inputs first).")


def _are_languages(codes):
    is_code = all(re.fullmatch(r"[a-z]{2,3}([-_][A-Za-z0-9]{1,8})*", code) for code in codes)
    return is_code and len(codes) == 2 and codes[0] != codes[1]

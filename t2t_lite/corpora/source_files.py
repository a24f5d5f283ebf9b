"""Finds and reads the files of a corpus, as listed by tensor2tensor's `source_data_files` or given by the user."""

import collections
import fnmatch
import os
import urllib.parse

from t2t_lite import files
from t2t_lite.corpora import archives, plain_text, tables, tmx, wmt_files
from t2t_lite.corpora.catalogs import catalog_of, is_catalog
from t2t_lite.corpora.cells import CSV, JSON_LINES
from t2t_lite.corpora.scripts import subtags
from t2t_lite.errors import UserError, counted, several

TABLES = (".tsv", CSV, *JSON_LINES)
_WITH_BOTH = (*TABLES, ".tmx", wmt_files.XML)  # file types, besides archives, that hold both inputs and targets
_KINDS = ("tsv", "tmx", "text")  # words that may begin the members of an entry of `source_data_files`


def holds_both(path):
    """Returns whether a file, judged by its name, holds both inputs and targets."""
    return plain_text.kind(path) in _WITH_BOTH or archives.is_archive(path) or is_catalog(path)


def read_corpus(paths, layout, languages, removed=None, on_bad_line=None):
    """Yields the sentence pairs of a user's corpus: one file with both sides (see `holds_both`), or two files.

    Args:
        paths: list of str.
        layout: `tables.Layout`, which is used only if the file is a table.
        languages: the codes of the languages of (inputs, targets).
        removed, on_bad_line: see `tmx.read_pairs`.

    Raises:
        UserError: see the reader for this kind of file.
    """
    if len(paths) == 2:
        return _read_two(paths, on_bad_line)
    (path,) = paths
    if is_catalog(path):
        return catalog_of(path).pairs(path, collections.Counter() if removed is None else removed)
    if archives.is_archive(path):
        return read_packed_pairs(path, languages, removed, on_bad_line)
    if plain_text.kind(path) == ".tmx":
        return tmx.read_pairs(path, languages, removed, on_bad_line)
    if plain_text.kind(path) == wmt_files.XML:
        return wmt_files.read_pairs(path, languages)
    return tables.read_pairs(path, layout, on_bad_line)


def _read_two(sources, on_bad_line):
    is_sgml = all(plain_text.kind(source) in wmt_files.SGM for source in sources)
    return (wmt_files.read_segment_pairs if is_sgml else plain_text.read_pairs)(*sources, on_bad_line)


def read_members(folder, members, url="", languages=None, removed=None, on_bad_line=None):
    """Yields the sentence pairs of one entry of tensor2tensor's `source_data_files`.

    Args:
        folder: folder with the files, either the extracted members under their own names, or the archive under the last
            part of the URL. Nothing is written there.
        members: (inputs file, targets file), ("tsv", inputs column, targets column, file or pattern), or ("tmx", file).
            If the names of both files end in `.sgm`, they contain segments (`wmt_files.read_segments`).
        url: URL of the archive.
        languages, removed: see `tmx.read_pairs`.
        on_bad_line: None, or a function called with a message about each unreadable line, which is skipped.

    Raises:
        UserError: a file does not exist; see also `plain_text.read_pairs`, `tables.read_pairs`,
            `wmt_files.read_segment_pairs`, `tmx.read_pairs` and `archives.Member`.
    """
    sources = _members(folder, members, url)
    if members[0] == "tsv":
        columns = tuple(str(int(column) + 1) for column in members[1:3])
        for source in _files(sources):
            yield from tables.read_pairs(source, tables.Layout(("inputs", "targets"), columns, False), on_bad_line)
    elif members[0] == "tmx":
        yield from tmx.read_pairs(*sources, languages, removed, on_bad_line)
    else:
        yield from _read_two(sources, on_bad_line)


def find_texts(folder, pattern, url=""):
    """Returns an iterable of the files whose names match a pattern, as sources for `plain_text.read_lines`.

    Args:
        folder, url: see `read_members`.
        pattern: str, a pattern for the names of files inside the folder or the archive.

    Raises:
        UserError: no file matches.
    """
    return _files(_members(folder, ("text", pattern), url))


def _members(folder, members, url):
    if members[0] not in _KINDS and len(members) != 2:
        raise UserError(f"{', '.join(members)}: found {counted(len(members), 'file')}. Expected (inputs, targets).")
    sources = find_members(folder, members, url)
    if sources is None:
        archive = archive_name(url)
        missing = os.path.join(folder, archive if archives.is_archive(archive) else members[-1])
        raise UserError(f"{missing}: no such file.{f' Download it from {url}.' if '://' in url else ' Put it there.'}")
    return sources


def find_members(folder, members, url):
    """Returns the sources of an entry of `source_data_files`, or None if a file is missing in `folder`.

    A source is a path or an `archives.Member`. For the "tsv" form and for ("text", file or pattern), the result is the
    list of all matching paths, or (archive, pattern, url).
    """
    has_pattern = members[0] in ("tsv", "text")
    if has_pattern:
        inner, name = os.path.split(members[-1])
        paths = files.list_files(os.path.join(folder, inner), fnmatch.translate(name))
    else:
        names = members[1:] if members[0] == "tmx" else members
        paths = [os.path.join(folder, name) for name in names]
    if paths and all(map(files.exists, paths)):
        return paths
    archive = os.path.join(folder, archive_name(url))
    if not archives.is_archive(archive) or not files.exists(archive):
        return None
    if has_pattern:
        return archive, members[-1], url
    return [archives.Member(archive, name, url) for name in names]


def _files(sources):
    return archives.matching_members(*sources) if isinstance(sources, tuple) else sources


def archive_name(url):
    """Returns the name under which a URL's file is stored: the last part of its path, without query and fragment.

    If the URL is a script that sends an archive, as in `download.php?f=v2/en-ro.zip`, the archive's name (`en-ro.zip`)
    is returned.
    """
    if "://" not in url:
        return os.path.basename(url).partition("?")[0]
    parts = urllib.parse.urlsplit(url)
    name = os.path.basename(parts.path.rstrip("/")) or parts.netloc
    values = [os.path.basename(value) for _, value in urllib.parse.parse_qsl(parts.query)]
    return next(filter(archives.is_archive, [name, *values]), name)


def read_packed_pairs(path, languages, removed=None, on_bad_line=None):
    """Yields the sentence pairs of an archive with files `x.en` and `x.de` or one `.tmx`, such as the archives of OPUS.

    Args:
        path: path of the archive.
        languages: (code of the inputs' language, code of the targets' language). These codes are the extensions of two
            files whose names are otherwise the same. If there are no such files, the archive must contain exactly one
            `.tmx`.
        removed, on_bad_line: see `tmx.read_pairs`.

    Raises:
        UserError: the archive is damaged, or does not contain exactly one such pair of files; see also
            `plain_text.read_pairs` and `tmx.read_pairs`.
    """
    # hidden files are ignored, since macOS adds a hidden file of attributes for each file in an archive
    names = [name for name in archives.member_names(path) if not os.path.basename(name).startswith(".")]
    by_ending = [{_base(name, f".{language}"): name for name in names} for language in languages]
    bases = sorted(({*by_ending[0]} & {*by_ending[1]}) - {None})
    memories = [name for name in names if plain_text.kind(name) == ".tmx"]
    members = bases or memories
    if len(members) != 1:
        ends = " and ".join(f".{language}" for language in languages)
        raise UserError(
            f"{path}: found {counted(len(bases), 'pair')} of files that end in {ends}, and {len(memories)} .tmx, among "
            f"{several(names) or 'no file'}. Expected one pair or one .tmx. Unpack the archive and name the files."
        )
    if bases:
        yield from plain_text.read_pairs(*(archives.Member(path, ends[bases[0]]) for ends in by_ending), on_bad_line)
    else:
        yield from tmx.read_pairs(archives.Member(path, memories[0]), languages, removed, on_bad_line)


def _base(name, ending):
    """Strips the extensions for language and compression from a member's name; returns None for other languages."""
    base, extension = os.path.splitext(plain_text.without_packing(name))
    return base if subtags(extension) == subtags(ending) else None

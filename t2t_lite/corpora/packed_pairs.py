"""Pairs from an archive with a corpus of two languages, as OPUS publishes them: `x.en` and `x.de`, or one `.tmx`."""

import os

from t2t_lite.corpora import archives, plain_text, tmx
from t2t_lite.corpora.scripts import subtags
from t2t_lite.errors import UserError, counted

_SHOWN = 5


def read_pairs(path, languages, removed=None, on_bad_line=None):
    """Yields {"inputs": str, "targets": str} from the files of two languages in an archive; other files are not read.

    Args:
        path: path of the archive.
        languages: (of inputs, of targets), the extensions of two files whose names are the same without them. If there
            are none, the archive has one `.tmx`.
        removed, on_bad_line: see `tmx.read_pairs`.

    Raises:
        UserError: the archive is damaged, or has none or several of such pairs; or as `plain_text.read_pairs` and
            `tmx.read_pairs`.
    """
    names = archives.member_names(path)
    by_ending = [{_base(name, f".{language}"): name for name in names} for language in languages]
    bases = sorted(({*by_ending[0]} & {*by_ending[1]}) - {None})
    memories = [name for name in names if plain_text.kind(name) == ".tmx"]
    found = bases or memories
    if len(found) != 1:
        ends = " and ".join(f".{language}" for language in languages)
        raise UserError(
            f"{path}: found {counted(len(bases), 'pair')} of files that end in {ends}, and {len(memories)} .tmx, among "
            f"{_listed(names)}. Expected one of them. Unpack it, and name the files."
        )
    if bases:
        yield from plain_text.read_pairs(*(archives.Member(path, ends[bases[0]]) for ends in by_ending), on_bad_line)
    else:
        yield from tmx.read_pairs(archives.Member(path, memories[0]), languages, removed, on_bad_line)


def _base(name, ending):
    """Returns a member's name without the extension of its language and compression, or None for other files."""
    base, extension = os.path.splitext(plain_text.without_packing(name))
    is_language = subtags(extension) == subtags(ending)
    return base if is_language and not os.path.basename(name).startswith(".") else None


def _listed(names):
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN]) or 'no file'}{more}"

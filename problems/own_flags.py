"""Checks the flags of `translate_own` and turns them into what its problem.json stores."""

import collections
import logging
import os
import re
import types

from t2t_lite.corpora import plain_text
from t2t_lite.corpora.filters import ORDER, PairFilter, parse_filters
from t2t_lite.corpora.scripts import is_language
from t2t_lite.data import own_files
from t2t_lite.data.problem import DatasetSplit, VocabType
from t2t_lite.errors import UserError, shown
from t2t_lite.problems.vocabulary_sources import count_pieces, find_vocabularies
from t2t_lite.ranges import PAIRS, Range, typed_value
from t2t_lite.text.subwords import LONGEST_SYMBOL, RESERVED, is_symbol

_LOGGER = logging.getLogger("t2t_lite")
_WEIGHT = Range(most=1000, above=0)
VOCAB_TYPES = (VocabType.SUBWORD.value, VocabType.BYTE_LEVEL_BPE.value)  # that can be learned
REMEMBERED = types.MappingProxyType(  # keys of problem.json beside those of `OwnFiles`, and how each value is checked
    {
        "corpus_weights": lambda weights: weights is None or _are_weights(weights),
        "filters": lambda wanted: wanted is None or _are_filters(wanted),
        "held_out": lambda count: count is None or (type(count) is int and count in PAIRS),
        "vocab_type": lambda kind: kind in (None, *VOCAB_TYPES),
        "held_out_below": lambda bound: bound is None or (type(bound) is int and 0 <= bound <= 2**64),
    }
)
_DEFAULT_VOCAB_SIZE = 32000
_DEFAULT_HELD_OUT = 1000


def group_files(split, paths):
    """Returns the [path, …] of each corpus: one `.tsv` or `.tmx` file, or two other files. Raises `UserError`."""
    flag, rest, groups = f"--{own_files.FLAGS[split]}={','.join(paths)}", list(paths), []
    while rest:
        count = 1 if _holds_both(rest[0]) else 2
        group, rest = rest[:count], rest[count:]
        if len(group) < count or any(map(_holds_both, group[1:])):
            raise UserError(
                f"{flag}: {group[0]} has no other side (found {len(paths)}). Expected two files that go together "
                "(a.en,a.de), or one .tsv or .tmx file, for each corpus."
            )
        groups.append(group)
    return groups


def _holds_both(path):
    return kind(path) in (".tsv", ".tmx")


def kind(path):
    """Returns the ending of a file in small letters, without that of its packing."""
    return os.path.splitext(plain_text.without_packing(path))[1].lower()


def check_sides(files, languages):
    """Raises `UserError` for two files of a corpus that are one file, or named the other way round than the languages.

    Args:
        files: {split: list of paths}.
        languages: [of inputs, of targets].
    """
    pairs = [(split, group) for split, paths in files.items() for group in group_files(split, paths) if len(group) == 2]
    trained_on = next((group for split, group in pairs if split == DatasetSplit.TRAIN), ())
    for split, group in pairs:
        flag = f"--{own_files.FLAGS[split]}: {','.join(group)}"
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
            for path, language in zip(group, languages, strict=False):  # a table is alone
                end = kind(path)[1:]
                if is_language(end) and end not in _words(language):
                    flag = f"--{own_files.FLAGS[split]}"
                    _LOGGER.warning(f"{flag}: {path}: found .{end}, where the language is {language}. Check the files.")


def _names(paths, languages):
    """Returns whether two paths have, where their words differ, those of one language and of the other."""
    first, second = ({*_words(language)} for language in languages)
    differing = [pair for pair in zip(*(_words(path)[::-1] for path in paths), strict=False) if pair[0] != pair[1]]
    return any(one in first - second and other in second - first for one, other in differing)


def _words(name):
    return re.split(r"[\W_]+", plain_text.without_packing(name).casefold())


def check_languages(given, train_files):
    """Returns [language of inputs, of targets], from the files' endings where not given. Raises `UserError`."""
    flag = f"--train_files={','.join(train_files)}"
    pairs = [paths for paths in group_files(DatasetSplit.TRAIN, train_files) if len(paths) == 2]
    endings = [[os.path.splitext(plain_text.without_packing(path))[1][1:] for path in paths] for paths in pairs]
    for paths, found in zip(pairs, endings, strict=True):
        if _are_languages(endings[0]) and found == endings[0][::-1]:
            raise UserError(f"{flag}: {','.join(paths)} go the other way than {','.join(pairs[0])}. Swap the two.")
    if given:
        if _are_languages(given):
            return list(given)
        raise UserError(f"--languages={','.join(given)}: expected two different codes, inputs first, such as en,de.")
    if endings and _are_languages(endings[0]) and all(found == endings[0] for found in endings):
        return endings[0]
    raise UserError(f"{flag}: the endings do not name two languages. Add --languages=en,de (inputs first).")


def _are_languages(codes):
    is_code = all(re.fullmatch(r"[a-z]{2,3}([-_][A-Za-z0-9]{1,8})*", code) for code in codes)
    return is_code and len(codes) == 2 and codes[0] != codes[1]


def check_weights(given, num_corpora):
    """Returns one float per training corpus, or None where all are 1. Raises `UserError`."""
    flag = f"--corpus_weights={','.join(map(str, given))}"
    if given and len(given) != num_corpora:
        raise UserError(f"{flag}: found {len(given)} for {num_corpora} training corpora. Expected one for each.")
    weights = [typed_value("--corpus_weights: weight", word, float, _WEIGHT) for word in given]
    return weights if set(weights) - {1.0} else None


def _are_weights(weights):
    return isinstance(weights, list) and all(type(weight) in (int, float) and weight in _WEIGHT for weight in weights)


def _are_filters(wanted):
    return isinstance(wanted, dict) and all(
        name in ORDER and (number is True or (type(number) in (int, float) and number >= 1))
        for name, number in wanted.items()
    )


def check_filters(words, languages):
    """Returns what `PairFilter` takes, or None for no filters. Raises `UserError`."""
    wanted = parse_filters(words)
    PairFilter(wanted, languages, collections.Counter())  # raises where the scripts of a language are unknown
    return wanted or None


def check_held_out(given, dev_files):
    """Returns how many pairs to hold out; None with files to evaluate on. Raises `UserError`."""
    if dev_files and given is not None:
        raise UserError(
            f"--held_out={given}: --dev_files are there to evaluate on, nothing is held out. Leave out one of the two."
        )
    return None if dev_files else typed_value("--held_out", given, int | None, PAIRS) or _DEFAULT_HELD_OUT


def check_vocabulary(languages, vocab_size, target_vocab_size, vocab_type, vocab_from, symbols, max_samples):
    """Returns the part of the configuration that describes the vocabulary. Raises `UserError`."""
    sizes = {"vocab_size": vocab_size, "target_vocab_size": target_vocab_size}
    how = {
        "vocab_type": vocab_type,
        "user_defined_symbols": list(symbols) or None,
        "max_samples_for_vocab": max_samples,
    }
    if vocab_from:
        for name, value in {**sizes, **how}.items():
            if value is not None:
                raise UserError(
                    f"--{name} together with --vocab_from={','.join(vocab_from)}: that vocabulary is taken as it is. "
                    "Leave out one of the two."
                )
        found = find_vocabularies(vocab_from, languages)
        pieces = {side: count_pieces(path) for side, path in found.items()}
        is_shared = found["inputs"] == found["targets"]
        sizes = {"vocab_size": pieces["inputs"], "target_vocab_size": None if is_shared else pieces["targets"]}
        return {**sizes, **how, "vocab_from": found}
    sizes["vocab_size"] = own_files.check_vocab_size(vocab_size, _DEFAULT_VOCAB_SIZE, "1000 to 50000")
    if target_vocab_size is not None:
        own_files.check_vocab_size(target_vocab_size, None, "1000 to 50000", "target_vocab_size")
    if vocab_type not in (None, *VOCAB_TYPES):
        raise UserError(f"--vocab_type={vocab_type}: expected {' or '.join(VOCAB_TYPES)}.")
    flag = "--user_defined_symbols"
    if symbols and vocab_type == VocabType.BYTE_LEVEL_BPE.value:
        raise UserError(f"{flag} together with --vocab_type={vocab_type}, which has none. Leave out one of the two.")
    for symbol in symbols:
        if not is_symbol(symbol):
            raise UserError(
                f"{flag}: {shown(symbol)}: expected symbols without blanks, such as <2de>, of at most {LONGEST_SYMBOL} "
                "characters."
            )
        if RESERVED.fullmatch(symbol) or symbols.count(symbol) > 1:
            raise UserError(f"{flag}: {symbol} is in the vocabulary already. Choose another symbol, or leave it out.")
    typed_value("--max_samples_for_vocab", max_samples, int | None, PAIRS)
    return {**sizes, **how, "vocab_from": None}

"""Declares the settings of problems on the user's own files.

A setting with a meaning is a flag of t2t-datagen and an argument of `OwnCorpus.configure`. Its value is stored in a
JSON file in the data folder, under its name or `key`. A problem lists the keys in its file and their default values. An
extra can declare further settings with `declare_settings`, in a module that must be quick to import, since `t2t-datagen
--help` imports it.
"""

import dataclasses
import os
from collections.abc import Callable

from t2t_lite import registry
from t2t_lite.data.splits import FILE_TAGS, SENTENCEPIECE, VocabType
from t2t_lite.errors import UserError
from t2t_lite.files.safe_json import check_schema
from t2t_lite.settings import ranges
from t2t_lite.settings.ranges import Choices, Range, Setting, typed_value

WEIGHT = Range(most=1000, above=0)  # the range of valid weights of a corpus
VOCAB_TYPES = (VocabType.SUBWORD.value, VocabType.BYTE_LEVEL_BPE.value)  # the vocabulary types that can be learned
# Settings that must not be combined with --vocab_from, because the existing vocabulary determines them.
VOCABULARY = (
    "vocab_size", "target_vocab_size", "vocab_type", "user_defined_symbols", "max_samples_for_vocab", *SENTENCEPIECE
)  # fmt: skip
TABLES = ("columns", "header", "fields", "separator")
# The keys of settings that all problems with labelled texts have.
LABELLED = ("vocab_size", "max_samples_for_vocab", "vocab_from", "vocab_type", *SENTENCEPIECE, "files", *TABLES)


@dataclasses.dataclass(frozen=True)
class OwnSetting(Setting):
    """A setting of problems on the user's own files. If `fixed`, its value cannot change once data exist.

    Attributes:
        key: str, the setting's key in the JSON file in the data folder; "" if this is the setting's name.
        is_path: bool, whether the value is a path or a list of paths.
        is_required: bool, whether the data folder's JSON file always has a value for the setting.
        fits: function that returns whether a JSON value from the data folder is valid; None if checking its type and
            limits is enough.
        problems: names of problems that accept the setting although they do not list it, because another folder
            declares it.
    """

    key: str = ""
    is_path: bool = False
    is_required: bool = False
    fits: Callable | None = None
    problems: tuple = ()

    def typed(self, value):
        """Converts a value with `typed_value`, or the items of a list to str; returns None for an empty list.

        Raises `UserError`, also for a str or a dict as a list, which would lose its commas or its values.
        """
        if value is None:
            return None
        if self.kind is not list:
            return typed_value(f"--{self.name}", value, self.kind, self.limits)
        if isinstance(value, str | os.PathLike | dict):
            raise UserError(f"--{self.name}={value}: expected a list, such as ['a', 'b'].")
        return [*map(str, value)] or None  # items may also be numbers, as of columns, or objects of pathlib

    def checked(self, values):
        """Returns the setting's value in `values` (see `OwnProblem.check_settings`).

        Raises `UserError` if it contradicts another value.
        """
        return values.get(self.name)

    def substitution(self, value):
        """Returns the `Problem.substitution` for the setting's value in the data folder; by default None."""

    def is_kept(self, value):
        """Returns whether a JSON value is valid for the setting's key in a data folder."""
        if value is None:
            return not self.is_required
        if self.fits:
            return self.fits(value)
        if self.kind is list:
            return are_strings(value)
        return type(value) is self.kind and (self.limits is None or value in self.limits)


def are_strings(value):
    """Returns whether a JSON value is a list of strings."""
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def _are_files(splits):
    try:
        check_schema(splits, {str: [{"path": str, "bytes": int, "sha256?": str}]}, "files")
    except UserError:
        return False
    sizes = [facts["bytes"] for described in splits.values() for facts in described]
    return splits.keys() <= FILE_TAGS.keys() and all(0 <= size < 2**63 for size in sizes)


def _are_paths(paths):
    return not paths or (isinstance(paths, dict) and are_strings([*paths, *paths.values()]))


SETTINGS = {}  # {name: OwnSetting} for all declared settings


def declare_settings(*settings):
    """Declares settings. Raises `UserError` if a different setting already has one of the names."""
    for setting in settings:
        if SETTINGS.setdefault(setting.name, setting) != setting:
            raise UserError(f"own settings: {setting.name!r} is already declared. Choose another name.")


def explain_settings(**sentences):
    """Appends a sentence to the meaning of each named setting, for example about the problem of an extra."""
    for name, sentence in sentences.items():
        SETTINGS[name] = dataclasses.replace(SETTINGS[name], meaning=f"{SETTINGS[name].meaning} {sentence}")


def own_flags():
    """Returns {name: OwnSetting} for the flags of all problems, without defaults, which depend on the problem."""
    _MODULES.names()
    return {name: dataclasses.replace(setting, default=None) for name, setting in SETTINGS.items() if setting.meaning}


def own_settings(*settings, problem="", **defaults):
    """Returns {key: OwnSetting} for the settings that a problem stores in its data folder, in this order.

    Args:
        settings: keys of `SETTINGS`, and OwnSettings that are not in `SETTINGS`.
        problem: str, name of a problem for which other folders may declare settings.
        defaults: {key: value}, the problem's own default values.
    """
    if problem:
        _MODULES.names()
    settings = [SETTINGS[one] if isinstance(one, str) else one for one in settings]
    settings += [one for one in SETTINGS.values() if problem in one.problems]
    by_name = {one.name: one for one in settings}
    return by_name | {key: dataclasses.replace(by_name[key], default=default) for key, default in defaults.items()}


# used only to import the modules that declare settings
_MODULES = registry.Registry("own settings", "(declare|explain)_settings", "t2t_lite.problems")
_FILES = {"kind": list, "default": None, "key": "files", "is_path": True}
declare_settings(
    OwnSetting(
        "train_files",
        **_FILES,
        meaning="translate_own: the training corpora, such as a.en,a.de,b.tsv. Each corpus is two files inputs,targets "
        "(which may end in .gz, .bz2, .xz, .zst), a .tsv, .csv, .jsonl or .tmx file, or a .zip that contains two "
        "such files or a .tmx file. languagemodel_own, masked_lm_own: texts; next_sentence_own, "
        "sentence_order_own: one sentence per line, a blank line between documents. classify_own, "
        "classify_pair_own, regress_own, regress_pair_own: lines of label<TAB>text or label<TAB>first<TAB>second.",
    ),
    OwnSetting(
        "dev_files", **_FILES,
        meaning="Like --train_files, but for evaluation during training; for translate_own, see also --held_out.",
    ),
    OwnSetting("test_files", **_FILES, meaning="Like --train_files, but for the final evaluation; optional."),
    OwnSetting(
        "vocab_size", int, 32000, ranges.VOCAB_SIZE, is_required=True,
        meaning="Number of pieces in the vocabulary (translate_own: the shared vocabulary). Default: about one "
        "piece for every four distinct words of the corpus, at most 32000.",
    ),
    OwnSetting(
        "vocab_type", str, None, Choices(VOCAB_TYPES),
        meaning="The kind of vocabulary to learn: SentencePiece's pieces, or byte-level BPE like GPT-2's. Default: "
        "subwords; for languagemodel_own byte-level BPE, which keeps all white space.",
    ),
    OwnSetting(
        "vocab_from", list, None, is_path=True, fits=_are_paths,
        meaning="An existing vocabulary: a SentencePiece .model, vocab.json (with merges.txt), vocab.txt, two of these "
        "files (inputs,targets), a data_dir, or the output_dir of a model to train further.",
    ),
    OwnSetting(
        "normalization", str, None, Choices(ranges.NORMALIZATIONS),
        meaning="SentencePiece's normalization of texts, in training, decoding and exports: nfkc (unifies Unicode's "
        "compatible forms), nmt_nfkc (also normalizes spaces and control characters), nfkc_cf and nmt_nfkc_cf "
        "(also lowercase). Default: identity, which changes nothing.",
    ),
    OwnSetting(
        "character_coverage", float, None, ranges.CHARACTER_COVERAGE,
        meaning="Fraction of the text's characters that become single pieces; other characters are spelled with bytes. "
        "Default: 0.9999.",
    ),
    OwnSetting(
        "split_digits", bool, None,
        meaning="Whether numbers are spelled digit by digit, so that no piece has more than one digit.",
    ),
    OwnSetting(
        "max_samples_for_vocab", int, None, ranges.PAIRS,
        meaning="translate_own: number of pairs from which the vocabulary is learned (default 2000000). "
        "languagemodel_own: thousands of characters (default 100000).",
    ),
    OwnSetting(
        "sequence_length", int, None, ranges.SEQUENCE_LENGTH, is_required=True,
        meaning="Length of each row, in ids. Default: 1024 for languagemodel_own, 511 for masked_lm_own, "
        "next_sentence_own and sentence_order_own.",
    ),
    OwnSetting(
        "columns", list, None, fixed=True,
        meaning="Columns of tables to read, by number from 1 or by name in the first line, such as label,text or "
        "inputs,targets. By default, a table must have exactly the required columns, in order.",
    ),
    OwnSetting(
        "header", bool, None, fixed=True,
        meaning="Whether the first line of tables names the columns. Default: no, but a first line that looks like a "
        "header raises an error.",
    ),
    OwnSetting(
        "fields", list, None, fixed=True,
        meaning="Fields of JSON lines (.jsonl) to read, such as en,de, or translation.en,translation.de for fields of "
        "an inner object. Default: --columns if given as names, or the languages, or names such as label,text.",
    ),
    OwnSetting(
        "separator", str, None, Choices(tuple(ranges.SEPARATORS)), fixed=True,
        meaning="Separator of the cells of tables. Default: tab; for .csv files, the separator is detected in their "
        "first lines.",
    ),
    # Settings without a flag, because generation determines their values.
    OwnSetting("format", int, None, fits=lambda value: True),
    OwnSetting("problem", str, None, fits=lambda value: True),
    OwnSetting("files", dict, None, is_required=True, fits=_are_files),
)  # fmt: skip
# Settings of masked_lm_own and of the problems that derive from it.
declare_settings(
    OwnSetting(
        "mask_rate", float, 0.15, ranges.MASK_RATE, fixed=True, is_required=True,
        meaning="masked_lm_own, next_sentence_own, sentence_order_own: fraction of ids to predict. Default: 0.15.",
    ),
    OwnSetting(
        "mask_unit", str, "word", Choices(ranges.MASK_UNITS), fixed=True, is_required=True,
        meaning="For problems with --mask_rate: the unit that is masked as a whole; phrase needs --phrase_file. "
        "Default: word.",
    ),
    OwnSetting(
        "phrase_file", str, None, key="phrases", is_path=True,
        meaning="With --mask_unit=phrase: a text file with one phrase per line.",
    ),
)  # fmt: skip


def _are_weights(weights):
    return isinstance(weights, list) and all(type(weight) in (int, float) and weight in WEIGHT for weight in weights)


def _are_filters(thresholds):
    from t2t_lite.corpora.filters import ORDER

    return isinstance(thresholds, dict) and all(
        name in ORDER and (threshold is True or (type(threshold) in (int, float) and threshold >= 1))
        for name, threshold in thresholds.items()
    )


# Settings of translate_own.
declare_settings(
    OwnSetting(
        "languages", list, None, fixed=True, fits=lambda codes: are_strings(codes) and len(codes) == 2,
        meaning="translate_own: the languages of inputs and targets, such as en,de. Default: the files' endings.",
    ),
    OwnSetting(
        "corpus_weights", list, None, fixed=True, fits=_are_weights,
        meaning="translate_own: one weight per training corpus (default 1), which sets how often its pairs occur. With "
        "2.5, all pairs occur twice and half of them a third time; with 0.3, 30 % of the pairs occur once.",
    ),
    OwnSetting(
        "filters", list, None, fixed=True, fits=_are_filters,
        meaning="translate_own: filters of the training corpora: "
        "too_long=1000,length_ratio=3,copied,wrong_script,mojibake,duplicate, or all. Default: none.",
    ),
    OwnSetting(
        "held_out", int, None, ranges.PAIRS, fixed=True,
        meaning="translate_own without --dev_files: number of training pairs that are used for evaluation instead. "
        "Default: 1000.",
    ),
    OwnSetting(
        "target_vocab_size", int, None, ranges.VOCAB_SIZE, fixed=True,
        meaning="translate_own: number of pieces in a separate vocabulary for the targets.",
    ),
    OwnSetting(
        "user_defined_symbols", list, None, fixed=True,
        meaning="translate_own: symbols that are always one piece, such as <2de>.",
    ),
)  # fmt: skip

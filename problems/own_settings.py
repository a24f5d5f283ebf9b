"""The settings of problems on the user's own files: what such a setting is, and those that several problems share.

A setting with a meaning is a flag of t2t-datagen and an argument of `OwnCorpus.configure`. Its value is stored in a
JSON file in the data folder, under its name or `key`. A problem lists the keys of its file, and their defaults. What
one problem alone has is declared beside it by `declare_settings`, in a module that costs no time to import, since
`t2t-datagen --help` reads it.
"""

import dataclasses
from collections.abc import Callable

from t2t_lite import registry
from t2t_lite.data.splits import FILE_TAGS, VocabType
from t2t_lite.errors import UserError
from t2t_lite.settings import ranges
from t2t_lite.settings.ranges import Choices, Setting, typed_value

VOCAB_TYPES = (VocabType.SUBWORD.value, VocabType.BYTE_LEVEL_BPE.value)  # that can be learned
# Settings that --vocab_from determines and that must not be combined with it.
SENTENCEPIECE = ("normalization", "character_coverage", "split_digits")
VOCABULARY = (
    "vocab_size", "target_vocab_size", "vocab_type", "user_defined_symbols", "max_samples_for_vocab", *SENTENCEPIECE
)  # fmt: skip
TABLES = ("columns", "header", "fields", "separator")
# Keys of all problems of labelled texts.
LABELLED = ("vocab_size", "max_samples_for_vocab", "vocab_from", "vocab_type", *SENTENCEPIECE, "files", *TABLES)


@dataclasses.dataclass(frozen=True)
class OwnSetting(Setting):
    """A setting of problems on the user's own files. `fixed`: it cannot change once data exist.

    Attributes:
        key: str, its key in the data folder; "": its name.
        is_path: bool, whether it is a path, or a list of paths.
        is_required: bool, whether the data folder always has a value.
        is_newer: bool, whether manifests omit it if it has no value, like those of earlier versions.
        fits: function of a JSON value that returns whether it is valid in the data folder; None: by kind and limits.
        problems: names of the problems that take it without listing it: it is of another folder than they are.
    """

    key: str = ""
    is_path: bool = False
    is_required: bool = False
    is_newer: bool = False
    fits: Callable | None = None
    problems: tuple = ()

    def typed(self, value):
        """Returns `typed_value` of a value, or None for an empty list. Raises `UserError`."""
        if value is None:
            return None
        return [*value] or None if self.kind is list else typed_value(f"--{self.name}", value, self.kind, self.limits)

    def checked(self, values):
        """Returns its value in `values`, see `OwnProblem.check_settings`. Raises `UserError` if it contradicts one."""
        return values.get(self.name)

    def substitution(self, value):
        """Returns the `Problem.substitution` that its value in the data folder makes; by default None."""

    def is_kept(self, value):
        """Returns whether a JSON value is valid for the key in a data folder."""
        if value is None:
            return not self.is_required
        if self.fits:
            return self.fits(value)
        if self.kind is list:
            return are_strings(value)
        return type(value) is self.kind and (self.limits is None or value in self.limits)


def are_strings(value):
    """Returns whether a JSON value is a list of texts."""
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def listed(described):
    """Returns the files of a split as a list; where a split has one file, the JSON value may be a dict."""
    return [described] if isinstance(described, dict) else described


def _are_files(splits):
    is_known = isinstance(splits, dict) and splits.keys() <= FILE_TAGS.keys()
    return is_known and all(map(_are_described, map(listed, splits.values())))


def _are_described(described):
    return isinstance(described, list) and all(
        isinstance(facts, dict)
        and isinstance(facts.get("path"), str)
        and type(facts.get("bytes")) is int
        and 0 <= facts["bytes"] < 2**63
        and isinstance(facts.get("sha256", ""), str)
        for facts in described
    )


def _are_paths(paths):
    return not paths or (isinstance(paths, dict) and are_strings([*paths, *paths.values()]))


SETTINGS = {}  # {name: OwnSetting} of those that several problems share, or that are declared beside one


def declare_settings(*settings):
    """Declares settings. Raises `UserError` if another one has the name."""
    for setting in settings:
        if SETTINGS.setdefault(setting.name, setting) != setting:
            raise UserError(f"own settings: {setting.name!r} is already declared. Choose another name.")


def explain_settings(**sentences):
    """Adds a sentence to the meaning of shared settings, by their names: what they are for a problem of an extra."""
    for name, sentence in sentences.items():
        SETTINGS[name] = dataclasses.replace(SETTINGS[name], meaning=f"{SETTINGS[name].meaning} {sentence}")


def own_flags():
    """Returns {name: OwnSetting} of the flags of all problems; without defaults, which the problems set."""
    _MODULES.names()
    return {name: dataclasses.replace(setting, default=None) for name, setting in SETTINGS.items() if setting.meaning}


def own_settings(*settings, problem="", **defaults):
    """Returns {key: OwnSetting} that a problem stores in its data folder, in this order.

    Args:
        settings: of those with an entry in `SETTINGS` the key, of others the OwnSetting.
        problem: str, name of a problem that other folders may have a setting for.
        defaults: the problem's own, by key.
    """
    if problem:
        _MODULES.names()
    settings = [SETTINGS[one] if isinstance(one, str) else one for one in settings]
    settings += [one for one in SETTINGS.values() if problem in one.problems]
    found = {one.name: one for one in settings}
    return found | {key: dataclasses.replace(found[key], default=default) for key, default in defaults.items()}


_MODULES = registry.Registry("own settings")  # only finds and imports the modules that declare some
_FILES = {"kind": list, "default": None, "key": "files", "is_path": True}
declare_settings(
    OwnSetting(
        "train_files",
        **_FILES,
        meaning="translate_own: the training corpora, each inputs,targets (.gz, .bz2, .xz, .zst), a .tsv, .csv, "
        ".jsonl or .tmx, or a .zip with one of inputs,targets or .tmx: a.en,a.de,b.tsv. languagemodel_own, "
        "masked_lm_own: texts; next_sentence_own, sentence_order_own: a sentence per line, a blank line between "
        "documents. classify_own, classify_pair_own, regress_own, regress_pair_own: lines of label<TAB>text, "
        "label<TAB>first<TAB>second.",
    ),
    OwnSetting(
        "dev_files", **_FILES,
        meaning="Likewise, to evaluate on while training; translate_own: or see --held_out.",
    ),
    OwnSetting("test_files", **_FILES, meaning="Likewise, for the end; may be left out."),
    OwnSetting(
        "vocab_size", int, 32000, ranges.VOCAB_SIZE, is_required=True,
        meaning="Pieces of the vocabulary (translate_own: of the shared one). When left out, the corpus determines "
        "the number: about one for every four distinct words, 32000 at most.",
    ),
    OwnSetting(
        "vocab_type", str, None, Choices(VOCAB_TYPES),
        meaning="What to learn: SentencePiece's pieces, or byte-level BPE as GPT-2's. Default: subwords; of "
        "languagemodel_own byte-level BPE, which keeps all white space.",
    ),
    OwnSetting(
        "vocab_from", list, None, is_path=True, fits=_are_paths,
        meaning="An existing vocabulary: a SentencePiece .model, vocab.json (with merges.txt), vocab.txt, two "
        "(inputs,targets), a data_dir, or the output_dir of a model to train further.",
    ),
    OwnSetting(
        "normalization", str, None, Choices(ranges.NORMALIZATIONS),
        meaning="SentencePiece's rule for texts before they become pieces, in training, decoding and exports: nfkc "
        "(Unicode's compatible forms become one), nmt_nfkc (also spaces and control characters), nfkc_cf and "
        "nmt_nfkc_cf (lower case, too). Default: identity, none.",
    ),
    OwnSetting(
        "character_coverage", float, None, ranges.CHARACTER_COVERAGE,
        meaning="Share of the text's characters that get pieces of their own; bytes spell the others. Default: "
        "0.9999.",
    ),
    OwnSetting(
        "split_digits", bool, None,
        meaning="Whether no piece has more than one digit, so that numbers are spelled digit by digit.",
    ),
    OwnSetting(
        "max_samples_for_vocab", int, None, ranges.PAIRS,
        meaning="translate_own: pairs the vocabulary is learned from, 2000000. languagemodel_own: thousands of "
        "characters, 100000.",
    ),
    OwnSetting(
        "sequence_length", int, None, ranges.SEQUENCE_LENGTH, is_required=True,
        meaning="Ids in a row: of languagemodel_own 1024 when left out, of masked_lm_own, next_sentence_own and "
        "sentence_order_own 511.",
    ),
    OwnSetting(
        "columns", list, None, fixed=True, is_newer=True,
        meaning="Of tables: the columns to read, by number from 1 or by name in the first line, such as label,text or "
        "inputs,targets. Default: the table has no others.",
    ),
    OwnSetting(
        "header", bool, None, fixed=True, is_newer=True,
        meaning="Whether the first line of tables names the columns; left out, one that looks like it is refused.",
    ),
    OwnSetting(
        "fields", list, None, fixed=True, is_newer=True,
        meaning="Of JSON lines (.jsonl): the fields to read, such as en,de, or translation.en,translation.de for "
        "those of an inner object. Default: --columns that are names, or the languages, or label,text etc.",
    ),
    OwnSetting(
        "separator", str, None, Choices(tuple(ranges.SEPARATORS)), fixed=True, is_newer=True,
        meaning="What separates the cells of tables. Default: tabs, and in .csv files what their first lines show.",
    ),
    # Determined by generation, so without a flag.
    OwnSetting("format", int, None, fits=lambda value: True),
    OwnSetting("problem", str, None, fits=lambda value: True),
    OwnSetting("files", dict, None, is_required=True, fits=_are_files),
)  # fmt: skip

"""The settings of problems on the user's own files, each declared once.

A setting with a meaning is a flag of t2t-datagen and an argument of `OwnCorpus.configure`. Its value is stored in a
JSON file in the data folder, under its name or `key`. A problem lists the keys of its file, and their defaults.
"""

import dataclasses
from collections.abc import Callable

from t2t_lite.data.splits import FILE_TAGS, VocabType
from t2t_lite.extras.protect.protected_texts import KINDS
from t2t_lite.settings import ranges
from t2t_lite.settings.ranges import Choices, Range, Setting, typed_value
from t2t_lite.text.subwords import NORMALIZATIONS

VOCAB_TYPES = (VocabType.SUBWORD.value, VocabType.BYTE_LEVEL_BPE.value)  # that can be learned
# Settings that --vocab_from determines and that must not be combined with it.
SENTENCEPIECE = ("normalization", "character_coverage", "split_digits")
VOCABULARY = (
    "vocab_size", "target_vocab_size", "vocab_type", "user_defined_symbols", "max_samples_for_vocab", *SENTENCEPIECE
)  # fmt: skip
TABLES = ("columns", "header", "fields", "separator")
# Keys of all problems of labelled texts.
LABELLED = ("vocab_size", "max_samples_for_vocab", "vocab_from", "vocab_type", *SENTENCEPIECE, "files", *TABLES)
WEIGHT = Range(most=1000, above=0)


@dataclasses.dataclass(frozen=True)
class OwnSetting(Setting):
    """A setting of problems on the user's own files. `fixed`: it cannot change once data exist.

    Attributes:
        key: str, its key in the data folder; "": its name.
        is_path: bool, whether it is a path, or a list of paths.
        is_required: bool, whether the data folder always has a value.
        is_newer: bool, whether manifests omit it if it has no value, like those of earlier versions.
        fits: function of a JSON value that returns whether it is valid in the data folder; None: by kind and limits.
    """

    key: str = ""
    is_path: bool = False
    is_required: bool = False
    is_newer: bool = False
    fits: Callable | None = None

    def typed(self, value):
        """Returns `typed_value` of a value, or None for an empty list. Raises `UserError`."""
        if value is None:
            return None
        return [*value] or None if self.kind is list else typed_value(f"--{self.name}", value, self.kind, self.limits)

    def is_kept(self, value):
        """Returns whether a JSON value is valid for the key in a data folder."""
        if value is None:
            return not self.is_required
        if self.fits:
            return self.fits(value)
        if self.kind is list:
            return _are_strings(value)
        return type(value) is self.kind and (self.limits is None or value in self.limits)


def _are_strings(value):
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def listed(described):
    """Returns the files of a split as a list; for parsing_english_own, the JSON value is a single dict."""
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


def _are_weights(weights):
    return isinstance(weights, list) and all(type(weight) in (int, float) and weight in WEIGHT for weight in weights)


def _are_filters(thresholds):
    from t2t_lite.corpora.filters import ORDER

    return isinstance(thresholds, dict) and all(
        name in ORDER and (threshold is True or (type(threshold) in (int, float) and threshold >= 1))
        for name, threshold in thresholds.items()
    )


def _are_paths(paths):
    return not paths or (isinstance(paths, dict) and _are_strings([*paths, *paths.values()]))


def _are_sizes(size):
    return size is None or (isinstance(size, list) and len(size) == 3 and all(type(n) is int and n > 0 for n in size))


def _are_numbers(ends):
    return isinstance(ends, list) and len(ends) == 2 and all(isinstance(end, int | float) for end in ends)


_FILES = {"kind": list, "default": None, "key": "files", "is_path": True}
SETTINGS = {
    setting.name: setting
    for setting in (
        OwnSetting(
            "train_files",
            **_FILES,
            meaning="translate_own: the training corpora, each inputs,targets (.gz, .bz2, .xz, .zst), a .tsv, .csv, "
            ".jsonl or .tmx, or a .zip with one of inputs,targets or .tmx: a.en,a.de,b.tsv. parsing_english_own: one "
            "file of bracketed trees. languagemodel_own, masked_lm_own, permutation_lm_own: texts; next_sentence_own, "
            "sentence_order_own: a sentence per line, a blank line between documents. "
            "classify_own, classify_pair_own, regress_own, regress_pair_own: lines of label<TAB>text, "
            "label<TAB>first<TAB>second. tag_own: CoNLL's or CoNLL-U's columns. qa_own: SQuAD's JSON. image_own: "
            "PNGs, music_own: MIDI; or folders of them.",
        ),
        OwnSetting(
            "dev_files", **_FILES,
            meaning="Likewise, to evaluate on while training; translate_own: or see --held_out.",
        ),
        OwnSetting("test_files", **_FILES, meaning="Likewise, for the end; may be left out."),
        OwnSetting(
            "languages", list, None, fixed=True, fits=lambda codes: _are_strings(codes) and len(codes) == 2,
            meaning="translate_own: of inputs,targets, such as en,de; from the files' endings.",
        ),
        OwnSetting(
            "corpus_weights", list, None, fixed=True, fits=_are_weights,
            meaning="translate_own: one weight per training corpus (default 1), how often each of its pairs occurs: "
            "2.5 is twice, and half of them once more; 0.3 is 30 % of them.",
        ),
        OwnSetting(
            "filters", list, None, fixed=True, fits=_are_filters,
            meaning="translate_own: of the training corpora: "
            "too_long=1000,length_ratio=3,copied,wrong_script,mojibake,duplicate, or all. None when left out.",
        ),
        OwnSetting(
            "held_out", int, None, ranges.PAIRS, fixed=True,
            meaning="translate_own without --dev_files: training pairs to evaluate on instead, 1000.",
        ),
        OwnSetting(
            "vocab_size", int, 32000, ranges.VOCAB_SIZE, is_required=True,
            meaning="Pieces of the vocabulary (translate_own: of the shared one). When left out, the corpus determines "
            "the number: about one for every four distinct words, 32000 at most (parsing_english_own: 8000).",
        ),
        OwnSetting(
            "target_vocab_size", int, None, ranges.VOCAB_SIZE, fixed=True,
            meaning="translate_own: pieces of a vocabulary of the targets' own.",
        ),
        OwnSetting(
            "vocab_type", str, None, Choices(VOCAB_TYPES),
            meaning="What to learn: SentencePiece's pieces, or byte-level BPE as GPT-2's. Default: subwords; of "
            "languagemodel_own byte-level BPE, which keeps all white space.",
        ),
        OwnSetting(
            "vocab_from", list, None, is_path=True, fits=_are_paths,
            meaning="All but parsing_english_own: an existing vocabulary: a SentencePiece .model, vocab.json (with "
            "merges.txt), vocab.txt, two (inputs,targets), a data_dir, or the output_dir of a model to train further.",
        ),
        OwnSetting(
            "user_defined_symbols", list, None, fixed=True,
            meaning="translate_own: symbols that are always one piece, such as <2de>.",
        ),
        OwnSetting(
            "protect", list, None, fixed=True, is_newer=True,
            fits=lambda kinds: _are_strings(kinds) and {*kinds} <= {*KINDS},
            meaning=f"translate_own: what comes through a translation unchanged, {','.join(KINDS)}: symbols of the "
            "vocabulary stand for them. Default: nothing.",
        ),
        OwnSetting(
            "normalization", str, None, Choices(NORMALIZATIONS),
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
            meaning="languagemodel_own, music_own, masked_lm_own, permutation_lm_own, next_sentence_own, "
            "sentence_order_own, qa_own: ids in a row; 1024, 511 and, of qa_own, 383 when left out.",
        ),
        OwnSetting(
            "doc_stride", int, None, ranges.SEQUENCE_LENGTH, is_required=True,
            meaning="qa_own: ids of a long context from the start of a row to that of the next one, 128.",
        ),
        OwnSetting(
            "mask_rate", float, 0.15, ranges.MASK_RATE, fixed=True, is_required=True,
            meaning="masked_lm_own, next_sentence_own, sentence_order_own: share of the ids to predict, 0.15.",
        ),
        OwnSetting(
            "mask_unit", str, "word", Choices(ranges.MASK_UNITS), fixed=True, is_required=True,
            meaning="As --mask_rate: what is masked as a whole; phrase: see --phrase_file. Default: word.",
        ),
        OwnSetting(
            "columns", list, None, fixed=True, is_newer=True,
            meaning="Of tables and CoNLL's columns: those to read, by number from 1 or by name in the first line, such "
            "as label,text, inputs,targets or FORM,XPOS. Default: the table has no others; word first, tag last.",
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
        OwnSetting(
            "phrase_file", str, None, key="phrases", is_path=True,
            meaning="With --mask_unit=phrase: a text with a phrase per line.",
        ),
            # Determined by generation, so without a flag.
        OwnSetting("format", int, None, fits=lambda value: True),
        OwnSetting("problem", str, None, fits=lambda value: True),
        OwnSetting("files", dict, None, is_required=True, fits=_are_files),
        OwnSetting("held_out_below", int, dataclasses.MISSING, Range(0, 2**64)),
        OwnSetting("phrases", list, None),
        OwnSetting("class_labels", list, None),
        OwnSetting("folders", list, None),
        OwnSetting("image_size", list, None, fits=_are_sizes),
        OwnSetting("sample_bits", int, None, Range(8, 16)),
        OwnSetting("tags", list, None),
        OwnSetting("label_range", list, None, fits=_are_numbers),
    )
}  # fmt: skip
# The problems set their defaults.
OWN_FLAGS = {name: dataclasses.replace(setting, default=None) for name, setting in SETTINGS.items() if setting.meaning}


def own_settings(*keys, **defaults):
    """Returns {key: OwnSetting} that a problem stores in its data folder, in this order, with its own defaults."""
    return {
        key: dataclasses.replace(SETTINGS[key], default=defaults[key]) if key in defaults else SETTINGS[key]
        for key in keys
    }

"""Problems on the user's own files: mistakes in flags and in files, and other requests over finished data."""

import json
import pathlib
import re

import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.text import subwords
from tests.data import corpus, packing
from tests.problems.test_classify_own import PAIRS, SINGLE
from tests.problems.test_labelled_own import NUMBERS
from tests.problems.test_languagemodel_own import CHARACTERS

# What each problem would be generated from.
FILES = {
    "translate_own": {"train_files": ["a.en", "a.de"], "dev_files": ["dev.en", "dev.de"]},
    "masked_lm_own": {"train_files": ["a.en"], "dev_files": ["a.en"]},
    "languagemodel_own": {"train_files": ["a.en"], "dev_files": ["a.en"]},
    CHARACTERS: {"train_files": ["a.en"], "dev_files": ["a.en"]},
    "classify_pair_own": {"train_files": ["pairs.tsv"], "dev_files": ["pairs.tsv"]},
}
MODELS, TWO = ["spm0.model", "spm1.model"], {"train_files": ["a.en", "a.de", "b.tsv"]}
MISTAKES = {
    "translate_own": [
        ({"train_files": []}, "missing --train_files. Expected the corpus to learn from"),
        ({"train_files": ["a.en"]}, "--train_files=a.en: a.en has no other side (found 1). Expected two files"),
        ({"train_files": ["a.en", "a.de", "a.fr"]}, "a.fr has no other side (found 3). Expected two files that go"),
        ({"train_files": ["a.en", "a.de", "b.tsv", "a.en"]}, "a.en has no other side (found 4)"),
        ({"train_files": ["a.en", "a.de", "b.de", "b.en"]}, "b.de,b.en go the other way than a.en,a.de. Swap the two"),
        ({"dev_files": ["a.en", "a.tsv"]}, "--dev_files=a.en,a.tsv: a.en has no other side (found 2)"),
        ({"train_files": ["none.en", "none.de"]}, "--train_files=none.en,none.de: no such file: none.en"),
        ({"train_files": ["a.en", "missing.de"]}, "no such file: missing.de"),
        ({"test_files": ["/", "/"]}, "/ is a folder"),
        ({"train_files": ["source.txt", "target.txt"]}, "the endings do not name two languages. Add --languages=en,de"),
        ({"vocab_size": 10}, "--vocab_size=10: too small"),
        ({"target_vocab_size": 10}, "--target_vocab_size=10: too small"),
        ({"fields": ["en", "de"]}, "--fields: for .jsonl files alone, and there is none"),
        ({"columns": ["1", "2"]}, "--columns, --header: for .tsv, .csv and .jsonl files alone, and there is none"),
        ({"separator": "tab"}, "--separator: for .tsv, .csv and .jsonl files alone, and there is none"),
        ({"separator": ";"}, "--separator=;: expected one of comma, semicolon, tab, pipe"),
        (
            {"train_files": ["c.jsonl"], "dev_files": ["c.jsonl"], "separator": "tab", "languages": ["en", "de"]},
            "--separator: lines of JSON name their fields themselves",
        ),
        (
            {"train_files": ["c.jsonl"], "fields": ["en", "de", "en"], "languages": ["en", "de"]},
            "--fields=en,de,en: expected 2",
        ),
        (
            {"train_files": ["c.jsonl"], "fields": ["en"], "languages": ["en", "de"]},
            "--fields=en: expected 2",
        ),
        ({"train_files": ["c.jsonl"], "fields": ["en", "en"], "languages": ["en", "de"]}, "--fields=en,en: expected 2"),
        ({"train_files": ["c.zip"]}, "--train_files=c.zip: the endings do not name two languages. Add --languages"),
        ({"languages": ["en"]}, "--languages=en: expected two different codes"),
        ({"languages": ["en", "en"]}, "--languages=en,en: expected two different codes"),
        ({"corpus_weights": [1, 2]}, "--corpus_weights=1,2: found 2 for 1 training corpora. Expected one for each"),
        ({"corpus_weights": ["0"]}, "--corpus_weights: weight=0: expected a number above 0 and at most 1,000."),
        ({"corpus_weights": ["two"]}, "weight=two: expected a number above 0"),
        ({"corpus_weights": ["nan"]}, "weight=nan: expected a number above 0"),
        ({"corpus_weights": ["1", "1e300"], **TWO}, "weight=1e300: expected a number above 0 and at most 1,000."),
        ({"corpus_weights": ["nan", "1"], **TWO}, "weight=nan: expected a number above 0"),
        ({"filters": ["copid"]}, "--filters=copid: 'copid' is not a filter. Nearest: copied."),
        ({"filters": ["duplicat"]}, "'duplicat' is not a filter. Nearest: duplicate."),
        ({"filters": ["too_long=many"]}, "too_long=many: expected a whole number of characters"),
        ({"filters": [f"too_long={'9' * 50}"]}, "expected a whole number of characters from 1 to 1,000,000,000"),
        ({"filters": ["all"], "languages": ["en", "qq"]}, "no scripts are known for the language 'qq'"),
        ({"filters": ["wrong_script"], "languages": ["en", "qq"]}, "no scripts are known for the language 'qq'"),
        ({"held_out": 100}, "--held_out=100: --dev_files are there to evaluate on"),
        ({"held_out": 0, "dev_files": []}, "--held_out=0: expected a whole number from 1 to 1,000,000,000."),
        ({"user_defined_symbols": ["<a b>"]}, "'<a b>': expected symbols without blanks"),
        ({"user_defined_symbols": ["a b"]}, "'a b': expected symbols without blanks"),
        ({"user_defined_symbols": [""]}, "expected symbols without blanks"),
        ({"user_defined_symbols": ["\0"]}, "'\\x00': expected symbols without blanks"),
        ({"user_defined_symbols": ["\udcff"]}, "'\\udcff': expected symbols without blanks"),
        ({"user_defined_symbols": ["x" * 101]}, "of at most 100 characters"),
        ({"user_defined_symbols": ["<x>", "<x>"]}, "<x> is in the vocabulary already"),
        ({"user_defined_symbols": ["</s>"]}, "</s> is in the vocabulary already"),
        ({"max_samples_for_vocab": 0}, "--max_samples_for_vocab=0: expected a whole number from 1 to 1,000,000,000."),
        ({"vocab_from": [*MODELS, MODELS[0]]}, "found 3. Expected one .model file, two"),
        ({"vocab_from": ["none.model"]}, "--vocab_from=none.model: no such file or folder: none.model"),
        ({"vocab_from": ["nowhere"]}, "--vocab_from=nowhere: no such file or folder"),
        ({"vocab_from": [MODELS[0], "."]}, "is a folder. Expected two .model files, or one folder alone"),
        ({"vocab_from": ["empty"]}, "neither data of t2t-datagen nor a run of t2t-trainer"),
        ({"vocab_from": ["no.model"]}, "not a SentencePiece model (8 bytes)"),
        ({"vocab_from": ["both"]}, "holds the data of translate_ende_wmt8k, translate_own"),
        ({"vocab_from": MODELS, "vocab_size": 300}, "--vocab_size together with --vocab_from="),
        ({"vocab_from": MODELS, "target_vocab_size": 300}, "--target_vocab_size together with --vocab_from="),
        ({"vocab_from": MODELS, "user_defined_symbols": ["<x>"]}, "--user_defined_symbols together with"),
        ({"vocab_from": MODELS, "vocab_type": "subwords"}, "--vocab_type together with"),
        ({"vocab_from": MODELS, "max_samples_for_vocab": 9}, "--max_samples_for_vocab together with"),
        ({"vocab_from": MODELS, "normalization": "nfkc"}, "--normalization together with --vocab_from="),
        ({"vocab_from": MODELS, "split_digits": False}, "--split_digits together with --vocab_from="),
        ({"vocab_type": "words"}, "--vocab_type=words: expected one of subwords, byte_level_bpe"),
        ({"normalization": "nfc"}, "--normalization=nfc: expected one of identity, nfkc, nmt_nfkc, nfkc_cf, nmt_nfkc"),
        ({"character_coverage": 0.9}, "--character_coverage=0.9: expected a number from 0.98 to 1."),
        (
            {"vocab_type": "byte_level_bpe", "split_digits": True},
            "--split_digits together with --vocab_type=byte_level_bpe, which has none",
        ),
        (
            {"vocab_type": "byte_level_bpe", "user_defined_symbols": ["<x>"]},
            "together with --vocab_type=byte_level_bpe",
        ),
    ],
    "masked_lm_own": [
        ({"mask_rate": 0.0}, "--mask_rate=0.0: expected"),
        ({"mask_rate": 1.0}, "--mask_rate=1.0: expected"),
        ({"mask_unit": "phrases"}, "phrases: expected one of token, word, ngram, phrase"),
        ({"mask_unit": "phrase"}, "--mask_unit=phrase without --phrase_file: expected"),
        ({"phrase_file": "p.txt"}, "--mask_unit=word and --phrase_file=p.txt: expected"),
        ({"vocab_type": "byte_level_bpe"}, "--vocab_type=byte_level_bpe: such a vocabulary is learned without"),
        ({"dev_files": []}, "masked_lm_own: missing --dev_files"),
        ({"vocab_from": MODELS[:1]}, "spm0.model: The vocabulary has no [MASK]"),
    ],
    "languagemodel_own": [
        ({"vocab_type": "words"}, "--vocab_type=words: expected"),
        ({"normalization": "nfkc"}, "--normalization together with --vocab_type=byte_level_bpe"),
    ],
    CHARACTERS: [
        ({"dev_files": []}, "missing --dev_files"),
        ({"dev_files": ["none"]}, "no such file: none"),
        ({"sequence_length": 1}, "--sequence_length=1: expected a whole number from 2 to"),
    ],
    "classify_pair_own": [({"dev_files": []}, "classify_pair_own: missing --dev_files")],
}


def configured(name, **changes):
    problem = registry.problem(name)
    problem.configure(**{**FILES[name], **changes})
    return problem


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of every kind, two models, and data of two problems."""
    folder = tmp_path_factory.mktemp("own")
    pairs = list(dict.fromkeys(corpus.sentence_pairs(150)))
    corpus.write_corpus(folder, "a", pairs)
    for name, source in {"b.en": "a.en", "b.de": "a.de", "dev.en": "a.en", "dev.de": "a.de", "source.txt": "a.en",
                         "target.txt": "a.de"}.items():  # fmt: skip
        (folder / name).write_bytes((folder / source).read_bytes())
    (folder / "b.tsv").write_text("".join(f"{inputs}\t{targets}\n" for inputs, targets in pairs))
    (folder / "pairs.tsv").write_text(PAIRS)
    (folder / "c.jsonl").write_text("".join(f'{{"en": "{inputs}", "de": "{targets}"}}\n' for inputs, targets in pairs))
    packing.write_zip(folder / "c.zip", {"a.en": b"one\n"})
    (folder / "no.model").write_text("no model")
    (folder / "empty").mkdir()
    for side, size in ((0, 300), (1, 310)):
        subwords.train_sentencepiece([pair[side] for pair in pairs], str(folder / f"spm{side}"), size)
    (folder / "both").mkdir()
    for name in ("translate_own", "translate_ende_wmt8k"):
        manifest = {"request": {"problem": name}, "splits": {}, "vocabulary": {}}
        (folder / "both" / f"{name}-manifest.json").write_text(json.dumps(manifest))
    return folder


def check_mistakes(name, files, mistakes):
    """Each change to a problem's files and flags, in the current folder, is refused with its message."""
    before, wrong = sorted(pathlib.Path().rglob("*")), []
    for change, message in mistakes:
        with pytest.raises(UserError) as caught:
            registry.problem(name).configure(**{**files, **change})
        if message not in str(caught.value):
            wrong.append(f"{change}: {caught.value}")
    assert not wrong and sorted(pathlib.Path().rglob("*")) == before, "\n".join(wrong)


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_flags_are_named_before_anything_is_read(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    check_mistakes(name, FILES[name], MISTAKES[name])


SOUND = {"classify_own": SINGLE, "regress_own": NUMBERS.replace("\tor", ""), "regress_pair_own": NUMBERS}  # fmt: skip
FAR = "".join(f"{i}\ta\n" for i in range(1, 6)) + "-999999999\tb\n"
DAMAGED = [
    ("classify_own", {"dev": "odd\tx\nnew\ty\n"}, r"dev, line 2: the label 'new' is in no training file.*even, odd"),
    ("classify_own", {"train": "odd\tx\nodd\ty\n"}, "train: 1 label in the first column"),
    ("classify_own", {"train": ""}, "train: the file is empty"),
    ("regress_pair_own", {"dev": "1\ta\tb\nhigh\ta\tb\n"}, "dev, line 2: found 'high' in the first column"),
    ("regress_pair_own", {"dev": "nan\ta\tb\n"}, "line 1: found 'nan' in the first column. Expected a number"),
    ("regress_pair_own", {"dev": "1\ta\n"}, "dev, line 1: found 2 columns. Expected 3: number<TAB>first"),
    ("regress_own", {"train": "1\ta\n1.0\tb\n", "dev": "1\tc\n"}, "all numbers are 1. Expected different ones"),
    (
        "regress_own",
        {"train": FAR, "dev": "1\tc\n"},
        "train, line 6: -999999999 is so far from the other numbers that 6 different ones become 2: 65",
    ),
    ("regress_own", {"train": "\n \n", "dev": "\n"}, "train: all lines are blank. Expected lines of number"),
    (CHARACTERS, {"train": b"cut \xc3"}, "train, line 1: byte 0xc3 .* is not UTF-8"),
    (CHARACTERS, {"train": "<|endoftext|>\n", "dev": "a"}, "no example for the train set"),
    ("languagemodel_own", {"train": "x", "dev": "x"}, "vocab"),
]
SOUND |= {CHARACTERS: "a", "languagemodel_own": "a"}


def check_damaged(name, sound, contents, message, folder):
    """Files {split: content}, others `sound`, are refused with a message, and nothing is written."""
    problem, paths = registry.problem(name), {}
    for split in ("train", "dev"):
        content = contents.get(split, sound)
        (folder / split).write_bytes(content if isinstance(content, bytes) else content.encode())
        paths[f"{split}_files"] = [str(folder / split)]
    problem.configure(**paths, **({} if name == CHARACTERS else {"vocab_size": 300}))
    with pytest.raises(UserError, match=message):
        problem.generate_data(str(folder / "data"), str(folder))
    assert not [path.name for path in (folder / "data").glob("*") if re.search("-of-|vocab", path.name)]


@pytest.mark.parametrize(("name", "contents", "message"), DAMAGED)
def test_damaged_files_are_named_and_nothing_is_written(tmp_path, name, contents, message):
    check_damaged(name, SOUND[name], contents, message, tmp_path)


# {problem: (what was asked, [(a change, the message)])}
FINISHED = {
    "translate_own": (
        {
            "train_files": ["a.en", "a.de", "b.tsv"], "dev_files": [], "corpus_weights": ["1", "0.5"],
            "filters": ["all", "length_ratio=4"], "held_out": 20, "user_defined_symbols": ["<2de>", "<2en>"],
            "max_samples_for_vocab": 250, "vocab_size": 320, "target_vocab_size": 310, "normalization": "nfkc",
        },
        [
            ({"vocab_size": 330}, "vocab_size = 320, but you requested vocab_size = 330"),
            ({"target_vocab_size": None}, "target_vocab_size = 310, but you requested target_vocab_size = None"),
            ({"languages": ["en", "gsw"]}, "languages = en and de, but you requested languages = en and gsw"),
            (
                {"corpus_weights": ()},
                "corpus_weights = 1.0 and 0.5, but you requested corpus_weights = None",
            ),
            ({"filters": ["copied"]}, "filters = too_long: 1000, length_ratio: 4.0, .*you requested filters = copied"),
            ({"held_out": None}, "held_out = 20, but you requested held_out = 1000"),
            (
                {"user_defined_symbols": ()},
                "user_defined_symbols = <2de> and <2en>, but you requested .* = None",
            ),
            (
                {"max_samples_for_vocab": 251},
                "max_samples_for_vocab = 250, but you requested max_samples_for_vocab = 251",
            ),
            ({"normalization": None}, "normalization = nfkc, but you requested normalization = None"),
            ({"split_digits": True}, "split_digits = None, but you requested split_digits = True"),
        ],
    ),
    "classify_pair_own": (
        {"columns": ["1", "2", "3"], "vocab_size": 300},
        [({"columns": None}, "columns = 1 and 2 and 3, but you requested columns = None")],
    ),
    "masked_lm_own": (
        {"vocab_size": 320, "sequence_length": 24, "mask_rate": 0.3},
        [
            ({"mask_rate": 0.2}, "mask_rate = 0.3, but you requested mask_rate = 0.2"),
            ({"mask_rate": None}, "mask_rate = 0.3, but you requested mask_rate = 0.15"),
            ({"mask_unit": "token"}, "mask_unit = word, but you requested mask_unit = token"),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FINISHED)
def test_another_request_over_finished_data_is_refused(folder, tmp_path, monkeypatch, name):
    monkeypatch.chdir(folder)
    asked, changes = FINISHED[name]
    configured(name, **asked).generate_data(str(tmp_path), str(tmp_path))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    for change, message in changes:
        with pytest.raises(UserError, match=f"contains {name} with .*{message}"):
            configured(name, **{**asked, **change}).generate_data(str(tmp_path), str(tmp_path))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before

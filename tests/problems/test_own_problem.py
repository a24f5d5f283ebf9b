"""Problems on the user's own files: mistakes in flags and in files, and other requests over finished data."""
# Nearest tests of: problems/own_corpus.py, problems/own_settings.py, problems/translate_own.py

import json
import os
import pathlib
import re

import pytest

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.errors import UserError
from t2t_lite.problems.own_problem import OwnProblem
from t2t_lite.text import subwords
from tests.data import corpus, packing
from tests.problems.own import CHARACTERS, NUMBERS, PAIRS, SINGLE, configured, generated

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
        ({"train_files": []}, "missing --train_files"),
        ({"train_files": ["a.en"]}, "--train_files=a.en: a.en has no second file for the other side (found 1)"),
        ({"train_files": ["a.en", "a.de", "a.fr"]}, "a.fr has no second file for the other side (found 3)"),
        ({"train_files": ["a.en", "a.de", "b.tsv", "a.en"]}, "a.en has no second file for the other side (found 4)"),
        ({"train_files": ["a.en", "a.de", "b.de", "b.en"]}, "b.de,b.en are in the opposite direction to a.en,a.de"),
        (
            {"dev_files": ["a.en", "a.tsv"]},
            "--dev_files=a.en,a.tsv: a.en has no second file for the other side (found 2)",
        ),
        ({"train_files": ["none.en", "none.de"]}, "--train_files=none.en,none.de: no such file: none.en"),
        ({"train_files": ["a.en", "missing.de"]}, "no such file: missing.de"),
        ({"test_files": ["/", "/"]}, "/ is a folder"),
        ({"train_files": ["source.txt", "target.txt"]}, "--train_files=source.txt,target.txt: "),
        ({"vocab_size": 10}, "--vocab_size=10: too small"),
        ({"target_vocab_size": 10}, "--target_vocab_size=10: too small"),
        ({"fields": ["en", "de"]}, "--fields"),
        ({"columns": ["1", "2"]}, "--columns, --header"),
        ({"separator": "tab"}, "--separator"),
        ({"separator": ";"}, "--separator=;: expected one of comma, semicolon, tab, pipe"),
        (
            {"train_files": ["c.jsonl"], "dev_files": ["c.jsonl"], "separator": "tab", "languages": ["en", "de"]},
            "--separator: ",
        ),
        *(
            (
                {"train_files": ["c.jsonl"], "dev_files": ["c.jsonl"], "languages": ["en", "de"], **flags},
                "--columns=2,1: lines of JSON have no numbered columns. Expected only the names",
            )
            for flags in ({"columns": ["2", "1"]}, {"columns": ["2", "1"], "fields": ["en", "de"]})
        ),
        (
            {"train_files": ["c.jsonl"], "fields": ["en", "de", "en"], "languages": ["en", "de"]},
            "--fields=en,de,en: expected 2",
        ),
        ({"train_files": ["c.jsonl"], "fields": ["en"], "languages": ["en", "de"]}, "--fields=en: expected 2"),
        ({"train_files": ["c.jsonl"], "fields": ["en", "en"], "languages": ["en", "de"]}, "--fields=en,en: expected 2"),
        ({"train_files": ["c.zip"]}, "--train_files=c.zip: "),
        ({"languages": ["en"]}, "--languages=en: expected two"),
        ({"languages": ["en", "en"]}, "--languages=en,en: expected two"),
        ({"languages": ["de", "en"]}, "--train_files: a.en,a.de are in the opposite direction to --languages=de,en"),
        ({"dev_files": ["dev.de", "dev.en"]}, "--dev_files: dev.de,dev.en are in the opposite direction to a.en,a.de"),
        ({"test_files": ["de/x.txt", "en/x.txt"]}, "--test_files: de/x.txt,en/x.txt are in the opposite direction"),
        ({"dev_files": ["a.en", "./a.en"]}, "--dev_files: a.en,./a.en: the same file"),
        ({"corpus_weights": [1, 2]}, "--corpus_weights=1,2: the number of weights is 2"),
        ({"corpus_weights": ["0"]}, "--corpus_weights: weight=0: expected a number above 0 and at most 1,000."),
        ({"corpus_weights": ["two"]}, "weight=two"),
        ({"corpus_weights": ["nan"]}, "weight=nan"),
        ({"corpus_weights": ["1", "1e300"], **TWO}, "weight=1e300: expected a number above 0 and at most 1,000"),
        ({"corpus_weights": ["nan", "1"], **TWO}, "weight=nan"),
        ({"filters": ["copid"]}, "--filters=copid: 'copid'"),
        ({"filters": ["duplicat"]}, "Nearest: duplicate"),
        ({"filters": ["too_long=many"]}, "too_long=many"),
        ({"filters": [f"too_long={'9' * 50}"]}, "from 1 to 1,000,000,000"),
        ({"filters": ["all"], "languages": ["en", "qq"]}, "'qq'"),
        ({"filters": ["wrong_script"], "languages": ["en", "qq"]}, "'qq'"),
        ({"held_out": 100}, "--held_out=100: nothing is held out, because --dev_files"),
        ({"held_out": 0, "dev_files": []}, "--held_out=0: expected a whole number from 1 to 1,000,000,000"),
        ({"user_defined_symbols": ["<a b>"]}, "--user_defined_symbols: '<a b>'"),
        ({"user_defined_symbols": ["a b"]}, "--user_defined_symbols: 'a b'"),
        ({"user_defined_symbols": [""]}, "--user_defined_symbols: ''"),
        ({"user_defined_symbols": ["\0"]}, "'\\x00'"),
        ({"user_defined_symbols": ["\udcff"]}, "'\\udcff'"),
        ({"user_defined_symbols": ["x" * 101]}, "at most 100 "),
        ({"user_defined_symbols": ["<x>", "<x>"]}, "--user_defined_symbols: <x>"),
        ({"user_defined_symbols": ["</s>"]}, "--user_defined_symbols: </s>"),
        ({"max_samples_for_vocab": 0}, "--max_samples_for_vocab=0: expected a whole number from 1 to"),
        ({"vocab_from": [*MODELS, MODELS[0]]}, "expected one .model file"),
        ({"vocab_from": ["none.model"]}, "--vocab_from=none.model: no such file or folder: none.model"),
        ({"vocab_from": ["nowhere"]}, "--vocab_from=nowhere: "),
        ({"vocab_from": [MODELS[0], "."]}, "--vocab_from=spm0.model,.: expected one .model file"),
        ({"vocab_from": ["empty"]}, "--vocab_from=empty: "),
        ({"vocab_from": ["no.model"]}, "no.model: not a SentencePiece model (8 bytes)"),
        ({"vocab_from": ["both"]}, "translate_ende_wmt8k, translate_own"),
        ({"vocab_from": MODELS, "vocab_size": 300}, "--vocab_size together with --vocab_from="),
        ({"vocab_from": MODELS, "target_vocab_size": 300}, "--target_vocab_size together with --vocab_from="),
        ({"vocab_from": MODELS, "user_defined_symbols": ["<x>"]}, "--user_defined_symbols together with --vocab_from="),
        ({"vocab_from": MODELS, "vocab_type": "subwords"}, "--vocab_type together with --vocab_from="),
        ({"vocab_from": MODELS, "max_samples_for_vocab": 9}, "--max_samples_for_vocab together with --vocab_from="),
        ({"vocab_from": MODELS, "normalization": "nfkc"}, "--normalization together with --vocab_from="),
        ({"vocab_from": MODELS, "split_digits": False}, "--split_digits together with --vocab_from="),
        ({"vocab_type": "words"}, "--vocab_type=words: expected one of subwords, byte_level_bpe"),
        ({"normalization": "nfc"}, "--normalization=nfc: expected one of identity, nfkc, nmt_nfkc, nfkc_cf, nmt_nfkc"),
        ({"character_coverage": 0.9}, "--character_coverage=0.9: expected a number from 0.98 to 1"),
        (
            {"vocab_type": "byte_level_bpe", "split_digits": True},
            "--split_digits together with --vocab_type=byte_level_bpe",
        ),
        (
            {"vocab_type": "byte_level_bpe", "user_defined_symbols": ["<x>"]},
            "--user_defined_symbols together with --vocab_type=byte_level_bpe",
        ),
    ],
    "masked_lm_own": [
        ({"mask_rate": 0.0}, "--mask_rate=0.0: expected"),
        ({"mask_rate": 1.0}, "--mask_rate=1.0: expected"),
        ({"mask_unit": "phrases"}, "--mask_unit=phrases: expected one of token, word, ngram, phrase"),
        ({"mask_unit": "phrase"}, "--mask_unit=phrase without --phrase_file: expected"),
        ({"phrase_file": "p.txt"}, "--mask_unit=word and --phrase_file=p.txt: expected"),
        ({"vocab_type": "byte_level_bpe"}, "--vocab_type=byte_level_bpe"),
        ({"dev_files": []}, "masked_lm_own: missing --dev_files"),
        ({"vocab_from": MODELS[:1]}, "spm0.model: "),
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of every kind, two models, and data of two problems."""
    folder = tmp_path_factory.mktemp("own")
    pairs = list(dict.fromkeys(corpus.sentence_pairs(150)))
    corpus.write_corpus(folder, "a", pairs)
    for name, source in {"b.en": "a.en", "b.de": "a.de", "dev.en": "a.en", "dev.de": "a.de", "source.txt": "a.en",
                         "target.txt": "a.de"}.items():  # fmt: skip
        (folder / name).write_bytes((folder / source).read_bytes())
    for side in ("en", "de"):
        (folder / side).mkdir()
        (folder / side / "x.txt").write_text(f"{side}\n")
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


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_flags_are_named_before_anything_is_read(folder, monkeypatch, name):
    monkeypatch.chdir(folder)
    before, wrong = sorted(folder.rglob("*")), []
    for change, message in MISTAKES[name]:
        with pytest.raises(UserError) as caught:
            configured(name, **FILES[name] | change)
        if message not in str(caught.value):
            wrong.append(f"{change}: {caught.value}")
    assert not wrong and sorted(folder.rglob("*")) == before, "\n".join(wrong)


def test_settings_of_tables_are_for_those_files_that_are_tables(folder, monkeypatch):
    monkeypatch.chdir(folder)
    files = {"train_files": ["b.tsv", "c.jsonl"], "dev_files": ["b.tsv"], "languages": ["en", "de"]}
    problem = configured("translate_own", **files, separator="tab", header=False, fields=["en", "de"])
    assert (problem.layout.separator, problem.layout.fields) == ("tab", ("en", "de"))


SOUND = {"classify_own": SINGLE, "regress_own": NUMBERS.replace("\tor", ""), "regress_pair_own": NUMBERS}  # fmt: skip
FAR = "".join(f"{i}\ta\n" for i in range(1, 6)) + "-999999999\tb\n"
DAMAGED = [
    ("classify_own", {"dev": "odd\tx\nnew\ty\n"}, r"dev, line 2: .*'new'.*'even', 'odd'"),
    ("classify_own", {"train": "odd\tx\nodd\ty\n"}, "train: 1 label"),
    ("classify_own", {"train": ""}, "train: the file is empty"),
    ("regress_pair_own", {"dev": "1\ta\tb\nhigh\ta\tb\n"}, "dev, line 2: found 'high'"),
    ("regress_pair_own", {"dev": "nan\ta\tb\n"}, "line 1: found 'nan'"),
    ("regress_pair_own", {"dev": "1\ta\n"}, "dev, line 1: found 2 .* 3: number<TAB>first"),
    ("regress_own", {"train": "1\ta\n1.0\tb\n", "dev": "1\tc\n"}, "train: all numbers are 1"),
    (
        "regress_own",
        {"train": FAR, "dev": "1\tc\n"},
        "train, line 6: -999999999 .* 6 .* 2, .* 65,536 .* -999999999 to 5",
    ),
    ("regress_own", {"train": "\n \n", "dev": "\n"}, "train: all lines are blank"),
    (CHARACTERS, {"train": b"cut \xc3"}, "train, line 1: byte 0xc3 .* is not UTF-8"),
    (CHARACTERS, {"train": "<|endoftext|>\n", "dev": "a"}, "the train set has no example"),
    ("languagemodel_own", {"train": "x", "dev": "x"}, "vocab"),
]
SOUND |= {CHARACTERS: "a", "languagemodel_own": "a"}


@pytest.mark.parametrize(("name", "contents", "message"), DAMAGED)
def test_damaged_files_are_named_and_nothing_is_written(tmp_path, name, contents, message):
    paths = {}
    for split in ("train", "dev"):
        content = contents.get(split, SOUND[name])
        (tmp_path / split).write_bytes(content if isinstance(content, bytes) else content.encode())
        paths[f"{split}_files"] = [str(tmp_path / split)]
    with pytest.raises(UserError, match=message):
        generated(name, tmp_path / "data", **paths, **({} if name == CHARACTERS else {"vocab_size": 300}))
    assert not [path.name for path in (tmp_path / "data").glob("*") if re.search("-of-|vocab", path.name)]


# {problem: (what was asked, [(a change, the message)])}
FINISHED = {
    "translate_own": (
        {
            "train_files": ["a.en", "a.de", "b.tsv"], "dev_files": [], "corpus_weights": ["1", "0.5"],
            "filters": ["all", "length_ratio=4"], "held_out": 20, "user_defined_symbols": ["<2de>", "<2en>"],
            "max_samples_for_vocab": 250, "vocab_size": 320, "target_vocab_size": 310, "normalization": "nfkc",
        },
        [
            (
                {"train_files": ["a.en", "a.de", "c.jsonl"]},
                "train_files = .*b.tsv.*, but you requested train_files = .*c.jsonl",
            ),
            (
                {"dev_files": ["dev.en", "dev.de"], "held_out": None},
                "dev_files = None, but you requested dev_files = .*dev.en",
            ),
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
    generated(name, tmp_path, **FILES[name] | asked)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    for change, message in changes:
        with pytest.raises(UserError, match=f"contains {name} with .*{message}"):
            generated(name, tmp_path, **FILES[name] | asked | change)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


# What the data folder keeps.


def one_file(folder, name="a.txt", text="one\ntwo\n"):
    (folder / name).write_text(text)
    return [str(folder / name)]


def test_splits_have_a_shard_for_each_16_mib_and_100_at_most(tmp_path):
    for size, shards in ((0, 1), (2**24 - 1, 1), (2**24, 2), (5 * 2**24 + 3, 6), (99 * 2**24, 100), (2**40, 100)):
        problem = registry.problem("classify_own")
        problem.remember({"files": {"train": [{"path": "a", "bytes": size - 1}, {"path": "b", "bytes": 1}]}})
        assert problem.dataset_splits == [{"split": "train", "shards": shards}]
    ordered = configured(CHARACTERS, train_files=one_file(tmp_path), dev_files=one_file(tmp_path, "b.txt"))
    ordered.config["files"]["eval"][0]["bytes"] = 2**30
    assert ordered.dataset_splits[1] == {"split": "eval", "shards": 1}


def test_a_folder_stands_for_its_files(tmp_path, caplog):
    class Pictures(OwnProblem):
        name = "pictures"
        file_endings = (".png", ".jpg")

    for name in ("b/two.PNG", "one.jpg", "notes.txt", ".hidden.png"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text("x")
    paths = {"train_files": [str(tmp_path / "in"), str(tmp_path / "in/one.jpg")], "dev_files": [str(tmp_path / "in")]}
    problem = Pictures()
    problem.settings = registry.problem(CHARACTERS).settings
    problem.configure(**paths)
    inside = [str(tmp_path / "in" / name) for name in ("b/two.PNG", "one.jpg")]
    assert [facts["path"] for facts in problem.files_of(DatasetSplit.TRAIN)] == [*inside, inside[1]]
    assert f"--train_files: {tmp_path}/in: skipped 1 file" in caplog.text and "notes.txt" in caplog.text
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=rf"--dev_files: {tmp_path}/empty: .*\.png or \.jpg"):
        problem.configure(paths["train_files"], [str(tmp_path / "empty")])


def test_no_output_replaces_a_file_of_the_users(tmp_path):
    paths = one_file(tmp_path, f"{CHARACTERS}-train-00000-of-00001")
    for flag in ("train_files", "dev_files"):
        files = {"train_files": one_file(tmp_path), "dev_files": one_file(tmp_path), flag: paths}
        with pytest.raises(UserError, match=f"would overwrite --{flag}={paths[0]}"):
            generated(CHARACTERS, tmp_path, **files)
    assert (tmp_path / f"{CHARACTERS}-train-00000-of-00001").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("how", ["same", "link", "copy", "other"])
def test_evaluating_on_what_is_trained_on_is_warned_of(tmp_path, caplog, how):
    (train,), dev_files = one_file(tmp_path), [str(tmp_path / f"dev{n}.txt") for n in range(7)]
    for path in map(pathlib.Path, dev_files):
        path.symlink_to(train) if how == "link" else path.write_text("three\n" if how == "other" else "one\ntwo\n")
    dev_files = [train] if how == "same" else dev_files
    generated(CHARACTERS, tmp_path / "d", train_files=[train], dev_files=dev_files)
    warnings = [record.getMessage() for record in caplog.records if "--dev_files" in record.getMessage()]
    assert len(warnings) == {"same": 1, "other": 0}.get(how, 5)
    assert all(path in warning and train in warning for path, warning in zip(dev_files, warnings, strict=False))
    assert any("further files" in record.getMessage() for record in caplog.records) == (how in ("link", "copy"))


def test_the_folder_remembers_bad_lines_and_what_was_read(tmp_path):
    paths = one_file(tmp_path, text="a\n" * 9)
    problem = configured(CHARACTERS, train_files=paths, dev_files=paths)
    problem.skip_bad_lines = True
    problem.generate_data(str(tmp_path / "d"), str(tmp_path))
    written = json.loads((tmp_path / "d" / f"{CHARACTERS}.json").read_text())
    assert written["skip_bad_lines"] is True
    (facts,), stat = written["files"]["train"], os.stat(paths[0])
    assert facts | {"sha256": ""} == {
        "path": paths[0], "bytes": 18, "sha256": "", "changed": [stat.st_mtime_ns, stat.st_ctime_ns]
    }  # fmt: skip
    again = registry.problem(CHARACTERS)
    again.generate_data(str(tmp_path / "d"), "")
    assert again.skip_bad_lines is True and again.read_config(str(tmp_path / "d")) == written
    with pytest.raises(UserError, match=f"{tmp_path}/none/{CHARACTERS}.json: no such file.*--problem={CHARACTERS}"):
        again.read_config(str(tmp_path / "none"))
    with pytest.raises(UserError, match=f"{CHARACTERS}: has no corpus yet"):
        _ = registry.problem(CHARACTERS).config

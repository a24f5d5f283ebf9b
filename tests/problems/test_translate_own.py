import gzip
import json
import pathlib

import pytest

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from tests.data import corpus
from tests.data.stored import read_examples

TRAIN, DEV, TEST = (corpus.sentence_pairs(count, seed) for seed, count in enumerate((200, 30, 20)))


@pytest.fixture
def files(tmp_path):
    """The three corpora on disk, as arguments of `configure`."""
    named = (("train_files", "train", TRAIN), ("dev_files", "dev", DEV), ("test_files", "test", TEST))
    return {flag: corpus.write_corpus(tmp_path, name, pairs).split(",") for flag, name, pairs in named}


def generated(folder, **arguments):
    problem = registry.problem("translate_own")
    problem.configure(**arguments)
    problem.generate_data(str(folder), str(folder))
    return problem


def decoded(problem, folder, split):
    encoders = problem.feature_encoders(str(folder))
    examples = read_examples(Records(problem, str(folder), split).paths)
    return sorted(tuple(encoders[side].decode(e[side]) for side in ("inputs", "targets")) for e in examples)


def test_later_commands_need_the_data_folder_alone(tmp_path, files):
    generated(tmp_path / "d", vocab_size=320, **files)
    for path in tmp_path.glob("*.en"):
        path.unlink()
    problem = registry.problem("translate_own")
    assert problem.feature_encoders(str(tmp_path / "d"))["inputs"].vocab_size == 320
    assert problem.languages == ("en", "de")
    assert problem.eval_decode_metric == "bleu"
    for split, pairs in ((DatasetSplit.TRAIN, TRAIN), (DatasetSplit.EVAL, DEV), (DatasetSplit.TEST, TEST)):
        assert decoded(problem, tmp_path / "d", split) == sorted(pairs)
    reversed_problem = registry.problem("translate_own_rev")
    Records(reversed_problem, str(tmp_path / "d"), DatasetSplit.TRAIN).check()
    assert reversed_problem.languages == ("de", "en")


def test_problem_json_says_it_all(tmp_path, files):
    generated(tmp_path / "d", vocab_size=320, **files)
    written = json.loads((tmp_path / "d" / "problem.json").read_text())
    assert written["languages"] == ["en", "de"]
    assert written["vocab_size"] == 320
    assert [facts["path"] for facts in written["files"]["train"]] == files["train_files"]


def test_the_files_of_a_model_serve_elsewhere(tmp_path, files):
    problem = generated(tmp_path / "d", vocab_size=320, **files)
    (tmp_path / "run").mkdir()
    for path in problem.vocabulary_files(str(tmp_path / "d")):
        (tmp_path / "run" / path.split("/")[-1]).write_bytes(open(path, "rb").read())  # noqa: SIM115
    elsewhere = registry.problem("translate_own")
    encoder = elsewhere.get_feature_encoders(str(tmp_path / "run"))["targets"]
    assert encoder.fingerprint == problem.feature_encoders(str(tmp_path / "d"))["targets"].fingerprint
    assert elsewhere.languages == ("en", "de")


def test_packed_and_tabbed_corpora_give_the_same_records(tmp_path, files):
    plain = generated(tmp_path / "plain", vocab_size=320, **files)
    for path in (*files["train_files"], *files["dev_files"]):
        with open(path, "rb") as file:
            (tmp_path / f"{path}.gz").write_bytes(gzip.compress(file.read()))
    packed = [[f"{path}.gz" for path in files[flag]] for flag in ("train_files", "dev_files")]
    (tmp_path / "all.tsv").write_text("".join(f"{inputs}\t{targets}\n" for inputs, targets in TRAIN))
    variants = {
        "packed": generated(tmp_path / "packed", train_files=packed[0], dev_files=packed[1], vocab_size=320),
        "tabbed": generated(
            tmp_path / "tabbed",
            train_files=[str(tmp_path / "all.tsv")],
            dev_files=files["dev_files"],
            vocab_size=320,
            languages=["en", "de"],
        ),
    }
    expected = list(read_examples(Records(plain, str(tmp_path / "plain"), DatasetSplit.TRAIN).paths))
    for name, problem in variants.items():
        found = list(read_examples(Records(problem, str(tmp_path / name), DatasetSplit.TRAIN).paths))
        assert found == expected
        assert problem.languages == ("en", "de")


def test_the_same_request_does_nothing_another_is_refused(tmp_path, files):
    generated(tmp_path / "d", vocab_size=320, **files)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in (tmp_path / "d").iterdir()}
    generated(tmp_path / "d", vocab_size=320, **files)
    registry.problem("translate_own").generate_data(str(tmp_path / "d"), "")
    corpus.write_corpus(tmp_path, "more", TRAIN[:150])
    changes = {
        "vocab_size = 320, but you requested vocab_size = 330": {"vocab_size": 330},
        "languages = en and de, but you requested languages = en and gsw": {"languages": ["en", "gsw"]},
        "you requested train_files = .*more": {"train_files": [str(tmp_path / "more.en"), str(tmp_path / "more.de")]},
    }
    for message, change in changes.items():
        with pytest.raises(UserError, match=message):
            generated(tmp_path / "d", **{"vocab_size": 320, **files, **change})
    with open(files["train_files"][0], "a") as file:
        file.write("one line more\n")
    with pytest.raises(UserError, match="contains translate_own with train_files"):
        generated(tmp_path / "d", vocab_size=320, **files)
    assert {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in (tmp_path / "d").iterdir()} == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_files": []}, "missing --train_files. Expected the corpus to learn from"),
        ({"train_files": ["a.en"]}, "--train_files=a.en: a.en has no other side (found 1). Expected two files"),
        ({"train_files": ["a.en", "a.de", "a.fr"]}, "a.fr has no other side (found 3). Expected two files that go"),
        ({"dev_files": ["a.en", "a.tsv"]}, "--dev_files=a.en,a.tsv: a.en has no other side (found 2)"),
        ({"train_files": ["none.en", "none.de"]}, "--train_files=none.en,none.de: no such file: none.en"),
        ({"test_files": ["/", "/"]}, "/ is a folder"),
        ({"vocab_size": 10}, "--vocab_size=10: too small"),
        ({"target_vocab_size": 10}, "--target_vocab_size=10: too small"),
        ({"languages": ["en"]}, "--languages=en: expected two different codes"),
        ({"languages": ["en", "en"]}, "--languages=en,en: expected two different codes"),
        ({"corpus_weights": [1, 2]}, "--corpus_weights=1,2: found 2 for 1 training corpora. Expected one for each"),
        ({"corpus_weights": ["0"]}, "--corpus_weights: weight=0: expected a number above 0 and at most 1,000."),
        ({"corpus_weights": ["two"]}, "weight=two: expected a number above 0"),
        ({"corpus_weights": ["nan"]}, "weight=nan: expected a number above 0"),
        ({"filters": ["copid"]}, "--filters=copid: 'copid' is no filter. Nearest: copied."),
        ({"filters": ["all"], "languages": ["en", "qq"]}, "no scripts are known for the language 'qq'"),
        ({"held_out": 100}, "--held_out=100: --dev_files are there to evaluate on"),
        ({"held_out": 0, "dev_files": []}, "--held_out=0: expected a whole number from 1 to 1,000,000,000."),
        ({"user_defined_symbols": ["<a b>"]}, "'<a b>': expected symbols without blanks"),
        ({"user_defined_symbols": [""]}, "expected symbols without blanks"),
        ({"user_defined_symbols": ["<x>", "<x>"]}, "<x> is in the vocabulary already"),
        ({"user_defined_symbols": ["</s>"]}, "</s> is in the vocabulary already"),
        ({"max_samples_for_vocab": 0}, "--max_samples_for_vocab=0: expected a whole number from 1 to 1,000,000,000."),
    ],
)
def test_mistakes_in_the_flags(files, change, message):
    with pytest.raises(UserError) as caught:
        registry.problem("translate_own").configure(**{**files, **change})
    assert message in str(caught.value)


@pytest.mark.parametrize("ending", ["zh", "zh-CN", "zh_Hans", "zh-Hant-TW", "zho_Hant"])
def test_languages_are_codes_with_subtags(tmp_path, ending):
    files = [str(tmp_path / "a.en"), str(tmp_path / f"a.{ending}")]
    for path in files:
        pathlib.Path(path).write_text("a\n")
    problem = registry.problem("translate_own")
    problem.configure(train_files=files)
    assert problem.languages == ("en", ending)


def test_languages_that_cannot_be_guessed(tmp_path, files):
    paths = [str(tmp_path / name) for name in ("source.txt", "target.txt")]
    for path, old in zip(paths, files["train_files"], strict=True):
        with open(old) as file, open(path, "w") as copy:
            copy.write(file.read())
    with pytest.raises(UserError, match=r"the endings do not name two languages. Add --languages=en,de"):
        registry.problem("translate_own").configure(train_files=paths, dev_files=files["dev_files"])


def test_no_configuration_and_no_problem_json(tmp_path):
    with pytest.raises(UserError, match=r"problem.json: no such file. .*t2t-datagen --problem=translate_own"):
        registry.problem("translate_own").feature_encoders(str(tmp_path))
    with pytest.raises(UserError, match="no corpus yet"):
        _ = registry.problem("translate_own").dataset_splits

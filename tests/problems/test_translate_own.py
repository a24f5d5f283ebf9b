import csv
import gzip
import json
import pathlib

import pyarrow
import pytest

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from tests.data import corpus, packing
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


@pytest.mark.slow
def test_packed_and_tabbed_corpora_give_the_same_records(tmp_path, files):
    plain = generated(tmp_path / "plain", vocab_size=320, **files)
    for path in (*files["train_files"], *files["dev_files"]):
        with open(path, "rb") as file:
            (tmp_path / f"{path}.gz").write_bytes(gzip.compress(file.read()))
    packed = [[f"{path}.gz" for path in files[flag]] for flag in ("train_files", "dev_files")]
    (tmp_path / "all.tsv").write_text("".join(f"{inputs}\t{targets}\n" for inputs, targets in TRAIN))
    with open(tmp_path / "all.csv", "w", newline="") as file:
        csv.writer(file).writerows([("de", "en"), *(pair[::-1] for pair in TRAIN)])
    rows = ({"id": at, "translation": {"en": pair[0], "de": pair[1]}} for at, pair in enumerate(TRAIN))
    lines = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    (tmp_path / "all.jsonl.zst").write_bytes(pyarrow.compress(lines, codec="zstd", asbytes=True))
    texts = {f"OPUS.en-de.{path[-2:]}": pathlib.Path(path).read_bytes() for path in files["train_files"]}
    packing.write_zip(tmp_path / "all.zip", {"README": b"", **texts})
    common = {"dev_files": files["dev_files"], "vocab_size": 320, "languages": ["en", "de"]}
    fields = ["translation.en", "translation.de"]
    variants = {
        "csv": generated(tmp_path / "csv", train_files=[str(tmp_path / "all.csv")], columns=["en", "de"], **common),
        "zip": generated(tmp_path / "zip", train_files=[str(tmp_path / "all.zip")], **common),
        "json": generated(tmp_path / "json", train_files=[str(tmp_path / "all.jsonl.zst")], fields=fields, **common),
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


def test_without_a_size_the_corpus_determines_the_vocabulary(tmp_path, files):
    problem = generated(tmp_path / "d", **files)
    texts = [text for pair in TRAIN for text in pair]
    words = {word for text in texts for word in text.split()}
    encoder = problem.feature_encoders(str(tmp_path / "d"))["inputs"]
    assert encoder.vocab_size == 256 + 3 + len({*"".join(words), "\u2581"}) + len(words) // 4
    assert problem.feature_encoders(str(tmp_path / "d"))["targets"].fingerprint == encoder.fingerprint
    # The same request again, and the folder alone, find what is there.
    for again in (generated(tmp_path / "d", **files), registry.problem("translate_own")):
        assert again.feature_encoders(str(tmp_path / "d"))["inputs"].fingerprint == encoder.fingerprint
    # A vocabulary of the targets' own has the size that was typed.
    two = generated(tmp_path / "two", target_vocab_size=300, **files).feature_encoders(str(tmp_path / "two"))
    assert two["inputs"].vocab_size < encoder.vocab_size and two["targets"].vocab_size == 300


@pytest.mark.parametrize("ending", ["zh", "zh-CN", "zh_Hans", "zh-Hant-TW", "zho_Hant"])
def test_languages_are_codes_with_subtags(tmp_path, ending):
    files = [str(tmp_path / "a.en"), str(tmp_path / f"a.{ending}")]
    for path in files:
        pathlib.Path(path).write_text("a\n")
    problem = registry.problem("translate_own")
    problem.configure(train_files=files)
    assert problem.languages == ("en", ending)


def test_no_configuration_and_no_problem_json(tmp_path):
    with pytest.raises(UserError, match=r"problem.json: no such file. .*t2t-datagen --problem=translate_own"):
        registry.problem("translate_own").feature_encoders(str(tmp_path))
    with pytest.raises(UserError, match="no corpus yet"):
        _ = registry.problem("translate_own").dataset_splits

"""Labels and numbers of the user's own files, and what is checked of all labelled ones."""

import json

import pytest

from t2t_lite import registry
from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import DatasetSplit, Text2RealProblem
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from tests.data.stored import read_examples
from tests.problems.test_classify_own import SINGLE, files_of, generated, parts_of

NUMBERS = "".join(f"{n / 4}\tthe number {n}\tor {n + 1}\n\n" for n in range(41))


def rows_of(problem, folder, split=DatasetSplit.TRAIN):
    return list(read_examples(Records(problem, str(folder), split).paths))


@pytest.mark.parametrize("name", ["regress_own", "regress_pair_own"])
def test_numbers_lie_between_the_lowest_and_the_highest_of_all_files(name, tmp_path):
    train = NUMBERS if name == "regress_pair_own" else NUMBERS.replace("\tor", " or")
    dev = train.replace("10.0\t", "12\t")
    generated(name, tmp_path, vocab_size=300, **files_of(tmp_path, train=train, dev=dev))
    problem = registry.problem(name)  # it reads the folder
    encoders = problem.get_feature_encoders(str(tmp_path))
    rows = rows_of(problem, tmp_path)
    assert len(rows) == 41 and (encoders["targets"].lowest, encoders["targets"].highest) == (0.0, 12.0)
    for row in rows:
        texts = [encoders["inputs"].decode(part) for part in parts_of(row["inputs"])]
        assert len(texts) == problem.num_texts
        expected = int(texts[0].split()[2]) / 4
        assert encoders["targets"].value((row["targets"][0] - 1) / 65535) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (None, "label_range is None. Expected"),
        ((1,), r"label_range is \(1,\)\. Expected"),
        ((2, 1), "label_range: numbers from 2 to 1: expected two finite numbers"),
        (("a", "b"), "label_range: numbers from 'a' to 'b': expected"),
        ((0, 10**400), "label_range: numbers from 0 to a huge number: expected"),
    ],
)
def test_a_range_that_is_none_is_named(ends, message):
    class Numbers(Text2RealProblem):
        def label_range(self, data_dir):
            return ends

    with pytest.raises(UserError, match=message):
        Numbers().label_ids("data")
    with pytest.raises(UserError, match="Unset: write label_range") as caught:
        type("Unset", (Text2RealProblem,), {})().label_ids("data")
    assert isinstance(caught.value, NotImplementedError)


def removed_of(problem, folder, split="train"):
    return find_manifest(problem, str(folder))["splits"][split]["removed"]


def test_a_header_is_no_class(tmp_path):
    body = "".join(f"a text, {n}\t{n}\t{'odd' if n % 2 else 'even'}\n" for n in range(20))
    for header in ("text\tid\tlabel\n", "Kommentar\tNummer\tKlasse\n"):
        names = header.strip().split("\t")
        files = files_of(tmp_path, train=header + body, dev=header + body)
        folder = tmp_path / names[0]
        problem = generated("classify_own", folder, vocab_size=300, columns=[names[2], names[0]], **files)
        assert problem.class_labels(str(folder)) == ["even", "odd"]
        assert find_manifest(problem, str(folder))["splits"]["train"]["examples"] == 20
        with pytest.raises(UserError, match=r"columns = .*, but you requested columns = 3 and 1"):
            generated("classify_own", folder, vocab_size=300, columns=["3", "1"], header=True, **files)
        with pytest.raises(UserError, match=r"train\.tsv, line 1: .* looks like a header"):
            generated("classify_own", tmp_path / "other", vocab_size=300, columns=["3", "1"], **files)


def test_rare_labels_are_no_headers(tmp_path):
    text = "rare\tword\n" + SINGLE
    files = files_of(tmp_path, train=text, dev=text)
    problem = generated("classify_own", tmp_path / "d", vocab_size=300, header=False, **files)
    assert problem.class_labels(str(tmp_path / "d")) == ["even", "odd", "rare"]


def check_what_is_not_found_yet(name, key, folder):
    """What only generation finds is named where it is missing."""
    problem = registry.problem(name)
    config = {"problem": name, "vocab_size": 300, "files": {}, key: None}
    (folder / f"{name}.json").write_text(json.dumps(config))
    problem.read_config(str(folder))
    with pytest.raises(UserError, match=rf"{name}\.json: no {key} yet"):
        problem.determined(key)


@pytest.mark.parametrize(("name", "key"), [("regress_own", "label_range"), ("classify_own", "class_labels")])
def test_what_generation_has_not_found_yet_is_named(name, key, tmp_path):
    check_what_is_not_found_yet(name, key, tmp_path)


def check_labels_are_not_smoothed(name):
    """A run of a problem refuses label_smoothing."""
    hparams = registry.hparams("bert_tiny").of_model(registry.model("transformer_encoder"))
    assert "head" in registry.problem(name).model_hparams(hparams)
    with pytest.raises(UserError, match=r"label_smoothing=0\.1.*Expected --hparams=label_smoothing=0"):
        registry.problem(name).model_hparams(hparams.parse("label_smoothing=0.1"))


@pytest.mark.parametrize("name", ["classify_own", "regress_own"])
def test_labels_are_not_smoothed(name):
    check_labels_are_not_smoothed(name)


def check_bad_lines(name, data, count, folder):
    """Files with so many bad lines are refused, and read without them where that is asked for."""
    (folder / "file.txt").write_bytes(data)
    paths = [str(folder / "file.txt")]
    problem, data_dir = registry.problem(name), folder / name
    size = {} if name == "languagemodel_own_characters" else {"vocab_size": 300}
    problem.configure(train_files=paths, dev_files=paths, **size)
    with pytest.raises(UserError):
        problem.generate_data(str(data_dir), str(folder))
    problem.skip_bad_lines = True
    problem.generate_data(str(data_dir), str(folder))
    assert removed_of(problem, data_dir) == {"bad lines": count}


@pytest.mark.parametrize(
    ("name", "data", "count"),
    [
        ("regress_own", NUMBERS.replace("\tor", "").encode() + b"7\n\xff\tx\n", 2),
        ("languagemodel_own_characters", b"text\n" * 20 + b"b\xffd\nmore\xfe\n", 2),
    ],
    ids=["regress_own", "languagemodel_own_characters"],
)
def test_bad_lines_are_left_out(name, data, count, tmp_path):
    check_bad_lines(name, data, count, tmp_path)

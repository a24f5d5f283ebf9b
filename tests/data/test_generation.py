"""What a problem of the user's may give, and what is said of anything else."""

import os

import pytest

from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from tests.data.test_problem import ToyBytes, ToyStream, ToyText


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ({"inputs": "a"}, r"generate_samples gave {'inputs': 'a'}\. Expected"),
        ({"inputs": b"a", "targets": "b"}, r"generate_samples gave {'inputs': b'a', .*Expected"),
        (("a", "b"), r"generate_samples gave \('a', 'b'\)"),
        ({"inputs": None, "targets": "b"}, "generate_samples gave"),
        ({"inputs": "a \ud83d", "targets": "b"}, r"gave {'inputs': 'a \\ud83d', .*half of a surrogate pair"),
    ],
)
def test_samples_that_are_no_text_are_shown(tmp_path, monkeypatch, sample, expected):
    monkeypatch.setattr(ToyText, "generate_samples", lambda *_: iter([{"inputs": "a", "targets": "b"}, sample]))
    with pytest.raises(UserError, match=expected):
        ToyText().generate_data(str(tmp_path), str(tmp_path))
    with pytest.raises(UserError, match=expected):
        ToyBytes().generate_data(str(tmp_path / "bytes"), str(tmp_path))


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        ({"inputs": [5, 1]}, "an example has no id in targets"),
        ({"inputs": [5, 1], "targets": []}, "an example has no id in targets"),
        ({"inputs": [5, 1], "targets": [2**31, 1]}, f"has the id {2**31} in targets"),
        ({"inputs": [5, 1], "targets": [2**70, 1]}, f"has the id {2**70} in targets"),
        ({"inputs": ["5", 1], "targets": [1]}, "has the id '5' in inputs"),
        ({"inputs": [5.0, 1], "targets": [1]}, "has the id 5.0 in inputs"),
        ({"inputs": [6, 1], "targets": [6.0, 1]}, "has the id 6.0 in targets"),
        ({"inputs": "text", "targets": [1]}, "has 'text' as inputs"),
        ({"inputs": 7, "targets": [1]}, "has 7 as inputs"),
        ([1, 2], r"an example is \[1, 2\]"),
        (None, "an example is None"),
    ],
)
def test_examples_that_no_record_can_hold_are_shown(tmp_path, monkeypatch, example, expected):
    good = {"inputs": [6, 1], "targets": [7, 1]}
    monkeypatch.setattr(ToyBytes, "generate_encoded_samples", lambda *_: iter([good, example, good]))
    with pytest.raises(UserError, match=expected):
        ToyBytes().generate_data(str(tmp_path), str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_problem_that_ends_the_program_is_an_error(tmp_path, monkeypatch):
    def generate_samples(*_):
        yield {"inputs": "a", "targets": "b"}
        raise SystemExit(0)

    monkeypatch.setattr(ToyBytes, "generate_samples", generate_samples)
    with pytest.raises(UserError, match=r"its code called sys\.exit\(0\) while it generated"):
        ToyBytes().generate_data(str(tmp_path), str(tmp_path))


def test_text_that_cannot_fill_a_vocabulary_gets_the_largest_that_it_can(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(ToyText, "approx_vocab_size", 9000)
    ToyText().generate_data(str(tmp_path), str(tmp_path))
    assert "its text cannot fill 9000 pieces; the vocabulary has the " in caplog.text
    sizes = {facts["size"] for facts in find_manifest(ToyText(), str(tmp_path))["vocabulary"].values()}
    assert 259 < max(sizes) < 9000


def test_an_override_of_filepattern_names_other_files_in_any_folder(tmp_path, monkeypatch):
    folder = tmp_path / "d[1]"
    folder.mkdir()
    ToyBytes().generate_data(str(folder), str(tmp_path))
    expected = Records(ToyBytes(), str(folder), DatasetSplit.EVAL).paths
    monkeypatch.setattr(
        ToyBytes, "filepattern", lambda self, data_dir, mode, shard=None: os.path.join(data_dir, f"{self.name}-dev*")
    )
    assert Records(ToyBytes(), str(folder), DatasetSplit.TRAIN).paths == expected


def test_a_split_that_no_example_of_one_stream_falls_to_is_an_error(tmp_path):
    class Few(ToyStream, ToyBytes):
        name = "few"
        dataset_splits = [{"split": "train", "shards": 50}, {"split": "eval", "shards": 1}]  # noqa: RUF012
        max_cases = 2

    with pytest.raises(UserError, match=r"few: 2 examples, dealt over the shards .* leave none for the dev set"):
        Few().generate_data(str(tmp_path), str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_no_samples_is_an_error_and_leaves_no_records(tmp_path):
    class Nothing(ToyText):
        name = "nothing"

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            yield from super().generate_samples(data_dir, tmp_dir, dataset_split) if dataset_split == "train" else ()

    with pytest.raises(UserError, match="nothing: no example for the dev set"):
        Nothing().generate_data(str(tmp_path), str(tmp_path))
    assert not list(tmp_path.glob("*dev*"))
    assert not (tmp_path / "nothing-manifest.json").exists()

"""The parts of a data set by name, and the user's own files of each part: described, and noticed when they change."""

import hashlib
import os

import pytest

from t2t_lite.data import splits
from t2t_lite.data.splits import DatasetSplit, describe_files, generated, named_split, warn_of_others, with_content
from t2t_lite.errors import UserError
from t2t_lite.files import hashes


def test_parts_have_tensor2tensors_names():
    assert splits.FILE_TAGS == {"train": "train", "eval": "dev", "test": "test"}
    assert splits.FLAGS == {"train": "train_files", "eval": "dev_files", "test": "test_files"}
    assert splits.PREPARED == {"train": "train", "eval": "validation", "test": "test"}  # tensorflow-datasets'
    assert [named_split(name) for name in ("train", "dev", "eval", "test")] == ["train", "eval", "eval", "test"]
    with pytest.raises(UserError, match=r"split='valid': .*train, eval, test"):
        named_split("valid")


@pytest.mark.parametrize("samples", [None, "text", b"bytes", {"inputs": "a"}, 5])
def test_what_is_no_series_of_samples_is_refused(samples):
    with pytest.raises(UserError, match=r"^mine: make returned .*str.*yield"):
        generated(samples, "mine: make", "{'a': str}")
    for series in ([1], iter([1]), (1,)):
        assert generated(series, "mine: make", "int") is series


def test_features_that_records_will_not_contain_are_reported_once(caplog):
    samples = [{"inputs": [2, 1], "context": [i, 1]} for i in range(5)]
    assert [*warn_of_others(samples, "mine", ("inputs", "context"))] == samples and not caplog.records
    assert [*warn_of_others(iter(samples), "mine", ("inputs",))] == samples
    (record,) = caplog.records
    assert record.getMessage().startswith("mine: records will not contain 'context', which generate_encoded_samples")
    assert not [*warn_of_others([], "mine", ())] and [*warn_of_others([5], "mine", ())] == [5]


def test_files_are_described_by_full_paths_and_sizes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "b").write_bytes(b"123")
    assert describe_files(DatasetSplit.TRAIN, ["a", "./b"]) == [
        {"path": f"{tmp_path}/a", "bytes": 5},
        {"path": f"{tmp_path}/b", "bytes": 3},
    ]
    (tmp_path / "c,d").touch()
    with pytest.raises(UserError, match=r"no such file: c\. Put quotation marks around a path with a comma: .*c,d"):
        describe_files(DatasetSplit.TRAIN, ["a", "c", "d"])
    (tmp_path / "empty").touch()
    with pytest.raises(UserError, match=r"^--dev_files=a,empty: empty: the file is empty"):
        describe_files(DatasetSplit.EVAL, ["a", "empty"])
    for part, name, flag in (("eval", "none", "dev_files"), ("test", ".", "test_files")):
        with pytest.raises(UserError, match=rf"--{flag}=a,{name}: .*{name}"):
            describe_files(part, ["a", name])
    assert splits.full_path("gs://bucket/a/") == "gs://bucket/a"


def test_a_changed_file_is_read_again_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"first")
    first = with_content({"path": str(path), "bytes": 0}, {})
    stat = os.stat(path)
    times = [stat.st_mtime_ns, stat.st_ctime_ns]
    sha256 = hashlib.sha256(b"first").hexdigest()
    assert first == {"path": str(path), "bytes": 5, "sha256": sha256, "changed": times}
    with monkeypatch.context() as context:
        context.setattr(hashes, "file_sha256", lambda *arguments: pytest.fail("read"))
        assert with_content({"path": str(path), "bytes": 0}, first) is first
    path.write_bytes(b"other")  # of the same size
    os.utime(path, ns=(times[0], times[0]))
    again = with_content({"path": str(path), "bytes": 5}, first)
    assert again["sha256"] == hashlib.sha256(b"other").hexdigest() and again["changed"] != times
    path.unlink()
    assert with_content(first, again) is first, "finished data can be used without it"

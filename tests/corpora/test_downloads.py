import hashlib
import importlib.resources
import importlib.resources.abc
import importlib.util
import json
import os
import sys

import pytest

from t2t_lite.corpora import downloads, source_files
from t2t_lite.data.problem import DatasetSplit, TranslateProblem
from t2t_lite.errors import UserError
from tests import faults
from tests.data import packing
from tests.data.hostile import variants

MEMBERS = ("in/a.en", "in/a.de")
PAIRS = [(f"en {i}", f"de {i}") for i in range(20)]


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    packing.shut_out_the_world(monkeypatch, tmp_path)


@pytest.fixture
def site(tmp_path):
    """A folder that is served as `file://`, with one archive; returns (its URL, its checksums)."""
    (tmp_path / "site").mkdir()
    sides = dict(zip(MEMBERS, (packing.lines(side) for side in zip(*PAIRS, strict=True)), strict=True))
    path = packing.write_tar(tmp_path / "site" / "corpus.tgz", sides)
    with open(path, "rb") as file:
        data = file.read()
    url = f"file://{path}"
    return url, {url: (len(data), hashlib.sha256(data).hexdigest())}


def pairs(folder, url):
    return [tuple(pair.values()) for pair in source_files.read_members(str(folder), MEMBERS, url)]


def test_a_download_ends_under_its_published_name_and_is_never_fetched_again(tmp_path, site, caplog):
    caplog.set_level("INFO", "t2t_lite")
    url, checksums = site
    downloads.provide([[url, MEMBERS]], str(tmp_path / "tmp"), checksums)
    assert os.listdir(tmp_path / "tmp") == ["corpus.tgz"]
    assert pairs(tmp_path / "tmp", url) == PAIRS
    assert f"downloading {url} to {tmp_path}/tmp/corpus.tgz (0 MB)" in caplog.text
    (tmp_path / "site" / "corpus.tgz").unlink()
    downloads.provide([[url, MEMBERS]], str(tmp_path / "tmp"), checksums)


def test_a_checksum_that_no_table_has_is_recorded_and_compared(tmp_path, site):
    url, checksums = site
    tmp_dir = tmp_path / "tmp"
    downloads.provide([[url, MEMBERS]], str(tmp_dir))
    assert sorted(os.listdir(tmp_dir)) == ["corpus.tgz", "corpus.tgz.sha256"]
    sha256 = checksums[url][1]
    assert (tmp_dir / "corpus.tgz.sha256").read_text() == f"{sha256}  corpus.tgz\n"  # as sha256sum -c reads it
    downloads.provide([[url, MEMBERS]], str(tmp_dir))
    with open(tmp_dir / "corpus.tgz", "ab") as file:
        file.write(b"\0")
    with pytest.raises(UserError, match=rf"corpus.tgz: its SHA-256 is .* {sha256[:12]}… .*sha256\). Delete both"):
        downloads.provide([[url, MEMBERS]], str(tmp_dir))


def test_another_file_than_the_published_one_is_refused_and_not_kept(tmp_path, site):
    url, checksums = site
    length, sha256 = checksums[url]
    for expected in ((length, "0" * 64), (length + 1, sha256)):
        with pytest.raises(UserError, match=r"received .* SHA-256 .* Expected .* Run again, or put the"):
            downloads.provide([[url, MEMBERS]], str(tmp_path / "tmp"), {url: expected})
        assert os.listdir(tmp_path / "tmp") == []


@pytest.mark.parametrize("name", ["_fetch", "file_sha256", "rename"])
def test_an_interrupted_download_leaves_nothing_that_counts(tmp_path, site, name):
    url, checksums = site
    with faults.failing(downloads, name, 1), pytest.raises(KeyboardInterrupt):
        downloads.provide([[url, MEMBERS]], str(tmp_path / "tmp"), checksums)
    assert os.listdir(tmp_path / "tmp") == []
    downloads.provide([[url, MEMBERS]], str(tmp_path / "tmp"), checksums)
    assert pairs(tmp_path / "tmp", url) == PAIRS


def test_archives_of_the_user_are_compared_with_the_table(tmp_path, site, caplog):
    caplog.set_level("INFO", "t2t_lite")
    url, checksums = site
    length, sha256 = checksums[url]
    served = tmp_path / "site"
    downloads.provide([[url, MEMBERS]], str(served), checksums)
    assert not caplog.records
    with pytest.raises(UserError, match=rf"site/corpus.tgz: its SHA-256 is {sha256[:12]}….* 000000000000…"):
        downloads.provide([[url, MEMBERS]], str(served), {url: (length, "0" * 64)})
    downloads.provide([[url, MEMBERS]], str(served), {url: (length + 9, "0" * 64)})
    assert f"has {length:,} bytes, but the file published at {url} has {length + 9:,}; " in caplog.text
    assert sorted(os.listdir(served)) == ["corpus.tgz"]


def test_unpacked_files_are_enough(tmp_path):
    (tmp_path / "in").mkdir()
    for name in MEMBERS:
        (tmp_path / name).write_text("line\n")
    assert downloads.are_there([["http://host/c.tgz", MEMBERS]], str(tmp_path))
    downloads.provide([["http://host/c.tgz", MEMBERS]], str(tmp_path))
    assert not downloads.are_there([["http://host/c.tgz", ("in/a.en", "in/b.de")]], str(tmp_path))


@pytest.mark.parametrize("url", ["http://nowhere.invalid/sub/corpus.tgz", "file:///nowhere/corpus.tgz"])
def test_a_failed_download_says_which_file_to_put_where(tmp_path, url):
    tmp_dir = str(tmp_path / "tmp")
    with pytest.raises(UserError) as caught:
        downloads.provide([[url, MEMBERS]], tmp_dir)
    message = str(caught.value)
    assert message.startswith(f"{url}: the download failed (")
    assert message.endswith(f"put it into {tmp_dir} as corpus.tgz.")
    assert "\n" not in message
    assert os.listdir(tmp_dir) == []


def test_a_folder_that_cannot_be_written_to(tmp_path, site):
    url, _ = site
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file: a file is in the way. Expected a folder|file: is a file. Expected"):
        downloads.provide([[url, MEMBERS]], str(tmp_path / "file"))
    if os.geteuid():  # for root all folders are writable
        (tmp_path / "shut").mkdir(mode=0o500)
        with pytest.raises(UserError, match="shut: no permission to write here"):
            downloads.provide([[url, MEMBERS]], str(tmp_path / "shut"))


class Prepared(TranslateProblem):
    """A problem with archives and a prepared set."""

    name = "prepared"
    language_pair = ("en", "de")
    prepared_dataset = "wmt14_translate/de-en"
    dataset_splits = ({"split": "train", "shards": 1}, {"split": "eval", "shards": 1}, {"split": "test", "shards": 1})

    def source_data_files(self, dataset_split):
        return [["corpus.tgz", (f"{dataset_split}.en", f"{dataset_split}.de")]]


@pytest.fixture
def prepared_set(tmp_path, monkeypatch):
    """Writes a set as tensorflow-datasets keeps it; returns its folder."""
    import tensorflow_datasets as tfds

    if importlib.util.find_spec("importlib_resources") is None:  # tensorflow-datasets writes with it and forgets it
        monkeypatch.setitem(sys.modules, "importlib_resources", importlib.resources)

    def examples(split):
        return [(i, {"de": f"{split} &quot;größe&quot; {i} ", "en": f"{split} R&amp;D {i}"}) for i in range(5)]

    tfds.dataset_builders.store_as_tfds_dataset(
        "wmt14_translate",
        version="1.0.0",
        config="de-en",
        features=tfds.features.Translation(languages=("de", "en")),
        split_datasets={split: examples(split) for split in ("train", "validation", "test")},
        data_dir=str(tmp_path / "tfds"),
        disable_shuffling=True,
    )
    return tmp_path / "tfds" / "wmt14_translate" / "de-en" / "1.0.0"


def read(problem, tmp_dir, split):
    return [tuple(sample.values()) for sample in problem.generate_samples("", str(tmp_dir), split)]


def test_a_prepared_set_is_read_where_archives_lack(tmp_path, prepared_set):
    problem = Prepared()
    assert read(problem, tmp_path, DatasetSplit.TRAIN) == [
        (f"train R&amp;D {i}", f"train &quot;größe&quot; {i}") for i in range(5)
    ]
    assert read(problem, tmp_path, DatasetSplit.EVAL)[0] == ("validation R&amp;D 0", "validation &quot;größe&quot; 0")
    # Only the test sets come from .sgm files, whose entities that set leaves as they are.
    assert read(problem, tmp_path, DatasetSplit.TEST)[4] == ("test R&D 4", 'test "größe" 4')
    packing.write_tar(tmp_path / "corpus.tgz", {"train.en": b"archive\n", "train.de": b"Archiv\n"})
    assert read(problem, tmp_path, DatasetSplit.TRAIN) == [("archive", "Archiv")]


def test_a_prepared_set_must_be_whole(tmp_path, prepared_set):
    splits = ("train", "validation", "test")
    assert downloads.find_prepared("wmt14_translate/de-en", splits, str(tmp_path)) == str(prepared_set)
    assert downloads.find_prepared("wmt14_translate/fr-en", splits, str(tmp_path)) is None
    assert downloads.find_prepared("wmt14_translate/de-en", (*splits, "other"), str(tmp_path)) is None
    with pytest.raises(UserError, match=r"1.0.0: .* fr. Expected the features en and fr"):
        next(downloads.read_prepared(str(prepared_set), "train", ("en", "fr")))
    os.rename(tmp_path / "tfds", tmp_path / "elsewhere")
    assert downloads.find_prepared("wmt14_translate/de-en", splits, str(tmp_path)) is None
    found = downloads.find_prepared("wmt14_translate/de-en", splits, str(tmp_path / "elsewhere"))
    assert found == str(tmp_path / "elsewhere/wmt14_translate/de-en/1.0.0")
    (record,) = [path for path in (tmp_path / "elsewhere").rglob("*train*") if path.stat().st_size]
    record.write_bytes(record.read_bytes()[:-3])
    with pytest.raises(UserError, match="damaged"):
        list(downloads.read_prepared(found, "train", ("en", "de")))


def test_the_newest_version_of_a_set_counts():
    versions = ["a/0.9.0", "a/1.0.0", "a/1.10.0", "a/1.9.0", "a/other"]
    assert max(versions, key=downloads.version_order) == "a/1.10.0"
    assert min(versions, key=downloads.version_order) == "a/other"


def test_nothing_of_tensorflow_datasets_is_imported_without_need(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)  # an import raises
    packing.write_tar(tmp_path / "corpus.tgz", {"train.en": b"archive\n", "train.de": b"Archiv\n"})
    assert read(Prepared(), tmp_path, DatasetSplit.TRAIN) == [("archive", "Archiv")]


@pytest.mark.slow
def test_a_damaged_prepared_set_gives_one_line(tmp_path, prepared_set):
    refused = 0
    for name in ("dataset_info.json", "features.json"):
        path = prepared_set / name
        text = path.read_text()
        broken = [b"", b"\xff", b"{", b"[" * 10**5, text.encode()[:-9]]
        for data in [*broken, *(json.dumps(changed).encode() for _, changed in variants(json.loads(text)))]:
            path.write_bytes(data)
            try:
                if folder := downloads.find_prepared("wmt14_translate/de-en", ["train"], str(tmp_path)):
                    next(downloads.read_prepared(folder, "train", ("en", "de")))
            except UserError as error:
                refused += 1
                assert str(prepared_set) in str(error) and "\n" not in str(error)
        path.write_text(text)
    assert refused > 50


def test_a_prepared_set_in_a_folder_with_a_globs_characters(tmp_path, prepared_set, monkeypatch):
    os.rename(tmp_path / "tfds", tmp_path / "tfds [1]")
    monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "tfds [1]"))
    folder = downloads.find_prepared("wmt14_translate/de-en", ["train"], str(tmp_path))
    assert list(downloads.read_prepared(folder, "train", ("en", "de")))

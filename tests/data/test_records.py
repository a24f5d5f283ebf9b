"""What a manifest says of a split agrees with the records, and data that changed since are noticed without reading."""
# Nearest tests of: t2t_lite/data/manifests.py

import json
import pathlib
import shutil

import pytest

from t2t_lite.data import manifests
from t2t_lite.data.problem import DatasetSplit, Problem
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams
from t2t_lite.text import vocabulary


class Uneven(Problem):
    """Inputs of 2 to 21 ids, targets of half as many; one example has the largest ids, 30 and 12."""

    name = "uneven"
    dataset_splits = [{"split": s, "shards": n} for s, n in ((DatasetSplit.TRAIN, 3), (DatasetSplit.EVAL, 1))]  # noqa: RUF012
    sizes = (31, 13)

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        for n in range(200):
            yield {"inputs": [29 + (n == 2)] * (n % 20 + 1) + [1], "targets": [11 + (n == 2)] * (n % 20 // 2) + [1]}

    def feature_encoders(self, data_dir):
        return {
            side: vocabulary.TextEncoder(size) for side, size in zip(("inputs", "targets"), self.sizes, strict=True)
        }


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uneven")
    Uneven().generate_data(str(folder), str(folder))
    return folder


@pytest.fixture
def data_dir(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "d")
    return str(tmp_path / "d")


def without_facts(data_dir):
    """Removes the manifest, which a problem does not have that writes its files itself."""
    (pathlib.Path(data_dir) / "uneven-manifest.json").unlink()


def test_a_fingerprint_is_of_the_records_wherever_they_are(finished, data_dir):
    def of(folder, split=DatasetSplit.TRAIN):
        return Records(Uneven(), str(folder), split).fingerprint()

    class Renamed(Uneven):
        name = "renamed"

    assert of(finished) == of(data_dir) != of(data_dir, DatasetSplit.EVAL)
    for path in pathlib.Path(data_dir).glob("uneven-train-*"):
        shutil.copy(path, path.with_name(path.name.replace("uneven", "renamed")))
    assert of(finished) != Records(Renamed(), data_dir, DatasetSplit.TRAIN).fingerprint()
    records = Records(Uneven(), data_dir, DatasetSplit.TRAIN)
    shard = pathlib.Path(records.paths[2])
    data, first = shard.read_bytes(), records.fingerprint(1)
    for changed in (data[:-1] + bytes([data[-1] ^ 1]), data + b"x", data[:-1]):
        shard.write_bytes(changed)
        assert of(finished) != of(data_dir)
    shard.unlink()
    assert records.fingerprint(1) == first
    with pytest.raises(UserError, match="no such file"):
        records.fingerprint()


def test_only_complete_sets_are_found(tmp_path):
    def records():
        return Records(Uneven(), str(tmp_path), DatasetSplit.TRAIN)

    command = f"t2t-datagen --problem=uneven --data_dir={tmp_path}"
    with pytest.raises(UserError, match=rf"no such records. Run: {command}"):
        _ = records().paths
    paths = [tmp_path / f"uneven-train-0000{shard}-of-00003" for shard in range(3)]
    assert not records().exist()
    for path in reversed(paths):
        path.touch()
        assert records().exist()
    (tmp_path / "uneven-train-00003-of-00003.incomplete").touch()
    assert records().paths == list(map(str, paths))
    paths[1].unlink()
    with pytest.raises(UserError, match=rf"2 of 3 shards.*: {command}"):
        _ = records().paths
    (tmp_path / "uneven-train-00000-of-00001").touch()
    with pytest.raises(UserError, match=" of 1 and 3"):
        _ = records().paths


def test_a_split_that_was_not_generated_is_named(data_dir, monkeypatch):
    with pytest.raises(UserError, match=r"without a test set. Expected data with this set \(dataset_splits\)\.$"):
        _ = Records(Uneven(), data_dir, DatasetSplit.TEST).paths
    monkeypatch.setattr(Uneven, "configure", None, raising=False)  # the user's own files
    with pytest.raises(UserError, match=r"with this set \(t2t-datagen's --test_files\)\.$"):
        _ = Records(Uneven(), data_dir, DatasetSplit.TEST).paths
    manifest = pathlib.Path(manifests.manifest_path(Uneven(), data_dir))
    facts = json.loads(manifest.read_text())
    for path in pathlib.Path(data_dir).glob("uneven-dev-*"):
        path.unlink()
    with pytest.raises(UserError, match="Run: t2t-datagen"):
        _ = Records(Uneven(), data_dir, DatasetSplit.EVAL).paths
    del facts["splits"]["eval"]
    manifest.write_text(json.dumps(facts))
    with pytest.raises(UserError, match=r"without a dev set. .* use t2t-trainer --schedule=train"):
        _ = Records(Uneven(), data_dir, DatasetSplit.EVAL).paths


def check(data_dir, max_length=0, min_length=0, split=DatasetSplit.TRAIN, **kind):
    records, hparams = Records(Uneven(**kind), data_dir, split), HParams(max_length=max_length, min_length=min_length)
    facts = records.seen_facts(hparams, records.check())
    return [*manifests.count_kept(facts["lengths"], max_length, min_length)]


def test_the_manifest_says_what_reading_says(data_dir):
    records = Records(Uneven(), data_dir, DatasetSplit.TRAIN)
    read, facts = manifests.read_facts(records.paths), records.facts
    assert read == {key: facts[key] for key in read}
    assert facts["bytes"] == [pathlib.Path(path).stat().st_size for path in records.paths]
    assert facts["lengths"] == {str(n): 10 for n in range(2, 22)}
    assert facts["largest_id"] == read["largest_id"] == {"inputs": 30, "targets": 12}


@pytest.mark.parametrize("has_facts", [True, False])
@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        ({}, 5 * 10),  # inputs of 4 to 8
        ({"was_reversed": True}, 5 * 10),
        ({"was_copy": True}, 5 * 10),
        ({"was_copy": True, "was_reversed": True}, 10 * 10),  # targets of 4 to 8, each from two lengths of inputs
    ],
)
def test_what_the_limits_of_length_leave(data_dir, has_facts, kind, kept):
    if not has_facts:
        without_facts(data_dir)
    assert check(data_dir, max_length=8, min_length=4, **kind) == [kept, 200 - kept]
    assert check(data_dir, **kind) == [200, 0]


@pytest.mark.parametrize("has_facts", [True, False])
@pytest.mark.parametrize("was_reversed", [False, True])
@pytest.mark.parametrize(("sizes", "words"), [((31, 12), "id 12 in targets .* of 12"), ((30, 50), "id 30 in inputs")])
def test_each_side_is_held_against_its_own_vocabulary(data_dir, monkeypatch, has_facts, was_reversed, sizes, words):
    if not has_facts:
        without_facts(data_dir)
    monkeypatch.setattr(Uneven, "sizes", sizes)
    monkeypatch.setattr(Records, "check_vocabulary", lambda self, encoders: None)  # which would tell first
    for split in (DatasetSplit.TRAIN, DatasetSplit.EVAL):
        with pytest.raises(UserError, match=words):
            check(data_dir, split=split, was_reversed=was_reversed)


def test_what_is_cut_is_counted_apart_from_what_is_dropped(data_dir):
    class Cutting(Uneven):
        cuts_rows = True

    for kind, cut in ((Uneven, 0), (Cutting, 200 - 7 * 10)):  # inputs of 2 to 8 of 2 to 21
        split = Records(kind(), data_dir, DatasetSplit.TRAIN).check_training(HParams(max_length=8, min_length=4))
        assert (split.examples, split.dropped, split.cut) == (50, 150, cut)
    assert manifests.longest_row(Uneven(), HParams(max_length=0, batch_size=70)) == 70
    assert manifests.longest_row(Uneven(), HParams(max_length=90, batch_size=70)) == 70
    assert manifests.longest_row(Uneven(), HParams(max_length=60, batch_size=70)) == 60
    for longest, row in ((0, 70), (69, 69), (71, 70)):
        problem = Uneven()
        problem.max_length = lambda hparams, longest=longest: longest  # as a user's own problem may have it
        assert manifests.longest_row(problem, HParams(batch_size=70)) == row
    with pytest.raises(UserError, match=r"uneven: none of the 200 .*min_length=30 .*max_length=40"):
        Records(Uneven(), data_dir, DatasetSplit.TRAIN).check_training(HParams(max_length=40, min_length=30))


def test_fit_has_the_batches_of_a_split_and_their_labels(data_dir):
    for hparams, most in ((HParams(batch_size=50), 50), ("transformer_tiny", 4096), (None, 4096)):
        rows = 0
        for batch, labels in Uneven().dataset(data_dir, "dev", hparams):
            assert (labels.numpy() == batch["targets"].numpy()).all()
            rows += len(labels)
            assert len(labels) * batch["inputs"].shape[1] <= most
        assert rows == 200
    with pytest.raises(UserError, match="split='valid'"):
        Uneven().dataset(data_dir, "valid")


def test_with_the_facts_no_record_is_read(data_dir, monkeypatch):
    monkeypatch.setattr(manifests.tf.data, "TFRecordDataset", lambda *_: pytest.fail("read"))
    assert check(data_dir, max_length=11) == [100, 100]
    with pytest.raises(pytest.fail.Exception, match="read"):
        Records(Uneven(), data_dir, DatasetSplit.TRAIN).check(reads_records=True)


def test_a_shard_of_another_size_is_named_and_written_again(data_dir):
    shard = pathlib.Path(data_dir) / "uneven-train-00001-of-00003"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-7])
    message = rf"00001-of-00003: has {len(whole) - 7:,} bytes, but had {len(whole):,} .*run"
    with pytest.raises(UserError, match=f"{message}: t2t-datagen --problem=uneven --data_dir={data_dir}"):
        check(data_dir)
    with pytest.raises(UserError, match=f"{message}: the same command again"):
        Uneven().generate_data(data_dir, data_dir)
    shard.unlink()
    Uneven().generate_data(data_dir, data_dir)
    assert shard.read_bytes() == whole
    assert check(data_dir) == [200, 0]


def test_another_number_of_shards(data_dir):
    folder = pathlib.Path(data_dir)
    for old in sorted(folder.glob("uneven-train-*"))[1:]:
        old.unlink()
    (folder / "uneven-train-00000-of-00003").rename(folder / "uneven-train-00000-of-00001")
    with pytest.raises(UserError, match=r"uneven-train-00000-of-00001.* 1 shard, .* 3"):
        check(data_dir)

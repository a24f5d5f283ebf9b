"""What t2t-datagen notes in JSON may be damaged, or another's: each reader ends in one sentence."""

import json
import shutil

import pytest

from t2t_lite import registry
from t2t_lite.data import sharding
from t2t_lite.data.manifests import read_begun
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from tests.data import corpus
from tests.data.hostile import variants

PAIRS = list(dict.fromkeys(corpus.sentence_pairs(60, longest=3)))


def own(folder):
    problem = registry.problem("translate_own")
    problem.configure([str(folder / "a.en"), str(folder / "a.de")], vocab_size=310, held_out=3, filters=["all"])
    return problem


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    corpus.write_corpus(folder, "a", PAIRS)
    own(folder).generate_data(str(folder / "d"), str(folder))
    return folder


def mistakes(path, text, use):
    """Returns how often `use` refuses the file in one sentence, over all changes of what it holds."""
    count = 0
    for place, changed in variants(json.loads(text)):
        path.write_text(json.dumps(changed))
        try:
            use()
        except UserError as error:
            count += 1
            assert "\n" not in str(error) and len(str(error)) < 1000, place
        except Exception as error:
            raise AssertionError(f"{path.name}: {place}: {json.dumps(changed)[:300]}") from error
    for damaged in (b"", b"{", b"\xff", b"[" * 10**5, b'{"a": 1, "a": 2}', b'{"a": 1e999}', text.encode()[:-9]):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=path.name):
            use()
    return count


@pytest.mark.slow
def test_manifest(finished):
    path = finished / "d" / "translate_own-manifest.json"
    text = path.read_text()

    def use():
        problem, data_dir = registry.problem("translate_own"), str(finished / "d")
        Records(problem, data_dir, DatasetSplit.TRAIN).check()
        own(finished).generate_data(data_dir, str(finished))

    try:
        assert mistakes(path, text, use) > 300
    finally:
        path.write_text(text)


def test_a_manifest_without_a_split_is_not_of_finished_data(finished):
    path, data_dir = finished / "d" / "translate_own-manifest.json", str(finished / "d")
    text = path.read_text()
    manifest = json.loads(text)
    try:
        for splits in ({}, {"train": manifest["splits"]["train"]}):
            path.write_text(json.dumps({**manifest, "splits": splits}))
            with pytest.raises(UserError, match=r"manifest.json: 'splits' (is empty|lacks eval).* Delete the file and"):
                own(finished).generate_data(data_dir, str(finished))
    finally:
        path.write_text(text)


def test_what_is_remembered_of_own_files(finished, tmp_path):
    data_dir = tmp_path / "d"
    shutil.copytree(finished / "d", data_dir)
    path = data_dir / "problem.json"

    def use():
        problem = registry.problem("translate_own")
        problem.get_feature_encoders(str(data_dir))
        problem.generate_data(str(data_dir), str(tmp_path))

    assert mistakes(path, path.read_text(), use) > 50


def test_what_is_noted_of_unfinished_data(tmp_path):
    corpus.write_corpus(tmp_path, "a", PAIRS)
    (tmp_path / "d").mkdir()
    path = tmp_path / "d" / "translate_own-manifest.json.begun"
    text = json.dumps({"request": {"a": 1}, "chunks": 2, "source": "", "to_learn": ["vocab.a.300.model"]})
    assert mistakes(path, text, lambda: read_begun(str(path))) > 10
    path.write_text(text[:-1])
    with pytest.raises(UserError, match=r"\.begun"):
        own(tmp_path).generate_data(str(tmp_path / "d"), str(tmp_path))
    assert path.read_text() == text[:-1], "it stays, for it is the user's to look at"


def test_chunks(tmp_path):
    paths = [str(tmp_path / f"p-train-{i:05d}-of-00002") for i in range(2)]
    examples = [{"inputs": [n + 2, 1], "targets": [n + 2, 3, 1]} for n in range(5)]
    sharding.write_shards(examples, paths, seed=1)
    chunk = tmp_path / f"{paths[0]}.chunk-00000"
    index = tmp_path / f"{chunk.name}.json"
    kept, text = {path: path.read_bytes() for path in tmp_path.iterdir()}, index.read_text()

    def use():
        changed = index.read_bytes()
        for path, data in kept.items():  # a refusal removes the chunks: the next call begins anew
            path.write_bytes(data)
        index.write_bytes(changed)
        for path in paths:
            (tmp_path / path).unlink(missing_ok=True)
        sharding.write_shards(examples, paths, seed=1)

    assert mistakes(index, text, use) > 100
    index.write_text(text)
    use()
    for damaged in (b"", kept[chunk][:-1], b"\0" * len(kept[chunk]), kept[chunk][20:]):
        for path, data in kept.items():
            path.write_bytes(damaged if path == chunk else data)
        for path in paths:
            (tmp_path / path).unlink(missing_ok=True)
        with pytest.raises(UserError, match=r"chunk-00000: damaged or cut off\. Run t2t-datagen again: it begins anew"):
            sharding.write_shards(examples, paths, seed=1)
        assert not chunk.exists()

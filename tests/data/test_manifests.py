"""What t2t-datagen notes in JSON may be damaged, or another's: each reader ends in one sentence."""
# Nearest tests of: problems/own_problem.py

import json
import shutil

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.data import manifests
from t2t_lite.data.manifests import check_examples, read_begun
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


@pytest.mark.parametrize(
    ("example", "words"),
    [
        ({"inputs": [5, 1]}, "no id in targets"),
        ({"inputs": [5, 1], "targets": []}, "no id in targets"),
        ({"inputs": [5, 1], "targets": [2**31, 1]}, f"the id {2**31} in targets"),
        ({"inputs": [5, 1], "targets": [2**70, 1]}, f"the id {2**70} in targets"),
        ({"inputs": [-3, 1], "targets": [1]}, "the id -3 in inputs"),
        ({"inputs": ["5", 1], "targets": [1]}, "the id '5' in inputs"),
        ({"inputs": [5.0, 1], "targets": [1]}, "the id 5.0 in inputs"),
        ({"inputs": [6, 1], "targets": [6.0, 1]}, "the id 6.0 in targets"),
        ({"inputs": "text", "targets": [1]}, "'text' as inputs"),
        ({"inputs": 7, "targets": [1]}, "7 as inputs"),
        ({"inputs": np.array(7), "targets": [1]}, r"array\(7\) as inputs"),
        ([1, 2], r"\[1, 2\]"),
        (None, "None"),
    ],
)
def test_examples_that_no_record_can_hold_are_shown(example, words):
    good = {"inputs": [6, 1], "targets": [2**31 - 1, 0]}
    check_examples([good, {"inputs": np.array([6]), "targets": (1,), "more": []}])
    with pytest.raises(UserError, match=f"an example .*{words}.* 0 to {2**31 - 1}"):
        check_examples([good, example, good])


def test_a_split_has_shards_that_names_can_number_and_counts_of_what_is_there(tmp_path):
    facts = {"examples": 0, "tokens": {"targets": 0}, "lengths": {"12": 0}, "side_lengths": {"targets": {}}}
    facts |= {"largest_id": {"targets": 0}, "bytes": []}
    path = tmp_path / "x-manifest.json"

    def read(split="eval", **changes):
        splits = {split: {**facts, **changes}}
        path.write_text(json.dumps({"request": {}, "splits": splits, "vocabulary": {}, "vocabulary_files": []}))
        return manifests.read_manifest(str(path), ("targets",))["splits"]["eval"]

    for shards in (1, 99_999):
        assert read(shards=shards) == {**facts, "shards": shards}
    for changes, words in (
        ({"shards": 0}, "0 shards"),
        ({"shards": 100_000}, "100000 shards"),
        ({"shards": 2, "examples": -1}, "the number -1"),
        ({"shards": 2, "lengths": {"-1": 2}}, "'-1'"),
        ({"shards": 2, "bytes": [3, -4]}, "the number -4"),
        ({"shards": 2, "tokens": {"targets": 2**63}}, f"the number {2**63}"),
        ({"shards": 2, "split": "dev"}, "no such split"),
    ):
        with pytest.raises(UserError, match=rf"x-manifest\.json: splits: '(eval|dev)'.*{words}"):
            read(**changes)


def test_what_is_noted_of_unfinished_data(tmp_path):
    corpus.write_corpus(tmp_path, "a", PAIRS)
    (tmp_path / "d").mkdir()
    path = tmp_path / "d" / "translate_own-manifest.json.begun"
    text = json.dumps({"request": {"a": 1}, "chunks": 2, "source": "", "to_learn": ["vocab.a.300.model"]})
    assert mistakes(path, text, lambda: read_begun(str(path))) > 10
    names = ["vocab.a.300.model", "../vocab.a", "vocab.a/b", "problem.json", "a.en"]
    path.write_text(json.dumps({"request": {}, "to_learn": names}))
    assert read_begun(str(path))["to_learn"] == names[:1], "no other files are removed by it"
    path.write_text(text[:-1])
    with pytest.raises(UserError, match=r"\.begun"):
        own(tmp_path).generate_data(str(tmp_path / "d"), str(tmp_path))
    assert path.read_text() == text[:-1], "it stays, for it is the user's to look at"

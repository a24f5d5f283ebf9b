"""t2t-datagen --runner=DirectRunner against the same command without it. `make test-beam` runs these."""

# Nearest tests of: extras/beam/in_t2t_datagen.py

import functools
import json
import pathlib
import re

import pytest

from t2t_lite import files
from t2t_lite.data import sharding
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.text_problems.text_problem import Text2TextProblem
from t2t_lite.extras.beam.beam_pipeline import parse_options, write_shards
from tests.data import corpus

pytest.importorskip("apache_beam")
OWN = ("--problem=translate_own", "--vocab_size=320", "--num_workers=1")
BEAM = "--runner=DirectRunner"


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(sharding.Chunks, "size", 64)


@pytest.fixture
def own_flags(tmp_path):
    pairs = [*corpus.sentence_pairs(300, 1), ("one", ""), ("the house", "the house")]
    return [
        f"--train_files={corpus.write_corpus(tmp_path, 'train', pairs)}",
        f"--dev_files={corpus.write_corpus(tmp_path, 'dev', corpus.sentence_pairs(20, 2))}",
        "--filters=copied",
    ]


def by_beam(options):
    return functools.partial(write_shards, options=options)


def contents(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def test_the_files_are_those_of_a_local_run(tmp_path, own_flags, call_command):
    assert call_command("t2t-datagen", *OWN, "--data_dir=local", *own_flags).status == 0
    result = call_command("t2t-datagen", *OWN, "--data_dir=beam", BEAM, *own_flags)
    assert result.status == 0, result.stderr
    assert "DirectRunner: assembling 5 chunks into 1 shard" in result.stderr
    local, beam = contents(tmp_path / "local"), contents(tmp_path / "beam")
    assert local == beam
    removed = json.loads(beam["translate_own-manifest.json"])["splits"]["train"]["removed"]
    assert removed["copied"] == 1
    again = call_command("t2t-datagen", *OWN, "--data_dir=beam", BEAM, *own_flags)
    assert "nothing to do" in again.stderr


class OneStream(Text2TextProblem):
    """Dealt over the shards of both splits."""

    name = "one_stream"
    is_generate_per_split = False
    approx_vocab_size = 320
    dataset_splits = ({"split": DatasetSplit.TRAIN, "shards": 3}, {"split": DatasetSplit.EVAL, "shards": 1})

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        for inputs, targets in corpus.sentence_pairs(400):
            yield {"inputs": inputs, "targets": targets}


def generated(folder, **attributes):
    problem = OneStream()
    for name, value in attributes.items():
        setattr(problem, name, value)
    problem.generate_data(str(folder), str(folder))
    return contents(folder)


def test_one_stream_over_two_splits_with_a_limit(tmp_path):
    local = generated(tmp_path / "local", max_cases=150)
    beam = generated(tmp_path / "beam", max_cases=150, write_shards=by_beam({"runner": ["DirectRunner"]}))
    assert local == beam


def test_chunks_that_are_there_are_not_written_again(tmp_path, monkeypatch):
    folder = tmp_path / "d"
    options = {"runner": ["DirectRunner"], "direct_num_workers": ["1"]}
    check, checked = sharding.check_examples, []

    def full(examples, features):
        checked.append(len(examples))
        if len(checked) == 4:
            raise OSError(28, "No space left on device")
        check(examples, features)

    monkeypatch.setattr(sharding, "check_examples", full)
    with pytest.raises(OSError, match="No space"):
        generated(folder, write_shards=by_beam(options))
    before = len(list(folder.glob("*chunk-?????.json")))
    assert before == len(checked) - 1 > 0
    checked.clear()
    monkeypatch.setattr(sharding, "check_examples", lambda *given: checked.append(given) or check(*given))
    finished = generated(folder, write_shards=by_beam(options))
    assert len(checked) == 7 - before  # 400 samples in chunks of 64
    assert finished == generated(tmp_path / "local")


def test_a_mistake_on_a_worker_is_one_line(tmp_path, own_flags, call_command):
    class Bad(OneStream):
        def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
            yield {"inputs": [5, 1], "targets": [-7, 1]}

    problem = Bad()
    problem.write_shards = by_beam({"runner": ["DirectRunner"]})
    with pytest.raises(files.UserError, match=r"has the id -7 in targets\. Expected ids from 0 to \d+ .*generates\.$"):
        problem.generate_data(str(tmp_path / "bad"), str(tmp_path))
    assert not list((tmp_path / "bad").glob("*-of-*"))


def test_unknown_runners_and_options(tmp_path, own_flags, call_command):
    result = call_command("t2t-datagen", *OWN, "--data_dir=d", "--runner=Nobody", *own_flags)
    assert result.status == 2
    assert "--runner=Nobody: " in result.stderr.splitlines()[-1]
    options = "--beam_pipeline_options=direct_num_workers=2,--my_own=3,streaming"
    result = call_command("t2t-datagen", *OWN, "--data_dir=d", BEAM, options, "--only_list")
    assert re.search("DirectRunner, .*: my_own$", result.stderr, re.MULTILINE)
    result = call_command("t2t-datagen", *OWN, "--data_dir=d", "--beam_pipeline_options=streaming", *own_flags)
    assert result.status == 2 and "--beam_pipeline_options" in result.stderr and "--runner" in result.stderr
    expected = {"runner": ["DirectRunner"], "a": ["1=2"], "b": [True], "c": [""]}
    assert parse_options("DirectRunner", "a=1=2, --b,c=") == expected

"""--runner with a stand-in for Apache Beam, which is not installed for most tests: see tests/extras/beam."""

# Nearest tests of: extras/beam/beam_pipeline.py, extras/beam/in_t2t_datagen.py

import errno
import logging
import pathlib
import sys
import types

import pytest

from t2t_lite.data import sharding
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.text_problems.text_problem import Text2TextProblem
from t2t_lite.errors import Failure, UserError
from t2t_lite.extras.beam import in_t2t_datagen
from t2t_lite.extras.beam.beam_pipeline import parse_options
from tests.data import corpus


class Values(list):
    """A collection: `|` applies a transform."""

    def __or__(self, transform):
        return Values(transform(self))


def mapped(function):
    """Beam's Map, which says where an error came from, and lets workers begin with the last element."""

    def apply(values):
        for value in values:
            try:
                function(value)
            except Exception as error:
                raise type(error)(*error.args[:-1], f"{error.args[-1]} [while running 'Map(_call)-3']") from error
        return values

    return apply


@pytest.fixture(autouse=True)
def ran(monkeypatch):
    """Returns the list of the words of each pipeline that has run."""
    ran = []

    class Pipeline:
        def __init__(self, options):
            ran.append(options)

        def __enter__(self):
            return Values()

        def __exit__(self, *error):
            pass

    class PipelineOptions(list):
        def get_all_options(self):
            return {"runner": None, "direct_num_workers": 1}

    def create_runner(name):
        if name not in ("DirectRunner", "SparkRunner"):
            raise ValueError(f"Unexpected pipeline runner: {name}.\nmore")

    beam = types.ModuleType("apache_beam")
    beam.Pipeline, beam.Create, beam.Map = Pipeline, lambda values: lambda _: values, mapped
    beam.FlatMap = lambda function, *more: lambda values: [made for value in values for made in function(value, *more)]
    beam.Reshuffle = lambda: lambda values: values[::-1]
    beam.runners = types.SimpleNamespace(runner=types.SimpleNamespace(create_runner=create_runner))
    beam.options = types.SimpleNamespace(pipeline_options=types.SimpleNamespace(PipelineOptions=PipelineOptions))
    monkeypatch.setitem(sys.modules, "apache_beam", beam)
    monkeypatch.setattr(sharding.Chunks, "size", 64)
    return ran


class Mine(Text2TextProblem):
    """Dealt over the shards of both splits; one text is left out."""

    name, is_generate_per_split, approx_vocab_size = "mine_by_beam", False, 320
    dataset_splits = tuple({"split": s, "shards": n} for s, n in ((DatasetSplit.TRAIN, 3), (DatasetSplit.EVAL, 1)))

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        for inputs, targets in corpus.sentence_pairs(300):
            yield {"inputs": inputs, "targets": targets}
        yield {"inputs": "", "targets": "nothing"}


def generated(folder, kind=Mine, **flags):
    problem, flags = kind(), types.SimpleNamespace(**{"runner": None, "beam_pipeline_options": "", **flags})
    in_t2t_datagen.check(flags)
    for name, value in in_t2t_datagen.attributes(flags).items():
        setattr(problem, name, value)
    problem.generate_data(str(folder), str(folder))
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def test_the_files_are_those_of_a_local_run(tmp_path, ran, caplog):
    caplog.set_level(logging.INFO)
    local, options = generated(tmp_path / "local"), "experiments=a,direct_num_workers=3,streaming,experiments=b=c"
    assert not ran
    assert generated(tmp_path / "beam", runner="SparkRunner", beam_pipeline_options=options) == local
    words = ["--runner=SparkRunner", "--experiments=a", "--experiments=b=c", "--direct_num_workers=3", "--streaming"]
    assert ran == [words] * 2
    assert "SparkRunner: assembling 5 chunks into 4 shards" in caplog.text
    ran.clear()
    generated(tmp_path / "beam", runner="SparkRunner")
    assert not ran, "there is nothing to do"


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (UserError("a mistake."), UserError, r"^a mistake\.$"),
        (RuntimeError("x\n t2t_lite.errors.UserError: a mistake."), UserError, r"^a mistake\.$"),
        (OSError(errno.ENOSPC, "No space left on device"), OSError, "^.Errno 28. No space left on device$"),
        (RuntimeError("first\nlast"), Failure, "last"),
        (KeyError("k"), KeyError, "k"),
    ],
    ids=["mistake", "quoted mistake", "disk", "runner", "other"],
)
def test_what_goes_wrong_on_a_worker_is_the_users_error(error, kind, message, tmp_path, monkeypatch):
    def fails(*arguments):
        raise error

    monkeypatch.setattr(sharding, "check_examples", fails)
    with pytest.raises(kind, match=message):
        generated(tmp_path, runner="DirectRunner")
    assert not list(tmp_path.glob("*-of-?????"))
    assert logging.getLogger("apache_beam.runners.common").level == logging.NOTSET


@pytest.mark.parametrize("is_quoted", [True, False])
def test_a_vocabulary_of_other_samples_does_not_stay(is_quoted, tmp_path, monkeypatch):
    """As in a local run: samples that differ from those of an interrupted run are an error, and learned anew next."""
    check, checked = sharding.check_examples, []

    def full(examples, features):
        checked.append(examples)
        if len(checked) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        check(examples, features)

    monkeypatch.setattr(sharding, "check_examples", full)
    with pytest.raises(OSError, match="No space"):
        generated(tmp_path, runner="DirectRunner")
    vocabularies = {*tmp_path.glob("vocab.*")}
    assert vocabularies and list(tmp_path.glob("*chunk-?????.json"))
    monkeypatch.setattr(sharding, "check_examples", check)
    if is_quoted:  # as runners quote errors of other machines
        read = sharding._read_index

        def quoting(*arguments):
            try:
                return read(*arguments)
            except UserError as error:
                name = f"{type(error).__module__}.{type(error).__qualname__}"
                raise RuntimeError(f"Traceback\n{name}: {error}") from None

        monkeypatch.setattr(sharding, "_read_index", quoting)

    class Changed(Mine):
        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            for inputs, targets in corpus.sentence_pairs(300, 7):
                yield {"inputs": inputs, "targets": targets}

    with pytest.raises(sharding.ChangedSource, match=r"the source yields other samples .*\.$"):
        generated(tmp_path, Changed, runner="DirectRunner")
    assert not {*tmp_path.glob("vocab.*")}


def test_options_and_runners(caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    found = parse_options("DirectRunner", "a=1=2, --direct_num_workers=4,b,c=")
    assert found == {"runner": ["DirectRunner"], "a": ["1=2"], "direct_num_workers": ["4"], "b": [True], "c": [""]}
    assert " a, b, c, " in caplog.messages[-1] and "DirectRunner" in caplog.messages[-1]
    with pytest.raises(UserError, match=r"--runner=Nobody: .*Unexpected pipeline runner: Nobody\.\)"):
        parse_options("Nobody", "")
    with pytest.raises(UserError, match=r"--beam_pipeline_options.*--runner"):
        generated(None, beam_pipeline_options="a=1")
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    with pytest.raises(UserError, match=r"--runner.*t2t_lite\[beam\]"):
        parse_options("DirectRunner", "")

"""Arrays of hidden states through a stand-in for the model: each position of a text of n letters has n, 2n."""

import types

import numpy as np
import pytest

from t2t_lite.decoding.command import features
from t2t_lite.decoding.command.features import write_features
from t2t_lite.decoding.command.job import DecodingJob
from t2t_lite.errors import UserError
from t2t_lite.tasks.encoder_task import Reading
from tests.decoding.reversing import job_of

LINES = ["abc", "%", "", "abcdefghij", "ab"]  # the second is refused, of the fourth nine letters are read


class Vectors:
    """Notes (texts, batch size, layers) of each call."""

    task = types.SimpleNamespace(count="n_best", is_labelled=lambda line: False)
    num_texts, encoders = 1, types.MappingProxyType({})
    model = types.SimpleNamespace(config={})

    def __init__(self):
        self.calls = []

    def reader(self, longest, **options):
        return types.SimpleNamespace(limit=9, long_input="truncate", whole=options["whole"], read=self.read)

    def read(self, text):
        if "%" in text:
            raise UserError("'%' is not in the vocabulary.")
        return Reading([[*map(ord, text[:9]), 1]], len(text) > 9)

    def features(self, readings, pooling=None, batch_size=32, on_progress=None, **options):
        self.calls.append((len(readings), batch_size, options))
        vectors = [np.array([1.0, 2.0]) * (len(reading) - 1) for reading in readings]
        return vectors if pooling else [np.tile(v, (1 + len(r), 1)) for v, r in zip(vectors, readings, strict=True)]


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Function of settings and options; returns the arrays, the calls after the first, and the job's model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(DecodingJob, "predicts", True)
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in LINES))

    def write(settings="", path="x.npz", **options):
        job = job_of(tmp_path, settings, on_error="skip")
        job.translator = Vectors()
        write_features(job, "in", path, **options)
        name = job.settings.shard_name(path)
        with np.load(tmp_path / name) as arrays:
            return {name: arrays[name] for name in arrays}, job.translator.calls[1:]

    return write


def test_every_position_of_every_line(written, caplog):
    arrays, calls = written("batch_size=7", layers="first")
    assert arrays["lengths"].tolist() == [5, 0, 2, 11, 4]  # the first position, the letters and the end
    expected = [[3, 6]] * 5 + [[0, 0]] * 2 + [[9, 18]] * 11 + [[2, 4]] * 4
    assert arrays["features"].tolist() == expected and arrays["features"].dtype == np.float32
    assert calls == [(4, 7, {"layers": "first"})]
    assert "in, line 2: '%'" in caplog.text and "cut off after 9 pieces: line 4" in caplog.text


def test_one_vector_for_each_line_of_a_part(written):
    arrays, _ = written("shards=2,shard_id=1", pooling="mean")
    assert list(arrays) == ["features"] and arrays["features"].tolist() == [[0, 0], [9, 18], [2, 4]]
    arrays, _ = written(pooling="mean")
    assert np.isnan(arrays["features"]).tolist() == [[False] * 2, [True] * 2, *[[False] * 2] * 3]


@pytest.mark.parametrize("positions, groups", [(5, [1, 1, 1, 1]), (7, [2, 1, 1]), (13, [2, 1, 1]), (17, [2, 2])])
def test_as_many_lines_at_once_as_have_room(written, monkeypatch, positions, groups):
    """The lines have 5, 0, 2, 11 and 4 positions."""
    monkeypatch.setattr(features, "_POSITIONS", positions)
    _, calls = written()
    assert [count for count, _, _ in calls] == groups


def test_a_device_is_no_file(written):
    with pytest.raises(UserError, match="--features_file=/dev/null is a device"):
        written(path="/dev/null")

"""Which of a run's checkpoints is kept as the best, on metrics written by hand."""

# Nearest tests of: t2t_lite/training/monitor.py

import functools
import json
import types

import pytest
import tensorflow as tf

from t2t_lite.runs.checkpoints import RunCheckpoints, checkpoint_step
from t2t_lite.runs.log import RunLog
from t2t_lite.training.monitor import best_checkpoint, default_metric, keep_best
from tests.runs.small_model import set_weights, small_model

STEPS = (10, 20, 30, 40)


@pytest.fixture
def run(tmp_path):
    """A folder with checkpoints whose only weight is the step."""
    model, optimizer = small_model(units=1)
    saved = RunCheckpoints(str(tmp_path), model, optimizer)
    for step in STEPS:
        set_weights(model, step)
        saved.save(step)
    (tmp_path / "vocab.model").write_text("pieces")
    return tmp_path


def keeper(run, metric="loss"):
    data = types.SimpleNamespace(encoder_files={"vocab.model": str(run / "vocab.model")})
    facts = {"output_dir": str(run), "config": {"hparams": {"hidden_size": 1}}, "data": data, "log": RunLog(str(run))}
    return functools.partial(keep_best, types.SimpleNamespace(**facts), metric)


def kept_in(run):
    return checkpoint_step(best_checkpoint(str(run)))


def history(metric, *values):
    return [(step, {metric: value, "other": -value}) for step, value in zip(STEPS, values, strict=False)]


@pytest.mark.parametrize(
    "metric, values, best",
    [
        ("loss", (3.0, 1.0, 2.0, 4.0), 20),
        ("perplexity", (3.0, 1.0, 2.0, 4.0), 20),
        ("bleu", (3.0, 1.0, 9.0, 4.0), 30),
        ("token_accuracy", (0.3, 0.1, 0.2, 0.4), 40),
        ("exact_sequence_accuracy", (0.0, 0.2, 0.2, 0.1), 20),  # the first of equals
        ("bleu", (70.0, 60.0), 10),
    ],
)
def test_it_is_the_best_by_its_metric(run, metric, values, best):
    keeper(run, metric)(history(metric, *values))
    assert kept_in(run) == best
    (line,) = RunLog(str(run)).read()
    assert (line["step"], line["best_step"], line["metric"]) == (STEPS[len(values) - 1], best, metric)
    assert line["value"] == values[STEPS.index(best)]


def test_a_tie_is_broken_by_the_loss(run):
    kept = keeper(run, "bleu")
    losses, bests = (3.0, 2.0, 2.0, 1.0), (10, 20, 20, 40)
    evaluations = [(step, {"bleu": 0.0, "loss": loss}) for step, loss in zip(STEPS, losses, strict=True)]
    for count, best in enumerate(bests, 1):
        kept(evaluations[:count])
        assert kept_in(run) == best
    evaluations[2][1]["bleu"] = 0.1
    kept(evaluations)
    assert kept_in(run) == 30


def test_the_model_of_a_run_that_was_begun_anew_is_not_kept(run):
    keeper(run)(history("loss", 3.0, 1.0))
    log = RunLog(str(run))
    log.write("resume", 10, checkpoint="model.ckpt-10")
    for path in run.glob("model.ckpt-30.*"):  # another model of that step
        path.replace(run / path.name.replace("-30.", "-20."))
    keeper(run)(history("loss", 3.0, 1.0))
    assert weight_of(run / "best" / "model.ckpt-20") == 30
    assert [line["event"] for line in log.read()] == ["best", "resume", "best"]


def weight_of(path):
    reader = tf.train.load_checkpoint(str(path))
    (weight,) = [reader.get_tensor(key) for key in reader.get_variable_to_shape_map() if key.startswith("model/")]
    return weight.item()


def test_the_folder_is_that_model_with_all_that_decoding_needs(run):
    kept = keeper(run)
    kept(history("loss", 3.0))
    kept(history("loss", 3.0, 2.0, 2.5))
    kept(history("loss", 3.0, 2.0, 2.5, 4.0))
    assert [line["best_step"] for line in RunLog(str(run)).read()] == [10, 20], "each is taken once"
    folder = run / "best"
    assert sorted(path.name for path in folder.glob("*.index")) == ["model.ckpt-20.index"]
    assert weight_of(folder / "model.ckpt-20") == 20
    assert (folder / "vocab.model").read_text() == "pieces"
    assert json.loads((folder / "hparams.json").read_text())["hparams"] == {"hidden_size": 1}


def test_a_checkpoint_that_is_gone_counts_only_where_it_is_the_one_kept(run):
    for path in run.glob("model.ckpt-20.*"):
        path.unlink()
    kept = keeper(run)
    kept(history("loss", 3.0, 1.0, 2.0))
    assert kept_in(run) == 30
    for path in run.glob("model.ckpt-30.*"):
        path.unlink()
    kept(history("loss", 3.0, 1.0, 2.0, 2.5))
    assert kept_in(run) == 30


def test_without_its_metric_nothing_is_kept(run):
    keeper(run, "bleu")(history("loss", 3.0, 1.0))
    assert best_checkpoint(str(run)) is None


@pytest.mark.parametrize(
    "names, expected",
    [
        (("loss", "perplexity", "bleu"), "bleu"),
        (("loss", "token_accuracy", "exact_sequence_accuracy"), "loss"),
        (("perplexity", "loss"), "loss"),
    ],
)
def test_what_best_means_where_nobody_says(names, expected):
    assert default_metric(names) == expected


@pytest.mark.parametrize("killed_in", ["copy_files", "write_run_config", "average_checkpoints"])
def test_a_kill_leaves_no_folder_that_stays_incomplete(run, monkeypatch, killed_in):
    def kill(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(f"t2t_lite.training.monitor.{killed_in}", kill)
        keeper(run)(history("loss", 3.0))
    keeper(run)(history("loss", 3.0))
    assert {"hparams.json", "vocab.model", "model.ckpt-10.index"} <= {path.name for path in (run / "best").iterdir()}

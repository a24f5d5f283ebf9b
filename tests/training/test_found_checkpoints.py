"""A run whose list of checkpoints is lost, whose newest one is incomplete, or which must not begin here."""

import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.runs.checkpoints import average_checkpoints
from tests.training.runs import HPARAMS, assert_same, checkpoints, log, small_trainer, state

pytestmark = pytest.mark.slow  # of whole runs


@pytest.fixture(scope="module")
def made(data_dir, tmp_path_factory):
    """A run of seven steps, with checkpoints of steps 3, 6 and 7."""
    folder = tmp_path_factory.mktemp("made") / "run"
    small_trainer(data_dir, folder, flags_text="--first\n").train(7)
    return folder


@pytest.fixture
def run(made, tmp_path):
    """The run as it was after step 6, which a test may damage."""
    folder = shutil.copytree(made, tmp_path / "run")
    for path in folder.glob("model.ckpt-7.*"):
        path.unlink()
    (folder / "checkpoint").write_text(
        'model_checkpoint_path: "model.ckpt-6"\n'
        'all_model_checkpoint_paths: "model.ckpt-3"\nall_model_checkpoint_paths: "model.ckpt-6"\n'
    )
    return folder


def contents(folder):
    """{path: bytes} of all that is in a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def resumed_from(folder):
    return [line["checkpoint"] for line in log(folder) if line["event"] == "resume"]


@pytest.mark.few("missing", "another folder", "cut off")
@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"\x00\xff\xfe\x80",
        b'model_checkpoint_path: "/elsewhere/model.ckpt-99"\n',
        b'model_checkpoint_path: "mo',
    ],
    ids=["missing", "empty", "binary", "another folder", "cut off"],
)
def test_the_list_is_not_needed(data_dir, run, content):
    (run / "checkpoint").unlink() if content is None else (run / "checkpoint").write_bytes(content)
    small_trainer(data_dir, run).train(6)  # nothing is left to train
    assert resumed_from(run) == ["model.ckpt-6"]
    assert checkpoints(run) == ["model.ckpt-3", "model.ckpt-6"]


def test_the_newest_whole_one_is_resumed_and_the_others_are_counted(data_dir, made, run, caplog):
    (run / "checkpoint").unlink()
    (run / "model.ckpt-6.data-00000-of-00001").unlink()
    small_trainer(data_dir, run, keep_checkpoint_max=2, local_eval_frequency=2).train(7)
    assert "model.ckpt-6: a data file is missing" in caplog.text
    assert resumed_from(run) == ["model.ckpt-3"]
    assert_same(state(run, 7), state(made, 7))
    assert checkpoints(run) == ["model.ckpt-6", "model.ckpt-7"]  # of 3, 4, 6 and 7
    assert (run / "damaged-model.ckpt-6.index").exists()
    assert tf.train.latest_checkpoint(str(run)) == str(run / "model.ckpt-7")


def spoil(path):
    """Writes a checkpoint again, with NaN in one of its weights."""
    dtypes = tf.train.load_checkpoint(path).get_variable_to_dtype_map()
    names, slices = {"prefix": path, "tensor_names": [*dtypes]}, [""] * len(dtypes)
    tensors = tf.raw_ops.RestoreV2(**names, shape_and_slices=slices, dtypes=[*dtypes.values()])
    at = next(i for i, name in enumerate(dtypes) if name.startswith("model/"))
    tensors[at] = tf.fill(tf.shape(tensors[at]), np.float32(np.nan))
    tf.raw_ops.SaveV2(**names, shape_and_slices=slices, tensors=tensors)


def test_weights_that_are_not_finite_are_not_resumed(data_dir, run, caplog):
    spoil(str(run / "model.ckpt-6"))
    (run / "train.log").unlink()
    small_trainer(data_dir, run).train(3)
    assert "model.ckpt-6: " in caplog.text and "NaN or infinite" in caplog.text
    assert resumed_from(run) == ["model.ckpt-3"]


def test_checkpoints_kept_for_good_stay_when_the_list_is_lost(data_dir, run):
    (run / "checkpoint").unlink()
    for step, seconds in ((3, 1_000_000), (6, 1_000_000 + 7300)):
        os.utime(run / f"model.ckpt-{step}.index", (seconds, seconds))
    small_trainer(data_dir, run, keep_checkpoint_max=1, keep_checkpoint_every_n_hours=2).train(7)
    assert checkpoints(run) == ["model.ckpt-3", "model.ckpt-6", "model.ckpt-7"]


def _lose_settings(run):
    (run / "hparams.json").unlink()
    return "model.ckpt-3.data-00000-of-00001", "no hparams.json"


def _lose_data(run):
    for path in run.glob("*.data-*"):
        path.unlink()
    return "model.ckpt-3.index", "no complete checkpoint"


def _lose_indices(run):
    for path in run.glob("model.ckpt-*.index"):
        path.unlink()
    return "model.ckpt-3.data-00000-of-00001", "no complete checkpoint"


def _lose_checkpoints(run):
    for path in run.glob("model.ckpt-*"):
        path.unlink()
    return "holds no checkpoint", "model.ckpt-6"


def _spoil_log(run):
    (run / "train.log").write_text('{"event": "progress", "step": "three"}\n')
    return "train.log: line 1: 'step': expected a whole number, found 'three'", ""


@pytest.mark.parametrize("damage", [_lose_settings, _lose_data, _lose_indices, _lose_checkpoints, _spoil_log])
def test_what_cannot_be_placed_is_left_as_it_is(data_dir, run, damage):
    words = damage(run)
    before = contents(run)
    with pytest.raises(UserError) as error:
        small_trainer(data_dir, run, flags_text="--second\n").train(9)
    for word in (run, *words):
        assert str(word) in str(error.value)
    assert contents(run) == before


def test_an_average_cannot_be_trained_on(data_dir, run, tmp_path):
    """Nor can the run's best model, which is kept in the same way."""
    averages = tmp_path / "averages"
    average_checkpoints([str(run / "model.ckpt-3"), str(run / "model.ckpt-6")], str(averages / "model.ckpt-6"))
    shutil.copy(run / "hparams.json", averages)
    before = contents(averages)
    with pytest.raises(UserError, match=f"an imported or averaged model, .* and --warm_start_from={averages}"):
        small_trainer(data_dir, averages).train(9)
    assert contents(averages) == before


@pytest.mark.parametrize(
    ("hparams", "words"),
    [
        (HPARAMS.replace("num_heads=2", "num_heads=4"), "num_heads: 2 -> 4"),  # which no shape of a weight shows
        (HPARAMS + ",ema_decay=0.9", r"ema_decay: 0\.0 -> 0\.9"),
        (HPARAMS + ",clip_grad_norm=1", r"clip_grad_norm: 0\.0 -> 1\.0"),
    ],
)
def test_a_run_that_is_refused_changes_nothing(data_dir, run, hparams, words):
    before = contents(run)
    with pytest.raises(UserError, match=words):
        small_trainer(data_dir, run, hparams, flags_text="--second\n").train(9)
    assert contents(run) == before


@pytest.mark.parametrize("existing", [False, True])
def test_what_the_first_evaluation_would_refuse_is_refused_at_once(data_dir, tmp_path, existing):
    if existing:
        (tmp_path / "in" / "run").mkdir(parents=True)
    with pytest.raises(UserError, match="beam_size=0"):
        small_trainer(data_dir, tmp_path / "in" / "run", evaluates=True, search={"beam_size": 0}).train(3)
    assert sorted(tmp_path.rglob("*")) == ([tmp_path / "in", tmp_path / "in" / "run"] if existing else [])


def test_no_lock_is_left(data_dir, run):
    small_trainer(data_dir, run).train(6)
    assert not (run / ".lock").exists()

"""Checkpoints of a run: which are kept, also after a restart, what a restart finds, and their average."""

import os
import types

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import Failure, UserError
from t2t_lite.runs import checkpoints
from t2t_lite.runs.checkpoint_files import checkpoint_step, list_checkpoints, read_list, write_list
from t2t_lite.runs.checkpoints import RunCheckpoints, average_checkpoints, holds, newest_step, newest_whole
from tests import faults
from tests.runs.small_model import first_weight, set_weights, small_model


def steps(folder):
    return [checkpoint_step(path) for path in list_checkpoints(str(folder))]


@pytest.fixture(scope="module")
def model():
    """Returns (model, optimizer), which all tests here share: each sets the weights that it saves."""
    return small_model()


@pytest.fixture
def opened(model, tmp_path):
    """Function that opens the run in `tmp_path` as a new process does."""
    return lambda **options: RunCheckpoints(str(tmp_path), *model, **options)


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    ("keep_max", "hours", "kept"),
    [
        (2, 1, [60, 120, 140, 160]),
        (3, 10000, [120, 140, 160]),
        (1, 2 / 3, [40, 80, 120, 160]),
        (None, 1, range(0, 180, 20)),
    ],
)
def test_the_newest_are_kept_and_one_of_every_so_many_hours(tmp_path, opened, clock, restarts, keep_max, hours, kept):
    run = opened(keep_max=keep_max, keep_every_n_hours=hours)
    for minutes in range(0, 180, 20):
        if restarts:
            run = opened(keep_max=keep_max, keep_every_n_hours=hours)
        assert run.save(minutes) == run.latest == str(tmp_path / f"model.ckpt-{minutes}")
        clock.advance(1200)
    assert steps(tmp_path) == [*kept]
    newest = [*kept][-keep_max:] if keep_max else [*kept]
    assert [*read_list(str(tmp_path)).times] == [f"model.ckpt-{step}" for step in newest]
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-160")


def test_a_list_that_is_lost_or_old_counts_for_what_it_says(tmp_path, opened, clock):
    """Checkpoints that are newer than the list are rotated; older ones that it lacks were kept permanently."""
    run = opened(keep_max=5)
    for step in (10, 20, 30, 40):
        run.save(step)
        os.utime(tmp_path / f"model.ckpt-{step}.index", (clock.now, clock.now))
        clock.advance(7)
    write_list(str(tmp_path), {"model.ckpt-20": clock.now - 21}, clock.now - 28)
    opened(keep_max=2).save(50)
    assert steps(tmp_path) == [10, 40, 50]
    (tmp_path / "checkpoint").unlink()
    opened(keep_max=2).save(60)
    assert steps(tmp_path) == [10, 50, 60], "the oldest of more than keep_max was kept permanently"
    (tmp_path / "checkpoint").unlink()
    opened(keep_max=3).save(70)
    assert steps(tmp_path) == [50, 60, 70]


def test_a_step_that_is_saved_again_is_the_newest(tmp_path, opened):
    run = opened(keep_max=2)
    for step in (7, 8, 7, 9):
        run.save(step)
    assert [*read_list(str(tmp_path)).times] == ["model.ckpt-7", "model.ckpt-9"]


def test_a_restart_finds_every_object_that_was_saved(tmp_path, model):
    weights, optimizer = model
    counter, stream = tf.Variable(7), tf.Variable(70)
    run = RunCheckpoints(str(tmp_path), *model, counter=counter, stream=stream, nothing=None)
    set_weights(weights, 5.0)
    optimizer.iterations.assign(11)
    moment = optimizer.variables[1]
    moment.assign(np.full(moment.shape, 0.125))
    run.save(4)
    set_weights(weights, 1.0)
    moment.assign(np.zeros(moment.shape))
    optimizer.iterations.assign(0), counter.assign(0), stream.assign(0)
    assert run.restore_latest(skip=["stream"]) == (str(tmp_path / "model.ckpt-4"), {})
    assert (first_weight(weights), int(optimizer.iterations), int(counter), int(stream)) == (5.0, 11, 7, 0)
    assert moment.numpy().ravel().tolist() == [0.125, 0.125]
    assert [holds(str(tmp_path / "model.ckpt-4"), name) for name in ("counter", "nothing")] == [True, False]


@pytest.mark.parametrize("name", ["loss_scale", "generators"])
def test_what_earlier_versions_did_not_save_stays_as_it_is(opened, name):
    opened().save(4)
    value = tf.Variable(3.0)
    assert opened(**{name: value}).restore_latest()[0].endswith("model.ckpt-4") and float(value) == 3.0
    with pytest.raises(UserError, match=r"model\.ckpt-4: does not match this model"):
        opened(other=value).restore_latest()


def test_a_state_is_saved_beside_the_two_newest_alone(tmp_path, opened):
    files = []
    carried = types.SimpleNamespace(
        save=lambda path: files.append(path) or (tmp_path / f"{os.path.basename(path)}.data").touch(),
        restore=lambda path: files.append(f"restored {path}"),
    )
    for step in (1, 2, 3):
        opened(carried=carried).save(step)
    assert files == [str(tmp_path / f"model.ckpt-{step}.state") for step in (1, 2, 3)]
    assert sorted(path.name for path in tmp_path.glob("*.state.data")) == [
        "model.ckpt-2.state.data",
        "model.ckpt-3.state.data",
    ]
    opened(carried=carried).restore_latest(skip=["state"])
    assert len(files) == 3
    opened(carried=carried).restore_latest()
    assert files[3:] == [f"restored {tmp_path}/model.ckpt-3.state"]


def _cut(path):
    path.write_bytes(path.read_bytes()[:2])


def _of_nan(path):
    model, optimizer = small_model()
    set_weights(model, np.nan)
    RunCheckpoints(str(path.parent), model, optimizer).save_apart(str(path.with_suffix("")))


DAMAGE = {  # {what: (the file's ending, what happens to it, what is said)}
    "data cut": (".data-00000-of-00001", _cut, "damaged"),
    "data gone": (".data-00000-of-00001", lambda path: path.unlink(), "a data file is missing"),
    "index cut": (".index", _cut, "damaged"),
    "not finite": (".index", _of_nan, "2 of 2 numbers are NaN or infinite"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_the_one_before_a_damaged_checkpoint_is_restored(tmp_path, model, opened, what):
    for step in (3, 6, 9):
        set_weights(model[0], step)
        opened().save(step)
    ending, damage, said = DAMAGE[what]
    damage(tmp_path / f"model.ckpt-9{ending}")
    run = opened()
    path, damaged = run.restore_latest()
    assert (path, first_weight(model[0])) == (str(tmp_path / "model.ckpt-6"), 6.0)
    ((bad, why),) = damaged.items()
    assert bad == str(tmp_path / "model.ckpt-9") and why.startswith(bad) and said in why
    run.set_aside(damaged)
    aside = sorted(path.name for path in tmp_path.glob("*ckpt-9*"))
    assert aside and all(name.startswith("damaged-model.ckpt-9") for name in aside)
    opened().save(12)
    assert [*read_list(str(tmp_path)).times] == ["model.ckpt-3", "model.ckpt-6", "model.ckpt-12"]


def test_what_no_run_goes_on_from_is_refused(tmp_path, model, opened):
    assert opened().restore_latest() == (None, {})
    opened().save(3)
    with pytest.raises(UserError, match=r"model\.ckpt-3: does not match this model: \S+ is 1 x 2 there, but 1 x 5 in"):
        RunCheckpoints(str(tmp_path), *small_model(units=5)).restore_latest()
    average_checkpoints([str(tmp_path / "model.ckpt-3")], str(tmp_path / "avg" / "model.ckpt-3"))
    with pytest.raises(UserError, match=rf"avg/model\.ckpt-3: .* --warm_start_from={tmp_path}/avg"):
        RunCheckpoints(str(tmp_path / "avg"), *model).restore_latest()
    for path in tmp_path.glob("model.ckpt-3.data*"):
        path.write_bytes(b"")
    with pytest.raises(UserError, match=r"cannot read any checkpoint; tried model\.ckpt-3\."):
        opened().restore_latest()


def test_the_newest_whole_one_counts(tmp_path, opened):
    assert (newest_whole(str(tmp_path)), newest_step(str(tmp_path))) == (None, 0)
    for step in (9, 10):
        opened().save(step)
    assert newest_step(str(tmp_path)) == 10
    (tmp_path / "model.ckpt-10.data-00000-of-00001").unlink()
    assert (opened().latest, newest_step(str(tmp_path))) == (str(tmp_path / "model.ckpt-9"), 9)


PLACES = [("write_list", 1), ("write_list", 2), ("remove", 1)]


NO_SPACE = "No space left on device"
FULL = tf.errors.ResourceExhaustedError(None, None, f"{{{{function_node __wrapped__SaveV2_}}}} {NO_SPACE} [Op:SaveV2]")


@pytest.mark.parametrize("error", [OSError(28, NO_SPACE), FULL, KeyboardInterrupt], ids=["disk", "SaveV2", "Ctrl-C"])
@pytest.mark.parametrize(("operation", "call"), [("save_apart", 1), *PLACES])
def test_a_save_that_fails_or_is_interrupted_leaves_the_one_before(tmp_path, model, opened, error, operation, call):
    run = opened(keep_max=2)
    for step in (1, 2):
        set_weights(model[0], step)
        run.save(step)
    owner = run if operation == "save_apart" else checkpoints
    with pytest.raises((Failure, KeyboardInterrupt)) as raised, faults.failing(owner, operation, call, error):
        run.save(3)
    if error is not KeyboardInterrupt:
        good = f"The last good checkpoint is {tmp_path}/model.ckpt-2."
        assert f"step 3 could not be saved: {NO_SPACE}. {good}" in str(raised.value)
        assert not [*tmp_path.glob("model.ckpt-3*")]
    again = opened(keep_max=2)
    path, damaged = again.restore_latest()
    assert not damaged and first_weight(model[0]) == min(checkpoint_step(path), 2)
    again.save(4)
    assert steps(tmp_path)[-1] == 4 and len(steps(tmp_path)) <= 3
    assert {*read_list(str(tmp_path)).times} <= {f"model.ckpt-{step}" for step in steps(tmp_path)}


def test_a_first_save_without_room_says_that_there_is_none_before(tmp_path, opened):
    run = opened()
    with faults.limited_files(30), pytest.raises(Failure, match=r"step 1 .* No checkpoint was saved before\."):
        run.save(1)
    (tmp_path / "model.ckpt-7.index_temp").touch(), (tmp_path / "model.ckpt-8_temp").mkdir()
    run.remove_leftovers()
    assert not [*tmp_path.glob("model.ckpt-*_temp")]


def written(path, **values):
    """Writes a checkpoint of a model's `values`, a step and a part of an optimizer."""
    model = tf.train.Checkpoint(**{name: tf.Variable(value) for name, value in values.items()})
    rest = {
        "step": tf.Variable(checkpoint_step(path), dtype=tf.int64),
        "optimizer": tf.train.Checkpoint(m=tf.Variable(1.0)),
    }
    tf.train.Checkpoint(model=model, **rest).write(str(path))
    return str(path)


def test_an_average_is_the_mean_of_numbers_and_the_last_of_counters(tmp_path):
    """In float64: in bfloat16 257 and 1 would be lost beside one another."""
    values = [(257.0, 3), (258.0, 5), (1.0, 40)]
    paths = [
        written(tmp_path / f"model.ckpt-{step}", kernel=tf.constant([value, -value], tf.bfloat16), seed=count)
        for step, (value, count) in zip((5, 7, 30), values, strict=True)
    ]
    average_checkpoints(paths, str(tmp_path / "new" / "avg" / "model.ckpt-30"))
    reader = tf.train.load_checkpoint(str(tmp_path / "new" / "avg" / "model.ckpt-30"))
    found = {name.partition("/.")[0]: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}
    mean = (256 + 258 + 1) / 3  # 257 in bfloat16
    assert found["model/kernel"].dtype == tf.bfloat16.as_numpy_dtype
    assert found["model/kernel"].astype("float32").tolist() == pytest.approx([mean, -mean], rel=4e-3)
    assert (int(found["model/seed"]), int(found["step"])) == (40, 30) and "optimizer/m" not in found


REFUSED = {
    "none": (lambda folder: [], r"at least one checkpoint"),
    "another shape": (
        lambda folder: [written(folder / "a-1", k=[1.0]), written(folder / "a-2", k=[1.0, 2.0])],
        r"a-2: model/k\S* has shape \[2\], but in \S+a-1 it has \[1\]",
    ),
    "a weight more": (
        lambda folder: [written(folder / "a-1", k=[1.0]), written(folder / "a-2", k=[1.0], b=2.0)],
        r"a-2: model/b\S* has shape \[\], but in \S+a-1 it has None",
    ),
    "not finite": (
        lambda folder: [written(folder / "a-1", k=[1.0, np.inf, np.nan])], r"a-1: k: 2 of 3 numbers are NaN"
    ),
    "no file": (lambda folder: [str(folder / "a-1")], r"a-1: has been deleted"),
    "cut": (
        lambda folder: [written(folder / "a-1", k=[1.0]), _cut(folder / "a-1.data-00000-of-00001")][:1],
        r"a-1: damaged, .* Copy it again",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_average_is_named(tmp_path, what):
    make, words = REFUSED[what]
    paths = make(tmp_path)
    with pytest.raises(UserError, match=words):
        average_checkpoints(paths, str(tmp_path / "avg" / "model.ckpt-1"))
    assert not (tmp_path / "avg").exists()

"""Steps that were skipped: counted in a row, and too many end the run with what they met."""

import numpy as np
import pytest

from t2t_lite.errors import Failure
from t2t_lite.runs.log import RunLog
from t2t_lite.training.optimization.stability import SkippedSteps
from t2t_lite.training.training_data import StepBatches


def batches():
    return StepBatches([{"inputs": np.array([[n, 1]]), "targets": np.array([[n, n, 1]])} for n in (5, 6)], 0)


def result(is_skipped):
    return {"skipped": float(is_skipped), "objective": {"targets": np.inf if is_skipped else 2.0}}


def watcher(folder, most=3, save=None):
    return SkippedSteps(str(folder), RunLog(str(folder)), most, save)


def test_a_good_step_begins_the_count_anew(tmp_path):
    watched, counts = watcher(tmp_path), []
    for step, is_skipped in enumerate([0, 1, 1, 0, 1, 1, 0], 1):
        watched.watch(step, batches(), result(is_skipped))
        counts.append(watched.in_a_row)
    assert counts == [0, 1, 2, 0, 1, 2, 0]
    assert [line["step"] for line in RunLog(str(tmp_path)).read() if line["event"] == "skipped"] == [2, 3, 5, 6]


def test_steps_skipped_for_their_loss_scale_do_not_count_until_it_is_at_its_least(tmp_path):
    watched = watcher(tmp_path, 2)
    scales = (8.0, 4.0, 2.0, 1.0)
    for step, scale in enumerate(scales, 1):
        watched.watch(step, batches(), result(True) | {"loss_scale": scale})
    assert watched.in_a_row == 1
    with pytest.raises(Failure, match=r"for 2 steps in a row, up to step 5.*mixed_bfloat16"):
        watched.watch(5, batches(), result(True) | {"loss_scale": 1.0})
    assert [line["loss_scale"] for line in RunLog(str(tmp_path)).read()] == [*scales, 1.0]


@pytest.mark.parametrize("most", [1, 3])
def test_so_many_in_a_row_end_the_run_and_leave_their_batches_and_state(tmp_path, most):
    saved = []
    watched = watcher(tmp_path, most, lambda *arguments: saved.append(arguments))
    for step in range(1, most):
        watched.watch(step, batches(), result(True))
    last = batches()
    with pytest.raises(Failure, match=f"for {most} steps in a row, up to step {most}"):
        watched.watch(most, last, result(True))
    folder = tmp_path / f"not-finite-step-{most}"
    assert saved == [(most, last, str(folder / f"model.ckpt-{most}"))]
    kept = np.load(folder / "batches.npz")
    assert {name: kept[name].tolist() for name in kept} == {
        "inputs_0": [[5, 1]], "targets_0": [[5, 5, 1]], "inputs_1": [[6, 1]], "targets_1": [[6, 6, 1]],
    }  # fmt: skip


def test_a_machine_that_saves_nothing_leaves_nothing(tmp_path):
    with pytest.raises(Failure):
        watcher(tmp_path, 1).watch(1, batches(), result(True))
    assert [path.name for path in tmp_path.iterdir()] == ["train.log"]

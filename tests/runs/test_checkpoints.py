"""Which checkpoints of a run stay."""

import types

import keras

from t2t_lite.runs import checkpoints
from t2t_lite.runs.checkpoint_files import checkpoint_step, list_checkpoints
from t2t_lite.settings.config import HParams
from t2t_lite.training.optimization.optimizers import make_optimizer


def test_the_last_ones_stay_and_one_of_every_so_many_hours(tmp_path, monkeypatch):
    now = types.SimpleNamespace(minutes=0)
    monkeypatch.setattr(checkpoints, "time", types.SimpleNamespace(time=lambda: 60.0 * now.minutes))
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    optimizer = make_optimizer(HParams(), 10)
    optimizer.build(model.trainable_variables)
    run = checkpoints.RunCheckpoints(str(tmp_path), model, optimizer, keep_max=2, keep_every_n_hours=1)
    for now.minutes in range(0, 180, 20):
        run.save(now.minutes)
    assert [checkpoint_step(path) for path in list_checkpoints(str(tmp_path))] == [60, 120, 140, 160]

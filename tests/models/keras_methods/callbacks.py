"""Callbacks of Keras that read or change a model: what they leave, or do to the training, is what they promise."""

import keras
import pytest
import tensorflow as tf

from tests.models.keras_methods.fitting import BY_ONE, by_hand
from tests.models.keras_methods.table import method, same

callbacks = keras.callbacks


@method("ModelCheckpoint")
def model_checkpoint(case):
    model = case.compiled(keras.optimizers.Adam(0.01), case.fresh())
    kept = [
        callbacks.ModelCheckpoint(case.folder / "{epoch}.keras"),
        callbacks.ModelCheckpoint(case.folder / "{epoch}.weights.h5", save_weights_only=True),
        callbacks.ModelCheckpoint(case.folder / "best.keras", monitor="loss", mode="max", save_best_only=True),
    ]
    model.fit(case.x, case.y, epochs=2, callbacks=kept, **BY_ONE)
    last, first = (keras.saving.load_model(case.folder / name) for name in ("2.keras", "best.keras"))
    same(last.get_weights(), model.get_weights(), 0)
    assert (int(last.optimizer.iterations), int(first.optimizer.iterations)) == (2, 1)  # the loss was highest at first
    other = case.fresh()
    other.load_weights(case.folder / "2.weights.h5")
    same(other.get_weights(), model.get_weights(), 0)


@method("EarlyStopping", "TerminateOnNaN", "History", "CallbackList", "Callback", "LambdaCallback", "ProgbarLogger")
def early_stopping(case):
    stop = callbacks.EarlyStopping("loss", mode="max", patience=1, restore_best_weights=True)
    seen = []
    listen = callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(logs["loss"]))
    model = case.compiled(keras.optimizers.SGD(0.01))
    history = model.fit(case.x, case.y, epochs=9, callbacks=[stop, listen, callbacks.TerminateOnNaN()], **BY_ONE)
    assert history.epoch == [0, 1] and seen == history.history["loss"]  # the loss falls: the first epoch was best
    same(model.get_weights(), by_hand(case, 1, rate=0.01)[1], 1e-5)


@method("BackupAndRestore")
def backup_and_restore(case):
    class Killed(Exception):
        pass

    def kill(epoch, logs=None):
        if epoch == 1:
            raise Killed

    whole = case.compiled(keras.optimizers.Adam(0.01), case.fresh())
    whole.fit(case.x, case.y, epochs=3, **BY_ONE)
    first, second = (case.compiled(keras.optimizers.Adam(0.01), case.fresh()) for _ in range(2))
    back_up = callbacks.BackupAndRestore(case.folder / "backup")
    with pytest.raises(Killed):
        first.fit(
            case.x, case.y, epochs=3, callbacks=[back_up, callbacks.LambdaCallback(on_epoch_begin=kill)], **BY_ONE
        )
    back_up = callbacks.BackupAndRestore(case.folder / "backup")
    history = second.fit(case.x, case.y, epochs=3, callbacks=[back_up], **BY_ONE)
    assert history.epoch == [1, 2]
    same(second.get_weights(), whole.get_weights())


@method("TensorBoard")
def tensor_board(case):
    pytest.importorskip("tensorboard")
    board = callbacks.TensorBoard(case.folder / "logs", histogram_freq=1, write_graph=True)
    model = case.compiled()
    model.fit(case.x, case.y, validation_data=(case.x, case.y), epochs=2, callbacks=[board], **BY_ONE)
    tags = set()
    for path in (case.folder / "logs" / "train").glob("events*"):
        tags |= {value.tag for event in tf.compat.v1.train.summary_iterator(str(path)) for value in event.summary.value}
    assert "epoch_loss" in tags
    layers = [layer for layer in model.layers if layer.weights]
    for weight in (weight for layer in layers for weight in layer.weights):
        assert f"{weight.path}/histogram" in tags, weight.path
    assert list((case.folder / "logs" / "validation").glob("events*"))


@method("SwapEMAWeights")
def swap_ema_weights(case):
    model = case.compiled(keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.75))
    evaluated = []
    swap = callbacks.SwapEMAWeights(swap_on_epoch=False)
    listen = callbacks.LambdaCallback(on_test_begin=lambda logs=None: evaluated.append(model.get_weights()))
    model.fit(case.x, case.y, validation_data=(case.x, case.y), epochs=2, callbacks=[swap, listen], **BY_ONE)
    (_, one), (_, two) = by_hand(case, 1), by_hand(case, 2)
    average = [0.75 * a + 0.25 * b for a, b in zip(one, two, strict=True)]
    for found, expected in zip([*evaluated, model.get_weights()], (one, average, average), strict=True):
        same(found, expected, 1e-5)

"""Runs of a few steps on sequences of digits, and what is on disk after them."""

import dataclasses
import functools
import json
import os
import shutil

import keras
import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.records import Records
from t2t_lite.layers import Dropout
from t2t_lite.runs.checkpoints import checkpoint_step
from t2t_lite.training import CheckpointSettings, DeviceSettings, EvaluationSettings, LogSettings, Trainer
from tests.processes import wait_for
from tests.training.log_schema import assert_documented

PROBLEM = "algorithmic_reverse_decimal40"
EXAMPLES = 120
SIZES = "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=256,learning_rate_warmup_steps=10"
HPARAMS = f"{SIZES},layer_prepostprocess_dropout=0.2,eval_decode_examples=3,eval_beam_size=1"
_SETTINGS = {
    "checkpoints": CheckpointSettings, "devices": DeviceSettings, "evaluation": EvaluationSettings, "log": LogSettings
}  # fmt: skip


def given_records(problem, paths, split="eval"):
    """Returns the Records of files that lie anywhere."""
    records = Records(problem, "", split)
    records.paths, records.unit_counts = paths, dict
    return records


class Small(keras.Model):
    """The least that has a dropout, an embedding and logits: it is traced and compiled in a moment."""

    def __init__(self, vocab_size):
        super().__init__()
        self.embedding = keras.layers.Embedding(vocab_size, 8)
        self.dropout = Dropout(0.3)
        self.logits = keras.layers.Dense(vocab_size)

    @classmethod
    def from_hparams(cls, hparams, vocab_size, target_vocab_size=None):
        return cls(vocab_size)

    def call(self, features, training=False):
        return self.logits(self.dropout(self.embedding(features["targets"]), training=training))


@registry.register_model("runs_small")
class RegisteredSmall(Small):
    """It cannot translate; for runs where the model does not matter."""


def arguments(evaluates=True, **settings):
    """The arguments of a Trainer for settings by their own names, such as `logical_cpus=2`."""
    for name, kind in _SETTINGS.items():
        own = {field.name for field in dataclasses.fields(kind)} & settings.keys()
        settings[name] = kind(**{each: settings.pop(each) for each in own})
    return settings if evaluates else {**settings, "evaluation": None}


def trainer(data_dir, output_dir, hparams=HPARAMS, problem=PROBLEM, hparams_set="transformer_tiny", **more):
    """A Trainer that saves every three steps and, unless asked for, does not evaluate."""
    return Trainer(
        problem=problem,
        hparams=registry.hparams(hparams_set).parse(hparams),
        hparams_set=hparams_set,
        data_dir=data_dir,
        output_dir=str(output_dir),
        **arguments(**{"local_eval_frequency": 3, "log_step_count_steps": 2, "evaluates": False, **more}),
    )


small_trainer = functools.partial(trainer, model="runs_small")


def state(output_dir, step):
    """Weights, moments and counters of a checkpoint."""
    reader = tf.train.load_checkpoint(os.path.join(output_dir, f"model.ckpt-{step}"))
    kept = ("model/", "optimizer/", "batches_read", "loss_scale")
    return {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map() if key.startswith(kept)}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for key in one:
        np.testing.assert_array_equal(one[key], other[key], err_msg=key)


def killed_after(output_dir, step, copy):
    """Copies a run as it would be had it been killed after the checkpoint of a step."""
    shutil.copytree(output_dir, copy)
    kept = [name for name in checkpoints(copy) if checkpoint_step(name) <= step]
    for path in copy.glob("model.ckpt-*"):
        if path.stem not in kept:
            path.unlink()
    tf.compat.v1.train.update_checkpoint_state(str(copy), kept[-1], kept)


def assert_replicas_and_parts_give_one_run(make, folder, replicas):
    """Six steps of as many batches each: one after the other, the same resumed after step 3, and all on replicas.

    Args:
        make: function of an output_dir, `hparams` to append and a trainer's settings that returns a trainer.
        folder: path, for the runs "one", "parts" and "replicas".
        replicas: int.
    """
    in_turn = f",gradient_accumulation_steps={replicas}"
    make(folder / "one", hparams=in_turn).train(6)
    killed_after(folder / "one", 3, folder / "parts")
    make(folder / "parts", hparams=in_turn).train(6)
    one = state(folder / "one", 6)
    assert_same(state(folder / "parts", 6), one)
    make(folder / "replicas", logical_cpus=replicas).train(6)
    before, found = state(folder / "one", 3), state(folder / "replicas", 6)
    names = [name for name in one if name.startswith("model/") and one[name].dtype == "float32"]
    moved, apart = (tf.linalg.global_norm([one[name] - each[name] for name in names]) for each in (before, found))
    assert apart <= 1e-3 * moved, "other masks or other counts on the replicas"


def checkpoints(output_dir):
    """Names of the complete checkpoints, by step."""
    return sorted((path.stem for path in output_dir.glob("model.ckpt-*.index")), key=checkpoint_step)


def wait_for_checkpoint(output_dir, step, processes, why=str):
    """Returns once `train.log` has a checkpoint at or after a step; raises `AssertionError` if a process ends."""

    def is_saved():
        assert all(process.poll() is None for process in processes), why()
        path = output_dir / "train.log"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("}\n")]
        return any(event["event"] == "checkpoint" and event["step"] >= step for event in events)

    wait_for(is_saved, 900, why, pause=0.02)


def log(output_dir, event=None, name="train.log", documented=True):
    """The lines of a log, or those of one event; all with documented fields only."""
    with open(os.path.join(output_dir, name)) as file:
        lines = [json.loads(line) for line in file]
    if documented:
        assert_documented(lines)
    return [line for line in lines if event in (None, line["event"])]

"""The trainer: resuming is exact, and what a run leaves behind."""

import json
import os

import numpy as np
import pytest

from t2t_lite.errors import UserError
from t2t_lite.training.trainer import Trainer
from tests.training import runs
from tests.training.runs import HPARAMS, PROBLEM, assert_same, checkpoints, log, small_trainer, state, trainer


@pytest.fixture(scope="module")
def whole(data_dir, tmp_path_factory):
    """A run of seven steps without a break, with evaluations."""
    folder = tmp_path_factory.mktemp("whole")
    metrics = trainer(data_dir, folder, evaluates=True).train(7)
    return folder, metrics


@pytest.mark.slow
def test_a_run_in_parts_is_bit_for_bit_the_run_in_one(data_dir, whole, tmp_path):
    runs.killed_after(whole[0], 3, tmp_path / "parts")
    trainer(data_dir, tmp_path / "parts").train(7)
    assert_same(state(tmp_path / "parts", 7), state(whole[0], 7))
    resumed = log(tmp_path / "parts", "resume")
    assert [(line["step"], line["data_batch"]) for line in resumed] == [(3, 3)]


@pytest.mark.slow
def test_what_a_run_leaves(whole):
    folder, metrics = whole
    assert {"hparams.json", "checkpoint", "train.log"} <= set(os.listdir(folder))
    assert any(name.startswith("events.out.tfevents") for name in os.listdir(folder))
    config = json.loads((folder / "hparams.json").read_text())
    assert (config["problem"], config["model"], config["hparams_set"]) == (PROBLEM, "transformer", "transformer_tiny")
    assert config["hparams"]["hidden_size"] == 16
    assert checkpoints(folder) == [
        "model.ckpt-3",
        "model.ckpt-6",
        "model.ckpt-7",
    ]
    assert set(metrics) == {"loss", "perplexity", "token_accuracy", "exact_sequence_accuracy"}
    assert metrics["perplexity"] == pytest.approx(np.exp(metrics["loss"]))
    lines = log(folder)
    assert [line["step"] for line in lines if line["event"] == "evaluation"] == [3, 6, 7]
    progress = [line for line in lines if line["event"] == "progress"]
    assert [line["step"] for line in progress] == [2, 4, 6, 7]
    for line in progress:
        assert line["loss"] > 0 and line["target_tokens_per_step"] <= 256 and 0 <= line["padding"] < 1


@pytest.mark.slow
def test_settings_are_remembered(data_dir, whole):
    metrics = Trainer(data_dir=data_dir, output_dir=str(whole[0])).evaluate()
    assert metrics == pytest.approx(whole[1], rel=1e-5)


@pytest.mark.long
def test_with_a_moving_average_that_is_what_is_evaluated(data_dir, tmp_path):
    """As every command does that opens the checkpoint, whose model it is."""
    settings = HPARAMS + ",ema_decay=0.9,learning_rate_constant=0.1,learning_rate_schedule=constant"
    metrics = trainer(data_dir, tmp_path, settings, evaluates=True).train(3)
    assert Trainer(data_dir=data_dir, output_dir=str(tmp_path)).evaluate("dev") == pytest.approx(metrics, rel=1e-5)
    with pytest.raises(UserError, match="split='foo': expected one of train, eval, test"):
        Trainer(data_dir=data_dir, output_dir=str(tmp_path)).evaluate("foo")


@pytest.mark.long
def test_before_the_first_step_a_moving_average_is_the_model(data_dir, tmp_path):
    plain, averaged = (
        trainer(data_dir, tmp_path / name, f"{HPARAMS},ema_decay={decay}", evaluates=True).train(0)
        for name, decay in (("plain", 0.0), ("averaged", 0.9))
    )
    assert averaged["loss"] == pytest.approx(plain["loss"])


@pytest.mark.slow
def test_only_the_newest_are_kept(data_dir, tmp_path):
    small_trainer(data_dir, tmp_path, local_eval_frequency=1, keep_checkpoint_max=2).train(4)
    assert checkpoints(tmp_path) == ["model.ckpt-3", "model.ckpt-4"]


FLOAT16 = HPARAMS + ",dtype_policy=mixed_float16"


@pytest.mark.long  # three runs
def test_in_float16_a_run_in_parts_is_bit_for_bit_the_run_in_one(data_dir, tmp_path):
    """With a scale that overflows again and again, which is no reason to end the run."""
    hparams = FLOAT16 + ",mixed_precision_optimizer_init_loss_scale=1048576,loss_scale_growth_steps=2"
    hparams += ",max_skipped_steps=1"
    metrics = trainer(data_dir, tmp_path / "whole", hparams, evaluates=True).train(9)
    for steps in (2, 9):
        trainer(data_dir, tmp_path / "parts", hparams).train(steps)
    assert_same(state(tmp_path / "parts", 9), state(tmp_path / "whole", 9))
    assert np.isfinite(metrics["loss"])
    lines = log(tmp_path / "whole")
    skipped, shown = (
        {line["step"]: line["loss_scale"] for line in lines if line["event"] == event}
        for event in ("skipped", "progress")
    )
    assert len(skipped) > 1 and skipped[1] == pytest.approx(2**20, rel=1e-5)
    assert max(shown.values()) > min(skipped.values()) / 2, "it has grown again"


@pytest.mark.few("mixed_bfloat16")
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float64", "mixed_bfloat16"])
def test_every_dtype_trains(data_dir, tmp_path, dtype):
    small_trainer(data_dir, tmp_path, f"{HPARAMS},dtype_policy={dtype},clip_grad_norm=1").train(2)
    (line,) = log(tmp_path, "progress")
    assert np.isfinite([line["loss"], line["gradient_norm"]]).all() and line["gradient_norm"] > 0


@pytest.mark.long
@pytest.mark.few("restricted")
@pytest.mark.parametrize(
    "options",
    [
        "pos=none,self_attention_type=dot_product_relative,max_relative_position=4,add_relative_to_values=true",
        "pos=emb,max_position=64,max_length=64,self_attention_type=restricted,attention_neighborhood=5,"
        "shared_embedding_and_softmax_weights=false",
    ],
    ids=["relative", "restricted"],
)
def test_kinds_of_attention_and_positions_train_and_are_evaluated(data_dir, tmp_path, options):
    metrics = trainer(data_dir, tmp_path, f"{HPARAMS},{options}", evaluates=True).train(2)
    assert np.isfinite(metrics["loss"]) and "exact_sequence_accuracy" in metrics

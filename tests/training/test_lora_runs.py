"""Runs that are fine-tuned with LoRA: warm start, resume, averages, and the merged model that is used and exported."""

import json

import numpy as np
import pytest

from t2t_lite.errors import UserError
from t2t_lite.layers.dense import merged
from t2t_lite.runs.checkpoints import average_checkpoints
from t2t_lite.runs.opening import open_run
from t2t_lite.runs.run_config import build_model, read_run_config, write_run_config
from t2t_lite.runs.weights import assign_saved, named_weights
from t2t_lite.training.checkpoint_evaluation import CheckpointEvaluation
from tests.training.runs import assert_same, checkpoints, log, state, trainer

pytestmark = pytest.mark.slow  # of whole runs

SIZES = "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=256,eval_decode_examples=0"
LORA = f"{SIZES},lora_rank=2,lora_alpha=4,learning_rate_schedule=constant,learning_rate_constant=0.01"
ENDS = ("/lora_kernel_a", "/lora_kernel_b")
BATCH = {"inputs": np.array([[4, 5, 6, 1]], "int32"), "targets": np.array([[6, 5, 4, 1]], "int32")}


@pytest.fixture(scope="module")
def runs(data_dir, tmp_path_factory):
    """A folder with the run "source", and "tuned", which goes on from it with LoRA."""
    folder = tmp_path_factory.mktemp("runs")
    trainer(data_dir, folder / "source", SIZES).train(3)
    tune(data_dir, folder / "tuned", folder / "source").train(6)
    return folder


def tune(data_dir, output_dir, source, hparams=LORA, **more):
    return trainer(data_dir, output_dir, hparams, warm_start_from=str(source), **more)


def weights(folder, step):
    found = {key.removeprefix("model/").partition("/.")[0]: value for key, value in state(folder, step).items()
             if key.startswith("model/")}  # fmt: skip
    return {name: value for name, value in found.items() if not name.endswith(ENDS)}, found


def unmerged(folder, step):
    """The model as it was trained."""
    model = build_model(read_run_config(str(folder)))
    assign_saved(str(folder / f"model.ckpt-{step}"), named_weights(model))
    return model


@pytest.mark.long
def test_checkpoints_are_averaged_before_they_are_merged_and_evaluated_merged(data_dir, runs, tmp_path):
    """tests/runs/test_opening.py merges one; tests/integration/test_fine_tuning.py has the commands."""
    names = checkpoints(runs / "tuned")
    (tmp_path / "avg").mkdir()
    average_checkpoints([str(runs / "tuned" / name) for name in names], str(tmp_path / "avg" / "model.ckpt-6"))
    write_run_config(str(tmp_path / "avg"), read_run_config(str(runs / "tuned")))
    average = unmerged(tmp_path / "avg", 6)
    mean = open_run(str(tmp_path / "avg"), data_dir).model
    np.testing.assert_allclose(np.array(mean(BATCH)), np.array(average(BATCH)), atol=1e-5)
    for name, weight in named_weights(average).items():
        each = [weights(runs / "tuned", int(n.rpartition("-")[2]))[1][name] for n in names]
        np.testing.assert_allclose(weight.numpy(), np.mean(each, axis=0), atol=1e-7)
    assert len(list(CheckpointEvaluation(str(runs / "tuned"), data_dir).follow())) == 2


@pytest.mark.long
def test_a_run_goes_on_from_one_with_lora_with_the_same_merged_or_another(data_dir, runs, tmp_path, caplog):
    _, tuned = weights(runs / "tuned", 6)
    expected = np.array(unmerged(runs / "tuned", 6)(BATCH))
    for name, hparams in (("same", LORA), ("plain", SIZES), ("other", LORA.replace("rank=2", "rank=3"))):
        caplog.clear()
        made = tune(data_dir, tmp_path / name, runs / "tuned", hparams)
        made.train(0)
        assert ("into its kernels" in caplog.text) == (name != "same")
        np.testing.assert_allclose(np.array(made.trained(BATCH)), expected, atol=1e-5)
        found = {weight_name: weight.numpy() for weight_name, weight in named_weights(made.trained).items()}
        if name == "same":
            assert_same(found, tuned)
            continue
        kernel = "encoder/feed_forward/network/inner/kernel"
        a, b = (tuned[kernel.replace("kernel", f"lora_kernel_{x}")] for x in "ab")
        np.testing.assert_allclose(found[kernel], np.array(merged(tuned[kernel], a, b, 2.0)), atol=1e-7)
    with pytest.raises(UserError, match="frozen=nose: the model Transformer has no part nose"):
        tune(data_dir, tmp_path / "bad", runs / "source", f"{SIZES},frozen=nose").train(1)
    assert not (tmp_path / "bad").exists()


def test_parts_stay_frozen_in_a_run(data_dir, tmp_path, caplog):
    kinds = "self_attention_type=dot_product/restricted(neighborhood=3)"  # there is one layer
    hparams = f"{SIZES},{kinds},frozen=encoder/decoder_0,ema_decay=0.9,unfreeze_steps=1"
    trainer(data_dir, tmp_path, hparams, evaluates=True).train(3)
    assert "of which " in caplog.text and "Without --warm_start_from, frozen" in caplog.text
    assert "unfreeze_steps=1: " in caplog.text and "frozen=encoder/decoder_0: " in caplog.text
    assert f"{kinds} lists 2 kinds of layers, but the largest stack has 1 layer " in caplog.text
    reader = state(tmp_path, 3)
    assert {key for key in reader if key.startswith("model/") and "embedding" in key}
    [end] = log(tmp_path, "end")
    assert end["finished"] and json.loads((tmp_path / "hparams.json").read_text())["hparams"]["frozen"]

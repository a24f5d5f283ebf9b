"""The trainer: resuming is exact, settings cannot change unnoticed, a folder has one trainer."""

import json
import logging
import multiprocessing
import os
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.errors import Failure, UserError
from t2t_lite.runs.checkpoints import checkpoint_step
from t2t_lite.runs.directory import locked
from t2t_lite.training.train_step import TrainStep
from t2t_lite.training.trainer import Trainer
from t2t_lite.training.training_data import open_training_data
from tests.training.log_schema import assert_documented

PROBLEM = "algorithmic_reverse_decimal40"
HPARAMS = (
    "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=256,learning_rate_warmup_steps=10,"
    "layer_prepostprocess_dropout=0.2,eval_decode_examples=3,eval_beam_size=1"
)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("data"))
    problem = registry.problem(PROBLEM)
    problem.max_cases = 120
    problem.generate_data(folder, folder)
    return folder


def trainer(data_dir, output_dir, hparams=HPARAMS, **more):
    return Trainer(
        problem=PROBLEM,
        hparams=registry.hparams("transformer_tiny").parse(hparams),
        hparams_set="transformer_tiny",
        data_dir=data_dir,
        output_dir=str(output_dir),
        **{"local_eval_frequency": 3, "log_step_count_steps": 2, "evaluate_while_training": False, **more},
    )


def state(output_dir, step):
    """Weights, moments and counters of a checkpoint."""
    reader = tf.train.load_checkpoint(os.path.join(output_dir, f"model.ckpt-{step}"))
    keys = [
        k
        for k in reader.get_variable_to_shape_map()
        if k.startswith(("model/", "optimizer/", "batches_read", "loss_scale"))
    ]
    return {key: reader.get_tensor(key) for key in keys}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for key in one:
        np.testing.assert_array_equal(one[key], other[key], err_msg=key)


def checkpoints(output_dir):
    """Names of the complete checkpoints, by step."""
    return sorted((path.stem for path in output_dir.glob("model.ckpt-*.index")), key=checkpoint_step)


def log(output_dir):
    with open(os.path.join(output_dir, "train.log")) as file:
        lines = [json.loads(line) for line in file]
    assert_documented(lines)
    return lines


@pytest.fixture(scope="module")
def whole(data_dir, tmp_path_factory):
    """A run of seven steps without a break, with evaluations."""
    folder = tmp_path_factory.mktemp("whole")
    metrics = trainer(data_dir, folder, evaluate_while_training=True).train(7)
    return folder, metrics


def test_a_run_in_parts_is_bit_for_bit_the_run_in_one(data_dir, whole, tmp_path):
    trainer(data_dir, tmp_path).train(3)
    trainer(data_dir, tmp_path).train(5)
    trainer(data_dir, tmp_path).train(7)
    assert_same(state(tmp_path, 7), state(whole[0], 7))
    resumed = [line for line in log(tmp_path) if line["event"] == "resume"]
    assert [(line["step"], line["data_batch"]) for line in resumed] == [(3, 3), (5, 5)]


def test_a_seed_gives_a_run_and_another_seed_another(data_dir, whole, tmp_path):
    trainer(data_dir, tmp_path / "same").train(3)
    trainer(data_dir, tmp_path / "other", HPARAMS + ",random_seed=5").train(3)
    assert_same(state(tmp_path / "same", 3), state(whole[0], 3))
    key = "model/embedding/embeddings/.ATTRIBUTES/VARIABLE_VALUE"
    assert (state(tmp_path / "other", 3)[key] != state(whole[0], 3)[key]).any()


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
        assert line["loss"] > 0 and line["target_tokens_a_step"] <= 256 and 0 <= line["padding"] < 1


def test_settings_are_remembered(data_dir, whole):
    metrics = Trainer(data_dir=data_dir, output_dir=str(whole[0])).evaluate()
    assert metrics == pytest.approx(whole[1], rel=1e-5)


def test_with_a_moving_average_that_is_what_is_evaluated(data_dir, tmp_path):
    """As every command does that opens the checkpoint, whose model it is."""
    settings = HPARAMS + ",ema_decay=0.9,learning_rate_constant=0.1,learning_rate_schedule=constant"
    metrics = trainer(data_dir, tmp_path, settings, evaluate_while_training=True).train(3)
    assert Trainer(data_dir=data_dir, output_dir=str(tmp_path)).evaluate() == pytest.approx(metrics, rel=1e-5)


def test_only_the_newest_are_kept(data_dir, tmp_path):
    trainer(data_dir, tmp_path, local_eval_frequency=1, keep_checkpoint_max=2).train(4)
    assert checkpoints(tmp_path) == ["model.ckpt-3", "model.ckpt-4"]


def test_architecture_cannot_change(data_dir, whole):
    with pytest.raises(UserError, match=r"hidden_size: 16 -> 32.*another output_dir"):
        trainer(data_dir, whole[0], HPARAMS.replace("hidden_size=16", "hidden_size=32")).train(9)


def test_other_settings_change_only_when_allowed_and_are_recorded(data_dir, tmp_path, taken):
    trainer(data_dir, tmp_path).train(3)
    changed = HPARAMS.replace("batch_size=256", "batch_size=200")
    with pytest.raises(UserError, match=r"batch_size: 256 -> 200.*--allow_hparams_change"):
        trainer(data_dir, tmp_path, changed).train(5)
    trainer(data_dir, tmp_path, changed, allow_hparams_change=True).train(5)
    [line] = [line for line in log(tmp_path) if line["event"] == "hparams_change"]
    assert line["step"] == 3 and line["changed"] == {"batch_size": [256, 200]}
    # Of a stream that begins anew; the masks and the count of batches go on.
    fresh = open_training_data(PROBLEM, registry.hparams("transformer_tiny").parse(changed), data_dir).batches
    assert taken[3:] == [(3 + at, [nested(batch)]) for at, batch in enumerate(fresh.take(2))]
    assert json.loads((tmp_path / "hparams.json").read_text())["hparams"]["batch_size"] == 200


def test_another_problem_is_refused(data_dir, whole):
    other = trainer(data_dir, whole[0])
    other.problem = "algorithmic_identity_decimal40"
    with pytest.raises(UserError, match="algorithmic_identity_decimal40"):
        other.train(9)


def test_damaged_newest_checkpoint_falls_back(data_dir, whole, tmp_path, caplog):
    trainer(data_dir, tmp_path).train(6)
    newest = tmp_path / "model.ckpt-6.data-00000-of-00001"
    newest.write_bytes(newest.read_bytes()[:1000])
    trainer(data_dir, tmp_path).train(7)
    assert "model.ckpt-6: damaged" in caplog.text
    assert_same(state(tmp_path, 7), state(whole[0], 7))


def test_all_checkpoints_damaged(data_dir, tmp_path):
    trainer(data_dir, tmp_path).train(3)
    (tmp_path / "model.ckpt-3.data-00000-of-00001").write_bytes(b"")
    with pytest.raises(UserError, match=r"no checkpoint can be read; tried model\.ckpt-3"):
        trainer(data_dir, tmp_path).train(5)


def test_a_full_disk_keeps_the_last_checkpoint(data_dir, whole, tmp_path, monkeypatch):
    trainer(data_dir, tmp_path).train(3)

    def full(checkpoint, path):
        (tmp_path / f"{os.path.basename(path)}.data-00000-of-00001").write_bytes(b"half")
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(tf.train.Checkpoint, "write", full)
        with pytest.raises(Failure, match=r"step 6 could not be saved: No space left.*model.ckpt-3"):
            trainer(data_dir, tmp_path).train(6)
    assert not [name for name in os.listdir(tmp_path) if "ckpt-6" in name]
    trainer(data_dir, tmp_path).train(7)
    assert_same(state(tmp_path, 7), state(whole[0], 7))


@pytest.mark.parametrize("log_step_count_steps", [1, 100])
def test_a_loss_that_stays_infinite_stops_the_run_and_keeps_batches_and_state(data_dir, tmp_path, log_step_count_steps):
    """Even if that is noticed only when metrics are fetched again, at the end."""
    when = {"local_eval_frequency": 100, "log_step_count_steps": log_step_count_steps}
    schedule = "learning_rate_schedule=constant*exp_decay,learning_rate_decay_rate=10,learning_rate_decay_steps=1"
    hparams = f"{HPARAMS},{schedule},max_skipped_steps=3"
    with pytest.raises(Failure, match=r"3 steps in a row.*not-finite-step-\d+\. "):
        trainer(data_dir, tmp_path, hparams, **when).train(60)
    [folder] = [path for path in tmp_path.iterdir() if path.name.startswith("not-finite")]
    step = checkpoint_step(folder)
    skipped = [line["step"] for line in log(tmp_path) if line["event"] == "skipped"]
    assert skipped[-3:] == [step - 2, step - 1, step]
    batches = np.load(folder / "batches.npz")
    assert set(batches) == {"inputs_0", "targets_0"}
    saved = state(folder, step)
    assert saved["batches_read/.ATTRIBUTES/VARIABLE_VALUE"] == step
    weights = [value for key, value in saved.items() if key.startswith("model/")]
    assert all(np.isfinite(value).all() for value in weights)
    [updates] = [saved[key] for key in saved if key.startswith("optimizer/") and saved[key].dtype.kind == "i"]
    assert updates == step - len(skipped), "skipped steps left no trace in the optimizer"
    assert not [name for name in checkpoints(tmp_path) if checkpoint_step(name) >= step]


def test_everything_longer_than_max_length(data_dir, tmp_path):
    with pytest.raises(UserError, match=r"none of the 120 training examples .*max_length=1 "):
        trainer(data_dir, tmp_path / "run", HPARAMS + ",max_length=1").train(3)
    assert not (tmp_path / "run").exists()


def test_a_max_length_beyond_the_learned_positions(data_dir, tmp_path):
    with pytest.raises(UserError, match=r"max_length=256: the learned table has max_position=100 positions"):
        trainer(data_dir, tmp_path / "run", HPARAMS + ",pos=emb,max_position=100").train(3)
    assert not (tmp_path / "run").exists()


FLOAT16 = HPARAMS + ",dtype_policy=mixed_float16"


@pytest.mark.slow  # three runs
def test_in_float16_a_run_in_parts_is_bit_for_bit_the_run_in_one(data_dir, tmp_path):
    """With a scale that overflows again and again, which is no reason to end the run."""
    hparams = FLOAT16 + ",mixed_precision_optimizer_init_loss_scale=1048576,loss_scale_growth_steps=2"
    hparams += ",max_skipped_steps=1"
    metrics = trainer(data_dir, tmp_path / "whole", hparams, evaluate_while_training=True).train(9)
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


def test_a_run_that_changes_to_float16_begins_with_the_first_scale(data_dir, tmp_path, caplog):
    trainer(data_dir, tmp_path).train(3)
    with pytest.raises(UserError, match=r"dtype_policy: float32 -> mixed_float16.*--allow_hparams_change"):
        trainer(data_dir, tmp_path, FLOAT16).train(6)
    with caplog.at_level(logging.INFO, "t2t_lite"):
        trainer(data_dir, tmp_path, FLOAT16, allow_hparams_change=True).train(6)
    assert "model.ckpt-3 was not trained in float16: the loss scale begins at 32,768" in caplog.text
    trainer(data_dir, tmp_path, allow_hparams_change=True).train(7)
    assert "loss_scale" not in log(tmp_path)[-2], "back in float32"


def test_weights_in_float16_are_refused(data_dir, tmp_path):
    with pytest.raises(UserError, match=r"^dtype_policy=float16: .*Expected mixed_float16, which"):
        trainer(data_dir, tmp_path / "run", f"{HPARAMS},dtype_policy=float16").train(3)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "options",
    [
        "pos=none,self_attention_type=dot_product_relative,max_relative_position=4,add_relative_to_values=true",
        "pos=emb,max_position=64,max_length=64,self_attention_type=restricted,attention_neighborhood=5,"
        "shared_embedding_and_softmax_weights=false",
    ],
)
def test_kinds_of_attention_and_positions_train_and_resume(data_dir, tmp_path, options):
    trainer(data_dir, tmp_path / "whole", f"{HPARAMS},{options}").train(4)
    trainer(data_dir, tmp_path / "parts", f"{HPARAMS},{options}").train(2)
    metrics = trainer(data_dir, tmp_path / "parts", f"{HPARAMS},{options}", evaluate_while_training=True).train(4)
    assert_same(state(tmp_path / "parts", 4), state(tmp_path / "whole", 4))
    assert np.isfinite(metrics["loss"])


@pytest.fixture
def own_data(data_dir, tmp_path):
    """A copy of the data whose first training shard `damage` changes in its middle; `mend` takes that back."""
    folder = tmp_path / "data"
    shutil.copytree(data_dir, folder)
    shard = folder / f"{PROBLEM}-train-00000-of-00010"
    whole = shard.read_bytes()
    middle = len(whole) // 2

    def damage():
        shard.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])

    return SimpleNamespace(folder=str(folder), shard=shard, damage=damage, mend=lambda: shard.write_bytes(whole))


@pytest.mark.slow  # four runs
def test_damage_met_while_training(own_data, whole, tmp_path, monkeypatch):
    """It is named; the checkpoints before it are whole; one that has it in its buffer is told from a bad file."""
    run = tmp_path / "run"
    trainer(own_data.folder, run).train(3)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_announce", lambda self: own_data.damage())  # when all that is checked before is done
        with pytest.raises(UserError, match=rf"{own_data.shard}: damaged or not a file of records.*Delete it and run"):
            trainer(own_data.folder, run, local_eval_frequency=5).train(300)
    own_data.mend()
    with pytest.raises(UserError, match=r"is whole now.*the newest checkpoint was saved with the damage"):
        trainer(own_data.folder, run).train(300)
    for name in checkpoints(run)[1:]:
        for path in run.glob(f"{name}.*"):
            path.unlink()
    trainer(own_data.folder, run).train(7)
    assert_same(state(run, 7), state(whole[0], 7))


@pytest.mark.parametrize("split", ["train", "dev"])
def test_a_shard_cut_off_is_named_before_anything_is_written(own_data, tmp_path, split):
    (shard,) = own_data.shard.parent.glob(f"*-{split}-00000-*")
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(UserError, match=rf"{shard}: has [\d,]+ bytes, but [\d,]+ when it was written"):
        trainer(own_data.folder, tmp_path / "run").train(3)
    assert not (tmp_path / "run").exists()


def test_a_damaged_dev_shard_is_named_before_anything_is_written(own_data, tmp_path):
    (shard,) = own_data.shard.parent.glob("*-dev-00000-*")
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 255
    shard.write_bytes(data)
    with pytest.raises(UserError, match=f"{shard}: damaged or not a file of records"):
        trainer(own_data.folder, tmp_path / "run", evaluate_while_training=True).train(3)
    assert not (tmp_path / "run").exists()


def test_no_data(tmp_path):
    with pytest.raises(UserError, match="t2t-datagen --problem=algorithmic_reverse_decimal40"):
        trainer(str(tmp_path), tmp_path / "run").train(3)
    assert not (tmp_path / "run").exists()


def test_a_second_trainer_is_refused(tmp_path):
    """By another process as by this one; afterwards the folder is free."""
    with locked(str(tmp_path)):
        with (
            pytest.raises(UserError, match=f"another trainer .process {os.getpid()}. is running"),
            locked(str(tmp_path)),
        ):
            pass
        assert entering_from_outside(tmp_path) == 2
    assert entering_from_outside(tmp_path) == 0


def entering_from_outside(folder):
    """What a process that enters the folder ends with: 0: it could, 2: it was told who is in it."""
    process = multiprocessing.get_context("spawn").Process(target=_enter, args=(str(folder),), daemon=True)
    process.start()
    try:
        process.join(120)
        return process.exitcode
    finally:
        process.kill()


def _enter(folder):
    try:
        with locked(folder):
            os._exit(0)
    except UserError as error:
        os._exit(2 if f"process {os.getppid()}" in str(error) else 1)


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="a file is in the way"), locked(str(tmp_path / "file" / "run")):
        pass


def nested(batch):
    return [batch[side].numpy().tolist() for side in sorted(batch)]


@pytest.fixture
def taken(monkeypatch):
    """What every step takes: (index of its first batch, its batches as nested lists)."""
    steps, call = [], TrainStep.__call__

    def spy(self, placed, *more):
        steps.append((int(placed.first), [nested(batch) for batch in placed.batches]))
        return call(self, placed, *more)

    monkeypatch.setattr(TrainStep, "__call__", spy)
    return steps


def distance(one, other):
    """Of the weights of two states."""
    return np.sqrt(sum(((one[key] - other[key]) ** 2).sum() for key in one if key.startswith("model/")))


def test_another_number_of_replicas_keeps_the_batches_of_a_step(data_dir, tmp_path, taken, caplog):
    trainer(data_dir, tmp_path / "one", HPARAMS + ",gradient_accumulation_steps=2").train(4)
    expected = taken.copy()
    taken.clear()
    changing = tmp_path / "changing"
    with caplog.at_level(logging.INFO, "t2t_lite"):
        trainer(data_dir, changing, logical_cpus=2).train(2)
        with pytest.raises(UserError, match=r"3 replicas cannot share the 2 batches .* Expected 1, 2 of them, or"):
            trainer(data_dir, changing, logical_cpus=3).train(4)
        trainer(data_dir, changing).train(4)
    assert taken == expected
    whole, early, after = state(tmp_path / "one", 4), state(tmp_path / "one", 3), state(changing, 4)
    assert distance(whole, after) <= 1e-3 * distance(whole, early)
    assert "1 replica, accumulation 2, to keep the batches of a step" in caplog.text
    begun = [line for line in log(changing) if line["event"] in ("start", "resume")]
    assert [(line["replicas"], line["gradient_accumulation_steps"]) for line in begun] == [(2, 1), (1, 2)]
    # As `--hparams=gradient_accumulation_steps=1 --allow_hparams_change` does.
    trainer(data_dir, changing, allow_hparams_change=True, keep_batches_a_step=False).train(5)
    assert [len(batches) for _, batches in taken[4:]] == [1]
    [change] = [line for line in log(changing) if line["event"] == "hparams_change"]
    assert change["step"] == 4 and change["changed"] == {"batches_a_step": [2, 1]}

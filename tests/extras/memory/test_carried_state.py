"""The state of all lanes, its devices and its files; runs of models that carry it, such as Transformer-XL."""

# Nearest tests of: extras/memory/segments.py

import logging
import re
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

import t2t_lite
from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.extras.memory.carried_state import CarriedState, lanes_of
from t2t_lite.models import TransformerMemory
from t2t_lite.settings.reserved_names import BEFORE, STATE
from t2t_lite.training.checkpoint_evaluation import CheckpointEvaluation
from t2t_lite.training.distribution import choose_replicas
from t2t_lite.training.optimization.optimizers import make_optimizer
from t2t_lite.training.train_step import TrainStep
from t2t_lite.training.training_data import StepBatches
from tests.extras.memory.carried import LENGTH, PROBLEM, ROWS, hparams, memory, remembering, saved, source
from tests.training.runs import assert_same, killed_after, log, state


@pytest.mark.slow
def test_a_run_in_parts_is_bit_for_bit_the_run_in_one_memory_included(data, tmp_path, caplog):
    remembering(data, tmp_path / "whole", "gradient_accumulation_steps=2").train(6)
    assert len([*tmp_path.glob("whole/model.ckpt-*.state.index")]) == 2, "of the newest two"
    assert [line["epochs"] for line in log(tmp_path / "whole", "progress")][-1] == pytest.approx(6 * 2 * ROWS / 3 / 100)
    killed_after(tmp_path / "whole", 4, tmp_path / "parts")
    without = killed_after(tmp_path / "whole", 4, tmp_path / "without") or tmp_path / "without"
    for path in without.glob("*.state.*"):
        path.unlink()
    remembering(data, tmp_path / "parts", "gradient_accumulation_steps=2").train(6)
    assert_same(state(tmp_path / "parts", 6), state(tmp_path / "whole", 6))
    assert_same(memory(tmp_path / "parts", 6), memory(tmp_path / "whole", 6))
    assert {key: value.shape for key, value in memory(tmp_path / "whole", 6).items()} == {
        f"lane_000{lane}/000{leaf}": shape for lane in range(2) for leaf, shape in enumerate([(ROWS,), (ROWS, 8)])
    }
    caplog.set_level(logging.INFO, "t2t_lite")
    remembering(data, without, "gradient_accumulation_steps=2").train(6)
    assert "no saved state" in caplog.text
    assert "state: carried from step to step in 2 lanes of 5 rows" in caplog.text
    assert any(not np.array_equal(v, state(without, 6)[k]) for k, v in state(tmp_path / "whole", 6).items()), (
        "it did not read the memory"
    )


@pytest.mark.slow
@pytest.mark.parametrize("first, then", [(8, 2), (2, 1)])
@pytest.mark.few("2-1")
def test_replicas_carry_it_as_one_that_accumulates_and_other_replicas_go_on(data, tmp_path, first, then):
    remembering(data, tmp_path / "one", f"gradient_accumulation_steps={first}").train(6)
    remembering(data, tmp_path / "many", logical_cpus=first).train(4)
    remembering(data, tmp_path / "many", logical_cpus=then).train(6)
    one, many, before = state(tmp_path / "one", 6), state(tmp_path / "many", 6), state(tmp_path / "one", 4)
    names = [name for name in one if name.startswith("model/") and one[name].dtype == "float32"]
    moved, apart = (tf.linalg.global_norm([one[name] - each[name] for name in names]) for each in (before, many))
    assert apart <= 1e-3 * moved
    for key, value in memory(tmp_path / "one", 6).items():
        np.testing.assert_allclose(memory(tmp_path / "many", 6)[key], value, atol=1e-4, err_msg=key)


def made_step(more="", lanes=2, xla_compile=False):
    chosen, made = choose_replicas(0), hparams(f"gradient_accumulation_steps={lanes}{more}")
    model = registry.model("user_memory").from_hparams(made, 258)
    optimizer = make_optimizer(made, 10)
    optimizer.build(model.trainable_variables)
    carried = CarriedState(model, ROWS, chosen.devices * lanes)
    features = {"targets": 2, BEFORE: 1}
    return TrainStep(model, optimizer, chosen, made, xla_compile, features, carried=carried)


def taken(step, before=7):
    ids = np.full((ROWS, LENGTH), 7, "int32")
    batches = [{"targets": ids, BEFORE: np.full(ROWS, before, "int32")}] * len(step.carried.now)
    return step(step.place(StepBatches(batches, 0)))


def now(step):
    return [leaf.numpy() for leaf in tf.nest.flatten(step.carried.now)]


@pytest.mark.slow
@pytest.mark.parametrize("xla_compile", [False, True])
def test_a_skipped_step_keeps_it(data, xla_compile):
    step = made_step(",max_skipped_steps=2", xla_compile=xla_compile)
    taken(step)
    before = now(step)
    assert before[0].tolist() == [LENGTH] * ROWS
    bias = step.model.dense.bias
    right = bias.numpy()
    bias.assign(right * np.nan)
    assert taken(step)["skipped"] == 1
    assert all(map(np.array_equal, now(step), before))
    bias.assign(right)
    assert taken(step)["skipped"] == 0
    assert now(step)[0].tolist() == [2 * LENGTH] * ROWS
    assert taken(step, before=0)["skipped"] == 0
    assert now(step)[0].tolist() == [LENGTH] * ROWS, "the rows began anew"
    assert step.traces == 1


@pytest.mark.slow
def test_an_overflow_of_float16_keeps_it(data):
    step = made_step(",dtype_policy=mixed_float16,mixed_precision_optimizer_init_loss_scale=16777216")
    before = now(step)
    assert [leaf.dtype for leaf in before[:2]] == ["int64", "float16"]
    metrics = taken(step)
    assert metrics["skipped"] == 1 and metrics["loss_scale"] == 2**24
    assert all(map(np.array_equal, now(step), before))


@pytest.mark.slow
def test_other_lanes_are_refused_whatever_is_allowed(data, tmp_path):
    remembering(data, tmp_path, "gradient_accumulation_steps=2").train(2)
    wrong = remembering(data, tmp_path, "gradient_accumulation_steps=3", allow_hparams_change=True)
    with pytest.raises(UserError, match=r"2 -> 3 .*gradient_accumulation_steps=3.*--allow_hparams_change"):
        wrong.train(4)
    with pytest.raises(UserError, match=r"segment_length: 4 -> 6"):
        remembering(data, tmp_path, "gradient_accumulation_steps=2,segment_length=6").train(4)
    with pytest.raises(UserError, match=r"--eval_stride=3: .*state"):
        stride = remembering(data, tmp_path, "gradient_accumulation_steps=2", evaluates=True, eval_stride=3)
        stride.train(4)


def test_a_model_that_forgets_its_state_is_refused(data):
    class Forgets(registry.model("user_memory")):
        def call(self, inputs, training=None):
            outputs = super().call(inputs, training)
            return {"targets": outputs["targets"], STATE: {"sum": outputs[STATE]["sum"][:, :4], "read": 0}}

    step = made_step()
    step.model = Forgets(258)
    step.model.build()
    with pytest.raises(UserError, match=r"'state'.*initial_state"):
        taken(step)


SETTINGS = (
    "num_hidden_layers=1,hidden_size=8,filter_size=16,num_heads=2,batch_size=20,segment_length=4,memory_length=6,eval_memory_length=9,"
    "layer_prepostprocess_dropout=0.2,learning_rate_schedule=constant,learning_rate_constant=0.01"
)


def xl(data, output_dir, **settings):
    found = remembering(data, output_dir, model="transformer_memory", **settings)
    found.hparams = registry.hparams("transformer_memory_tiny").of_model(TransformerMemory).parse(SETTINGS)
    found.hparams_set = "transformer_memory_tiny"
    return found


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("xl") / "run"
    xl(data, folder, evaluates=True).train(6)
    return folder


@pytest.mark.slow
def test_it_may_be_evaluated_with_a_longer_memory(data, run):
    [*_, logged] = log(run, "evaluation")
    same = CheckpointEvaluation(str(run), data).newest()
    assert same["loss"] == pytest.approx(logged["loss"], rel=1e-5)
    options = {"change_hparams": lambda hparams: hparams.parse("eval_memory_length=20")}
    longer = CheckpointEvaluation(str(run), data, **options).newest()
    assert longer["loss"] != pytest.approx(same["loss"], rel=1e-6)
    assert log(run, name="eval.log")[-1]["settings"]["eval_memory_length"] == 20


@pytest.mark.slow
def test_a_trained_model_scores_and_continues_texts(run):
    generator = t2t_lite.load(str(run))
    (score,) = generator.score(["ab ab"])
    ids = np.array([generator.encoders["targets"].encode("ab ab")])
    logits = np.asarray(generator.model({"targets": ids}))[0].astype("float64")
    nats = np.log(np.exp(logits).sum(-1)) - logits[np.arange(5), ids[0]]
    np.testing.assert_allclose(score.token_log_probs, -nats, atol=1e-5)
    assert len(generator.generate(["ab "], max_new_tokens=4)) == 1
    assert registry.problem(PROBLEM).sequence_length == 12


LANES = 3  # of two tensors


@pytest.fixture
def model(data):
    return registry.model("user_memory").from_hparams(hparams(), 258)


def carried(model, rows=ROWS):
    """A state whose tensors differ from lane to lane."""
    found = CarriedState(model, rows, ["CPU:0"] * LANES)
    for lane, own in enumerate(found.now):
        own["read"], own["sum"] = own["read"] + lane + 1, own["sum"] + 0.5 * (lane + 1)
    return found


def test_a_saved_state_is_read_again(model, tmp_path):
    lanes = carried(model)
    lanes.save(str(tmp_path / "x.state"))
    names = {f"lane_{lane:04d}/{leaf:04d}": leaf for lane in range(LANES) for leaf in range(2)}
    assert {key: value.shape for key, value in saved(tmp_path / "x.state").items()} == {
        name: (ROWS, 8) if leaf else (ROWS,) for name, leaf in names.items()
    }
    other = CarriedState(model, ROWS, ["CPU:0"] * LANES)
    assert not any(np.any(leaf) for leaf in tf.nest.flatten(other.now))
    other.restore(str(tmp_path / "x.state"))
    for lane in range(LANES):
        assert other.now[lane]["read"].numpy().tolist() == [lane + 1] * ROWS
        assert other.now[lane]["sum"].numpy().tolist() == [[0.5 * (lane + 1)] * 8] * ROWS


def test_a_state_of_another_shape_is_refused_and_none_is_told(model, tmp_path, caplog):
    carried(model).save(str(tmp_path / "x.state"))
    with pytest.raises(UserError, match=rf"x\.state: the saved state is {ROWS}, but the model's is 4\."):
        carried(model, rows=4).restore(str(tmp_path / "x.state"))
    lanes = carried(model)
    lanes.restore(str(tmp_path / "y.state"))
    assert "y.state: no saved state" in caplog.text and lanes.now[2]["read"].numpy().tolist() == [3] * ROWS


def test_a_run_says_how_much_is_carried(data, model):
    batches = source(data, LANES)
    lanes = CarriedState(model, 10_000, ["CPU:0"] * LANES)
    assert lanes.description(batches) == (
        "state: carried from step to step in 3 lanes of 5 rows, 1.2 MB; segments of 4 ids, 3 per row"
    )  # 3 * 10,000 * (8 + 8 * 4) bytes
    assert lanes.spec["sum"] == tf.TensorSpec([10_000, 8], "float32")


def test_each_lane_lies_on_the_device_of_its_replica(data, model):
    devices = [f"/device:CPU:{n}" for n in (1, 2)]
    lanes = source(data, 4).carried(model, devices, 2)
    assert [lane["sum"].device[-5:] for lane in lanes.now] == ["CPU:1", "CPU:1", "CPU:2", "CPU:2"]
    assert lanes.now[0]["sum"].shape == (ROWS, 8)


@pytest.mark.parametrize("training", [True, False])
def test_training_and_evaluation_have_memories_of_their_own_lengths(data, training):
    assert TransformerMemory(20, memory_length=4, num_heads=2).initial_state(2)["visible"].shape == (2, 4)
    more = f"segment_length={LENGTH},memory_length=6,eval_memory_length=9,batch_size=20,hidden_size=8,num_heads=2"
    settings = registry.hparams("transformer_memory_tiny").of_model(TransformerMemory).parse(more)
    made, batches = TransformerMemory.from_hparams(settings, 258), source(data)
    lanes = batches.carried(made, ["CPU:0"], 1).now[0] if training else batches.first_state(made)
    assert lanes["visible"].shape == (ROWS, 6 if training else 9)
    assert source(data).carried(registry.model("transformer_lm")(20, num_heads=2), ["CPU:0"], 1) is None


def test_segments_that_would_shift_the_blocks_of_attention_are_refused(data):
    pytest.importorskip("t2t_lite.extras.sparse")
    kind = {"type": "fixed", "stride": 2 * LENGTH}
    model = TransformerMemory(20, memory_length=2 * LENGTH, hidden_size=8, num_heads=2, self_attention=kind)
    with pytest.raises(UserError, match=f"of {LENGTH} positions would shift the blocks"):
        source(data).carried(model, ["CPU:0"], 1)


@pytest.mark.parametrize("shape", [(2, ROWS), ()])
def test_a_state_without_the_rows_in_front_is_refused(data, shape):
    class Wrong(registry.model("user_memory")):
        def initial_state(self, rows, training=False):
            return [keras.ops.zeros((rows,)), keras.ops.zeros(shape)]

    with pytest.raises(UserError, match=re.escape(f"tensor of shape {shape} for rows={ROWS}")):
        CarriedState(Wrong(9), ROWS, ["CPU:0"])


def test_the_lanes_of_a_run_are_counted_and_stay():
    two, machines = SimpleNamespace(count=2, cluster=None), SimpleNamespace(count=2, cluster="two")
    assert lanes_of(two, 3, None, "run") == lanes_of(two, 3, {}, "run") == 6
    assert lanes_of(two, 3, {"batches_a_step": 6}, "run") == 6
    with pytest.raises(UserError, match=r"^run: .*5 -> 6 \(2 replicas x gradient_accumulation_steps=3\).*Expected 5"):
        lanes_of(two, 3, {"batches_a_step": 5}, "run")
    with pytest.raises(UserError, match=r"^TF_CONFIG: .*state.*Expected a single machine"):
        lanes_of(machines, 1, None, "run")

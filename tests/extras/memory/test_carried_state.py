"""A user's model carries a state from batch to batch: by lanes, through checkpoints, skipped steps and replicas."""

import itertools
import logging
import os
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.extras.memory.memory import CarriedState
from t2t_lite.extras.memory.segments import SegmentBatches
from t2t_lite.models.outputs import batches_of
from t2t_lite.settings.config import HParams
from t2t_lite.settings.reserved_names import BEFORE, STATE
from t2t_lite.training.distribution import choose_replicas
from t2t_lite.training.evaluator import Evaluator
from t2t_lite.training.optimization.optimizers import make_optimizer
from t2t_lite.training.train_step import TrainStep
from t2t_lite.training.training_data import StepBatches
from tests.training.runs import assert_same, given_records, killed_after, log, state, trainer

PROBLEM, ROW, LENGTH, ROWS = "user_memory_text", 12, 4, 3
HPARAMS = (
    f"hidden_size=8,batch_size={ROWS * LENGTH},segment_length={LENGTH},layer_prepostprocess_dropout=0.2,"
    "learning_rate_schedule=constant,learning_rate_constant=0.01,label_smoothing=0"
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The folder of the text's records."""
    registry.import_usr_dir(os.path.join(os.path.dirname(__file__), "user_memory"))
    folder = str(tmp_path_factory.mktemp("text"))
    registry.problem(PROBLEM).generate_data(folder, folder)
    return folder


def hparams(more=""):
    return registry.hparams("transformer_tiny").of_model(registry.model("user_memory")).parse(HPARAMS).parse(more)


def remembering(data, output_dir, more="", **settings):
    """A trainer of the user's model that saves after every second step: a row has three segments."""
    made = hparams(more)
    settings = {"local_eval_frequency": 2, "model": "user_memory", "problem": PROBLEM, **settings}
    found = trainer(data, output_dir, "", **settings)
    found.hparams = made
    return found


def memory(output_dir, step):
    """The saved state of all lanes: {name: array}."""
    reader = tf.train.load_checkpoint(os.path.join(output_dir, f"model.ckpt-{step}.state"))
    return {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()}


def source(data, lanes=1, more=""):
    problem = registry.problem(PROBLEM)
    return SegmentBatches(problem, hparams(more), problem.get_feature_encoders(data), lanes)


def records(data, split):
    return Records(registry.problem(PROBLEM), data, split)


def numbers(iterator, count):
    return [{f: ids.numpy().tolist() for f, ids in batch.items()} for batch in itertools.islice(iterator, count)]


@pytest.mark.slow
def test_a_batch_of_a_step_continues_the_one_of_the_step_before_or_begins(data, tmp_path):
    lanes, paths = 3, records(data, "train").paths
    rows = {tuple(row["targets"]) for row in records(data, "train").examples(hparams())}
    batches = source(data, lanes).training(paths, {})
    found = numbers(batches, 6 * lanes)
    for step in (0, 3):
        for lane in range(lanes):
            parts = [found[(step + i) * lanes + lane] for i in range(3)]
            for row in range(ROWS):
                ids = [part["targets"][row] for part in parts]
                assert tuple(itertools.chain(*ids)) in rows
                assert [part[BEFORE][row] for part in parts] == [0, ids[0][-1], ids[1][-1]]
    iterator = iter(batches)
    numbers(iterator, 4)  # in the midst of a step, and of a row
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "position"))
    restored = iter(source(data, lanes).training(paths, {}))
    tf.train.Checkpoint(iterator=restored).read(path)
    assert numbers(restored, 9) == numbers(iterator, 9) == found[4:13]


def test_an_evaluation_reads_a_text_in_order_in_as_many_parts_as_a_batch_has_rows(data):
    paths = records(data, "eval").paths
    text = [i for row in records(data, "eval").examples(hparams()) for i in row["targets"]]
    batches = numbers(source(data).evaluation(paths, in_order=True), 99)
    parts = [[i for batch in batches for i in batch["targets"][row]] for row in range(ROWS)]
    assert [i for part in parts for i in part if i] == text
    assert [len(part) for part in parts] == [44] * ROWS
    assert batches[0][BEFORE] == [0, parts[0][-1], parts[1][-1]]
    assert all(b[BEFORE] == [row[-1] for row in a["targets"]] for a, b in itertools.pairwise(batches))
    wide = source(data, 1, f"batch_size={200 * LENGTH}")  # more rows than the text has segments
    (batch,) = numbers(wide.evaluation(paths, in_order=True), 99)
    assert np.shape(batch["targets"]) == (200, LENGTH) and len(batch[BEFORE]) == 200
    assert [i for row in batch["targets"] for i in row if i] == text
    begun = numbers(source(data).evaluation(paths), 99)
    assert [batch[BEFORE] == [0] * ROWS for batch in begun] == [True, False, False] * 4
    assert sum(np.count_nonzero(batch["targets"]) for batch in begun) == len(text)


@pytest.mark.slow
def test_an_evaluation_in_segments_is_that_of_the_text_in_one_pass(data):
    problem, paths = registry.problem(PROBLEM), records(data, "eval").paths
    encoders = problem.get_feature_encoders(data)
    model = registry.model("user_memory").from_hparams(hparams(), encoders["targets"].vocab_size)
    one = hparams(f"batch_size={LENGTH}")
    found = Evaluator(model, encoders, one, given_records(problem, paths))().metrics
    text = np.array([[i for row in records(data, "eval").examples(one) for i in row["targets"]]])
    # By hand: what is summed up fades by a quarter after each segment.
    table, (kernel, bias) = model.embedding(np.arange(258)[None]).numpy()[0], model.dense.get_weights()
    sums, nats = np.zeros(8), []
    for at, target in enumerate(text[0]):
        sums = (sums * (0.75 if at and at % LENGTH == 0 else 1)) + table[text[0, at - 1] if at else 1]
        logits = model.softmax(np.tanh(sums @ kernel + bias)[None, None].astype("float32"), reverse=True).numpy()[0, 0]
        nats.append(np.log(np.exp(logits.astype("float64")).sum()) - logits[target])
    assert found["loss"] == pytest.approx(np.mean(nats), rel=1e-5)
    shown = Evaluator(model, encoders, one, given_records(problem, paths, "train"))().metrics
    assert shown["loss"] != pytest.approx(found["loss"], rel=1e-5)  # each row begins anew


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
    assert "the model's state begins anew" in caplog.text
    assert "state: carried from step to step in 2 lanes of 3 rows" in caplog.text
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


def test_each_lane_lies_on_the_device_of_its_replica(data):
    chosen = choose_replicas(0, 2)
    model = registry.model("user_memory").from_hparams(hparams(), 258)
    carried = CarriedState(model, ROWS, [device for device in chosen.devices for _ in range(2)])
    devices = [lane["sum"].device[-5:] for lane in carried.now]
    assert devices == ["CPU:0", "CPU:0", "CPU:1", "CPU:1"]


@pytest.mark.long
def test_it_is_compiled(data, tmp_path):
    remembering(data, tmp_path, xla_compile=True).train(4)
    assert [line["shapes"] for line in log(tmp_path, "compile")] == ["3 x 4 x 1"]
    assert memory(tmp_path, 4)["lane_0000/0000"].tolist() == [LENGTH] * ROWS


@pytest.mark.slow
def test_other_lanes_are_refused_whatever_is_allowed(data, tmp_path):
    remembering(data, tmp_path, "gradient_accumulation_steps=2").train(2)
    wrong = remembering(data, tmp_path, "gradient_accumulation_steps=3", allow_hparams_change=True)
    with pytest.raises(UserError, match=r"batches_a_step: 2 -> 3 .*gradient_accumulation_steps=3.*even with --allow"):
        wrong.train(4)
    one = remembering(data, tmp_path, "gradient_accumulation_steps=1", logical_cpus=3, allow_hparams_change=True)
    with pytest.raises(UserError, match=r"batches_a_step: 2 -> 3 \(3 replicas x gradient_accumulation_steps=1\)"):
        one.train(4)
    with pytest.raises(UserError, match=r"segment_length: 4 -> 6.*cannot change in a run"):
        remembering(data, tmp_path, "gradient_accumulation_steps=2,segment_length=6").train(4)
    with pytest.raises(UserError, match="--eval_stride=3: the model carries a state"):
        stride = remembering(data, tmp_path, "gradient_accumulation_steps=2", evaluates=True, eval_stride=3)
        stride.train(4)


def test_several_machines_are_refused(data):
    machines = SimpleNamespace(count=2, cluster="two")
    with pytest.raises(UserError, match=r"TF_CONFIG: the model carries a state.*Expected one machine"):
        batches_of(registry.model("user_memory")).lanes_of(machines, 1, None, "run")
    assert batches_of(registry.model("transformer")).lanes_of(machines, 1, None, "run") is None


def test_without_batches_of_segments_it_is_refused(data, monkeypatch):
    monkeypatch.setitem(registry.Registries.batches._entries, "segments", None)
    registry.Registries.batches.remove("segments")
    with pytest.raises(UserError, match=r"^UserMemory: carries a state from one segment of a text to the next"):
        batches_of(registry.model("user_memory"))


@pytest.mark.parametrize(
    "more, message",
    [
        (
            "segment_length=12",
            "segment_length=12: a row of user_memory_text has 12 ids, so that no segment comes after",
        ),
        ("segment_length=5", "segment_length=5: does not divide the 12 ids of a row of user_memory_text"),
        ("batch_size=3", "batch_size=3: a segment of segment_length=4 ids must fit"),
        ("bpe_dropout=0.1", "bpe_dropout=0.1: would change the length of rows"),
    ],
)
def test_settings_that_do_not_fit_are_refused(data, more, message):
    with pytest.raises(UserError, match=message):
        source(data, more=more)


def test_problems_and_models_that_do_not_fit_are_refused(data):
    with pytest.raises(UserError, match="has no hyperparameter segment_length"):
        SegmentBatches(registry.problem(PROBLEM), HParams())
    with pytest.raises(UserError, match="are not rows of one long text"):
        SegmentBatches(registry.problem("algorithmic_reverse_decimal40"), hparams())

    class Wrong(registry.model("user_memory")):
        def initial_state(self, rows, training=False):
            return [keras.ops.zeros((2, rows))]

    with pytest.raises(UserError, match=r"Wrong.initial_state: returned a tensor of shape \(2, 3\) for rows=3"):
        CarriedState(Wrong(9), ROWS, ["CPU:0"])

    class Forgets(registry.model("user_memory")):
        def call(self, inputs, training=None):
            outputs = super().call(inputs, training)
            return {"targets": outputs["targets"], STATE: {"sum": outputs[STATE]["sum"][:, :4], "read": 0}}

    step = made_step()
    step.model = Forgets(258)
    step.model.build()
    with pytest.raises(UserError, match="the model returned no 'state' like that of its initial_state"):
        taken(step)

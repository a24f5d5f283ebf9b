"""Training compiled by XLA: equal to uncompiled training, one program for each shape, and what cannot be compiled."""

import re
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.base_problem import Problem
from t2t_lite.data.random_numbers import uniform_numbers
from t2t_lite.data.splits import DatasetSplit
from t2t_lite.errors import UserError
from t2t_lite.layers import Dropout, dropout_seed
from t2t_lite.runs.run_config import build_model, read_run_config
from t2t_lite.text.vocabulary import TextEncoder
from t2t_lite.training.distribution import choose_replicas
from t2t_lite.training.optimization.optimizers import make_optimizer
from t2t_lite.training.profiling import StepProfiler
from t2t_lite.training.train_step import TrainStep
from t2t_lite.training.training_data import StepBatches, open_training_data
from tests.training.runs import Small, assert_same, log, small_trainer, state
from tests.training.steps import VOCAB, gradients, make_step

LENGTHS = (4, 9)  # XLA takes seconds for each: two shapes


@registry.register_problem("compilations_two_lengths")
class TwoLengths(Problem):
    """Copies of 4 or 9 ids."""

    dataset_splits = [{"split": s, "shards": 2} for s in (DatasetSplit.TRAIN, DatasetSplit.EVAL)]  # noqa: RUF012

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        rng = np.random.default_rng(0)
        for n in range(90):
            ids = [*rng.integers(3, VOCAB, LENGTHS[n % 2] - 1).tolist(), 1]
            yield {"inputs": ids, "targets": ids}

    def feature_encoders(self, data_dir):
        return dict.fromkeys(("inputs", "targets"), TextEncoder(VOCAB))


@registry.register_problem("compilations_masked")
class Masked(TwoLengths):
    """Its records hold the targets; the inputs are the targets with gaps, and each row has a number of gaps."""

    features = {"inputs": 2, "targets": 2, "gaps": 1}  # noqa: RUF012
    record_features = ("targets",)

    def dataset_filename(self):
        return "compilations_two_lengths"

    def corrupt(self, batch, seeds):
        targets = batch["targets"]
        is_gap = uniform_numbers(seeds, 1, tf.shape(targets)[1])[:, 0, :, 0] < 0.3
        return {
            **batch,
            "inputs": tf.where(is_gap, 2, targets),
            "gaps": 1 + tf.reduce_sum(tf.cast(is_gap, tf.int32), 1),
        }


@registry.register_model("compilations_of_gaps")
class OfGaps(Small):
    """Predicts from the inputs, and the number of gaps."""

    def __init__(self, vocab_size):
        super().__init__(vocab_size)
        self.gaps = keras.layers.Dense(LENGTHS[1] + 2)

    def call(self, features, training=False):
        hidden = self.embedding(features["inputs"])
        return {"targets": self.logits(self.dropout(hidden, training=training)), "gaps": self.gaps(hidden[:, 0])}


@registry.register_model("compilations_python")
class WithPython(Small):
    """Calls Python, which XLA cannot."""

    def call(self, features, training=False):
        logits = super().call(features, training)
        return tf.ensure_shape(tf.numpy_function(np.copy, [logits], tf.float32), logits.shape) + logits


@registry.register_model("compilations_wide")
class FailsWhenWide(Small):
    """Has an operation that cannot be compiled beyond a width."""

    def call(self, features, training=False):
        logits = super().call(features, training)
        width = tf.shape(features["targets"])[1]
        return logits + tf.reduce_sum(tf.reshape(tf.zeros([width]), [tf.minimum(width, LENGTHS[0])]))


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("data"))
    registry.problem("compilations_two_lengths").generate_data(folder, folder)
    return folder


def trainer(data_dir, output_dir, model="runs_small", accumulation=1, **more):
    hparams = f"batch_size=36,gradient_accumulation_steps={accumulation}"
    settings = {"problem": "compilations_two_lengths", "xla_compile": True, **more}
    return small_trainer(data_dir, output_dir, hparams, model=model, **settings)


def flat(tensors):
    return np.concatenate([tf.convert_to_tensor(tensor).numpy().ravel() for tensor in tensors])


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(7, 5), (16, 9, 33)])
def test_masks_are_those_of_the_uncompiled_layer(shape):
    layer, inputs = Dropout(0.3), tf.ones(shape)

    def dropped(index, in_xla):
        with dropout_seed(index, 5, in_xla):
            return layer(inputs, training=True)

    compiled = tf.function(lambda index: dropped(index, True), jit_compile=True)
    plain = tf.function(lambda index: dropped(index, False))
    for index in range(3):
        np.testing.assert_allclose(compiled(tf.constant(index)), plain(tf.constant(index)), rtol=1e-6)


@pytest.mark.long  # XLA takes most of the time; tests/training/test_every_model.py compiles the others
@pytest.mark.parametrize(("policy", "bound"), [("mixed_bfloat16", 0.03), ("mixed_float16", 0.01)])
def test_half_precision_compiles(policy, bound):
    hparams = registry.hparams("transformer_tiny").parse(
        "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,layer_prepostprocess_dropout=0,"
        f"attention_dropout=0,relu_dropout=0,dtype_policy={policy}"  # with dropout, other masks
    )
    ids = np.random.default_rng(0).integers(3, VOCAB, (5, LENGTHS[1])).astype("int32")
    batch = StepBatches([{"inputs": ids, "targets": ids}], 0)
    steps = [make_step(hparams, xla_compile=xla_compile) for xla_compile in (False, True)]
    plain, compiled = (flat(gradients(step, step.place(batch))) for step in steps)
    assert 0 < np.linalg.norm(compiled - plain) <= bound * np.linalg.norm(plain)


MODELS = {
    "transformer": ("transformer_tiny", {"inputs": 2, "targets": 2}, "shared_embedding_and_softmax_weights=false"),
    "transformer_lm": ("transformer_lm_tiny", {"targets": 2}, "pos=emb"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transformer_lm", pytest.param("transformer", marks=pytest.mark.long)])
def test_a_deterministic_compiled_step_has_no_scatter(name):
    # XLA takes one row after the other there: base's step was 44 times slower on a GPU.
    hparams_set, features, changes = MODELS[name]
    hparams = registry.hparams(hparams_set).parse(
        f"num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2{changes and ','}{changes}"
    )
    keras.utils.set_random_seed(1)
    model = registry.model(name).from_hparams(hparams, VOCAB)
    optimizer = make_optimizer(hparams, 100)
    ids = np.random.default_rng(0).integers(3, VOCAB, (4, 6))
    batch = dict.fromkeys(features, ids)
    model(batch)
    optimizer.build(model.trainable_variables)
    found, scatters = {}, {}
    for avoids in (False, True):
        step = TrainStep(model, optimizer, choose_replicas(0), hparams, True, features, avoids)
        placed = step.place(StepBatches([batch], 0))
        arguments = placed.batches[0], placed.counts, tf.constant(0, tf.int64), tf.constant(1.0), ()
        program = step._batch_gradients.experimental_get_compiler_ir(*arguments)(stage="hlo")
        # Where each row is written once, the order does not matter.
        scatters[avoids] = [line for line in re.findall(r".* scatter\(.*", program) if "unique_indices" not in line]
        tf.config.run_functions_eagerly(True)
        try:
            found[avoids] = flat(gradients(step, placed))
        finally:
            tf.config.run_functions_eagerly(False)
    assert scatters[False] and not scatters[True]
    np.testing.assert_allclose(found[True], found[False], atol=1e-6 * np.abs(found[False]).max())


@pytest.mark.parametrize(("steps", "traced"), [(9, None), (10, None), (11, 1), (15, 5), (16, 5), (40, 5)])
def test_steps_11_to_15_are_traced(monkeypatch, caplog, steps, traced):
    calls, now = [], []
    experimental = types.SimpleNamespace(start=lambda folder: calls.append((folder, len(now))),
                                         stop=lambda: calls.append(len(now)))  # fmt: skip
    monkeypatch.setattr(tf.profiler, "experimental", experimental)
    for is_on in (False, True):
        with StepProfiler("run", is_on) as profiler:
            for step in range(steps):
                profiler.before_step()
                now.append(step)
        assert is_on or not (calls or caplog.messages)
        now = now if is_on else []
    assert calls == ([("run", 10), 10 + traced] if traced else [])
    said = f"profile of {traced} steps: run/plugins/profile" if traced else f"after 10 steps and only {steps} ran"
    assert len(caplog.messages) == 1 and said in caplog.messages[0]


@pytest.mark.long
def test_each_shape_is_compiled_and_logged_once_and_training_resumes_bit_for_bit(data_dir, tmp_path, caplog):
    trainer(data_dir, tmp_path / "whole").train(9)
    assert "XLA compiles 2 shapes (rows x inputs x targets)" in caplog.text
    assert "9 x 4 x 4, 4 x 9 x 9" in caplog.text
    compiled = log(tmp_path / "whole", "compile")
    assert sorted(line["shapes"] for line in compiled) == ["4 x 9 x 9", "9 x 4 x 4"]
    trainer(data_dir, tmp_path / "stopped").train(4)
    trainer(data_dir, tmp_path / "stopped", xla_compile=None).train(9)
    assert caplog.text.count("XLA compiles 2 shapes") == 3, "it is remembered"
    assert_same(state(tmp_path / "whole", 9), state(tmp_path / "stopped", 9))


@pytest.mark.long
def test_features_that_a_problem_adds_are_compiled_as_well(data_dir, tmp_path, caplog):
    """As steps of the same batches that are not compiled."""
    of_gaps = {"model": "compilations_of_gaps", "problem": "compilations_masked"}
    trained = trainer(data_dir, tmp_path / "run", **of_gaps)
    trained.train(3)
    assert "XLA compiles 2 shapes (rows x targets)" in caplog.text
    shapes = {line["shapes"] for line in log(tmp_path / "run", "compile")}
    assert shapes <= {"9 x 4 x 4 x 1", "4 x 9 x 9 x 1"} and "9 x 4 x 4 x 1" in shapes
    data = open_training_data("compilations_masked", trained.hparams, data_dir, most_shapes=16)
    keras.utils.set_random_seed(trained.hparams.random_seed)
    model = build_model({**read_run_config(str(tmp_path / "run")), "xla_compile": False})
    optimizer = make_optimizer(trained.hparams, 3)
    optimizer.build(model.trainable_variables)
    step = TrainStep(model, optimizer, choose_replicas(0, 1), trained.hparams, features=data.problem.features)
    before = flat(model.trainable_variables)
    for number, batch in enumerate(data.batches.take(3).as_numpy_iterator()):
        step(step.place(StepBatches([batch], number)))
    plain, compiled = flat(model.trainable_variables), flat(trained.trained.trainable_variables)
    assert np.linalg.norm(compiled - plain) <= 1e-3 * np.linalg.norm(plain - before)


@pytest.mark.long
def test_replicas_train_as_one_that_accumulates(data_dir, tmp_path):
    trainer(data_dir, tmp_path / "one", accumulation=2).train(3)
    trainer(data_dir, tmp_path / "two", logical_cpus=2).train(3)
    one, two = (state(tmp_path / name, 3) for name in ("one", "two"))
    assert np.linalg.norm(flat([one[name] - two[name] for name in one])) <= 1e-5 * np.linalg.norm(flat(one.values()))


@pytest.mark.slow
def test_the_number_of_shapes_is_the_user_s_and_remembered(data_dir, tmp_path, caplog):
    trainer(data_dir, tmp_path, xla_shapes=1).train(1)
    assert "XLA compiles 1 shapes (rows x inputs x targets), each at its first occurrence: 4 x 9 x 9" in caplog.text
    with pytest.raises(UserError, match=r"xla_shapes: 1 -> 2\. .*--allow_hparams_change"):
        trainer(data_dir, tmp_path, xla_shapes=2).train(2)
    trainer(data_dir, tmp_path).train(1)
    assert caplog.text.count("XLA compiles 1 shapes") == 2


@pytest.mark.slow
def test_a_model_that_cannot_be_compiled_is_refused_before_anything_is_written(data_dir, tmp_path):
    words = r"^--xla_compile: .* compilations_python: .* PyFunc \(.*--noxla_compile"
    with pytest.raises(UserError, match=words) as refused:
        trainer(data_dir, tmp_path / "run", "compilations_python").train(3)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_shape_that_cannot_be_compiled_ends_the_run_by_its_checkpoint(data_dir, tmp_path):
    words = r"XLA cannot compile .* compilations_wide: Input to reshape .* \(at .*Reshape\)"
    with pytest.raises(UserError, match=words):
        trainer(data_dir, tmp_path, "compilations_wide", local_eval_frequency=1).train(20)
    saved = log(tmp_path, "checkpoint")
    assert not saved or (tmp_path / f"{saved[-1]['path']}.index").exists()

"""Transformer-XL's score, written as loops; the state of all lanes: its devices, what is written and read again."""

# Nearest tests of: extras/memory/segments.py

import re
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from t2t_lite import layers, registry
from t2t_lite.errors import UserError
from t2t_lite.extras.memory.memory import CarriedState, MemoryScore, lanes_of
from t2t_lite.models import TransformerMemory
from tests.extras.memory.carried import LENGTH, ROWS, hparams, saved, source
from tests.layers.equations import array, softmax

X = np.random.default_rng(0).normal(size=(2, 9, 8)).astype("float32")


def attention(**options):
    """A layer with weights of the size of the inputs, so that a wrong row shows."""
    layer = layers.MultiHeadAttention(2, score={"type": "memory", **options})
    layer.build((None, None, 8))
    rng = np.random.default_rng(1)
    layer.set_weights([rng.normal(size=weight.shape) / 2 for weight in layer.weights])
    return layer


@pytest.mark.parametrize("clamp_length", [0, 3])
def test_the_score_of_transformer_xl(clamp_length):
    """Equation of section 3.3 with a vector for every pair, states of a memory in front."""
    layer = attention(clamp_length=clamp_length)
    kernels = {role: array(getattr(layer, f"{role}_projection").kernel) for role in ("query", "key", "position")}
    heads = {role: (X[0] @ kernels[role]).reshape(9, 2, 4) for role in ("query", "key")}
    u, v = array(layer.content_bias), array(layer.position_bias)
    scores = np.full((2, 5, 9), -np.inf)
    for i in range(4, 9):
        for j in range(i + 1):
            angles = min(i - j, clamp_length or 9) * 10000.0 ** (-np.arange(0, 8, 2) / 8)
            r = (np.concatenate([np.sin(angles), np.cos(angles)]) @ kernels["position"]).reshape(2, 4)
            for h in range(2):
                q = heads["query"][i, h]
                scores[h, i - 4, j] = ((q + u[h]) @ heads["key"][j, h] + (q + v[h]) @ r[h]) / 2
    context = layers.Context(ops.convert_to_tensor(X[:1, :4]))
    _, weights = layer(X[:1, 4:9], use_causal_mask=True, context=context, return_attention_scores=True)
    np.testing.assert_allclose(array(weights)[0], softmax(scores), atol=1e-6)


def test_sinusoids_are_dropped_at_their_own_rate():
    def rates(layer):
        found = [array(layer(X, use_causal_mask=True, training=training)) for training in (True, False)]
        return np.abs(found[0] - found[1]).max()

    assert rates(attention(position_dropout=0.5)) > 0.01 and rates(attention()) < 1e-6


def test_weights_begin_as_the_authors_and_settings_as_the_arguments():
    keras.utils.set_random_seed(0)
    layer = layers.MultiHeadAttention(20, score="memory")
    layer.build((None, None, 800))
    for weight in (layer.content_bias, layer.position_bias):
        assert array(weight).std() == pytest.approx(0.02, rel=0.15) and weight.shape == (20, 40)
    assert not layer.position_projection.use_bias
    defaults = {field.metadata["argument"]: field.default for field in MemoryScore.HPARAMS.values()}
    assert defaults == {"self_attention.clamp_length": 0, "self_attention.position_dropout": 0.0}
    assert (layer.score.clamp_length, layer.score.position_dropout) == (0, 0.0)
    assert layer.score.extra_memory(layer, 7, 2) == 20 * (2 * 7 + 40) * 2
    assert layer.score.extra_flops(layer, 7) == 2 * (2 * 7) * 20 * 40


@pytest.mark.parametrize("options", [{"clamp_length": -1}, {"clamp_length": 1.5}, {"position_dropout": 1.0}])
def test_bad_options(options):
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=f"{name}.*{value}"):
        attention(**options)


LANES = 3  # of two tensors


@pytest.fixture
def model(data):
    return registry.model("user_memory").from_hparams(hparams(), 258)


def carried(model, rows=ROWS):
    """A state whose tensors differ from lane to lane."""
    found = CarriedState(model, rows, ["CPU:0"] * LANES)
    for lane, state in enumerate(found.now):
        state["read"], state["sum"] = state["read"] + lane + 1, state["sum"] + 0.5 * (lane + 1)
    return found


def test_a_saved_state_is_read_again(model, tmp_path):
    state = carried(model)
    state.save(str(tmp_path / "x.state"))
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
    state = carried(model)
    state.restore(str(tmp_path / "y.state"))
    assert "y.state: no saved state" in caplog.text and state.now[2]["read"].numpy().tolist() == [3] * ROWS


def test_a_run_says_how_much_is_carried(data, model):
    batches = source(data, LANES)
    state = CarriedState(model, 10_000, ["CPU:0"] * LANES)
    assert state.bytes == LANES * 10_000 * (8 + 8 * 4)
    assert state.description(batches) == (
        "state: carried from step to step in 3 lanes of 5 rows, 1.2 MB; segments of 4 ids, 3 per row"
    )
    assert state.spec["sum"] == tf.TensorSpec([10_000, 8], "float32")


def test_each_lane_lies_on_the_device_of_its_replica(data, model):
    devices = [f"/device:CPU:{n}" for n in (1, 2)]
    state = source(data, 4).carried(model, devices, 2)
    assert [lane["sum"].device[-5:] for lane in state.now] == ["CPU:1", "CPU:1", "CPU:2", "CPU:2"]
    assert state.now[0]["sum"].shape == (ROWS, 8)


@pytest.mark.parametrize("training", [True, False])
def test_training_and_evaluation_have_memories_of_their_own_lengths(data, training):
    more = f"segment_length={LENGTH},memory_length=6,eval_memory_length=9,batch_size=20,hidden_size=8,num_heads=2"
    settings = registry.hparams("transformer_memory_tiny").of_model(TransformerMemory).parse(more)
    made, batches = TransformerMemory.from_hparams(settings, 258), source(data)
    state = batches.carried(made, ["CPU:0"], 1).now[0] if training else batches.first_state(made)
    assert state["visible"].shape == (ROWS, 6 if training else 9)
    assert source(data).carried(registry.model("transformer_lm")(20, num_heads=2), ["CPU:0"], 1) is None


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

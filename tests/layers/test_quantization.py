"""`model.quantize`: int8 and int4 models compute nearly the same, and come back from a file as they were saved."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from t2t_lite.layers import quantization
from t2t_lite.models import Transformer, TransformerEncoder, TransformerLM
from tests.layers.backend import BACKEND
from tests.layers.equations import array
from tests.layers.kinds import RELATIVE_VALUES

RNG = np.random.default_rng(0)
IDS = RNG.integers(3, 50, (4, 7)).astype("int32")
IDS[1, 5:] = 0
BATCH = {"inputs": IDS, "targets": IDS[:, :6]}
SIZES = {"hidden_size": 32, "filter_size": 64, "num_heads": 4, "dropout": 0.0}
MODELS = {
    "transformer": lambda: Transformer(
        50, 50, **SIZES, num_encoder_layers=1, num_decoder_layers=1, softmax_bias=True, self_attention=RELATIVE_VALUES
    ),
    "language_model": lambda: TransformerLM(
        50, **SIZES, num_layers=1, position="rotary", begin="end", activation="swiglu"
    ),
    "encoder": lambda: TransformerEncoder(
        50, 4, head="class", **SIZES, num_layers=2, num_hidden_groups=1, embedding_size=15
    ),
}
TOLERANCE = {"int8": 0.15, "int4": 0.7}  # of the logits' standard deviation, in models that are much too narrow


def made(name):
    keras.utils.set_random_seed(1)
    model = MODELS[name]()
    model.build()
    if name == "encoder":
        return model, {**BATCH, "targets": np.array([1, 2, 3, 1], "int32")}
    return model, {feature: BATCH[feature] for feature in model.features}


def quantized(model):
    return [part for part in model._flatten_layers() if part.quantization_mode]


@pytest.mark.slow
@pytest.mark.few("language_model-int8", "transformer-int4", instead="test_a_single_layer")
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
@pytest.mark.parametrize("name, mode", [*((name, "int8") for name in MODELS), ("transformer", "int4")])
def test_a_quantized_model_is_near_and_survives_its_file(name, mode, tmp_path):
    model, batch = made(name)
    exact = array(model(batch, training=False))
    model.quantize(mode)
    output = array(model(batch, training=False))
    kinds = (keras.layers.Dense, keras.layers.Embedding, layers.TokenEmbedding)
    matrices = [part for part in model._flatten_layers() if isinstance(part, kinds)]
    assert matrices and all(part.quantization_mode == mode for part in matrices)
    real = exact > -1e8  # a class head's first logit is no class
    assert 0 < np.abs(output - exact)[real].mean() < TOLERANCE[mode] * exact[real].std()
    for generation in range(2):  # a loaded model can be saved again
        model.save(tmp_path / f"{generation}.keras")
        model = keras.saving.load_model(tmp_path / f"{generation}.keras")
        np.testing.assert_array_equal(array(model(batch, training=False)), output)
        assert len(quantized(model)) == len(matrices)
    assert {w.dtype for part in matrices for w in part.weights if w.name in ("kernel", "embeddings")} == {"int8"}


@pytest.mark.slow
def test_policies_that_lie_at_one_address_are_told_apart(tmp_path, monkeypatch):
    """A layer's are made when it is saved, and gone when the next layer's are made."""

    @keras.saving.register_keras_serializable("test_quantize")
    class AtOneAddress(quantization.PartPolicies):
        _one = None

        def __new__(cls, *_):
            cls._one = cls._one or super().__new__(cls)
            return cls._one

    monkeypatch.setattr(quantization, "PartPolicies", AtOneAddress)
    inputs = keras.Input((None, 32))
    model = keras.Model(inputs, layers.FeedForward(64)(layers.TransformerEncoderLayer(4, 64)(inputs)))
    model.quantize("int8")
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    x = np.linspace(-1, 1, 2 * 3 * 32, dtype="float32").reshape(2, 3, 32)
    np.testing.assert_array_equal(array(loaded(x)), array(model(x)))


@pytest.mark.parametrize(
    "kind, arguments",
    [(layers.MultiHeadAttention, (4,)), (layers.FeedForward, (64,)), (layers.TransformerEncoderLayer, (4, 64))],
)
def test_a_single_layer(kind, arguments):
    layer = kind(*arguments)
    x = RNG.normal(size=(2, 5, 32)).astype("float32")
    exact = array(layer(x))
    layer.quantize("int8")
    output = array(layer(x))
    assert 0 < np.abs(output - exact).max() < 0.1 * exact.std()
    with pytest.raises(ValueError, match="already quantized"):
        layer.quantize("int8")


@pytest.mark.parametrize(
    "mode, size, bytes_per_row",
    [("int8", 40, 40 + 4), ("int4", 16, 20 + 3 * 5), ("int4", 25, 20 + 2 * 5), ("int4", 40, 20 + 5)],
)
def test_rows_of_an_embedding(mode, size, bytes_per_row):
    """Each number is off by at most half a step of its row or block."""
    table = layers.TokenEmbedding(9, 40, scale=False)
    table.build()
    exact = array(table.embeddings)
    config = keras.quantizers.Int4QuantizationConfig(block_size=-1 if size == 40 else size) if mode == "int4" else None
    table.quantize(mode, config=config)
    found = array(table(np.arange(9)))
    for start in range(0, 40, size):
        block, rows = exact[1:, start : start + size], found[1:, start : start + size]
        low, high = np.minimum(block.min(1), 0), np.maximum(block.max(1), 0)  # a last block is filled with zeros
        step = np.abs(block).max(1) / 127 if mode == "int8" else (high - low) / 15
        assert (np.abs(rows - block).max(1) <= 1.01 * step).all()
    assert not found[0].any()  # padding
    again = layers.TokenEmbedding.from_config(table.get_config())
    again.build()
    again.set_weights(table.get_weights())
    np.testing.assert_array_equal(array(again(np.arange(9))), found)
    sizes = (np.prod(w.shape) * (1 if w.dtype == "int8" else 4) for w in table.weights)
    assert sum(sizes) == 9 * bytes_per_row
    hidden = RNG.normal(size=(3, 40)).astype("float32")
    rows = array(table.reverse_matrix()).T  # padding's row, too
    np.testing.assert_allclose(rows[1:], found[1:], atol=1e-6)
    np.testing.assert_allclose(array(table(hidden, reverse=True)), hidden @ rows.T, atol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
def test_training_changes_what_is_left_in_floats():
    model, _ = made("transformer")
    model.quantize("int8")
    before = {w.path: array(w) for w in model.weights}
    loss, eager = keras.losses.SparseCategoricalCrossentropy(from_logits=True), BACKEND == "tensorflow"
    model.compile(keras.optimizers.Adam(0.01), loss, run_eagerly=eager)
    history = model.fit(BATCH, BATCH["targets"], epochs=3, verbose=0).history["loss"]
    assert history[-1] < history[0]
    changed = {w.path for w in model.weights if not np.array_equal(array(w), before[w.path])}
    assert changed and not any(path.endswith(("kernel", "embeddings", "scale")) for path in changed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
def test_float8_leaves_the_embedding_and_survives(tmp_path):
    model, batch = made("transformer")
    with pytest.warns(UserWarning, match=r"embedding .*TokenEmbedding .*float8"):
        model.quantize("float8")
    output = array(model(batch, training=False))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(array(loaded(batch, training=False)), output, atol=1e-5)


def test_modes_that_need_a_structure_are_refused_before_anything_changes():
    model, _ = made("transformer")
    with pytest.raises(ValueError, match=r"gptq.*int8, int4 or float8"):
        model.quantize(config=keras.quantizers.GPTQConfig(dataset=["a"], tokenizer=str.split))
    assert not quantized(model)


@pytest.mark.parametrize(
    "own", [{"activation_quantizer": None}, {"weight_quantizer": keras.quantizers.AbsMaxQuantizer(axis=0)}]
)
def test_own_quantizers_are_not_lost_silently(own):
    layer = layers.FeedForward(64)
    layer.build((None, None, 32))
    layer.quantize("int8", config=keras.quantizers.Int8QuantizationConfig(**own))
    assert np.isfinite(array(layer(np.ones((1, 3, 32), "float32")))).all()
    with pytest.raises(ValueError, match=r"custom quantizers.*model\.quantize\('int8'\)"):
        layer.get_config()
    plain = layers.FeedForward(64)
    plain.build((None, None, 32))
    plain.quantize("int8", config=keras.quantizers.Int8QuantizationConfig())
    assert "dtype" in plain.get_config()


@pytest.mark.slow
@pytest.mark.few("transformer")
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
@pytest.mark.parametrize("name", ["transformer", "language_model"])
def test_cached_steps_equal_the_full_pass(name):
    model, _ = made(name)
    model.quantize("int8")
    targets = BATCH["targets"]
    full = array(model({"inputs": IDS, "targets": targets}) if name == "transformer" else model({"targets": targets}))
    memory = model.encode(IDS) if name == "transformer" else model.encode(np.zeros((4, 1), "int32"))
    cache = model.init_cache(memory, 6)
    previous = ops.zeros((4,), "int32")
    for position in range(6):
        logits, cache = model.decode_step(previous, ops.convert_to_tensor(position), cache)
        np.testing.assert_allclose(array(logits), full[:, position], atol=1e-4)
        previous = ops.convert_to_tensor(targets[:, position])


@pytest.mark.slow
@pytest.mark.skipif(BACKEND != "tensorflow", reason="TensorFlow's files")
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
def test_exported_and_refused_as_a_run(tmp_path):
    import tensorflow as tf

    from t2t_lite import Translator
    from t2t_lite.errors import UserError
    from t2t_lite.export import export_saved_model

    model, batch = made("language_model")
    model.quantize("int8")
    output = array(model(batch))
    model.export(str(tmp_path / "export"), verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "export"))
    np.testing.assert_allclose(array(loaded.serve(batch)), output, atol=1e-4)
    translator = Translator(model, {"targets": None}, None)
    with pytest.raises(UserError, match=r"is quantized, but .*model\.quantize"):
        export_saved_model(translator, str(tmp_path / "other"))
    assert not (tmp_path / "other").exists()
    with pytest.raises(UserError, match=r"is quantized, but .*model\.quantize"):
        model.save_run(str(tmp_path / "run"), problem="translate_own", data_dir=str(tmp_path))
    assert not (tmp_path / "run").exists()

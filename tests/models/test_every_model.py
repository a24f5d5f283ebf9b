"""What every registered model promises: padding, causality, cached steps, gradients, masks, files, settings."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite.layers import Dropout, dropout_seed
from t2t_lite.models.arguments import model_hparams
from t2t_lite.settings.config import HParams
from tests.layers.backend import BACKEND, check_gradients
from tests.layers.equations import array
from tests.models.every_model import CORE, ELSEWHERE, ROWS, VOCAB, logits_of, own_models

core = pytest.mark.few(*CORE)


def without(*names):
    """One row of each model but of these, which take long and of which make test tries other properties."""
    return pytest.mark.few(*(name for name in CORE if name not in names))


some = pytest.mark.few(  # where one of a kind may do
    "transformer_moe", "transformer_lm", "xlnet", "lstm_seq2seq_attention", "conv_seq2seq", "neural_gpu"
)  # fmt: skip


@pytest.fixture(scope="module", params=ROWS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def row(name):
    return ROWS[name]


@pytest.fixture(scope="module")
def model(row):
    return row.make()


@pytest.fixture
def rounding(row):
    """The share of the largest value by which results may be apart."""
    return 1e-6 if BACKEND == "tensorflow" else row.rounding


def assert_close(found, expected, tolerance):
    scale = max(1.0, np.abs(expected).max())  # a number that a head predicts may be near 0
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="an extra's model needs TensorFlow")
def test_every_registered_model_is_in_the_table():
    assert {*CORE} == own_models() - ELSEWHERE == {row.name for row in ROWS.values()}


@pytest.mark.slow
@without("universal_transformer", "transformer_moe", "lstm_lm", "bytenet", "extended_neural_gpu")
def test_neither_padding_nor_neighbours_change_anything(model, row, rounding):
    batch = row.batch()
    expected = row.results(model, batch)
    alone = [row.results(model, row.alone(batch, i))[0] for i in range(3)]
    for results in (row.results(model, row.widened(batch)), alone):
        for ours, theirs in zip(results, expected, strict=True):
            for one, other in zip(ours, theirs, strict=True):
                assert_close(one, other, rounding)


@core
def test_no_attribute_of_a_class_hides_a_layer(model):
    """PyTorch keeps a layer's parts in a dictionary, which it reads only where the class has no such attribute."""
    for layer in model._flatten_layers():
        parts = [name for name, value in vars(layer).items() if isinstance(value, keras.Layer)]
        assert not [name for name in parts if hasattr(type(layer), name)]


@pytest.mark.slow
@core
def test_later_targets_change_no_earlier_logit(model, row, rounding):
    if not row.is_decoded:
        pytest.skip("it predicts no text")
    batch = row.batch()
    changed = {**batch, "targets": batch["targets"].copy()}
    changed["targets"][:, 3:] = 2
    before, after = logits_of(model, batch), logits_of(model, changed)
    np.testing.assert_array_equal(before[:, :4], after[:, :4])  # 3 sees targets before 3
    if row.reads_targets:
        assert (np.abs(before[:, 4:] - after[:, 4:]).max(axis=(1, 2)) > 1e-4).all()


@pytest.mark.slow
@some
def test_all_inputs_are_read(model, row, rounding):
    batch = row.batch()
    before = row.results(model, batch)
    for at in (0, 6):
        changed = {**batch, "inputs": batch["inputs"].copy()}
        changed["inputs"][0, at] = 11
        after = row.results(model, changed)
        assert np.abs(after[0][0] - before[0][0]).max() > 1e-5
        for ours, theirs in zip(after[1:], before[1:], strict=True):
            assert_close(ours[0], theirs[0], rounding)


@pytest.mark.slow
@without("transformer_moe", "lstm_seq2seq_attention", "neural_gpu")
def test_cached_steps_of_beams_that_change_places_are_those_of_a_full_pass(model, row, rounding):
    """Two histories change places between the beams at every position, as a search does by reordering."""
    if not row.is_decoded:
        pytest.skip("it predicts no text")
    inputs = row.batch()["inputs"]
    histories = np.random.default_rng(4).integers(3, VOCAB, (2, 3, 6)).astype("int32")
    full = [logits_of(model, {"inputs": inputs, "targets": history}) for history in histories]
    cache = model.init_cache(model.encode(inputs), 9, 2)
    ids, swap = np.full(6, 7, "int32"), ops.convert_to_tensor([1, 0], "int32")  # at 0 they are not read
    for i in range(6):
        logits, cache = model.decode_step(ops.convert_to_tensor(ids), ops.convert_to_tensor(i, "int32"), cache)
        logits = array(logits).reshape(3, 2, -1)
        for beam in range(2):
            assert_close(logits[:, beam], full[beam][:, i], 1e-6 if BACKEND == "tensorflow" else 5 * rounding)
        cache["beams"] = keras.tree.map_structure(lambda x: ops.take(x, swap, axis=1), cache["beams"])
        histories, full = histories[::-1], full[::-1]
        ids = np.stack([history[:, i] for history in histories], axis=1).reshape(-1)


@pytest.mark.slow
@pytest.mark.skipif(BACKEND != "tensorflow", reason="AutoGraph is TensorFlow's")
@some
def test_a_users_function_that_decodes_is_traced_without_a_warning(model, row, caplog):
    import tensorflow as tf

    if not row.is_decoded:
        pytest.skip("it predicts no text")

    @tf.function
    def first_logits(inputs):
        cache = model.init_cache(model.encode(inputs), 3)
        return model.decode_step(tf.zeros([3], tf.int32), 0, cache)[0]

    batch = row.batch()
    logits = array(first_logits(batch["inputs"]))
    assert_close(logits, logits_of(model, {"inputs": batch["inputs"], "targets": batch["targets"]})[:, 0], 1e-6)
    assert "AutoGraph" not in caplog.text


@pytest.mark.slow
@core
def test_gradient_reaches_every_weight(model, row):
    """From logits and costs."""
    if row.has_unread:
        pytest.skip("the vector of what is to be predicted is not read")
    if BACKEND == "jax" and row.reads == "masked_lm":
        pytest.skip("JAX does not compile a selection of the masked positions: see docs/keras.md")

    def outputs():
        leaves = keras.tree.flatten(model(row.batch(), training=True))
        return ops.concatenate([ops.reshape(leaf, (-1,)) for leaf in leaves if "float" in str(leaf.dtype)])

    check_gradients(outputs, model.trainable_weights)


@pytest.mark.slow
@some
def test_dropout_follows_the_batch_alone_and_no_two_layers_share_a_mask(model, row):
    def trained(batch):
        with dropout_seed(batch, 1):
            return array(keras.tree.flatten(model(row.batch(), training=True))[-1])

    first = trained(0)
    np.testing.assert_array_equal(trained(0), first)
    assert np.abs(trained(1) - first).max() > 1e-3
    dropouts = [layer for layer in model._flatten_layers() if isinstance(layer, Dropout) and layer.rate > 0]
    indices = [layer.seed_generator.index for layer in dropouts]
    assert len(indices) == len({*indices}) >= 1


@pytest.mark.slow
@without("transformer", "transformer_lm", "transformer_memory", "conv_seq2seq", "extended_neural_gpu")
def test_a_file_opens_and_gives_the_same(model, row, tmp_path):
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded) is type(model) and loaded.get_config() == model.get_config()
    for ours, theirs in zip(row.results(loaded, row.batch()), row.results(model, row.batch()), strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)


@core
def test_hyperparameters_make_the_model_again(model):
    hparams = model_hparams(model, HParams())
    again = type(model).from_hparams(hparams, VOCAB, model.config["target_vocab_size"])
    again.build()
    assert again.config == model.config
    assert [w.shape for w in again.weights] == [w.shape for w in model.weights]


@pytest.mark.slow
@some
@pytest.mark.parametrize(("policy", "of_weights"), [("mixed_bfloat16", "float32"), ("bfloat16", "bfloat16")])
def test_bfloat16_gives_float32_logits(row, policy, of_weights):
    model = row.make(dtype=policy)
    outputs = keras.tree.flatten(model(row.batch(), training=True))
    assert {keras.backend.standardize_dtype(each.dtype) for each in outputs} <= {"float32", "int32", "bool"}
    assert {w.dtype for w in model.trainable_weights} == {of_weights}
    if row.is_decoded:
        cache = model.init_cache(model.encode(row.batch()["inputs"]), 4, 2)
        step, after = model.decode_step(ops.zeros(6, "int32"), ops.convert_to_tensor(1, "int32"), cache)
        assert keras.backend.standardize_dtype(step.dtype) == "float32"
        of_state = [[(x.dtype, x.shape) for x in keras.tree.flatten(each["beams"])] for each in (cache, after)]
        assert of_state[0] == of_state[1]  # a search needs the same structure after each step

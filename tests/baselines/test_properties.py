"""What every encoder-decoder of the baselines promises: padding, causality, cached steps, gradients, files, options."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import registry
from t2t_lite.config import HParams
from t2t_lite.errors import UserError
from t2t_lite.layers import Dropout, dropout_seed
from t2t_lite.models.arguments import model_hparams
from t2t_lite.models.describe import shapes_only
from t2t_lite.training import SmoothedCrossEntropy
from tests.baselines.models import MODELS, VOCAB, example, logits_of, make
from tests.layers.backend import BACKEND, check_gradients
from tests.layers.equations import array

few = pytest.mark.few(*(each for each in MODELS if each != "multiplicative"))  # test_equations.py has its other score


@pytest.fixture(scope="module", params=MODELS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def model(name):
    return make(name)


def assert_close(found, expected, tolerance):
    """Asserts that the largest difference is at most a share of the largest value."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.fixture
def rounding(name):
    """What may be apart where only the shape of a batch is another: nothing with TensorFlow.

    But its reciprocal root, in ByteNet's normalizations, computes a packet of numbers differently from the rest.
    """
    return 1e-6 if name == "bytenet" or BACKEND != "tensorflow" else 0


@few
def test_padding_of_any_width_changes_nothing(model, rounding):
    inputs, targets = example()
    expected = logits_of(model, inputs, targets)
    padded = logits_of(model, np.pad(inputs, ((0, 0), (0, 13))), np.pad(targets, ((0, 0), (0, 9))))
    assert_close(padded[:, :6], expected, rounding)
    for row, (width, length) in enumerate(zip((7, 4, 1), (6, 2, 6), strict=True)):  # alone, and without padding
        at = slice(row, row + 1)
        assert_close(logits_of(model, inputs[at, :width], targets[at, :length]), expected[at, :length], rounding)


@few
def test_later_targets_change_no_earlier_logit(name, model):
    inputs, targets = example()
    changed = targets.copy()
    changed[:, 3:] = 4
    before, after = logits_of(model, inputs, targets), logits_of(model, inputs, changed)
    np.testing.assert_array_equal(before[:, :4], after[:, :4])  # position 3 sees targets before 3
    if name != "neural_gpu":  # which reads no target
        assert (np.abs(before[:, 4:] - after[:, 4:]).max(axis=(1, 2)) > 1e-3).all()


@few
def test_all_inputs_are_read(model):
    inputs, targets = example()
    before = logits_of(model, inputs, targets)
    for at in (0, 6):
        changed = inputs.copy()
        changed[0, at] = 3 if inputs[0, at] != 3 else 4
        after = logits_of(model, changed, targets)
        assert np.abs(after[0] - before[0]).max() > 1e-5
        np.testing.assert_array_equal(after[1:], before[1:])


def test_cached_steps_of_beams_that_change_places_are_those_of_a_full_pass(model):
    inputs, targets = example()
    histories = [targets, example(seed=5)[1]]
    full = [logits_of(model, inputs, history) for history in histories]
    cache = model.init_cache(model.encode(inputs), 9, 2)
    ids, swap = np.full(6, 7, "int32"), ops.convert_to_tensor([1, 0], "int32")  # at 0 they are not read
    for i in range(6):
        logits, cache = model.decode_step(ops.convert_to_tensor(ids), ops.convert_to_tensor(i, "int32"), cache)
        logits = array(logits).reshape(3, 2, -1)
        for beam in range(2):
            assert_close(logits[:, beam], full[beam][:, i], 1e-6)
        cache["beams"] = keras.tree.map_structure(lambda x: ops.take(x, swap, axis=1), cache["beams"])
        histories, full = histories[::-1], full[::-1]
        ids = np.stack([history[:, i] for history in histories], axis=1).reshape(-1)


def test_gradient_reaches_every_weight(model):
    inputs, targets = example()
    check_gradients(lambda: model({"inputs": inputs, "targets": targets}, training=True), model.trainable_weights)


@few
def test_dropout_follows_the_batch_alone_and_no_two_layers_share_a_mask(model):
    features = dict(zip(("inputs", "targets"), example(), strict=True))

    def trained(batch):
        with dropout_seed(batch, 1):
            return array(model(features, training=True))

    first = trained(0)
    np.testing.assert_array_equal(trained(0), first)
    assert np.abs(trained(1) - first).max() > 1e-3
    indices = [layer.seed_generator.index for layer in model._flatten_layers() if isinstance(layer, Dropout)]
    assert len(indices) == len({*indices}) >= 1


@few
def test_a_file_opens_once_the_folder_is_imported(model, tmp_path):
    inputs, targets = example()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(logits_of(loaded, inputs, targets), logits_of(model, inputs, targets))
    assert loaded.config == model.config


@few
def test_hyperparameters_make_the_model_again(model):
    hparams = model_hparams(model, HParams())
    again = type(model).from_hparams(hparams, VOCAB)
    assert again.config == model.config
    assert [w.shape for w in again.weights] == [w.shape for w in model.weights]


@pytest.mark.few("True-bytenet", "bytenet-True", "bytenet-False", "True-neural_gpu", "neural_gpu-True")
@pytest.mark.parametrize("tie", [True, False])
def test_two_vocabularies(name, tie):
    model = make(name, target_vocab_size=VOCAB + 9, tie_embeddings=tie)
    inputs, targets = example(target_vocab=VOCAB + 9)
    assert logits_of(model, inputs, targets).shape == (3, 6, VOCAB + 9)
    parts = {weight.path.split("/")[1] for weight in model.weights}
    assert {part for part in parts if part.endswith("embedding")} == {
        "input_embedding", "target_embedding", *([] if tie else ["softmax_embedding"])
    }  # fmt: skip


@pytest.mark.few("additive", "conv_seq2seq")
def test_attention_weights_are_shown(name):
    model = make(name)
    if not hasattr(model, "attention_weights"):
        return
    inputs, targets = example()
    for weights in model.attention_weights({"inputs": inputs, "targets": targets})["memory"]:
        assert weights.shape == (3, 1, 6, 7)
        np.testing.assert_allclose(array(weights).sum(-1), 1, atol=1e-5)
        assert (array(weights)[1, :, :, 4:] == 0).all() and (array(weights)[2, ..., 0] == 1).all()


@few
def test_mixed_precision_gives_float32_logits(name):
    inputs, targets = example()
    model = make(name, dtype="mixed_bfloat16")
    logits = model({"inputs": inputs, "targets": targets}, training=True)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    cache = model.init_cache(model.encode(inputs), 4, 2)
    step, after = model.decode_step(ops.zeros(6, "int32"), ops.convert_to_tensor(1, "int32"), cache)
    assert keras.backend.standardize_dtype(step.dtype) == "float32"
    of_state = [[(x.dtype, x.shape) for x in keras.tree.flatten(each["beams"])] for each in (cache, after)]
    assert of_state[0] == of_state[1]  # a search needs the same structure after each step
    assert {w.dtype for w in model.trainable_weights} == {"float32"}


@pytest.mark.few("conv_seq2seq")
def test_trains_through_compile_and_fit(name):
    model, (inputs, targets) = make(name, dropout=0.0), example()
    targets[2, 1:] = 0  # an output of the Neural GPU is at most as long as its input
    eager = {"run_eagerly": True} if BACKEND == "tensorflow" else {}  # a graph takes longer
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss=SmoothedCrossEntropy(0.0), **eager)
    history = model.fit({"inputs": inputs, "targets": targets}, targets, epochs=6, batch_size=3, verbose=0)
    assert history.history["loss"][-1] < 0.8 * history.history["loss"][0]


@pytest.mark.parametrize("kind", ["conv_seq2seq", "bytenet", "neural_gpu"])
def test_a_kernel_may_be_wider_than_a_sentence(kind):
    model = make(kind, kernel_size=9)
    inputs, targets = np.array([[5, 1]], "int32"), np.array([[6, 1]], "int32")
    alone = logits_of(model, inputs, targets)
    wide = logits_of(model, np.pad(inputs, ((0, 0), (0, 20))), np.pad(targets, ((0, 0), (0, 20))))
    assert_close(wide[:, :2], alone, 1e-6)
    assert np.isfinite(alone).all()


@pytest.mark.parametrize(
    "model, hparams_set, changes, words",
    [
        ("lstm_seq2seq_attention", "lstm_attention_tiny", "attention_mechanism=loung", "one of bahdanau, luong"),
        ("lstm_seq2seq_attention", "lstm_attention_tiny", "num_hidden_layers=1", "`num_hidden_layers` .* at least 2"),
        ("conv_seq2seq", "conv_seq2seq_tiny", "kernel_height=0", "=0: expected a whole number from 1 to 64"),
        ("bytenet", "bytenet_tiny", "num_block_repeat=0", "=0: expected a whole number from 1 to 64"),
        ("bytenet", "bytenet_tiny", "num_hidden_layers=0", "`num_hidden_layers` must be a whole number of at least 1"),
        ("neural_gpu", "neural_gpu_tiny", "kernel_height=65", "=65: expected a whole number from 1 to 64"),
    ],
)  # fmt: skip
def test_values_without_a_meaning_are_refused_in_one_line(model, hparams_set, changes, words):
    kind = registry.model(model)
    with pytest.raises(UserError, match=words) as refused:
        kind.from_hparams(registry.hparams(hparams_set).of_model(kind).parse(changes), VOCAB)
    assert "\n" not in str(refused.value)


def test_a_sentence_beyond_the_table_of_positions_is_refused():
    model = make("conv_seq2seq", max_position=8)
    assert model.max_length == 8
    with pytest.raises(ValueError, match="longer than the learned table: max_length=8"):
        model.encode(np.ones((1, 9), "int32"))


@pytest.mark.parametrize(
    "hparams_set, kind, parameters",
    [
        # Embeddings; two LSTMs of 4 · 128 · (128 + 128 + 1) for the encoder's first layer, one of inputs of 256 for the
        # second; the decoder's two; the matrices of attention and its vector.
        ("lstm_attention", "lstm_seq2seq_attention", 1000 * 128 + 512 * (257 * 3 + 385 * 2) + 128 * 257),
        # Embeddings and positions; four maps; of each of 20 + 20 convolutions 3 · 512 · 1024; 20 attentions.
        (
            "conv_seq2seq_base", "conv_seq2seq",
            (1000 + 2 * 1024) * 512 + 4 * 512 * 513 + 40 * 1024 * (3 * 512 + 1) + 20 * 2 * 512 * 513,
        ),
        # Embeddings; 8 blocks of a normalization and 4 convolutions without bias, each normalized; the decoder's start.
        ("bytenet_base", "bytenet", 1000 * 768 + 8 * (1536 + 4 * (3 * 768**2 + 1536)) + 2 * 3 * 768**2 + 1536),
        ("neural_gpu", "neural_gpu", 1000 * 256 + 3 * (3 * 256**2 + 256)),
    ],
)  # fmt: skip
def test_sets_have_the_sizes_of_their_sources(hparams_set, kind, parameters):
    model = registry.model(kind)
    built = shapes_only(model, registry.hparams(hparams_set).of_model(model), 1000)
    assert sum(math.prod(weight.shape) for weight in built.trainable_weights) == parameters


def test_sets_of_tensor2tensor_choose_the_attention():
    """models/lstm.py: lstm_attention is kept "for backwards compatibility", and is Bahdanau's."""
    kind = registry.model("lstm_seq2seq_attention")
    for name, mechanism in (("lstm_attention", "bahdanau"), ("lstm_bahdanau_attention", "bahdanau"),
                            ("lstm_luong_attention", "luong")):  # fmt: skip
        assert registry.hparams(name).of_model(kind).attention_mechanism == mechanism

"""The Transformer: sizes of the paper, causality, padding, the cached step, saving, Keras' own training."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.models import Transformer
from t2t_lite.models.describe import shapes_only
from t2t_lite.training import SmoothedCrossEntropy
from tests.layers.backend import check_gradients
from tests.layers.kinds import MUSIC, RELATIVE, RELATIVE_VALUES, RESTRICTED

VOCAB = 20
SMALL = {
    "vocab_size": VOCAB, "hidden_size": 16, "filter_size": 32, "num_heads": 4, "num_encoder_layers": 1,
    "num_decoder_layers": 1,
}  # fmt: skip
OPTIONS = {
    "paper": {"num_encoder_layers": 2, "num_decoder_layers": 2},
    "pre_norm": {"norm": "pre", "position_layout": "tensor2tensor"},
    "learned": {"position": "learned", "max_position": 12},
    "no_positions": {"position": "none"},
    "untied_two_vocabularies": {"tie_embeddings": False, "target_vocab_size": 30},
    "tied_two_vocabularies": {"target_vocab_size": 30},
    "own_head_sizes": {"key_dim": 3, "value_dim": 5, "attention_bias": True},
    "swiglu": {"activation": "swiglu", "position_layout": "marian"},
    "marian": {"activation": "swish", "softmax_bias": True, "attention_bias": True},
    "untied_with_bias": {"softmax_bias": True, "tie_embeddings": False, "target_vocab_size": 30},
    "depths": {"num_encoder_layers": 1, "num_decoder_layers": 2},
    "relative": {"self_attention": RELATIVE, "position": "none"},
    "relative_values": {"self_attention": RELATIVE_VALUES},
    "music": {"self_attention": MUSIC, "position": "none"},
    "rotary": {"position": "rotary"},
    "target_space": {"target_space_embedding": True},
    "restricted": {"self_attention": RESTRICTED},
    "small_embeddings": {"embedding_size": 4, "scale_embeddings": False},
}


# Of properties that hardly depend on the options, make test tries these, make test-all every one.
few = pytest.mark.few("paper", "untied_two_vocabularies", "relative_values", "rotary", "restricted")


def example(rng, target_vocab=VOCAB):
    inputs, targets = rng.integers(3, VOCAB, (3, 7)), rng.integers(3, target_vocab, (3, 6))
    inputs[1, 4:] = 0
    return inputs.astype("int32"), targets.astype("int32")


def logits_of(model, inputs, targets):
    return ops.convert_to_numpy(model({"inputs": inputs, "targets": targets}, training=False))


@pytest.fixture(scope="module", params=OPTIONS.values(), ids=OPTIONS)
def model(request):
    keras.utils.set_random_seed(3)
    return Transformer(**{**SMALL, **request.param})


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.mark.slow
@pytest.mark.parametrize("name, expected", [("transformer_base_v1", 63_045_632), ("transformer_big_v1", 214_171_648)])
def test_parameters_of_the_paper(name, expected):
    model = shapes_only(Transformer, registry.hparams(name), 37_000)
    assert sum(int(np.prod(w.shape)) for w in model.trainable_weights) == expected


@pytest.mark.few("paper", "relative_values", "rotary", "restricted")
@pytest.mark.slow
def test_later_targets_change_no_earlier_logit(model, rng):
    inputs, targets = example(rng)
    changed = targets.copy()
    changed[:, 3:] = 4
    before, after = logits_of(model, inputs, targets), logits_of(model, inputs, changed)
    np.testing.assert_array_equal(before[:, :4], after[:, :4])  # position 3 sees targets before 3
    assert np.abs(before[:, 4:] - after[:, 4:]).max() > 1e-4


@pytest.mark.few("paper", "relative_values", "restricted", "depths", "marian", "target_space", "tied_two_vocabularies")
def test_padding_changes_no_logit(model, rng):
    inputs, targets = example(rng)
    padded = logits_of(model, np.pad(inputs, ((0, 0), (0, 5))), np.pad(targets, ((0, 0), (0, 4))))
    np.testing.assert_allclose(padded[:, :6], logits_of(model, inputs, targets), atol=1e-5)


@pytest.mark.few("paper", "learned", "music", "restricted", "rotary", "marian", "small_embeddings")
@pytest.mark.slow
def test_cached_steps_equal_the_full_pass(model, rng):
    inputs, targets = example(rng)
    full, beam = logits_of(model, inputs, targets), 2
    cache = model.init_cache(model.encode(inputs), 9, beam)
    ids = np.zeros(3 * beam, "int32")
    for i in range(targets.shape[1]):
        logits, cache = model.decode_step(ops.convert_to_tensor(ids), ops.convert_to_tensor(i, "int32"), cache)
        logits = ops.convert_to_numpy(logits).reshape(3, beam, -1)
        np.testing.assert_allclose(logits, np.tile(full[:, i : i + 1], (1, beam, 1)), atol=1e-5)
        ids = np.repeat(targets[:, i], beam)


def test_the_matrix_of_the_softmax_is_made_once_a_decoding(rng):
    model = Transformer(**SMALL)
    cache = model.init_cache(model.encode(example(rng)[0]), 9)
    args = ops.zeros(3, "int32"), ops.convert_to_tensor(0, "int32")
    once, twice = (model.decode_step(*args, {**cache, "shared": times * cache["shared"]})[0] for times in (1.0, 2.0))
    np.testing.assert_allclose(ops.convert_to_numpy(twice), 2 * ops.convert_to_numpy(once), atol=1e-5)


def test_beams_read_their_own_history(rng):
    """Two histories change places between the beams at every step, as a search would do by reordering."""
    model = Transformer(**SMALL)
    inputs, targets = example(rng)
    histories = [targets, example(rng)[1]]
    full = [logits_of(model, inputs, history) for history in histories]
    cache = model.init_cache(model.encode(inputs), 9, 2)
    ids, swap = np.zeros(6, "int32"), ops.convert_to_tensor([1, 0], "int32")
    for i in range(6):
        logits, cache = model.decode_step(ops.convert_to_tensor(ids), ops.convert_to_tensor(i, "int32"), cache)
        logits = ops.convert_to_numpy(logits).reshape(3, 2, -1)
        for beam in range(2):
            np.testing.assert_allclose(logits[:, beam], full[beam][:, i], atol=1e-5)
        cache["beams"] = {"ancestry": ops.take(cache["beams"]["ancestry"], swap, axis=1)}
        histories, full = histories[::-1], full[::-1]
        ids = np.stack([history[:, i] for history in histories], axis=1).reshape(-1)


def test_without_positions_the_encoder_is_equivariant(rng):
    model = Transformer(**SMALL, position="none")
    inputs = rng.integers(3, VOCAB, (1, 7)).astype("int32")
    order = rng.permutation(7)
    hidden = ops.convert_to_numpy(model.encode(inputs)["hidden"])
    permuted = ops.convert_to_numpy(model.encode(inputs[:, order])["hidden"])
    np.testing.assert_allclose(permuted, hidden[:, order], atol=1e-5)


@pytest.mark.few("untied_two_vocabularies", "relative_values", "rotary")
@pytest.mark.slow
def test_saved_and_loaded_without_custom_objects(model, tmp_path, rng):
    inputs, targets = example(rng)
    expected = logits_of(model, inputs, targets)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(logits_of(loaded, inputs, targets), expected)


@few
def test_attention_weights_of_every_layer_and_head(model, rng):
    inputs, targets = example(rng)
    weights = model.attention_weights({"inputs": inputs, "targets": targets})
    assert [w.shape for w in weights["encoder"]] == [(3, 4, 7, 7)] * model.config["num_encoder_layers"]
    assert [w.shape for w in weights["decoder"]] == [(3, 4, 6, 6)] * model.config["num_decoder_layers"]
    for w in weights["memory"]:
        w = ops.convert_to_numpy(w)
        np.testing.assert_allclose(w.sum(-1), 1.0, atol=1e-5)
        assert w[1, :, :, 4:].max() < 1e-6  # padding is not seen


@few
def test_gradient_reaches_every_weight(model, rng):
    inputs, targets = example(rng)
    check_gradients(lambda: model({"inputs": inputs, "targets": targets}, training=True), model.trainable_weights)


@pytest.mark.few("mixed_float16")
@pytest.mark.slow
@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_trains_through_compile_and_fit(rng, policy):
    keras.utils.set_random_seed(5)
    model = Transformer(**SMALL, dropout=0.0, dtype=policy)
    inputs, targets = example(rng)
    eager = {"run_eagerly": True} if keras.backend.backend() == "tensorflow" else {}  # a graph takes longer
    model.compile(optimizer=keras.optimizers.Adam(0.05), loss=SmoothedCrossEntropy(0.1), **eager)
    assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer) == (policy == "mixed_float16")
    history = model.fit({"inputs": inputs, "targets": targets}, targets, epochs=7, batch_size=3, verbose=0)
    assert history.history["loss"][-1] < 0.8 * history.history["loss"][0]


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_gives_float32_logits(rng, policy):
    model = Transformer(**SMALL, dtype=policy)
    logits = model({"inputs": example(rng)[0], "targets": example(rng)[1]})
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"
    assert all(w.dtype == "float32" for w in model.trainable_weights)


@pytest.mark.parametrize(
    "overrides, words",
    [
        ("num_heads=3", "num_heads=3"),
        ("layer_postprocess_sequence=xyz", "layer_postprocess_sequence=xyz"),
        ("attention_key_channels=7", "attention_key_channels=7"),
        (
            "self_attention_type=local",
            "`self_attention_type` must be one of dot_product, .*_relative_v2, restricted, .*: received .*local",
        ),
        ("self_attention_type=dot_product_relative", "max_relative_position=0"),
        ("self_attention_type=restricted", "attention_neighborhood=0"),
    ],
)
def test_bad_hyperparameters_are_named(overrides, words):
    with pytest.raises(UserError, match=words):
        registry.model("transformer").from_hparams(registry.hparams("transformer_tiny").parse(overrides), VOCAB)


def test_weights_keep_their_order():
    """Checkpoints know the optimizer's variables by the order of the weights: earlier runs resume."""
    sizes = {"hidden_size": 8, "filter_size": 16, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
    model = Transformer(20, **sizes, norm="pre")
    model.build()
    parts = dict.fromkeys(weight.path.split("/")[1] for weight in model.trainable_weights)
    assert [*parts] == ["embedding", "encoder", "decoder", "encoder_norm", "decoder_norm"]

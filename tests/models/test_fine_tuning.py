"""What `frozen` and `lora_rank` mean for a model: its parts, LoRA's equation, and files that keep both."""

# Nearest tests of: t2t_lite/layers/dense.py

import keras
import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.layers.dense import Dense
from t2t_lite.models.fine_tuning import describe_frozen, fine_tune, parameters
from t2t_lite.settings.config import HParams
from tests.layers.equations import array
from tests.models.fine_tuned import check_parts, made, randomized, trained

IDS = np.array([[3, 4, 5, 1], [6, 7, 1, 0]], "int32")
HEADS = ("class_head/dense/kernel", "class_head/pooler/bias")


@pytest.mark.parametrize(
    ("name", "sizes", "more", "expected"),
    [
        ("transformer", (20,), ",use_target_space_embedding=1", {"embedding": {"embedding", "target_space"}}),
        ("transformer", (20, 30), ",shared_embedding_and_softmax_weights=0,pos=emb", {
            "embedding": {"input_embedding", "target_embedding", "encoder_position", "decoder_position"},
            "encoder": {"encoder_0", "encoder_1", "encoder_norm"}, "softmax": {"softmax_embedding"},
        }),
        ("transformer_encoder", (20, 4), ",head=class,embedding_size=4", {
            "embedding": {"embedding", "segment_embedding", "position", "embedding_norm", "projection"},
            "encoder": {"encoder_0", "encoder_1"}, "head": {"head"},
        }),
    ],
)  # fmt: skip
def test_each_weight_is_of_one_part(name, sizes, more, expected):
    check_parts(name, sizes, more, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("frozen", "kept"),
    [
        ("embedding/encoder", "decoder"),
        ("encoder_0-1/ decoder_1 /embedding", ("encoder_norm", "decoder/decoder_0", "decoder_norm")),
        ("decoder_0-1/decoder/encoder", "embedding"),
    ],
)
def test_frozen_names_parts_layers_and_ranges(frozen, kept):
    model = made(more=f",frozen={frozen}")
    assert trained(model) == {path for path in trained(made()) if path.startswith(kept)} != set()
    assert parameters(model) == model.weights
    assert not model.encoder.trainable and model.decoder.layers[0].trainable == ("decoder_0-1" not in frozen)


@pytest.mark.slow
def test_what_a_model_has_not_is_refused_in_one_line():
    parts = r"embedding, encoder \(encoder_0-1\), decoder \(decoder_0-1\)\.$"
    for word in (
        "softmax",
        "encoder_2",
        "encoder_1-2",
        "encoder_1-0",
        f"encoder_0-{'9' * 5000}",
        "encoder_0-٣",
        "Encoder",
    ):
        with pytest.raises(UserError, match=rf"^hparams: frozen={word}: the model Transformer has no part .*: {parts}"):
            made(more=f",frozen={word}")
    with pytest.raises(UserError, match=r"no part encodr\. Nearest: encoder, "):
        made(more=",frozen=encodr")
    for nothing in ("/", "//"):
        with pytest.raises(UserError, match=rf"^hparams: frozen={nothing} .*Expected .*{parts}"):
            made(more=f",frozen={nothing}")
    with pytest.raises(UserError, match=r"^hparams: lora_alpha=2 .*lora_rank"):
        made(more=",lora_alpha=2")
    with pytest.raises(UserError, match=r"frozen .*Transformer"):
        made(more=",frozen=embedding/encoder/decoder")

    class Plain(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = keras.layers.Dense(3, name="inner"), keras.layers.Dense(2, name="outer")

        def call(self, x):
            return self.outer(self.inner(x))

    model, hparams = Plain(), registry.hparams("transformer_tiny")
    model(np.ones((1, 2)))
    fine_tune(model, hparams.parse("frozen=inner"))
    assert [weight.path.split("/")[-2] for weight in model.trainable_weights] == ["outer", "outer"]
    with pytest.raises(UserError, match=r"frozen=embedding: the model Plain has no part embedding.* inner, outer"):
        fine_tune(model, hparams.parse("frozen=embedding"))
    with pytest.raises(UserError, match="lora_rank=2: the model Plain has no"):
        fine_tune(model, hparams.parse("lora_rank=2"))


def test_lora_adds_a_product_of_two_small_matrices_to_a_kernel():
    layer = Dense(5, activation="tanh")
    layer.build((None, 4))
    x = np.random.default_rng(0).normal(size=(3, 4)).astype("float32")
    before = array(layer(x))
    layer.enable_lora(2, lora_alpha=6)
    np.testing.assert_array_equal(array(layer(x)), before)  # B begins with zeros
    assert np.abs(array(layer.lora_kernel_a)).min() > 0
    layer.lora_kernel_b.assign(np.random.default_rng(1).normal(size=(2, 5)))
    kernel = array(layer._kernel) + 6 / 2 * array(layer.lora_kernel_a) @ array(layer.lora_kernel_b)
    expected = np.tanh(x @ kernel + array(layer.bias))
    np.testing.assert_allclose(array(layer(x)), expected, atol=1e-5)
    layer.merge_lora()
    np.testing.assert_allclose(array(layer._kernel), kernel, atol=1e-6)
    np.testing.assert_allclose(array(layer(x)), expected, atol=1e-5)
    assert [weight.name for weight in layer.trainable_weights] == ["kernel", "bias"] == [w.name for w in layer.weights]
    layer.enable_lora(1)
    layer.quantize("int8")
    with pytest.raises(ValueError, match="is quantized"):
        layer.merge_lora()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transformer", "transformer_lm"])
def test_with_lora_steps_of_decoding_are_the_pass_over_all_and_so_is_the_merged_model(name):
    model = randomized(made(name, ",lora_rank=2,lora_alpha=3"))
    assert all("/lora_kernel_" in path for path in trained(model))
    batch = {"inputs": IDS, "targets": np.array([[5, 6, 7], [8, 9, 4]], "int32")}

    def logits():
        found = model(batch)
        return array(found["targets"] if isinstance(found, dict) else found)

    expected, cache = logits(), model.init_cache(model.encode(IDS), 3)
    for position in range(3):
        ids = keras.ops.convert_to_tensor(batch["targets"][:, max(position - 1, 0)])
        step, cache = model.decode_step(ids, keras.ops.convert_to_tensor(position, "int32"), cache)
        np.testing.assert_allclose(array(step), expected[:, position], atol=1e-5)
    model.merge_lora()
    np.testing.assert_allclose(logits(), expected, atol=1e-5)
    assert trained(model) == trained(made(name))


@pytest.mark.parametrize("alpha", [None, 3, 0.5])
def test_each_layer_has_the_rank_and_alpha_that_were_given(alpha):
    """By hyperparameters with and without `frozen`, and by `enable_lora`; without alpha it is the rank."""
    more, expected = ",lora_rank=2" + (f",lora_alpha={alpha}" if alpha else ""), alpha or 2
    called = made()
    called.enable_lora(2, **({"lora_alpha": alpha} if alpha else {}))
    for stack in (called, made(more=more), made(more=f"{more},frozen=encoder").decoder):
        layers = [part for part in stack._flatten_layers() if isinstance(part, Dense)]
        assert layers and {(layer.lora_rank, layer.lora_alpha) for layer in layers} == {(2, expected)}
        assert all(layer.lora_kernel_a.shape[1] == layer.lora_kernel_b.shape[0] == 2 for layer in layers)
    for model in (called, made(more=more)):
        assert {weight.name for weight in model.trainable_weights} == {"lora_kernel_a", "lora_kernel_b"}


@pytest.mark.parametrize("targets", ["query", "value/ output", "filter", "key/filter", ""])
def test_targets_choose_the_kernels_with_lora(targets):
    """By the hyperparameter and by `enable_lora`; those of encoder, decoder and the attention between them."""
    names = {"inner", "outer"} if "filter" in targets or not targets else set()
    words = [word.strip() for word in targets.split("/")] if targets else ["query", "key", "value", "output"]
    names |= {f"{word}_projection" for word in words if word != "filter"}
    called = made(name="transformer")
    called.enable_lora(2, targets=targets)
    for model in (made(name="transformer", more=f",lora_rank=2,lora_targets={targets}"), called):
        paths = {weight.path.split("/")[-2] for weight in model.weights if "/lora_" in weight.path}
        assert paths == names


def test_targets_that_are_not_there():
    for targets, words in (("querry", "Nearest: query. Expected .* between them: query, key"), ("/", "Expected")):
        with pytest.raises(UserError, match=f"lora_targets={targets}: {words}"):
            made(more=f",lora_rank=2,lora_targets={targets}")
    with pytest.raises(UserError, match=r"lora_targets=query has no effect without lora_rank"):
        made(more=",lora_targets=query")
    assert (
        not registry.hparams("transformer_tiny")
        .parse("lora_rank=2,lora_targets=query")
        .parse("lora_rank=0")
        .lora_targets
    )


def test_what_is_frozen_has_no_lora():
    model = made(more=",frozen=encoder/decoder_0,lora_rank=2")
    with_lora = [weight.path for weight in model.weights if "/lora_" in weight.path]
    assert with_lora and all("/decoder/decoder_1/" in path for path in with_lora)
    assert not [path for path in trained(model) if path.startswith(("encoder", "decoder/decoder_0"))]
    fine_tune(model, registry.hparams("transformer_tiny").parse("frozen=encoder/decoder_0,lora_rank=2"))
    assert [weight.path for weight in model.weights if "/lora_" in weight.path] == with_lora
    with pytest.raises(UserError, match=r"lora_rank=2: .*Transformer.*frozen"):
        made(more=",frozen=encoder/decoder,lora_rank=2")

    tied = made("transformer_lm", ",frozen=embedding,lora_rank=2", (20,))  # the embedding is the softmax, too
    assert not [path for path in trained(tied) if "embedding" in path] and trained(tied)


def test_layers_that_keras_freezes_have_no_lora_that_is_trained(tmp_path):
    model = made()
    model.encoder.trainable = False
    model.enable_lora(2)
    assert trained(model) and all(path.startswith("decoder/") and "/lora_" in path for path in trained(model))

    model = made()
    model.enable_lora(2)
    model.encoder.trainable = False
    model.save(tmp_path / "model.keras")
    assert trained(keras.saving.load_model(tmp_path / "model.keras")) == trained(model)

    model = made()
    model.trainable = False
    with pytest.raises(UserError, match=r"lora_rank=2: .*Transformer.*frozen"):
        model.enable_lora(2)
    layer = Dense(3, trainable=False)
    layer.build((None, 2))
    layer.enable_lora(1)
    assert not any(weight.trainable for weight in (layer.lora_kernel_a, layer.lora_kernel_b))


@pytest.mark.parametrize(
    "arguments, words",
    [((0,), "rank=0"), ((2.5,), "rank=2.5"), (("8",), "rank='8'"), ((2, 0.0), "alpha=0"), ((2, -1), "alpha=-1")],
)
def test_a_rank_that_is_no_size_leaves_the_model_without_lora(arguments, words):
    model = made()
    with pytest.raises(ValueError, match=words):
        model.enable_lora(*arguments)
    assert trained(model) == trained(made())


def test_lora_is_not_added_twice():
    """Keras' own layers refuse it, too; the second rank would have no effect."""
    model = made()
    model.decoder.layers[0].self_attention.layer.query_projection.enable_lora(2)
    model.enable_lora(2)
    with pytest.raises(ValueError, match=r"already has LoRA of rank 2\. .*merge_lora"):
        model.enable_lora(4)
    model.merge_lora()
    model.enable_lora(4)
    assert {weight.shape[1] for weight in model.trainable_weights if "lora_kernel_a" in weight.path} == {4}


def test_lora_rank_0_switches_off_what_a_set_has():
    hparams = registry.hparams("transformer_tiny").parse("lora_rank=8,lora_alpha=16")
    off = (hparams.parse("lora_rank=0"), hparams.override_from_dict({"lora_rank": 0}))
    assert [(one.lora_rank, one.lora_alpha) for one in (*off, hparams)] == [(0, 0), (0, 0), (8, 16)]
    assert [one.lora_alpha for one in (hparams.copy(), HParams.from_json(hparams.to_json()))] == [16, 16]
    assert trained(made(more=",lora_rank=0")) == trained(made())


def test_the_log_says_what_frozen_names():
    line = describe_frozen(made(more=",frozen=embedding/decoder_0-1"), "embedding/decoder_0-1")
    # 20 rows of 8; in a layer of the decoder 8 kernels of 8 x 8, two of 8 x 16 with biases, and 3 normalizations.
    count = 20 * 8 + 2 * (8 * 8 * 8 + 2 * 8 * 16 + 16 + 8 + 3 * 2 * 8)
    assert line == f"frozen=embedding/decoder_0-1: {count:,} weights of embedding, decoder_0, decoder_1"


@pytest.mark.slow
def test_heads_are_trained_beside_lora_and_files_keep_what_is_frozen(tmp_path):
    model = made("transformer_encoder", ",head=class,attention_dropout=0", (20, 4))
    model.enable_lora(2, lora_alpha=4)
    others = {path for path in trained(model) if "/lora_kernel_" not in path}
    assert others == {
        path for path in trained(made("transformer_encoder", ",head=class", (20, 4))) if "class_head" in path
    }
    batch, labels = {"inputs": IDS, "targets": np.array([1, 2], "int32")}, np.array([1, 2])
    model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(True), run_eagerly=True)
    model.train_on_batch(batch, labels)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for one in (model, loaded):
        one.train_on_batch(batch, labels)
    assert trained(loaded) == trained(model)
    for one, two in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(array(one), array(two), err_msg=one.path)
    before = array(loaded(batch))
    loaded.merge_lora()
    np.testing.assert_allclose(array(loaded(batch)), before, atol=1e-5)
    loaded.compile("sgd", "mse")  # Keras: another set of weights is trained
    loaded.save(tmp_path / "merged.keras")
    again = keras.saving.load_model(tmp_path / "merged.keras")
    assert len(again.trainable_weights) == len(again.weights) == len(loaded.weights)
    np.testing.assert_array_equal(array(again(batch)), array(loaded(batch)))

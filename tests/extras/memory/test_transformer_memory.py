"""Transformer-XL: segments with their memory are one pass, and the memory has hidden states, each row its own."""

# Nearest tests of: extras/memory/memory.py

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.models import TransformerMemory
from t2t_lite.models.shapes_only import shapes_only
from tests.layers.equations import array
from tests.models.costly import TARGETS, check_costs, layers_of, with_prices

VOCAB, LENGTH = 20, 24
SIZES = {"hidden_size": 16, "filter_size": 24, "num_heads": 2, "num_layers": 2, "dropout": 0.0}
IDS = np.random.default_rng(0).integers(3, VOCAB, (3, LENGTH))
BEFORE = np.pad(IDS, ((0, 0), (1, 0)))[:, :-1]
KINDS = [
    ("post", "dot_product_relative_memory", "none"),
    ("pre", {"type": "dot_product_relative_memory", "clamp_length": 5}, "none"),
    ("post", "dot_product", "rotary"),
]


def made(norm="post", kind="dot_product_relative_memory", position="none", memory_length=LENGTH, **more):
    model = TransformerMemory(
        VOCAB, norm=norm, self_attention=kind, position=position, memory_length=memory_length, **SIZES, **more
    )
    model.build()
    rng = np.random.default_rng(1)
    for weight in model.weights:
        if "seed" not in weight.path:
            weight.assign(weight + rng.normal(0, 0.1, weight.shape))
    return model


def read(model, lengths, ids=IDS, before=BEFORE):
    """Returns (logits of all segments, the last state)."""
    state, logits, begin = model.initial_state(len(ids)), [], 0
    for length in lengths:
        batch = {"targets": ids[:, begin : begin + length], "before": before[:, begin], "state": state}
        outputs = model(batch, training=False)
        state, begin = outputs["state"], begin + length
        logits.append(array(outputs["targets"]))
    return np.concatenate(logits, axis=1), state


@pytest.mark.slow
@pytest.mark.parametrize("norm, kind, position", KINDS, ids=["post", "pre, clamped", "rotary"])
def test_segments_of_any_length_are_one_pass(norm, kind, position):
    model = made(norm, kind, position)
    one = array(model({"targets": IDS}))
    for lengths in ([1] * 4 + [20], [4] * 6, [7, 1, 5, 11], [23, 1]):
        np.testing.assert_allclose(read(model, lengths)[0], one, atol=1e-5, err_msg=lengths)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, period",
    [
        ({"type": "fixed", "stride": 4}, 4),
        ({"type": "local_1d", "block_length": 4}, 4),
        ({"type": "local_2d", "block_height": 1, "block_width": 2, "image_width": 4, "blocks_above": 2}, 4),
        ({"pattern": [{"type": "local_1d", "block_length": 2}, {"type": "fixed", "stride": 4}]}, 4),
        ({"type": "strided", "stride": 4}, 1),
        ({"type": "window", "neighborhood": 3}, 1),
    ],
    ids=["fixed", "local_1d", "local_2d", "by heads", "strided", "window"],
)
def test_blocks_begin_where_they_begin_in_one_pass_or_are_refused(kind, period):
    pytest.importorskip("t2t_lite.extras.images")
    pytest.importorskip("t2t_lite.extras.sparse")
    model = made("post", kind)
    one = array(model({"targets": IDS}))
    np.testing.assert_allclose(read(model, [4, 8, 12])[0], one, atol=1e-5)
    if period == 1:
        np.testing.assert_allclose(read(model, [7, 1, 5, 11])[0], one, atol=1e-5)
        return
    for refused in (lambda: read(model, [6] * 4), lambda: made("post", kind, memory_length=LENGTH + 1)):
        with pytest.raises(UserError, match=f"Expected multiples of {period}"):
            refused()


@pytest.mark.slow
def test_the_memory_holds_the_inputs_of_each_layer_at_the_last_positions():
    model = made(memory_length=6)
    _, state = read(model, [4] * 4)
    assert array(state["visible"]).all()
    _, two = read(model, [4])
    assert array(two["visible"]).tolist() == [[False] * 2 + [True] * 4] * 3
    assert not array(two["memory"][1])[:, :2].any()
    row = np.concatenate([np.ones_like(IDS[:, :1]), IDS[:, :3]], axis=1)
    np.testing.assert_allclose(array(two["memory"][0])[:, 2:], array(model.target_embedding(row)), atol=1e-6)


@pytest.mark.slow
def test_a_memory_is_of_the_weights_that_made_it_and_read_by_those_that_see_it():
    """Keys and values are made of it anew, unlike a cache's: after an update a segment sees old states, new keys."""
    model = made()
    _, state = read(model, [4])
    before = [array(memory) for memory in state["memory"]]
    for weight in model.weights:
        if "seed" not in weight.path:
            weight.assign(weight * 1.5)
    batch = {"targets": IDS[:, 4:8], "before": IDS[:, 3]}
    found = array(model({**batch, "state": state})["targets"])
    # The same by the stack itself: what its layers see before the inputs are the states of the old weights.
    embedded = array(model.target_embedding(IDS[:, 3:7]))
    x = embedded
    for layer, memory in zip(model.decoder.layers, before, strict=True):
        joined = np.concatenate([memory[:, -4:], x], axis=1)
        x = array(layer(ops.convert_to_tensor(joined)))[:, 4:]
    np.testing.assert_allclose(found, array(model.logits(ops.convert_to_tensor(x))), atol=1e-5)


@pytest.mark.slow
def test_a_row_that_begins_anew_is_a_fresh_text_and_others_are_untouched():
    model = made(memory_length=8)
    _, state = read(model, [4, 4])
    fresh = model.initial_state(3)
    mixed = keras.tree.map_structure(lambda new, old: ops.concatenate([new[:1], old[1:]]), fresh, state)
    batch = {"targets": IDS[:, 8:12], "before": np.array([0, *IDS[1:, 7]])}
    found = array(model({**batch, "state": mixed})["targets"])
    np.testing.assert_allclose(found[0], array(model({"targets": IDS[:1, 8:12]}))[0], atol=1e-5)
    np.testing.assert_allclose(found[1:], array(model({**batch, "state": state})["targets"])[1:], atol=1e-6)


def test_a_state_keeps_its_structure_and_counts_padding():
    model = TransformerMemory(VOCAB, memory_length=6, dtype="mixed_bfloat16", **SIZES)
    state = model.initial_state(3)
    batch = {"targets": IDS[:, :4] * [1, 1, 1, 0], "before": BEFORE[:, 0], "state": state}
    outputs = model(batch)
    assert outputs["targets"].dtype == "float32"
    assert array(outputs["state"]["visible"]).tolist() == [[False] * 2 + [True] * 4] * 3
    for one in (state, outputs["state"]):
        assert [(memory.shape, memory.dtype) for memory in one["memory"]] == [((3, 6, 16), "bfloat16")] * 2
    symbols = {name: keras.KerasTensor(batch[name].shape, "int32") for name in ("targets", "before")}
    found = model.compute_output_spec(symbols | {"state": state})
    assert (found["targets"].shape, found["targets"].dtype, found["state"]) == ((3, 4, VOCAB), "float32", state)
    assert model.compute_mask(batch) is None
    assert array(model.compute_mask({"targets": batch["targets"]})).tolist() == [[True] * 3 + [False]] * 3


def test_absolute_positions_and_no_memory_are_refused():
    with pytest.raises(ValueError, match="`position` must be none or rotary"):
        made(position="sinusoidal")
    hparams = registry.hparams("transformer_memory_tiny").of_model(TransformerMemory)
    model = TransformerMemory.from_hparams(hparams, VOCAB)
    assert [model.config[name] for name in ("memory_length", "eval_memory_length", "begin")] == [32, None, "end"]
    defaults = {name: field.default for name, field in TransformerMemory.HPARAMS.items()}
    assert defaults.items() >= {"segment_length": 128, "memory_length": 128, "eval_memory_length": 0}.items()
    assert (model.context_length, TransformerMemory(VOCAB, **SIZES).context_length) == (32, 128)


def test_a_memory_is_counted_by_hand():
    """Keys and values of memory and segment, the matrix of distances once for all rows of a batch."""
    cost, describe = (pytest.importorskip(f"t2t_lite.extras.describe.{name}") for name in ("cost", "describe"))
    hparams = registry.hparams("transformer_memory_tiny").of_model(TransformerMemory)
    hparams = hparams.parse("segment_length=32,memory_length=96,batch_size=320")
    model, other = (shapes_only(TransformerMemory, hparams.parse(f"memory_length={m}"), VOCAB) for m in (96, 1))
    d, ff, n = hparams.hidden_size, hparams.filter_size, hparams.num_hidden_layers
    matrices = 2 * d * d * 2 + 2 * 2 * d * ff  # of queries and outputs, of the network
    projected = 2 * 2 * d * d * (32 + 96) / 32
    distances = 2 * d * d * (2 * 32 + 96) / 320
    products = 2 * 2 * d * (32 + 96) + 2 * 2 * d * (32 + 96)  # of keys and values, of W_r R of twice as many distances
    flops = n * (matrices + projected + distances + products) + 2 * d * VOCAB
    assert cost.forward_flops(model, {"targets": 32}, 10).per_token["targets"] == flops
    assert describe.Description(model, hparams).flops.per_token["targets"] == flops
    more = [cost.training_memory(m, hparams, {"targets": 32})["activations"] for m in (model, other)]
    of_states = (4 + 2 * 4) * d + 2 * d * 4  # and their keys and values
    of_scores = hparams.num_heads * (4 + 2 * 4)  # and of the products with W_r R
    assert more[0] - more[1] == 320 * n * (of_states * 95 / 32 + of_scores * 95)


@pytest.mark.slow
def test_costs_are_of_the_positions_of_their_features():
    check_costs(TransformerMemory, {"memory_length": 3}, {"targets": TARGETS})


def test_a_memory_keeps_its_state_beside_the_costs():
    model = with_prices(TransformerMemory)(12, **layers_of(TransformerMemory), memory_length=3)
    outputs = model({"targets": TARGETS, "before": np.array([0, 2]), "state": model.initial_state(2)})
    assert set(outputs) == {"targets", "state", "costs"} and outputs["costs"]["targets"].shape == TARGETS.shape

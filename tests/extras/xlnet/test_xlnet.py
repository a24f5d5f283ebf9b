"""XLNet: what a position sees in an order, heads and sizes."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import registry
from t2t_lite.models import XLNet
from t2t_lite.models.fine_tuning import parameters as parameters_of
from t2t_lite.models.shapes_only import shapes_only
from tests.models.costly import INPUTS as COST_INPUTS
from tests.models.costly import check_costs, layers_of
from tests.models.products import products_run

VOCAB = 15
SMALL = {"vocab_size": VOCAB, "hidden_size": 16, "filter_size": 32, "num_heads": 2, "num_layers": 2, "last_id": 4}
HEADS = {"masked_lm": {}, "class": {"target_vocab_size": 4}, "tag": {"target_vocab_size": 4}, "real": {}, "span": {}}
INPUTS = [[5, 6, 7, 1, 8, 9, 1], [10, 1], [3, 3, 4, 11, 1], [5, 1, 6, 1, 7, 1]]
ORDER = [[0, 3, 1, 0, 4, 2, 0], [1, 0], [2, 0, 1, 3, 0], [0, 0, 0, 0, 0, 0]]


def padded(rows, width=0):
    width = max([width, *map(len, rows)])
    return np.array([[*row, *[0] * (width - len(row))] for row in rows], "int32")


def batch_of(head, rows=slice(None), width=0):
    inputs, order = padded(INPUTS[rows], width), padded(ORDER[rows], width)
    if head == "masked_lm":
        return {"inputs": inputs, "targets": np.where(order > 0, inputs, 0), "order": order}
    return {"inputs": inputs}


def made(head, **options):
    keras.utils.set_random_seed(3)
    model = XLNet(**SMALL, **{"head": head, "initializer_gain": 0.3, **HEADS[head], **options})
    model.build()
    for weight in model.weights:  # the vectors of segments and the biases count
        if weight.name in ("segment_table", "segment_bias", "content_bias", "position_bias", "bias"):
            weight.assign(np.random.default_rng(len(weight.shape)).normal(scale=0.3, size=weight.shape))
    return model


@pytest.fixture(scope="module", params=HEADS)
def head(request):
    return request.param


@pytest.fixture(scope="module")
def model(head):
    return made(head)


@pytest.fixture(scope="module")
def language_model():
    return made("masked_lm")


def logits_of(model, batch):
    return ops.convert_to_numpy(model(batch, training=False))


@pytest.mark.slow
def test_no_word_is_seen_before_its_turn(language_model):
    """Another word changes the logits of those after it in the order, and of no others, bit for bit."""
    batch = batch_of("masked_lm", slice(0, 1))
    order = batch["order"][0]
    before, places = logits_of(language_model, batch), np.flatnonzero(order)
    for place in range(len(order)):
        changed = {**batch, "inputs": batch["inputs"].copy()}
        changed["inputs"][0, place] = 12
        differs = (logits_of(language_model, changed) != before).any(axis=1)
        later = order[places] > order[place] if order[place] else np.ones(len(places), bool)
        if batch["inputs"][0, place] != 1:  # an end says what the segments are
            np.testing.assert_array_equal(differs, later, err_msg=f"of the word at {place}")


def test_distances_matter_and_queries_know_where_they_are(language_model):
    """Two predicted words of a row of one repeated word have unequal logits, although they see the same words."""
    batch = {"inputs": np.array([[5] * 6 + [1]], "int32"), "targets": np.array([[0, 5, 0, 0, 5, 0, 0]], "int32")}
    first, second = logits_of(language_model, batch)
    assert np.abs(first - second).max() > 1e-3


def test_without_an_order_predicted_words_do_not_see_one_another(language_model):
    batch = batch_of("masked_lm")
    order = (batch["order"] > 0).astype("int32")
    expected = logits_of(language_model, {**batch, "order": order})
    batch.pop("order")
    np.testing.assert_array_equal(logits_of(language_model, batch), expected)
    states = language_model.guessing_states(batch["inputs"], ops.convert_to_tensor(order > 0))
    np.testing.assert_array_equal(ops.convert_to_numpy(language_model.ids_logits(states)), expected)


def test_each_segment_is_told_from_others(language_model):
    """The same words in one text or in two give unequal states; the last position is of no text."""
    hidden = [language_model.encode(np.array([row], "int32"))["hidden"] for row in ([5, 6, 7, 1], [5, 1, 7, 1])]
    assert np.abs(ops.convert_to_numpy(hidden[0] - hidden[1])[0, 0]).max() > 1e-3
    row, mask, segments = (ops.convert_to_numpy(x) for x in language_model._rows(padded(INPUTS)))
    np.testing.assert_array_equal(segments[0], [0, 0, 0, 0, 1, 1, 1, -1])
    np.testing.assert_array_equal(row[1], [10, 1, 4, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(mask.sum(1), [8, 3, 6, 7])


@pytest.mark.slow
def test_attention_weights_begin_with_the_appended_position():
    model, inputs = made("class"), padded(INPUTS)
    stored = model.encode(inputs, return_attention_scores=True)["attention"]
    for shown, own in zip(model.attention_weights({"inputs": inputs})["encoder"], stored, strict=True):
        assert shown.shape == own.shape
        for row, ids in enumerate(INPUTS):
            order = [len(ids), *range(len(ids))]
            found = shown[row][:, : len(order), : len(order)]
            np.testing.assert_array_equal(found, np.array(own[row])[:, order][:, :, order])


def test_a_row_is_read_from_its_last_position():
    features_of = pytest.importorskip("t2t_lite.decoding.predictor", reason="it needs TensorFlow").features_of
    model = made("class")
    inputs = padded(INPUTS, 9)
    hidden = ops.convert_to_numpy(model.encode(inputs)["hidden"])
    last = np.stack([hidden[row, len(ids)] for row, ids in enumerate(INPUTS)])
    np.testing.assert_array_equal(features_of(model, pooling="first")(ops.convert_to_tensor(inputs)), last)
    np.testing.assert_allclose(logits_of(model, {"inputs": inputs}), model.class_head(last), atol=1e-6)


def test_the_last_id_may_be_too_large_for_the_dtype_of_the_ids():
    model = XLNet(**SMALL | {"vocab_size": 400, "last_id": 300}, head="class", target_vocab_size=3)
    expected, found = (model({"inputs": padded(INPUTS).astype(dtype)}) for dtype in ("int32", "uint8"))
    np.testing.assert_array_equal(*map(ops.convert_to_numpy, (found, expected)))


@pytest.mark.slow
@pytest.mark.parametrize("name, parameters", [("xlnet_base", 116_718_336 + 32_000), ("xlnet_large", 360_300_800)])
def test_parameters_are_as_many_as_published(name, parameters):
    hparams = registry.hparams(name).of_model(XLNet)
    weights = parameters_of(shapes_only(XLNet, hparams, 32_000))
    assert sum(math.prod(weight.shape) for weight in weights) == parameters


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"head": "class"}, "target_vocab_size of at least 2: received None"),
        ({"last_id": VOCAB}, "from 0 to 14: received last_id=15"),
        ({"position": "sinusoidal"}, "`position` must be none"),
        ({"self_attention": "dot_product"}, "`self_attention` must be relative_segments"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        XLNet(**{**SMALL, **arguments})


@pytest.mark.parametrize("name", ["transformer_encoder", "transformer"])
def test_segments_are_refused_where_there_are_none(name):
    with pytest.raises(ValueError, match=r"relative_segments distinguishes segments"):
        registry.model(name)(VOCAB, self_attention="relative_segments", hidden_size=8, num_heads=2)


def test_an_order_needs_a_number_for_each_position(language_model):
    with pytest.raises(ValueError, match=r"lengths .*'order': 4"):
        language_model({name: np.ones((2, 4 + (name != "order")), "int32") for name in ("inputs", "targets", "order")})


@pytest.mark.slow
@pytest.mark.parametrize("head", ["masked_lm", "class"])
def test_flops_are_those_of_the_products_that_run(head, eager):
    cost = pytest.importorskip("t2t_lite.extras.describe.cost")
    model = made(head)
    ids = np.random.default_rng(0).integers(5, VOCAB, (2, 8))
    predicted = ids * (np.arange(8) % 3 == 1)
    batch = {"inputs": ids, **({"targets": predicted} if head == "masked_lm" else {})}
    model.predicted_share = (predicted[0] != 0).sum() / 9  # of the positions of a row, the last one with them
    (flops,) = cost.forward_flops(model, {"inputs": 9}, 2).per_token.values()
    assert 2 * 9 * flops == pytest.approx(products_run(lambda: model(batch, training=False)), rel=0.02)


COST_BATCH = {"inputs": COST_INPUTS, "targets": COST_INPUTS * (COST_INPUTS > 5)}


@pytest.mark.slow
def test_costs_are_of_the_positions_of_their_features():
    check_costs(XLNet, {}, COST_BATCH)


@pytest.mark.slow
def test_experts_count_the_queries_of_a_second_stream():
    pytest.importorskip("t2t_lite.extras.experts")
    experts = {"type": "local_moe", "num_experts": 3, "k": 2}
    model = XLNet(12, **layers_of(XLNet), feed_forward=experts)
    outputs = model(COST_BATCH, training=True)
    positions = (COST_INPUTS != 0).sum() + len(COST_INPUTS) + (COST_INPUTS > 5).sum()  # each row has a last one
    for use in outputs["shares"]["expert_use"]["inputs"]:
        assert ops.convert_to_numpy(use).sum() == 2 * positions


def test_defaults_are_the_base_models():
    """Yang et al. (2019), appendix A.4.2."""
    config = XLNet(VOCAB, head="masked_lm").config
    assert config | {
        "num_layers": 12, "hidden_size": 768, "filter_size": 3072, "num_heads": 12, "dropout": 0.1, "last_id": 0,
        "attention_dropout": 0.1, "relu_dropout": 0.1, "norm_epsilon": 1e-12, "activation": "gelu", "norm": "post",
        "position": "none", "softmax_bias": True, "initializer": "normal",
        "initializer_gain": 0.02,
    } == config  # fmt: skip
    assert XLNet.predicted_share == 1 / 6 and XLNet.HPARAMS["last_id"].default == 0


def test_each_place_of_dropout_has_its_rate():
    model = made("masked_lm", dropout=0.2, attention_dropout=0.3, relu_dropout=0.4)
    layer = model.encoder.layers[1]
    attention = layer.self_attention.layer
    rates = {
        0.2: [model.dropout, model.output_dropout, layer.self_attention.dropout],
        0.3: [attention.dropout, attention.query_dropout], 0.4: [layer.feed_forward.layer.dropout],
    }  # fmt: skip
    for rate, places in rates.items():
        assert [place.rate for place in places] == [rate] * len(places)
    assert model.head_weights() == [model.embedding.bias, model.query]

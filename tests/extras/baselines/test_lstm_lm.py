"""Language models of LSTMs in both directions against the equations; what each direction sees; the mix; decoding."""

import warnings

import keras
import numpy as np
import pytest

from t2t_lite.extras.baselines.lstm_lm import LayerMix, LSTMLanguageModel
from t2t_lite.layers import dropout_seed
from t2t_lite.training import MaskedAccuracy, SmoothedCrossEntropy
from tests.extras.baselines.recurrent import lstm
from tests.layers.equations import array

SIZE, VOCAB = 6, 11
ROWS = np.array([[4, 5, 6, 7, 1], [8, 9, 1, 0, 0], [3, 1, 0, 0, 0]], "int32")


def make(**options):
    model = LSTMLanguageModel(VOCAB, num_layers=2, hidden_size=SIZE, dropout=0.5, **options)
    model.build()
    draw = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(draw.normal(0, 0.5, weight.shape))
    return model


@pytest.fixture
def model():
    return make()


def stacked(stack, inputs):
    """The outputs of both layers; the second one adds its input."""
    first, *_ = lstm(stack.layers[0], inputs)
    return [first, lstm(stack.layers[1], first)[0] + first]


def embedded(model, ids):
    return array(model.embedding.embeddings)[ids] * SIZE**0.5


def test_states_are_those_of_the_equations_read_from_both_ends():
    model = make(head="tag", target_vocab_size=4)
    found = model.encode(ROWS, return_hidden_states=True)
    for at, ids in enumerate(ROWS):
        text = [1, *ids[ids != 0]]  # read from an end to an end
        left = [embedded(model, text), *stacked(model.forward_stack, embedded(model, text))]
        right = stacked(model.backward_stack, embedded(model, [1, *text[::-1]]))
        right = [left[0], *(states[1:][::-1] for states in right)]
        assert array(found["mask"])[at].sum() == len(text)
        for state, *both in zip(found["states"], left, right, strict=True):
            expected = np.concatenate(both, axis=1)
            np.testing.assert_allclose(array(state)[at, : len(text)], expected, atol=1e-5)
    np.testing.assert_array_equal(array(found["hidden"]), array(found["states"][-1]))


def test_in_training_each_layer_reads_dropped_inputs_and_adds_them_whole(model):
    stack, inputs = model.forward_stack, np.random.default_rng(2).normal(size=(1, 5, SIZE)).astype("float32")
    with dropout_seed(7):  # the same masks at each call
        first, second = (array(states) for states in stack(inputs, training=True)[0])
        dropped = [array(drop(x, training=True)) for drop, x in zip(stack.dropouts, (inputs, first), strict=True)]
    assert all(0 < (x == 0).mean() < 1 for x in dropped)
    np.testing.assert_allclose(first[0], lstm(stack.layers[0], dropped[0][0])[0], atol=1e-5)
    np.testing.assert_allclose(second[0], lstm(stack.layers[1], dropped[1][0])[0] + first[0], atol=1e-5)


def nats(model, states, labels):
    """Of each label the negative log-probability by the tied softmax."""
    logits = states @ array(model.embedding.embeddings).T
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return -log_probs[np.arange(len(labels)), labels]


def test_each_direction_predicts_the_next_id_that_it_reads(model):
    found = model({"targets": ROWS})
    logits, costs = (array(x) for x in (found["targets"], found["costs"]["targets"]))
    for at, ids in enumerate(ROWS):
        text = ids[ids != 0]
        left = stacked(model.forward_stack, embedded(model, [1, *text[:-1]]))[-1]
        of_logits = -np.log(np.exp(logits[at]) / np.exp(logits[at]).sum(-1, keepdims=True))[np.arange(len(text)), text]
        np.testing.assert_allclose(of_logits, nats(model, left, text), atol=1e-5)
        right = stacked(model.backward_stack, embedded(model, [1, *text[:0:-1]]))[-1]
        np.testing.assert_allclose(costs[at, : len(text)], nats(model, right, text[::-1])[::-1], atol=1e-5)


def test_decoding_reads_no_id_at_its_first_step_and_each_at_the_next_ones(model):
    """The prompt's end, id 1, is in the state already: a step at 0 neither reads an id nor changes the state."""
    prompt, text = [4, 5], [6, 7, 8]
    states = stacked(model.forward_stack, embedded(model, [1, *prompt, *text]))[-1]
    expected = states[len(prompt) :] @ array(model.embedding.embeddings).T
    cache = model.init_cache(model.encode(np.array([prompt], "int32")), 9, 2)
    before = [array(x) for x in keras.tree.flatten(cache["beams"])]
    for position, ids in enumerate([(3, 9), *((id_, id_) for id_ in text)]):
        logits, cache = model.decode_step(np.array(ids, "int32"), np.int32(position), cache)
        np.testing.assert_allclose(array(logits), [expected[position]] * 2, atol=1e-5)
        kept = [np.array_equal(*x) for x in zip(before, map(array, keras.tree.flatten(cache["beams"])), strict=True)]
        assert set(kept) == {position == 0}


@pytest.mark.slow
def test_a_prompt_is_read_and_not_predicted(model):
    whole = array(model({"targets": ROWS[:1]})["targets"])
    prompts = np.array([[4, 5, 0], [4, 0, 0], [0, 0, 0]], "int32")
    targets = np.array([[6, 7, 1, 0, 0], [5, 6, 7, 1, 0], [4, 5, 6, 7, 1]], "int32")
    found = array(model({"inputs": prompts, "targets": targets})["targets"])
    for row, read in zip(found, (2, 1, 0), strict=True):
        np.testing.assert_allclose(row[: 5 - read], whole[0, read:], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("head, shape", [("class", (3, 4)), ("real", (3, 1)), ("tag", (3, 5, 4))])
def test_a_head_reads_the_mix_of_all_layers_whatever_the_padding(head, shape):
    model = LSTMLanguageModel(VOCAB, 4, head=head, num_layers=2, hidden_size=SIZE)
    targets = np.ones(shape[: -1 if head != "real" else 1], "int32")
    logits = array(model({"inputs": ROWS, "targets": targets}))
    assert logits.shape == shape == tuple(model.compute_output_spec({"inputs": ROWS, "targets": targets}).shape)
    alone = array(model({"inputs": ROWS[1:2, :3], "targets": targets[1:2]}))
    np.testing.assert_allclose(logits[1][: 3 if head == "tag" else None], alone[0], atol=1e-5)
    before, wide = logits, np.pad(ROWS, ((0, 0), (0, 3)))
    model.mix.weight.assign([0.0, -50.0, -50.0])  # the embeddings alone
    mixed = array(model({"inputs": wide, "targets": targets}))
    assert not np.allclose(mixed[:, : before.shape[1]], before)
    model.forward_stack.layers[0].weights[0].assign(np.zeros(model.forward_stack.layers[0].weights[0].shape))
    np.testing.assert_allclose(array(model({"inputs": wide, "targets": targets})), mixed, atol=1e-6)


@pytest.mark.parametrize(
    "options, parts",
    [
        ({}, set()),
        ({"tie_embeddings": False}, {"softmax_embedding"}),
        ({"head": "tag", "target_vocab_size": 4}, {"mix", "class_head"}),
    ],
    ids=["tied softmax", "softmax", "tag"],
)
def test_the_weights_of_a_head_are_those_that_read_the_states(options, parts):
    model = LSTMLanguageModel(VOCAB, num_layers=1, hidden_size=SIZE, **options)
    model.build()
    of_part = {weight.path: weight.path.split("/")[1] for weight in model.weights}
    assert parts <= {*of_part.values()}
    assert {weight.path for weight in model.head_weights()} == {path for path in of_part if of_part[path] in parts}


def test_the_mix_is_elmos():
    mix, states = LayerMix(), np.random.default_rng(1).normal(size=(3, 2, 4, 5)).astype("float32")
    np.testing.assert_allclose(array(mix([*states])), states.mean(0), rtol=1e-5, atol=1e-6)
    mix.weight.assign([0.5, -1.0, 2.0])
    mix.gamma.assign(3.0)
    shares = np.exp([0.5, -1.0, 2.0])
    expected = 3 * np.tensordot(shares / shares.sum(), states, 1)
    np.testing.assert_allclose(array(mix([*states])), expected, rtol=1e-5, atol=1e-6)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*softmax over axis")
        np.testing.assert_array_equal(array(LayerMix()([states[0]])), states[0])


def test_classes_need_their_number():
    with pytest.raises(ValueError, match="`num_classes` must be an integer of at least 1"):
        LSTMLanguageModel(VOCAB, head="class")
    with pytest.raises(ValueError, match="one vocabulary"):
        LSTMLanguageModel(VOCAB, 5)


@pytest.mark.slow
@pytest.mark.few("True-False", "False-True")
@pytest.mark.parametrize("named_labels", [True, False])
@pytest.mark.parametrize("named_losses", [True, False])
def test_keras_scores_it_beside_its_own_costs(named_labels, named_losses):
    """Labels, weights, losses and metrics by the name of the targets, or as of a model with one output."""
    keras.utils.set_random_seed(1)
    model = LSTMLanguageModel(20, hidden_size=8, num_layers=1, dropout=0.0)
    loss, metrics = SmoothedCrossEntropy(0.0), [MaskedAccuracy()]
    model.compile(
        "sgd",
        {"targets": loss} if named_losses else loss,
        weighted_metrics={"targets": metrics} if named_losses else metrics,
        run_eagerly=keras.backend.backend() == "tensorflow",  # a graph takes longer
    )
    ids, weights = np.array([[3, 4, 5, 0], [6, 7, 0, 0]], "int32"), np.array([1.0, 3.0], "float32")
    labels, weights_of = ({"targets": ids}, {"targets": weights}) if named_labels else (ids, weights)
    found = model.evaluate({"targets": ids}, labels, sample_weight=weights_of, verbose=0, return_dict=True)
    outputs = model({"targets": ids})
    is_right = array(outputs["targets"]).argmax(-1) == ids
    each = weights[:, None] * (ids > 0)
    assert found["masked_accuracy"] == pytest.approx((each * is_right).sum() / each.sum(), rel=1e-5)
    costs = (array(outputs["costs"]["targets"]) * (ids > 0)).sum() / 5
    expected = float(array(loss(ids, outputs["targets"], weights))) + costs
    assert found["loss"] == pytest.approx(expected, rel=1e-5)

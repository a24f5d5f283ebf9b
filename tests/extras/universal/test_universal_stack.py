"""A universal stack is its layers again and again, with signals before each step, and halts as tensor2tensor's."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import layers
from tests.extras.universal.act_in_numpy import act_in_numpy
from tests.layers.equations import array
from tests.layers.harness import PAIR as X
from tests.layers.harness import PAIR_MEMORY as MEMORY
from tests.layers.harness import check_layer

OPTIONS = {"norm": "pre", "dropout": 0.3}


def sinusoids(positions, size):
    """tensor2tensor's `get_timing_signal_1d`."""
    increments = np.log(1e4) / (size // 2 - 1)
    angles = np.asarray(positions, "float64")[..., None] * np.exp(-increments * np.arange(size // 2))
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)


def stack_of(layer, halting, bias_init=1.0, num_steps=4, recompute=False, **signals):
    signals = layers.StepSignals(num_steps, **signals)
    halting = halting and layers.AdaptiveComputation(halting, bias_init=bias_init)
    return layers.UniversalStack([layer], num_steps, signals, halting, recompute)


def encoder(halting=None, **options):
    return stack_of(layers.TransformerEncoderLayer(2, 16, **OPTIONS), halting, **options)


def decoder(halting=None, **options):
    stack = stack_of(layers.TransformerDecoderLayer(2, 16, **OPTIONS), halting, bias_init=-0.5, **options)
    stack.build(X.shape, MEMORY.shape)
    return stack


@pytest.mark.long
def test_contract(tmp_path):
    init = {
        "layers": [layers.TransformerEncoderLayer(2, 16, **OPTIONS)],
        "num_steps": 3,
        "signals": layers.StepSignals(3),
        "halting": layers.AdaptiveComputation(),
    }
    check_layer(layers.UniversalStack, init, X, 4 + 2 + 4 + 2 + 1 + 2, tmp_path)


@pytest.mark.parametrize("num_places", [1, 2])
def test_without_signals_and_halting_it_is_a_stack_of_one_layer_in_all_places(num_places):
    layer = layers.TransformerEncoderLayer(2, 16, **OPTIONS)
    tied, universal = layers.TransformerStack([layer] * 4), layers.UniversalStack([layer] * num_places, 4 // num_places)
    np.testing.assert_array_equal(array(universal(X)), array(tied(X)))
    for stack in (tied, universal):
        layers.number_seeds(stack)
    with layers.dropout_seed(5, 1):  # masks, too
        np.testing.assert_array_equal(array(universal(X, training=True)), array(tied(X, training=True)))


def test_several_layers_take_turns_in_each_step():
    one, two = (layers.TransformerEncoderLayer(2, 16, **OPTIONS) for _ in range(2))
    found, scores, states = layers.UniversalStack([one, two], 2)(
        X, return_attention_scores=True, return_hidden_states=True
    )
    expected = layers.TransformerStack([one, two, one, two])(X)
    np.testing.assert_array_equal(array(found), array(expected))
    assert (len(scores), len(states)) == (4, 5)


@pytest.mark.parametrize("step_signal", ["learned", "sinusoid", "none"])
def test_signals_are_those_of_tensor2tensor(step_signal):
    signals = layers.StepSignals(4, step_signal=step_signal)
    signals.build(X.shape)
    assert step_signal != "learned" or 0.2 < array(signals.table).std() < 0.5  # N(0, 1/√8)
    for step in range(4):
        expected = X + sinusoids(np.arange(5), 8)
        if step_signal == "learned":
            expected = expected + array(signals.table)[step] * 8**0.5
        elif step_signal == "sinusoid":
            expected = expected + sinusoids(step, 8)
        np.testing.assert_allclose(array(signals(X, step=step)), expected, atol=1e-5)


def test_positions_may_begin_farther_on_in_each_step():
    """At length · step / T, of each row's own length."""
    signals = layers.StepSignals(4, step_signal="none", position_start="step")
    lengths = np.array([5, 3])
    for step in range(4):
        expected = X + sinusoids((lengths * step // 4)[:, None] + np.arange(5), 8)
        np.testing.assert_allclose(array(signals(X, step=step, lengths=lengths)), expected, atol=1e-5)
        at = array(signals(X[:, 2:3], step=step, position=2, lengths=lengths))
        np.testing.assert_allclose(at, expected[:, 2:3], atol=1e-5)
    with pytest.raises(ValueError, match="`lengths` is required"):
        signals(X, position=2)


def test_positions_may_begin_anywhere_in_training():
    """Another start in each step and row, below the row's length; none outside of training."""
    signals = layers.StepSignals(4, step_signal="none", position_start="random")
    rows, lengths = np.zeros((400, 1, 8), "float32"), np.array([3] * 200 + [7] * 200)
    np.testing.assert_array_equal(array(signals(rows, lengths=lengths)), array(signals(rows)))
    table, found = sinusoids(np.arange(20), 8), []
    with layers.dropout_seed(5, 1):
        for step in (0, 1, 0):
            x = array(signals(rows, step=step, lengths=lengths, training=True))
            found.append(np.abs(x - table).sum(-1).argmin(-1))
    assert {*found[0][:200]} == {*range(3)} and {*found[0][200:]} == {*range(7)}
    assert (found[0] == found[2]).all() and (found[0] != found[1]).mean() > 0.5


@pytest.mark.parametrize("bias", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("act_type", ["basic", "accumulated", "global"])
def test_halting_is_that_of_tensor2tensor(act_type, bias):
    """With biases by which few positions halt before the last step, some, and most."""
    stack, context = encoder(act_type), layers.Context()
    stack.build(X.shape)
    stack.halting.gate.set_weights([0.3 * array(stack.halting.gate.kernel), np.full(1, bias)])
    gate = array(stack.halting.gate.kernel)[:, 0], bias
    functions = lambda x: array(stack.layers[0](x)), lambda x, step: array(stack.signals(x, step=step))
    expected, steps, remainders, computed = act_in_numpy(X, *functions, gate, act_type)
    assert computed <= 4 and (bias or act_type == "global" or len(np.unique(steps)) > 1)
    np.testing.assert_allclose(array(stack(X, context=context)), expected, atol=1e-5)
    steps, remainders = (np.broadcast_to(x.reshape(len(X), -1), X.shape[:2]) for x in (steps, remainders))
    np.testing.assert_array_equal(array(context.results.total("ponder_steps")), steps)
    np.testing.assert_allclose(array(context.results.total("cost")), 0.01 * (steps + remainders), atol=1e-6)


@pytest.mark.slow
@pytest.mark.few("None-step", "accumulated-step", "global-none")
@pytest.mark.parametrize("position_start", ["none", "step"])
@pytest.mark.parametrize("act_type", [None, "basic", "accumulated", "global"])
def test_steps_with_a_cache_give_the_full_pass(act_type, position_start):
    stack = decoder(act_type, position_start=position_start)
    mask = np.ones((2, 1, 7), "bool")
    mask[1, 0, 4:] = False
    full = array(stack(X, MEMORY, memory_mask=mask))
    for append in (False, True):
        cache, steps = stack.init_cache(MEMORY, len(X), 0 if append else X.shape[1]), []
        for position in range(X.shape[1]):
            seen = None if append else ops.arange(X.shape[1])[None, None] <= position
            x, cache = stack.step(X[:, [position]], cache, None if append else position, seen, mask)
            steps.append(array(x))
        np.testing.assert_allclose(np.concatenate(steps, axis=1), full, atol=1e-5)
    memories = [leaf for leaf in cache["memory"] if leaf]
    assert len(memories) == 1 and all("memory" not in part for step in cache["steps"] for part in step)


def test_without_a_context_the_ponder_cost_is_a_loss_in_training():
    stack, mask = encoder("basic"), np.arange(5) < np.array([[5], [3]])
    context = layers.Context(nonpadding=ops.convert_to_tensor(mask))
    stack.build(X.shape)
    layers.number_seeds(stack)
    with layers.dropout_seed(5, 1):
        stack(X, mask=mask, training=True)
        [loss] = stack.losses
        stack(X, mask=mask, context=context, training=True)
    assert array(loss) == pytest.approx(array(context.results.total("cost")).sum() / mask.sum(), rel=1e-5)
    assert stack.losses == []


def test_steps_see_the_mask_that_keras_carries_with_the_memory_and_their_own_slots():
    stack, memory = decoder("global", position_start="step"), np.where(np.arange(7) < [[7], [4]], 1.0, 0.0)[..., None]
    memory = keras.layers.Masking()((MEMORY * memory).astype("float32"))
    expected = array(stack(X, memory))
    assert np.abs(expected - array(stack(X, array(memory)))).max() > 1e-3
    for append in (False, True):
        cache, steps = stack.init_cache(memory, len(X), 0 if append else 5), []
        for position in range(5):
            x, cache = stack.step(X[:, [position]], cache, None if append else position)
            steps.append(array(x))
        np.testing.assert_allclose(np.concatenate(steps, axis=1), expected, atol=1e-5)


def test_every_shape_of_a_mask_means_the_same():
    stack, keys = encoder("global", position_start="step"), np.arange(5) < np.array([[5], [3]])
    expected = array(stack(X, mask=keys))[keys]
    masked = keras.layers.Masking()(np.where(keys[..., None], X, 0.0))  # with Keras' mask in addition to another one
    for shape in ((2, 1, 5), (2, 5, 5), (2, 1, 1, 5), (2, 1, 5, 5), (2, 2, 5, 5)):
        mask = np.broadcast_to(np.expand_dims(keys, [*range(1, len(shape) - 1)]), shape)
        np.testing.assert_allclose(array(stack(X, attention_mask=mask))[keys], expected, atol=1e-5)
        everything = np.ones(shape, "bool")
        np.testing.assert_allclose(array(stack(masked, attention_mask=everything))[keys], expected, atol=1e-5)
    np.testing.assert_allclose(array(stack(masked, attention_mask=np.ones((5, 5), "bool")))[keys], expected, atol=1e-5)


@pytest.mark.parametrize("act_type", [None, "basic"])
def test_recomputed_activations_change_nothing(act_type):
    stacks = [encoder(act_type, recompute=recompute) for recompute in (False, True)]
    for stack in stacks:
        stack.build(X.shape)
        layers.number_seeds(stack)
        stack.set_weights(stacks[0].get_weights())
    with layers.dropout_seed(5, 1):
        kept, again = (array(stack(X, training=True)) for stack in stacks)
    np.testing.assert_allclose(again, kept, atol=1e-6)


def test_it_reads_no_prompts():
    with pytest.raises(ValueError, match=r"UniversalStack.*prompts"):
        decoder().prefill(X)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: layers.UniversalStack([layers.TransformerEncoderLayer(2, 8)], 2, signals="learned"), "`signals`"),
        (lambda: layers.UniversalStack([layers.FeedForward(8)], 0), "num_steps=0"),
        (lambda: layers.UniversalStack([], 2), "`layers`"),
        (lambda: layers.StepSignals(0), "num_steps=0"),
        (lambda: layers.StepSignals(2, step_signal="x"), "`step_signal`.*learned, sinusoid, none.*'x'"),
        (lambda: layers.StepSignals(2, position_start="x"), "`position_start`.*none, random, step.*'x'"),
    ],
)
def test_bad_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_subclass_may_make_its_layers():
    class Own(layers.UniversalStack):
        def __init__(self, size, **kwargs):
            super().__init__([layers.TransformerEncoderLayer(2, size)], 3, layers.StepSignals(3), **kwargs)

    again = Own.from_config(Own(16, halting=layers.AdaptiveComputation(), recompute=True).get_config())
    assert (again.num_steps, again.recompute, len(again.layers)) == (3, True, 3)
    assert isinstance(again.halting, layers.AdaptiveComputation)

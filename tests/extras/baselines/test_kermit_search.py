"""KERMIT's search: against a plain loop of passes, compiled, and how many passes it takes."""

import itertools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from t2t_lite import registry
from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.extras.baselines.kermit import Kermit, inserted
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.training.objectives import objective_sums
from tests.extras.baselines.small_kermit import SIZES, VOCAB, logits_of, make
from tests.layers.equations import array, softmax

SOURCES = [[5, 9, 15, 3, 1], [7, 7, 12, 18, 3, 15, 4, 1], [6, 1], [8, 4, 11, 1], [3, 3, 3, 1]]


@pytest.fixture(scope="module")
def model():
    return make()


def looped(model, source, limit):
    """Returns (ids, score, ended, passes) of the search, one pass after the other of a list of ids."""
    canvas, score = [1], 0.0
    for passes in itertools.count(1):
        logits = logits_of(model, np.array([source]), np.array([canvas]))[0]
        log_probs = np.log(softmax(logits))
        best = [1 + int(np.argmax(row[1:])) for row in log_probs]
        wanted = [i for i, id_ in enumerate(best) if id_ != 1]
        if not wanted:
            return canvas, score + sum(row[1] for row in log_probs), True, passes
        fits = wanted[: limit - len(canvas)]
        if not fits:
            return canvas, score, False, passes
        score += sum(log_probs[i, best[i]] for i in fits)
        canvas = [id_ for i, old in enumerate(canvas) for id_ in ([best[i]] if i in fits else []) + [old]]


@pytest.fixture(scope="module")
def wavering():
    """A model that leaves some slots empty."""
    model = make(seed=2, softmax_bias=True)
    bias = array(model.softmax.bias).copy()
    bias[1] = 1.0
    model.softmax.bias.assign(bias)
    return model


@pytest.mark.slow
def test_the_search_is_a_plain_loop_of_passes(wavering):
    options = SearchOptions(extra_length=6, compile=False, batch_size=4)
    results = Searcher(wavering).search(SOURCES, options)
    ended = []
    for source, (result,) in zip(SOURCES, results, strict=True):
        canvas, score, is_end, passes = looped(wavering, source, len(source) + 6)
        assert result.ids == canvas[:-1] and result.ended == is_end and not result.stopped
        assert result.score == pytest.approx(score, abs=1e-4)
        limit = np.array([len(source) + 6], "int32")
        assert array(wavering.search(np.array([source], "int32"), limit)[3]) == [passes]
        ended.append(is_end)
    assert {*ended} == {True, False}, ended


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"position": "learned", "max_position": 13}], ids=["sinusoids", "table"])
def test_a_compiled_search_finds_the_same(options):
    model = make(softmax_bias=True, **options)
    found, expected = (
        Searcher(model).search(SOURCES, SearchOptions(extra_length=6, compile=compiles)) for compiles in (True, False)
    )
    for (one,), (other,) in zip(found, expected, strict=True):
        assert one.ids == other.ids and one.score == pytest.approx(other.score, abs=1e-4)


class Counting(Kermit):
    """Its translation of n ids is 2 … n + 1, and it inserts the middle of what is missing."""

    def call(self, inputs, training=None):
        canvas = ops.convert_to_tensor(inputs["canvas"])
        end = ops.sum(ops.cast(ops.convert_to_tensor(inputs["inputs"]) != 0, "int32"), axis=1, keepdims=True) + 2
        right = ops.where(canvas == 1, end, canvas)
        left = ops.pad(canvas, ((0, 0), (1, 0)), constant_values=1)[:, :-1]
        return 9.0 * ops.one_hot(ops.where(right - left > 1, (left + right) // 2, 1), self.target_vocab_size)


@pytest.mark.slow
def test_a_slots_middle_first_takes_the_logarithm_of_the_length_in_passes(eager):
    model = Counting(100, **SIZES)
    for n in (1, 2, 7, 8, 64):
        ids, _, ended, passes = model.search(np.full((1, n), 5, "int32"), np.array([n + 50], "int32"))
        assert array(ids)[0, 0, : n + 1].tolist() == [*range(2, n + 2), 1] and array(ended).all()
        assert array(passes) == [math.floor(math.log2(n)) + 2]  # the last one finds that nothing is missing


def test_a_full_canvas_ends_the_search(eager):
    model = Counting(100, **SIZES)
    sources = np.array([[5] * 7, [5] * 7, [5] * 7, [5] * 7], "int32")
    ids, scores, ended, passes = map(array, model.search(sources, np.array([8, 7, 3, 0], "int32")))
    assert ids[:, 0].tolist() == [
        [2, 3, 4, 5, 6, 7, 8, 1],
        [2, 3, 4, 5, 6, 7, 1, 0],  # the one on the right has no room
        [3, 5, 1, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0, 0, 0],
    ]
    assert ended[:, 0].tolist() == [True, False, False, False]
    assert passes.tolist() == [4, 4, 3, 0] and scores[3] == 0


@pytest.mark.long
def test_rows_learned_by_heart_are_found_in_far_fewer_passes_than_they_have_ids():
    rows, length, draw = 8, 15, np.random.default_rng(0)
    sources = np.stack([np.arange(rows) + 2, np.ones(rows)], 1).astype("int32")  # a number, and the end
    targets = np.stack([*(draw.permutation(18)[:length] + 2 for _ in range(rows))]).astype("int32")
    batch = {
        "inputs": np.tile(sources, (8, 1)),
        "targets": np.tile(np.pad(targets, ((0, 0), (0, 1)), constant_values=1), (8, 1)),
    }
    hparams = registry.hparams("kermit_tiny").of_model(Kermit)
    model = Kermit(VOCAB, hidden_size=64, filter_size=256, num_heads=4, num_layers=2, norm="pre", dropout=0.0)
    model.build()
    optimizer = keras.optimizers.Adam(2e-3)

    @tf.function(autograph=False)
    def step(seeds):
        drawn = Kermit.corrupt({name: tf.constant(ids) for name, ids in batch.items()}, seeds, hparams)
        with tf.GradientTape() as tape:
            loss = objective_sums(model(drawn, training=True), drawn).objective["targets"] / (8.0 * rows * length / 2)
        weights = model.trainable_weights
        optimizer.apply_gradients(zip(tape.gradient(loss, [w.value for w in weights]), weights, strict=True))

    for _ in range(800):
        step(tf.constant(draw.integers(-(2**31), 2**31, (8 * rows, 2)), tf.int32))
    ids, _, ended, passes = map(array, model.search(sources, np.full(rows, 30, "int32")))
    right = [row[:length].tolist() == target.tolist() for row, target in zip(ids[:, 0], targets, strict=True)]
    assert sum(right) >= rows - 1 and ended.all() and passes.max() <= length / 2


def test_ids_are_inserted_before_those_of_the_canvas():
    found = inserted(np.array([[5, 6, 1, 0], [1, 0, 0, 0]], "int32"), np.array([[0, 9, 7, 0], [4, 0, 0, 0]], "int32"))
    assert array(found).tolist() == [[5, 9, 6, 7, 1, 0, 0, 0], [4, 1, 0, 0, 0, 0, 0, 0]]

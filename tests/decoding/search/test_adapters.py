import contextlib
import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decoding.alignment import memory_attention
from t2t_lite.decoding.scoring import log_probs_of_targets
from t2t_lite.decoding.search.adapters import Ensemble, check_ensemble, check_own_search
from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.settings.search_options import SearchOptions
from tests.decoding.runs import make_run
from tests.decoding.scripted import PlainModel, ScriptedModel, assert_found, numpy_search

SOURCES = [[2, 7, 3, 1], [5, 1], [4, 4, 9, 10, 6, 1]]
MODELS = [ScriptedModel(seed=seed, spread=1.0, end_bias=-1.0) for seed in range(3)]


class Mean:
    """The oracle: the logarithm of the mean of the probabilities."""

    vocab_size = 11

    def logits(self, source, outputs):
        logits = np.stack([model.logits(source, outputs) for model in MODELS]).astype("float64")
        return np.log((np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)).mean(0))


@pytest.mark.slow
@pytest.mark.parametrize("compile", [False, True])
def test_beam_search_of_an_ensemble_is_that_of_the_mean_of_probabilities(compile):
    """One of the models has no step of its own."""
    ensemble = Ensemble([*MODELS[:2], PlainModel(MODELS[2])])
    options = SearchOptions(beam_size=3, n_best=3, extra_length=6, compile=compile)
    for source, results in zip(SOURCES, Searcher(ensemble).search(SOURCES, options), strict=True):
        expected = numpy_search(Mean(), source, len(source) + 6, 3, 0.6, n_best=3)
        assert_found(results, expected)


@pytest.mark.slow
def test_one_model_twice_is_that_model(eager):
    model = MODELS[0]
    options = {"n_best": 3, "extra_length": 6}
    for settings in (SearchOptions(**options), SearchOptions(sampling=True, top_p=0.9, **options)):
        once = Searcher(model).search(SOURCES, settings)
        twice = Searcher(Ensemble([model] * 2)).search(SOURCES, settings)
        for ours, theirs in zip(twice, once, strict=True):
            assert [r.ids for r in ours] == [r.ids for r in theirs]
            assert [r.score for r in ours] == pytest.approx([r.score for r in theirs], abs=1e-4)


def test_logits_of_given_targets():
    features = {"inputs": tf.constant([[2, 7, 1, 0], [3, 2, 5, 1]]), "targets": tf.constant([[4, 5, 1], [9, 1, 0]])}
    plain = [PlainModel(model) for model in MODELS]
    expected = np.log(np.mean([tf.nn.softmax(model(features)) for model in plain], 0))
    np.testing.assert_allclose(Ensemble(plain)(features), expected, atol=1e-5)
    costly = [lambda features, training=False: {"targets": plain[0](features), "costs": {"inputs": 0.0}}, *plain[1:]]
    np.testing.assert_allclose(Ensemble(costly)(features), expected, atol=1e-5)
    np.testing.assert_allclose(
        log_probs_of_targets(Ensemble(costly), **features), log_probs_of_targets(Ensemble(plain), **features)
    )


@pytest.mark.slow
def test_checkpoints_of_one_run(eager, run_dir):
    paths = [f"{run_dir}/model.ckpt-{step}" for step in (100, 200)]
    ensemble, (first, second) = Translator.load(paths), map(Translator.load, paths)
    text, target = ["the red house."], ["der Baum"]
    scores = [np.array(t.score(text, target)[0].token_log_probs) for t in (ensemble, first, second)]
    np.testing.assert_allclose(scores[0], np.log((np.exp(scores[1]) + np.exp(scores[2])) / 2), atol=1e-5)
    attention = [t.model.attention_weights(_features(t))["memory"][0] for t in (ensemble, first, second)]
    np.testing.assert_allclose(attention[0], (attention[1] + attention[2]) / 2, atol=1e-6)


@pytest.mark.slow
def test_models_of_different_sizes_align_with_the_mean_of_their_attention(tmp_path):
    runs = [str(make_run(tmp_path / str(n), num_hidden_layers=n, num_heads=n)) for n in (1, 2)]
    ensemble, *each = [Translator.load(paths) for paths in (runs, *runs)]
    found = [memory_attention(t.model)([[5, 6, 1]], [[7, 1]])[0] for t in (ensemble, *each)]
    np.testing.assert_allclose(found[0], (found[1] + found[2]) / 2, atol=1e-6)
    assert np.abs(found[1] - found[2]).max() > 1e-3
    with pytest.raises(UserError, match="different numbers of layers or heads"):
        ensemble.model.attention_weights(_features(ensemble))


def test_the_shortest_table_of_positions_is_the_limit_also_if_inputs_and_outputs_share_it():
    class Joining(ScriptedModel):
        max_length, joins_inputs = 9, True

    class Longer(ScriptedModel):
        max_length = 12

    for models in ([Joining(), MODELS[0], Longer()], [Longer(), Joining()]):
        assert (Ensemble(models).max_length, Ensemble(models).joins_inputs) == (9, True)


def test_whether_it_is_in_training_is_told_to_all():
    told = []

    def model(features, training):
        told.append(training)
        return tf.zeros((1, 1, 3))

    Ensemble([model, model])({}, training=True)
    assert told == [True, True]


def _features(translator):
    inputs = [[*translator.encoders["inputs"].encode("the red house."), 1]]
    return {"inputs": tf.constant(inputs), "targets": tf.constant([[5, 6, 1]])}


@pytest.mark.slow
def test_models_of_another_vocabulary_or_problem_are_refused(run_dir, tmp_path):
    other = make_run(tmp_path, vocab_size=340)
    with pytest.raises(UserError, match=r"model\.ckpt-100: vocab_size is 340, but that of .* is 330"):
        Translator.load([str(run_dir), str(other)])
    with pytest.raises(UserError, match="no checkpoint to load"):
        Translator.load([])


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"vocabulary_sha256": {"inputs": "5" * 64}}, "vocabulary_sha256 is {'inputs': '5555.*, but"),
        ({"problem": "translate_own_rev"}, "problem is 'translate_own_rev', but that of .* is 'translate_own'"),
        ({"target_vocab_size": 9}, "target_vocab_size is 9, but that of .* is None"),
    ],
)
def test_what_must_not_differ(run_dir, changed, message):
    run = Translator.load(str(run_dir)).run
    check_ensemble([run, run])
    with pytest.raises(UserError, match=message):
        check_ensemble([run, dataclasses.replace(run, config=run.config | changed)])


class Own:
    """Has a search of its own."""

    def search(self, inputs, limit, max_length=None):
        raise AssertionError("it is not asked")


@pytest.mark.parametrize(
    ("name", "options", "prefixes"),
    [
        ("beam_size", {"beam_size": 3}, ()),
        ("sampling", {"sampling": True}, ()),
        ("n_best", {"n_best": 2}, ()),
        ("prefixes", {}, [[], [5]]),
        (None, {"beam_size": 1, "alpha": 2.0}, [[], []]),
        (None, {}, ()),
    ],
)
def test_what_a_search_of_its_own_cannot_do_is_refused(name, options, prefixes):
    with pytest.raises(UserError, match=f"^Own: {name} needs") if name else contextlib.nullcontext():
        check_own_search(Own(), SearchOptions(**options), prefixes)

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decoding.scoring import GivenTargets, TargetScore, token_log_probs
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from tests.decoding.scripted import PlainModel, ScriptedModel

TEXTS = ["the red house.", "", "a tree", "old and new and old and new.", "Grün \U0001f600 neu"]
OPTIONS = {"alpha": 0, "beam_size": 3, "n_best": 3, "extra_length": 6}


@pytest.fixture(scope="module", params=["one model", pytest.param("ensemble", marks=pytest.mark.long)])
def translator(request, run_dir):
    paths = [f"{run_dir}/model.ckpt-{step}" for step in (100, 200)]
    return Translator.load(paths if request.param == "ensemble" else paths[0])


def test_log_probabilities_by_definition():
    model, traces = ScriptedModel(spread=1.0), []
    plain = PlainModel(model)

    def counting(features, training):
        traces.append(training)
        return plain(features)

    score = token_log_probs(counting)
    draw = np.random.default_rng(0)
    for count in (7, 3):
        sources = [[*draw.integers(2, 11, n + 1).tolist(), 1] for n in range(count)]
        targets = [[*draw.integers(2, 11, 9 - n).tolist(), 1] for n in range(count)]
        for source, target, found in zip(sources, targets, score(sources, targets, batch_size=2), strict=True):
            logits = np.stack([model.logits(source, target[:n]) for n in range(len(target))]).astype("float64")
            expected = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
            np.testing.assert_allclose(found, expected[range(len(target)), target], atol=1e-5)
    assert traces == [False]  # one trace for all shapes


@pytest.mark.parametrize("lengths, batches", [([(6, 2), (4, 1)], [2]), ([(6, 2), (4, 3)], [1, 1])])
def test_no_batch_is_wider_than_the_longest_row(lengths, batches):
    """The longest source of a batch and its longest target stand in one row; here eight ids have room."""
    done, pairs = [], [([5] * source, [5] * target) for source, target in lengths]
    widths = GivenTargets(lambda sources, targets: 0 * targets + tf.shape(sources)[1] + tf.shape(targets)[1], 8)
    found = widths(*zip(*pairs, strict=True), on_progress=done.append)
    assert done == batches and max(width.max() for width in found) <= 8


@pytest.mark.parametrize("source, target", [(300, 3), (3, 300)])
def test_pairs_with_a_long_side_share_a_batch_with_fewer(source, target):
    """The width of 300 ids is 320, so that of four pairs per 128 ids there is room for one."""
    done, count = [], GivenTargets(lambda _, targets: targets)
    pairs = [([5] * source, [7] * target), *[([5] * 3, [7] * 3)] * 2]
    found = count(*zip(*pairs, strict=True), batch_size=4, on_progress=done.append)
    assert done == [1, 2] and [row.tolist() for row in found] == [target for _, target in pairs]


@pytest.mark.slow
def test_scores_are_the_sums_that_the_search_has(translator):
    found = translator.translate(TEXTS, return_token_scores=True, **OPTIONS)
    for h in (h for t in found for h in t.hypotheses if h.ids):
        assert len(h.token_scores) == len(h.ids) + h.ended
        assert sum(h.token_scores) == pytest.approx(h.score, abs=1e-4)
    assert found[1].hypotheses[0].token_scores == []
    assert translator.translate(TEXTS[:1], **OPTIONS)[0].hypotheses[0].token_scores is None


@pytest.mark.slow
def test_given_texts_score_as_when_they_are_found(translator):
    found = [(text, t.hypotheses) for text, t in zip(TEXTS, translator.translate(TEXTS, **OPTIONS), strict=True)]
    encode = translator.encoders["targets"].encode
    pairs = [(text, h) for text, hs in found for h in hs if h.ended and h.ids and encode(h.text) == h.ids]
    scores = translator.score([text for text, _ in pairs], [h.text for _, h in pairs], batch_size=2)
    for (_, h), score in zip(pairs, scores, strict=True):
        assert score.log_prob == pytest.approx(h.score, abs=1e-4)
        assert sum(score.token_log_probs) == pytest.approx(score.log_prob, abs=1e-4)
    texts, targets = ["a", "b"], ["b", ""]
    pairs = [translator.pair_ids(*pair) for pair in zip(texts, targets, strict=True)]
    assert translator.score_ids(pairs) == translator.score(texts, targets)


def test_a_score_a_token():
    assert TargetScore(-6.0, [-1.0, -2.0, -3.0]).per_token == 2.0


@pytest.mark.slow
def test_blanks_have_scores_too(translator):
    scores = translator.score(["", "a"], ["", " "])
    assert [len(score.token_log_probs) for score in scores] == [1, 1]  # that of EOS


def test_what_cannot_be_scored(translator):
    done = []
    with pytest.raises(UserError, match=r"sentence 2: the target has [0-9,]+ ids, .* 1,024"):
        translator.score(["a", "a"], ["a", "ab " * 2000])
    with pytest.raises(UserError, match="sentence 1: the text has"):
        translator.score(["ab " * 2000], ["a"])
    with pytest.raises(UserError, match="1 text, but 2 targets"):
        translator.score(["a"], ["a", "b"])
    translator.score(["a", "b", "c"], ["a", "", "c"], batch_size=2, on_progress=done.append)
    assert done == [2, 1]


def test_present_weights_are_used():
    model = PlainModel(ScriptedModel())
    model.scripted.bias = tf.Variable(model.scripted.bias)
    score = token_log_probs(lambda features, training: model(features))
    before = score([[2, 1]], [[3, 1]])[0]
    model.scripted.bias.assign_add(tf.one_hot(3, 11) * 5)
    assert score([[2, 1]], [[3, 1]])[0][0] > before[0]

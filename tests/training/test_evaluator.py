"""What an evaluation measures, on models whose outputs are known: each id is that of the input, moved by a number."""

import math

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data import sharding
from t2t_lite.data.problem import Problem
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.evaluation.metrics import metric_names
from t2t_lite.evaluation.scores import corpus_bleu, corpus_scores
from t2t_lite.settings.config import HParams
from t2t_lite.text.vocabulary import TextEncoder
from t2t_lite.training.evaluator import Evaluator
from t2t_lite.training.settings import EvaluationSettings
from tests.training.runs import given_records

VOCAB, COUNT = 30, 20


class OfTextAlone(TextEncoder):
    """As an encoder written for tensor2tensor, whose `decode` never sees an end."""

    def decode(self, ids):
        assert all(i > 1 for i in ids)
        return super().decode(ids)


ENCODERS = {side: OfTextAlone(VOCAB) for side in ("inputs", "targets")}
HPARAMS = HParams(batch_size=64, eval_decode_examples=5, eval_beam_size=2, eval_alpha=0.0, label_smoothing=0.3)
pytestmark = pytest.mark.usefixtures("eager")  # what is compiled is the trainers' tests' to show

SURE = 5.0  # the logit of the id that the model thinks of; of all others 0


class Moved:
    """Thinks that each target is the input's id moved by a number; ends where the input ends, or before."""

    def __init__(self, by, longest=99):
        self.by = by
        self.longest = longest

    def __call__(self, features, training):
        assert not training
        inputs, targets = features["inputs"], features["targets"]
        width = tf.shape(targets)[1]
        inputs = tf.pad(inputs, [[0, 0], [0, width]])[:, :width]
        thought = tf.where(inputs > 1, inputs + self.by, inputs)  # of padding, padding
        return SURE * tf.one_hot(tf.where(tf.range(width) < self.longest, thought, 1), VOCAB)


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Pairs whose targets are the inputs moved by 2, of 2 to 6 ids."""
    path = str(tmp_path_factory.mktemp("records") / "moved-dev-00000-of-00001")
    draw = np.random.default_rng(0)
    rows = [draw.integers(4, VOCAB - 4, draw.integers(1, 6)).tolist() for _ in range(COUNT)]
    sharding.write_shards(({"inputs": [*r, 1], "targets": [*(i + 2 for i in r), 1]} for r in rows), [path], seed=0)
    return [path]


def evaluator(model, paths, problem=None, hparams=HPARAMS, **more):
    return Evaluator(model, ENCODERS, hparams, given_records(problem or Problem(), paths), EvaluationSettings(**more))


@pytest.mark.few("True-False--2", "False-True-0")
@pytest.mark.slow
@pytest.mark.parametrize(
    "was_reversed, was_copy, by", [(False, False, 2), (True, False, -2), (False, True, 0), (True, True, 0)]
)
def test_a_problem_is_evaluated_in_its_direction(paths, was_reversed, was_copy, by):
    problem = Problem(was_reversed, was_copy)
    right, texts, _ = evaluator(Moved(by), paths, problem)()
    assert right["token_accuracy"] == right["exact_sequence_accuracy"] == 1.0
    assert all(output == reference for _, output, reference in texts)


@pytest.mark.slow
def test_the_loss_is_that_of_the_tokens_without_smoothing(paths):
    metrics, *_ = evaluator(Moved(2), paths)()
    expected = math.log(math.exp(SURE) + VOCAB - 1) - SURE
    assert metrics["loss"] == pytest.approx(expected, rel=1e-5)
    assert metrics["perplexity"] == pytest.approx(math.exp(expected), rel=1e-5)


def test_so_many_batches_are_taken_as_asked_for_and_the_longest_first(paths):
    seen = []

    class Watched(Moved):
        def __call__(self, features, training):
            tf.numpy_function(lambda ids: seen.append(ids.shape) or np.int32(0), [features["targets"]], tf.int32)
            return super().__call__(features, training)

    hparams = HPARAMS.override_from_dict({"eval_decode_examples": 0})
    metrics, texts, _ = evaluator(Watched(2), paths, hparams=hparams, eval_steps=2)()
    assert len(seen) == 2 and seen[0][1] == 6 and not texts
    assert tuple(metrics) == metric_names(Problem(), hparams)
    seen.clear()
    evaluator(Watched(2), paths, hparams=hparams)()
    assert sum(rows for rows, _ in seen) == COUNT


@pytest.mark.slow
def test_the_sample_is_spread_over_the_set(paths):
    _, every, _ = evaluator(Moved(2), paths, translate_all=True)()
    assert len(every) == COUNT
    thirteen = [every[i * COUNT // 13] for i in range(13)]  # the last one of the set is near its end
    assert every.index(thirteen[-1]) == 18
    for wanted, expected in ((5, every[::4]), (13, thirteen), (1000, every)):
        _, some, _ = evaluator(Moved(2), paths, hparams=HPARAMS.override_from_dict({"eval_decode_examples": wanted}))()
        assert some == expected


def test_texts_of_which_only_a_part_is_translated_are_told(paths, caplog, monkeypatch):
    evaluator(Moved(2), paths)
    assert "longer than" not in caplog.text
    monkeypatch.setattr("t2t_lite.decoding.translator.MAX_INPUT_LENGTH", 5)
    evaluator(Moved(2), paths, translate_all=True)
    count = sum(len(example["inputs"]) > 5 for example in given_records(Problem(), paths).examples(HPARAMS))
    assert f"{count} texts longer than 5 ids" in caplog.text and 1 < count < COUNT


@pytest.mark.slow
def test_search_settings_are_the_callers_then_the_hyperparameters(paths, monkeypatch):
    asked, translate = [], Translator.translate_ids
    monkeypatch.setattr(
        Translator, "translate_ids", lambda self, ids, **given: asked.append(given) or translate(self, ids, **given)
    )
    for search_of_caller in (None, {"alpha": 0.9}):
        evaluator(Moved(2), paths, search=search_of_caller)()
    assert asked == [{"beam_size": 2, "alpha": 0.0}, {"beam_size": 2, "alpha": 0.9}]


@pytest.mark.slow
def test_bleu_is_of_outputs_against_references(paths):
    """Outputs of at most three ids: the other way round there would be no brevity penalty."""

    class Text(Problem):
        eval_decode_metric = "bleu"

        def output_text(self, inputs, outputs, encoders):
            return " ".join(f"w{word}" for word in outputs.split())

    evaluate = evaluator(Moved(2, longest=4), paths, Text(), HPARAMS.override_from_dict({"eval_decode_examples": 10}))
    metrics, texts, facts = evaluate()
    outputs, references = [output for _, output, _ in texts], [reference for *_, reference in texts]
    expected, chrf = corpus_scores(outputs, references).values()
    assert 0 < metrics["bleu"] == expected.score != corpus_bleu(references, outputs).score
    assert metrics["chrf"] == chrf.score
    assert facts == {"bleu_signature": expected.signature, "chrf_signature": chrf.signature}
    for inputs, output, reference in texts:
        moved = [f"w{int(word) + 2}" for word in inputs.split()]
        assert reference == " ".join(moved) and output == " ".join(moved[:4])
    assert "exact_sequence_accuracy" not in metrics


@registry.register_metric(of="texts")
def evaluator_facts(outputs, references, language):
    return len(outputs), {"language_seen": language}


class Chinese(Problem):
    """Texts of Chinese characters without spaces."""

    language_pair, eval_decode_metric = ("en", "zh-Hant-TW"), "bleu"

    def output_text(self, inputs, outputs, encoders):
        return "".join(chr(0x4E00 + int(word)) for word in outputs.split())


@pytest.mark.slow
def test_bleu_has_the_tokenization_of_the_target_language(paths, caplog):
    hparams = HPARAMS.override_from_dict({"eval_metrics": "ter/evaluator_facts"})
    metrics, _, facts = evaluator(Moved(2), paths, Chinese(), hparams)()
    assert metrics["chrf"] == metrics["bleu"] == pytest.approx(100.0) and metrics["ter"] == 0.0
    assert tuple(metrics)[-4:] == ("ter", "evaluator_facts", "chrf", "bleu") == metric_names(Chinese(), hparams)[-4:]
    assert "|tok:zh|" in facts["bleu_signature"] and "|asian:yes|" in facts["ter_signature"]
    assert facts["language_seen"] == "zh-Hant-TW"
    other = evaluator(Moved(2), paths, Chinese(), HPARAMS.override_from_dict({"eval_tokenization": "char"}))
    assert "|tok:char|" in other()[2]["bleu_signature"]
    assert "needs spaces" not in caplog.text


@pytest.mark.slow
def test_a_run_of_an_unknown_language_without_spaces_is_warned_once(paths, caplog):
    class Unknown(Chinese):
        language_pair = None

    evaluate = evaluator(Moved(2), paths, Unknown())
    assert [evaluate()[0]["bleu"] for _ in range(2)] == [0.0, 0.0]
    assert caplog.text.count("--tokenization=zh") == 1


@pytest.mark.slow
def test_an_empty_split_is_an_error(tmp_path):
    path = tmp_path / "none"
    path.write_bytes(b"")
    with pytest.raises(UserError, match="no examples"):
        evaluator(Moved(2), [str(path)])()


@registry.register_metric(lower_is_better=True)
def wrong_tokens(logits, labels):
    wrong = (tf.argmax(logits, -1, tf.int32) != labels) & (labels != 0)
    return tf.math.count_nonzero(wrong), tf.math.count_nonzero(labels)


@registry.register_metric("share_on_diagonal", result=lambda sums: sums.trace() / sums.sum())
def confusion_matrix(logits, labels):
    predicted, labels = (tf.reshape(ids, [-1]) for ids in (tf.argmax(logits, -1, tf.int32), labels))
    return tf.math.confusion_matrix(labels, predicted, VOCAB, weights=tf.cast(labels != 0, tf.int32))


@registry.register_metric(of="ids")
def same_length(outputs, references):
    return sum(len(a) == len(b) for a, b in zip(outputs, references, strict=True)) / len(outputs)


@pytest.mark.slow
def test_own_metrics_are_sums_over_all_batches_or_scores_of_outputs(paths):
    class Own(Problem):
        eval_decode_metric = "same_length"

        def eval_metrics(self):
            return ["token_accuracy", "share_on_diagonal", "wrong_tokens"]

    evaluate = evaluator(Moved(3), paths, Own())
    metrics, texts, _ = evaluate()
    assert tuple(metrics) == metric_names(Own(), HPARAMS)
    accuracy, diagonal, wrong = (metrics[name] for name in Own().eval_metrics())
    assert 0 < accuracy == pytest.approx(diagonal) == 1 - wrong < 1
    assert metrics["same_length"] == 1.0 and len(texts) == 5

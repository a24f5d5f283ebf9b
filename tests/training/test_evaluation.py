"""What an evaluation measures, on models whose outputs are known: each id is that of the input, moved by a number."""

import math

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.config import HParams
from t2t_lite.data import sharding
from t2t_lite.data.problem import Problem
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.evaluation.scores import corpus_bleu
from t2t_lite.text.vocabulary import TextEncoder
from t2t_lite.training.evaluation import Evaluator, metric_names, metrics_of

VOCAB, COUNT = 30, 20
ENCODERS = {side: TextEncoder(VOCAB) for side in ("inputs", "targets")}
HPARAMS = HParams(batch_size=64, eval_decode_examples=5, eval_beam_size=2, eval_alpha=0.0, label_smoothing=0.3)
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
    return Evaluator(model, problem or Problem(), ENCODERS, hparams, paths, **more)


@pytest.mark.parametrize(
    "was_reversed, was_copy, by", [(False, False, 2), (True, False, -2), (False, True, 0), (True, True, 0)]
)
def test_a_problem_is_evaluated_in_its_direction(paths, was_reversed, was_copy, by):
    problem = Problem(was_reversed, was_copy)
    right, texts = evaluator(Moved(by), paths, problem)()
    assert right["token_accuracy"] == right["exact_sequence_accuracy"] == 1.0
    assert all(output == reference for _, output, reference in texts)


def test_wrong_outputs_are_no_hits(paths):
    wrong, _ = evaluator(Moved(3), paths)()
    assert 0.0 < wrong["token_accuracy"] < 0.5 and wrong["exact_sequence_accuracy"] == 0.0  # EOS is right


def test_the_loss_is_that_of_the_tokens_without_smoothing(paths):
    metrics, _ = evaluator(Moved(2), paths)()
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
    _, texts = evaluator(Watched(2), paths, hparams=hparams, max_batches=2)()
    assert len(seen) == 2 and seen[0][1] == 6 and texts == []
    seen.clear()
    evaluator(Watched(2), paths, hparams=hparams)()
    assert sum(rows for rows, _ in seen) == COUNT


def test_the_sample_is_spread_over_the_set(paths):
    _, every = evaluator(Moved(2), paths, translate_all=True)()
    assert len(every) == COUNT
    for wanted, expected in ((5, every[::4]), (1000, every)):
        _, some = evaluator(Moved(2), paths, hparams=HPARAMS.override_from_dict({"eval_decode_examples": wanted}))()
        assert some == expected


def test_search_settings_are_the_callers_then_the_hyperparameters_then_the_problems(paths, monkeypatch):
    asked = []
    search = Translator._search
    monkeypatch.setattr(
        Translator, "_search", lambda self, sources, options: asked.append(options) or search(self, sources, options)
    )

    class Its(Problem):
        decode_defaults = {"beam_size": 9, "extra_length": 7}  # noqa: RUF012

    for search_of_caller in (None, {"alpha": 0.9}):
        evaluator(Moved(2), paths, Its(), search=search_of_caller)()
    assert [(o.beam_size, o.alpha, o.extra_length) for o in asked] == [(2, 0.0, 7), (2, 0.9, 7)]


def test_bleu_is_of_outputs_against_references(paths):
    """Outputs of at most three ids: the other way round there would be no brevity penalty."""

    class Text(Problem):
        eval_decode_metric = "bleu"

        def output_text(self, inputs, outputs, encoders):
            return " ".join(f"w{word}" for word in outputs.split())

    evaluate = evaluator(Moved(2, longest=4), paths, Text(), HPARAMS.override_from_dict({"eval_decode_examples": 10}))
    metrics, texts = evaluate()
    outputs, references = [output for _, output, _ in texts], [reference for *_, reference in texts]
    expected = corpus_bleu(outputs, references)
    assert 0 < metrics["bleu"] == expected.score != corpus_bleu(references, outputs).score
    assert evaluate.bleu_signature == expected.signature
    for inputs, output, reference in texts:
        moved = [f"w{int(word) + 2}" for word in inputs.split()]
        assert reference == " ".join(moved) and output == " ".join(moved[:4])
    assert "exact_sequence_accuracy" not in metrics


def test_an_empty_split_is_an_error(tmp_path):
    path = tmp_path / "none"
    path.write_bytes(b"")
    with pytest.raises(UserError, match="the records hold no example"):
        evaluator(Moved(2), [str(path)])()


def test_the_names_of_the_metrics_are_those_that_come(paths):
    metrics, _ = evaluator(Moved(2), paths)()
    assert metric_names(Problem(), HPARAMS) == tuple(metrics)
    without = HPARAMS.override_from_dict({"eval_decode_examples": 0})
    assert metric_names(Problem(), without) == tuple(evaluator(Moved(2), paths, hparams=without)()[0])
    assert metrics_of({"step": 3, "seconds": 1.0, **metrics}) == metrics
    every = {"loss": 1.0, "perplexity": 2.0, "token_accuracy": 0.5, "bleu": 3.0, "bracketing_f1": 4.0}
    assert metrics_of(every | {"event": "evaluation", "exact_sequence_accuracy": None}) == every

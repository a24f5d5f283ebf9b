"""The metrics of evaluations: which a problem has, what they are, and which figures a line shows."""

import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.evaluation.metrics import (
    check_features,
    exact_sequence_accuracy,
    lower_is_better,
    metric_names,
    metrics_of,
    shown_metrics,
    token_accuracy,
)
from t2t_lite.settings.config import HParams


def shown(name, hparams, found=None):
    problem = registry.problem(name)
    return shown_metrics(problem, hparams, metric_names(problem, hparams) if found is None else found)


@pytest.mark.parametrize(
    ("problem", "expected"),
    {
        "translate_own": ["loss", "bleu"],
        "languagemodel_own": ["perplexity", "bits_per_byte"],
        "languagemodel_own_characters": ["perplexity", "bits_per_byte"],
        "classify_own": ["loss", "accuracy"],
        "regress_own": ["loss", "spearman"],
        "masked_lm_own": ["loss", "token_accuracy"],
        "algorithmic_reverse_decimal40": ["loss", "exact_sequence_accuracy"],
    }.items(),
)
def test_a_loss_and_a_score(problem, expected):
    assert shown(problem, HParams()) == expected


def test_every_problem_shows_two():
    for name in registry.list_problems():
        assert len(shown(name, HParams())) == 2, name


def test_without_outputs_or_counts_other_figures_stand_for_them():
    assert shown("translate_own", HParams(eval_decode_examples=0)) == ["loss", "token_accuracy"]
    uncounted = ["loss", "perplexity", "token_accuracy"]  # data of an earlier version
    assert shown("languagemodel_own", HParams(), uncounted) == ["perplexity", "token_accuracy"]


def test_what_is_asked_for_is_shown():
    assert shown("translate_own", HParams(eval_metrics="ter/chrf")) == ["loss", "ter", "chrf", "bleu"]


def test_token_accuracy_leaves_padding_out():
    labels = tf.constant([[3, 4, 0], [5, 0, 6]])
    logits = tf.one_hot([[3, 9, 0], [5, 2, 6]], 10)
    assert [int(count) for count in token_accuracy(logits, labels)] == [3, 4]
    assert [int(count) for count in token_accuracy(logits, tf.zeros_like(labels))] == [0, 0]


def test_metrics_of_outputs():
    assert exact_sequence_accuracy([[3, 4], [5], []], [[3, 4], [5, 6], []]) == 2 / 3
    score, more = registry.metric("bleu")(["a b c e"], ["a b c d"], tokenize="char", language="de")
    assert list(more) == ["bleu_signature"] and "|tok:char|" in more["bleu_signature"] and 0 < score < 100
    score, more = registry.metric("ter")(["我书"], ["我们"], language="zh")
    assert score == 50 and "|norm:yes|" in more["ter_signature"]  # one character of two
    assert registry.metric("ter")(["我书"], ["我们"])[0] == 100
    assert [name for name in ("bleu", "chrf", "chrf++", "ter") if registry.metric(name).decides] == ["bleu"]


def test_which_are_better_where_they_are_lower():
    names = ("loss", "perplexity", "bits_per_byte", "loss_ponder", "ter", "bleu", "accuracy", "spearman")
    assert [lower_is_better(name) for name in names] == [True] * 5 + [False] * 3


def test_figures_of_a_line_of_a_log():
    line = dict.fromkeys(registry.LOG_FIELDS, 7.5) | {"loss": 1.5, "bleu": 20, "bleu_signature": "x", "ok": True}
    assert metrics_of(line) == {"loss": 1.5, "bleu": 20}


@pytest.mark.parametrize(
    ("problem", "hparams", "expected"),
    [
        ("translate_own", {}, "token_accuracy chrf bleu"),
        (
            "translate_own",
            {"eval_metrics": "ter/chrf/exact_sequence_accuracy"},
            "token_accuracy ter chrf exact_sequence_accuracy bleu",
        ),
        ("translate_own", {"eval_metrics": "ter", "eval_decode_examples": 0}, "token_accuracy"),
        ("translate_own", {"eval_decode_examples": 1}, "token_accuracy chrf bleu"),
        ("classify_own", {"eval_metrics": "f1_macro/mcc"}, "accuracy f1_macro mcc"),
    ],
)
def test_the_metrics_of_a_run(problem, hparams, expected):
    found = metric_names(registry.problem(problem), HParams(**hparams))
    assert found == ("loss", "perplexity", *expected.split())


@pytest.mark.parametrize(
    ("name", "changes", "hparams", "message"),
    [
        ("translate_own", {}, {"eval_metrics": "blue"}, r"^eval_metrics: .*'blue'.*Nearest: bleu"),
        ("languagemodel_own", {}, {"eval_metrics": "bleu"}, r"^eval_metrics=bleu: .* texts.*languagemodel_own"),
        ("translate_own", {}, {"eval_metrics": "mcc"}, r"^translate_own: mcc .*sequence_to_sequence"),
        ("classify_own", {}, {"eval_metrics": "pearson"}, r"^classify_own: pearson .*classification.*accuracy, f1"),
        ("translate_own", {}, {"eval_tokenization": "13b"}, r"^eval_tokenization=13b"),
        ("translate_own", {"eval_metrics": lambda: ["bleu"]}, {}, r"^translate_own: eval_metrics .*bleu.* texts"),
        ("translate_own", {"eval_metrics": lambda: ["accurcy"]}, {}, r"^translate_own: eval_metrics: .*'accurcy'"),
        (
            "translate_own",
            {"eval_decode_metric": "accuracy"},
            {},
            r"^translate_own: eval_decode_metric .*accuracy.* logits",
        ),
        ("translate_own", {"loss_metrics": ("bits",)}, {}, r"^translate_own: loss_metrics has 'bits'"),
    ],
)
def test_metrics_that_a_run_cannot_have(name, changes, hparams, message):
    problem = registry.problem(name)
    vars(problem).update(changes)
    with pytest.raises(UserError, match=message):
        metric_names(problem, HParams(**hparams))


def test_a_metric_of_a_feature_needs_its_logits():
    problem = registry.problem("translate_own")
    check_features(problem, ["token_accuracy", "sentence_accuracy"], ["targets", "sentence"])
    with pytest.raises(UserError, match=r"sentence_accuracy .*'sentence'.* predicts targets\..*translate_own"):
        check_features(problem, ["token_accuracy", "sentence_accuracy"], ["targets"])

"""What a search optimizes."""
# Nearest tests of: extras/autotune/study.py

import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.extras.autotune.study import Objective, choose_objective

TRANSLATE, REVERSE = "translate_ende_wmt32k", "algorithmic_reverse_decimal40"


def chosen(problem, *arguments):
    return choose_objective(registry.problem(problem), registry.hparams("transformer_tiny"), *arguments)


@pytest.mark.parametrize(
    ("problem", "arguments", "metric", "maximize"),
    [
        (TRANSLATE, (), "bleu", True),
        (REVERSE, (), "loss", False),
        (TRANSLATE, ("loss",), "loss", False),
        (TRANSLATE, ("metrics-translate_ende/neg_log_perplexity", True), "loss", False),
        (TRANSLATE, ("metrics-translate_ende/targets/approx_bleu_score", True), "bleu", True),
        (REVERSE, ("metrics-reverse/accuracy",), "token_accuracy", True),
        (REVERSE, ("accuracy_per_sequence",), "exact_sequence_accuracy", True),
        (REVERSE, ("perplexity", False), "perplexity", False),
        (REVERSE, (None, None, "token_accuracy"), "token_accuracy", True),
        (REVERSE, ("loss_other",), "loss_other", False),
    ],
)
def test_metrics_and_their_directions(problem, arguments, metric, maximize):
    assert chosen(problem, *arguments) == Objective(metric, maximize)


@pytest.mark.parametrize(("translate_all", "metric"), [(False, "loss"), (True, "bleu")])
def test_outputs_are_scored_if_any_are_decoded(translate_all, metric):
    hparams = registry.hparams("transformer_tiny").parse("eval_decode_examples=0")
    assert choose_objective(registry.problem(TRANSLATE), hparams, translate_all=translate_all).metric == metric


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("bleau",), "--autotune_objective=bleau: .* Nearest: bleu"),
        ((None, None, "blue"), "--best_checkpoint_metric=blue: "),
        (("loss", True), "--autotune_maximize=true: smaller values of loss"),
        (("bleu", False), "--autotune_maximize=false: larger values of bleu"),
        (("neg_log_perplexity", False), "--autotune_maximize=false: larger values of neg_log_perplexity"),
        (("loss", None, "bleu"), "--best_checkpoint_metric=bleu and --autotune_objective=loss"),
        (("loss", None, "none"), "--best_checkpoint_metric=none"),
    ],
)
def test_mistakes(arguments, words):
    with pytest.raises(UserError, match=words):
        chosen(TRANSLATE, *arguments)

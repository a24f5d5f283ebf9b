"""Which figures of an evaluation its line shows."""

import pytest

from t2t_lite import registry
from t2t_lite.evaluation.metrics import metric_names, shown_metrics
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

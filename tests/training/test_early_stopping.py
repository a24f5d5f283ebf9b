"""The rule by which a run ends early, on metrics written by hand."""

import pytest

from t2t_lite.errors import UserError
from t2t_lite.training.early_stopping import check_early_stopping, has_metric_plateaued, reason_to_stop
from t2t_lite.training.settings import EarlyStopping

NAMES = ("loss", "perplexity", "token_accuracy", "bleu")


@pytest.mark.parametrize(
    ("steps", "values", "expected"),
    {
        "no evaluation is old enough": ([10, 20], [3.0, 3.0], False),
        "nothing moved": ([10, 20, 30, 40], [3.0, 3.0, 3.0, 3.0], True),
        "a move of just delta counts": ([10, 20, 30, 40], [3.0, 3.0, 2.5, 3.0], False),
        "a smaller one does not": ([10, 20, 30, 40], [3.0, 3.0, 2.75, 3.0], True),
        "the newest of the old ones is to be beaten": ([10, 20, 30, 40, 50], [1.0, 3.0, 2.0, 2.0, 2.0], False),
        "what came before it does not count": ([10, 20, 30, 40, 50], [9.0, 3.0, 3.0, 3.0, 3.0], True),
        "worse is no move": ([10, 20, 30, 40], [3.0, 5.0, 6.0, 7.0], True),
    }.values(),
)
def test_the_rule(steps, values, expected):
    assert has_metric_plateaued(steps, values, num_steps=30, delta=0.5) == expected
    mirrored = [-value for value in values]
    assert has_metric_plateaued(steps, mirrored, num_steps=30, delta=0.5, decrease=False) == expected


def history(name, values):
    return [(10 * (i + 1), {name: value}) for i, value in enumerate(values)]


def test_the_direction_is_the_metrics_own():
    rising = [1.0, 2.0, 3.0, 4.0]
    assert reason_to_stop(EarlyStopping(20, "bleu", 0.5), history("bleu", rising)) is None
    why = reason_to_stop(EarlyStopping(20, "loss", 0.5), history("loss", rising))
    assert "loss was 2 at step 20 and 3 at best in the 20 steps since" in why


def test_off_or_without_the_metric_it_never_stops():
    assert reason_to_stop(EarlyStopping(), history("loss", [1.0] * 9)) is None
    assert reason_to_stop(EarlyStopping(10, "bleu"), history("loss", [1.0] * 9)) is None
    assert reason_to_stop(EarlyStopping(10), []) is None


def test_mistakes():
    check_early_stopping(EarlyStopping(10, "bleu", metric_minimize=False), NAMES)
    check_early_stopping(EarlyStopping(None, "nonsense"), NAMES)
    with pytest.raises(UserError, match=r"metric=blue: not a metric .* Nearest: bleu"):
        check_early_stopping(EarlyStopping(10, "blue"), NAMES)
    with pytest.raises(UserError, match="of bleu more is better"):
        check_early_stopping(EarlyStopping(10, "bleu", metric_minimize=True), NAMES)

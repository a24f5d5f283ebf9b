"""Metrics of answers, against values worked out by hand."""

import math
import subprocess
import sys

import pytest

from t2t_lite.errors import UserError
from t2t_lite.evaluation.answer_scores import OF_CLASSES, OF_NUMBERS

SCORES = OF_CLASSES | OF_NUMBERS
# Three of four "yes" found, one of two "no".
PREDICTED, EXPECTED = ["yes", "yes", "yes", "no", "no", "yes"], ["yes", "yes", "yes", "yes", "no", "no"]


@pytest.mark.parametrize(
    "name, predicted, expected, score",
    [
        ("accuracy", PREDICTED, EXPECTED, 4 / 6),
        ("f1_binary", PREDICTED, EXPECTED, 2 * 3 / (4 + 4)),
        ("f1_macro", PREDICTED, EXPECTED, (2 * 3 / 8 + 2 * 1 / 4) / 2),
        ("f1_macro", ["a", "b", "c"], ["a", "b", "b"], (1 + 2 / 3 + 0) / 3),
        ("mcc", PREDICTED, EXPECTED, (3 * 1 - 1 * 1) / math.sqrt(4 * 4 * 2 * 2)),
        ("mcc", ["yes"] * 4, ["yes", "no"] * 2, 0.0),
        ("pearson", [1.0, 2.0, 3.0], [1.0, 2.0, 4.0], 3 / math.sqrt(2 * 14 / 3)),
        ("spearman", [1.0, 2.0, 3.0], [10.0, 100.0, 1000.0], 1.0),
        ("spearman", [1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 4.0, 3.0], 1 - 6 * 2 / (4 * 15)),
        ("pearson", [2.0, 2.0, 2.0], [1.0, 2.0, 3.0], 0.0),
    ],
)
def test_scores(name, predicted, expected, score):
    assert SCORES[name](predicted, expected) == pytest.approx(score, abs=1e-12)


def test_labels_that_a_metric_is_not_for():
    with pytest.raises(UserError, match=r"f1_binary: 3 labels, 'a, b, c'\. Expected two; for more there is f1_macro"):
        SCORES["f1_binary"](["a", "b", "c"], ["a", "b", "c"])


@pytest.mark.parametrize("name, package", [("mcc", "scikit-learn"), ("pearson", "scipy")])
def test_without_its_package_a_metric_says_what_to_install(name, package):
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.modules['sklearn'] = sys.modules['scipy'] = None\n"
            "from t2t_lite.evaluation.answer_scores import OF_CLASSES, OF_NUMBERS\n"
            f"try: (OF_CLASSES | OF_NUMBERS)[{name!r}].check()\nexcept ValueError as error: print(error)",
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    expected = f"this metric needs {package}, which is not installed. Run: pip install 't2t_lite[labels]'"
    assert done.stdout.strip() == expected, done.stderr

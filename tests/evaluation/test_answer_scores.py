"""Metrics of answers, worked out by hand; intervals and comparisons, against what is known of their distributions."""

import math
import sys

import numpy as np
import pytest
import scipy.stats

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.evaluation.answer_scores import (
    CLASS_METRICS,
    NUMBER_METRICS,
    as_text,
    make_report,
    metric_names,
    read_predictions,
    read_reference,
    scored_task,
)

SCORES = CLASS_METRICS | NUMBER_METRICS
# Three of four "yes" found, one of two "no".
PREDICTED, EXPECTED = ["yes", "yes", "yes", "no", "no", "yes"], ["yes", "yes", "yes", "yes", "no", "no"]
COUNT = 2000
LABELS = ["yes" if i % 2 else "no" for i in range(COUNT)]


def wrong(share, seed):
    """Predictions of which about so many are wrong."""
    draw = np.random.default_rng(seed)
    return [{"yes": "no", "no": "yes"}[label] if draw.random() < share else label for label in LABELS]


def report(*systems, names=("accuracy",)):
    return make_report("classification", names, LABELS, *systems)["metrics"]


def test_the_interval_of_a_share_is_that_of_its_standard_error():
    found = report(wrong(0.2, 0))["accuracy"]
    error = 1.96 * math.sqrt(found["score"] * (1 - found["score"]) / COUNT)
    assert found["interval"] == pytest.approx([found["score"] - error, found["score"] + error], abs=0.1 * error)


def test_a_difference_has_the_p_value_of_a_sign_test():
    systems = wrong(0.2, 0), wrong(0.23, 1)
    found = report(*systems)["accuracy"]
    better, worse = (
        sum(a == e != b for a, b, e in zip(*pair, LABELS, strict=True)) for pair in (systems, systems[::-1])
    )
    assert found["difference"] == pytest.approx((better - worse) / COUNT)
    expected = scipy.stats.binomtest(better, better + worse).pvalue
    assert 0.001 < expected < 0.2 and found["p_value"] == pytest.approx(expected, rel=0.25)
    low, high = found["difference_interval"]
    assert low < found["difference"] < high


def test_both_systems_are_scored_on_the_same_resamples():
    """Systems with the same mistakes but one: their difference varies far less than either of them."""
    one = wrong(0.2, 0)
    other = [{"yes": "no", "no": "yes"}[one[0]], *one[1:]]
    found = report(one, other)["accuracy"]
    (low, high), (all_low, all_high) = found["difference_interval"], found["interval"]
    assert high - low < (all_high - all_low) / 10
    same = report(one, one)["accuracy"]
    assert (same["difference"], same["difference_interval"], same["p_value"]) == (0.0, [0.0, 0.0], 1.0)


def test_as_many_resamples_are_drawn_as_asked_for():
    """The p-value is a number of resamples, plus one, out of their number, plus one."""
    made = make_report("classification", ["accuracy"], LABELS, wrong(0.2, 0), wrong(0.23, 1), resamples=10)
    p_value = made["metrics"]["accuracy"]["p_value"]
    assert p_value * 11 == pytest.approx(round(p_value * 11)) and p_value >= 1 / 11


def test_a_report_is_the_same_every_time():
    assert report(wrong(0.2, 0)) == report(wrong(0.2, 0))
    assert report(wrong(0.2, 0))["accuracy"]["interval"] == report(wrong(0.2, 0), wrong(0.3, 1))["accuracy"]["interval"]


@pytest.mark.parametrize(
    "task, expected, names",
    [
        ("classification", ["a", "b"], ["accuracy", "f1_macro", "f1_binary", "mcc"]),
        ("classification", ["a", "b", "c"], ["accuracy", "f1_macro", "mcc"]),
        ("regression", [1.0], ["pearson", "spearman"]),
    ],
)
def test_the_metrics_that_the_answers_allow(task, expected, names):
    assert metric_names(task, expected) == names


def test_metrics_of_other_tasks_are_refused():
    with pytest.raises(UserError, match=r"--metrics=f1_makro: expected one of accuracy, .* Nearest: .*f1_macro"):
        metric_names("classification", [], ["f1_makro"])


def test_lines_of_a_report():
    metrics = {"mcc": {"score": 0.5, "interval": [0.25, 0.75]}}
    made = {"task": "classification", "answers": 1, "resamples": 1000, "seed": 1, "metrics": metrics}
    assert as_text(made) == ["mcc = 0.5000 [0.2500, 0.7500]", "1 text; brackets contain 95 % of 1,000 resamples"]
    metrics["mcc"] |= {"baseline": 0.6, "baseline_interval": [0.5, 0.7], "difference": -0.1}
    metrics["mcc"] |= {"difference_interval": [-0.2, 0.1], "p_value": 0.25}
    assert as_text(made)[0].endswith(
        "  baseline 0.6000 [0.5000, 0.7000]  difference -0.1000 [-0.2000, +0.1000]  p = 0.250"
    )


def test_a_report_names_the_label_whose_f1_it_has():
    """F1 is not symmetric: of GLUE's labels for QQP, the last in the alphabet is not_duplicate."""
    expected, predicted = ["duplicate", "not_duplicate", "not_duplicate"], ["duplicate"] * 3
    made = make_report("classification", ["f1_binary", "f1_macro"], expected, predicted, resamples=10)
    assert made["metrics"]["f1_binary"]["positive"] == "not_duplicate" and made["metrics"]["f1_binary"]["score"] == 0
    assert "positive" not in made["metrics"]["f1_macro"]
    f1_binary, f1_macro, _ = as_text(made)
    assert f1_binary.endswith("]  label 'not_duplicate'") and "label" not in f1_macro


@pytest.mark.parametrize("answers", [["no"] * 3, ["no", "no", "yes"]])
def test_both_systems_are_scored_for_the_same_label(answers):
    """Even if only one of them ever predicts it: none of the three expected answers is yes."""
    made = make_report("classification", ["f1_binary"], ["no"] * 3, answers, ["no", "yes", "no"], resamples=2)
    entry = made["metrics"]["f1_binary"]
    assert entry["positive"] == "yes" and entry["score"] == entry["baseline"] == 0


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
    with pytest.raises(UserError, match=r"f1_binary: found 3 labels \('a, b, c'\)\. Expected two.*f1_macro"):
        SCORES["f1_binary"](["a", "b", "c"], ["a", "b", "c"])


@pytest.mark.parametrize("name, package", [("mcc", "scikit-learn"), ("pearson", "scipy")])
def test_without_its_package_a_metric_says_what_to_install(monkeypatch, name, package):
    for module in ("sklearn", "scipy"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match=rf"^this metric needs {package}, which is not installed\. .*\[labels\]"):
        SCORES[name].check()


@pytest.mark.parametrize(
    ("text", "columns", "header", "answers", "blanks"),
    [
        ("yes\ta\n\nno\tb\n\n\n", (), None, ["yes", "no"], [2]),
        ("\nlabel\ttext\n\nyes\ta\n\n\nno\tb\n", (), True, ["yes", "no"], [1, 3, 4]),
        ("id\tlabel\n7\tyes\n\n8\tno\n", ("label",), None, ["yes", "no"], [2]),
        ("a\t yes \nb\tno\textra\n", ("2",), False, ["yes", "no"], []),
    ],
)
def test_answers_in_columns_and_the_blank_lines_between(tmp_path, text, columns, header, answers, blanks):
    """Blank lines are counted as texts are, without a header; t2t-decoder leaves the same ones blank."""
    (tmp_path / "ref").write_text(text)
    reference = read_reference(str(tmp_path / "ref"), "classification", columns, header)
    assert (reference.answers, reference.keys) == (answers, blanks)
    lines = [*answers]
    for at in blanks:
        lines.insert(at - 1, "")
    (tmp_path / "out").write_text("".join(f"{line}\t0.5\n" if line else "\n" for line in lines))
    assert read_predictions(str(tmp_path / "out"), reference) == answers
    (tmp_path / "out").write_text("".join(f"{answer}\n" for answer in answers))
    assert read_predictions(str(tmp_path / "out"), reference) == answers
    (tmp_path / "out").write_text("yes\n\n\n\n\n\nno\n")
    with pytest.raises(UserError, match=r"/out, line \d: .*blank .*/ref"):
        read_predictions(str(tmp_path / "out"), reference)


@pytest.mark.parametrize(
    ("name", "text", "columns", "header"),
    [
        ("ref.csv", '"a, b","one, two"\n\n"no; ""x""",three\n', (), None),
        ("ref.csv", 'id;label;text\n1;a, b;"one; two"\n2;"no; ""x""";three\n', ("label",), None),
        ("ref.jsonl", '{"label": "a, b", "text": "one"}\n{"label": "no; \\"x\\"", "text": ""}\n', (), None),
        ("ref.jsonl", '{"y": {"z": "a, b"}}\n{"y": {"z": "no; \\"x\\""}}\n', ("y.z",), None),
    ],
)
def test_references_are_also_the_other_tables_that_t2t_datagen_reads(tmp_path, name, text, columns, header):
    """Predictions stay lines with tabs, whatever their name."""
    (tmp_path / name).write_text(text)
    reference = read_reference(str(tmp_path / name), "classification", columns, header)
    assert reference.answers == ["a, b", 'no; "x"']
    (tmp_path / "out.csv").write_text('a, b\t0.5\nno; "x"\t0.7\n')
    assert read_predictions(str(tmp_path / "out.csv"), reference) == reference.answers


@pytest.mark.parametrize(
    ("reference", "predictions", "message"),
    [
        ("1\ta\n", "1\n2\n", r"/out has 2 lines, .*/ref has 1"),
        ("1\ta\nx\tb\n", "", r"/ref, line 2: found 'x' in column 1"),
        ("1\ta\n", "one\n", r"/out, line 1: found 'one' in column 1"),
    ],
)
def test_numbers_that_cannot_be_scored(tmp_path, reference, predictions, message):
    for name, text in (("ref", reference), ("out", predictions)):
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=message):
        read_predictions(str(tmp_path / "out"), read_reference(str(tmp_path / "ref"), "regression"))


def test_blank_lines_of_json_count_in_messages(tmp_path):
    (tmp_path / "ref.jsonl").write_text('{"number": 1}\n\n{"number": "x"}\n')
    with pytest.raises(UserError, match=r"/ref\.jsonl, line 3: found 'x'"):
        read_reference(str(tmp_path / "ref.jsonl"), "regression")


@pytest.mark.parametrize("task", [name for name in registry.list_tasks() if registry.task(name).metrics])
def test_a_reference_has_answers(tmp_path, task):
    (tmp_path / "blank").write_text('{"data": []}' if task == "spans" else "\n \n")
    with pytest.raises(UserError, match="blank: contains no answers"):
        read_reference(str(tmp_path / "blank"), task)


def test_tasks_with_answers():
    assert scored_task("regression").columns == ("number",)
    with pytest.raises(UserError, match=r"--task=regresion: .*classification, regression.* Nearest: regression"):
        scored_task("regresion")
    with pytest.raises(UserError, match="--task=language_model"):
        scored_task("language_model")

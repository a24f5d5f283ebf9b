"""t2t-score on the files of every task."""
# Nearest tests of: bin/t2t_score.py, t2t_lite/evaluation/answer_scores.py

import json

import pytest

from tests.registered import registered

SQUAD = {
    "data": [
        {
            "paragraphs": [
                {
                    "context": "The red fox sees a dog.",
                    "qas": [
                        {
                            "id": "1",
                            "question": "Who?",
                            "answers": [{"text": "fox", "answer_start": 8}, {"text": "red fox", "answer_start": 4}],
                        },
                        {"id": "2", "question": "Whom?", "answers": [{"text": "a dog", "answer_start": 17}]},
                    ],
                }
            ]
        }
    ]
}
CONLL = "Kim NNP B-PER\nsleeps VBZ O\n\nAt IN O\nYork NNP B-LOC\nUni NNP I-LOC\n"
# Task -> (reference, predictions as t2t-decoder writes them, scores worked out by hand).
FILES = {
    "classification": (
        "yes\tone\nno\ttwo\n\nyes\tthree\tand more\nno\tfour\n", "yes\t0.9\nyes\t0.6\nyes\t0.8\nno\t0.7\n",
        {"accuracy": 3 / 4, "f1_macro": (4 / 5 + 2 / 3) / 2, "f1_binary": 4 / 5, "mcc": 2 / 12**0.5},
    ),
    "regression": ("1\ta\n2\tb\n4.0\tc\n", "1\n2.5\n3\n", {"pearson": 0.891042111136306, "spearman": 1.0}),
    "tagging": (
        CONLL, "Kim\tB-PER\nsleeps\tO\n\nAt\tO\nYork\tB-LOC\nUni\tO\n\n",
        {"token_accuracy": 4 / 5, "entity_f1": 1 / 2, "entity_precision": 1 / 2, "entity_recall": 1 / 2},
    ),
    "spans": (
        json.dumps(SQUAD), '{"1": "the red fox",\n "2": "dog sees"}\n',
        {"exact_match": 1 / 2, "squad_f1": (1 + 2 / 3) / 2},
    ),
}  # fmt: skip


@pytest.fixture
def score(call_command, tmp_path):
    """Scores a text of predictions against one of references; `baseline`: a text, too."""

    def score(task, reference, predictions, *flags, baseline=None):
        given = {"reference": reference, "predictions": predictions, "baseline": baseline}
        given = {name: text for name, text in given.items() if text is not None}
        for name, text in given.items():
            (tmp_path / name).write_text(text)
        return call_command(
            "t2t-score", f"--task={task}", "--resamples=10", *(f"--{name}={name}" for name in given), *flags
        )

    return score


@pytest.mark.parametrize("task", registered(FILES))
def test_scores_of_files(score, task):
    reference, predictions, expected = FILES[task]
    result = score(task, reference, predictions, "--json")
    assert (result.status, result.stderr) == (0, "")
    metrics = json.loads(result.stdout)["metrics"]
    assert {name: found["score"] for name, found in metrics.items()} == pytest.approx(expected)
    lines = score(task, reference, predictions, baseline=predictions).stdout.splitlines()
    assert len(lines) == 1 + len(expected)
    for line, (name, value) in zip(lines, expected.items(), strict=False):
        assert line.split()[:3] == [name, "=", f"{value:.4f}"] and line.endswith("p = 1.000")


def test_metrics_that_are_asked_for(score):
    reference, predictions, _ = FILES["classification"]
    lines = score("classification", reference, predictions, "--metrics=mcc,accuracy").stdout.splitlines()
    assert [line.split()[0] for line in lines[:2]] == ["mcc", "accuracy"]
    assert lines[2:] == ["4 texts; brackets contain 95 % of 10 resamples"]


@pytest.mark.parametrize(
    "task, predictions, expected",
    registered([
        ("classification", "yes\nmaybe\nyes\nno\n", {"accuracy": 3 / 4, "f1_macro": 5 / 9, "mcc": 6 / 80**0.5}),
        ("tagging", "Kim\tNNP\nsleeps\tO\n\nAt\tO\nYork\tB-LOC\nUni\tO\n", {"token_accuracy": 3 / 5}),
    ]),
)  # fmt: skip
def test_labels_that_the_reference_lacks(score, task, predictions, expected):
    """Of either system; then no metric is left that cannot count them."""
    reference, known, _ = FILES[task]
    result = score(task, reference, predictions, "--json")
    assert (result.status, result.stderr) == (0, "")
    metrics = json.loads(result.stdout)["metrics"]
    assert {name: found["score"] for name, found in metrics.items()} == pytest.approx(expected)
    compared = score(task, reference, known, "--json", baseline=predictions)
    assert list(json.loads(compared.stdout)["metrics"]) == list(expected)


def test_columns_of_the_reference_are_chosen(score, assert_user_error):
    reference, predictions, _ = FILES["classification"]
    rows = [line.split("\t") for line in reference.splitlines()]
    header = "id\ttext\tlabel\n" + "".join(f"7\t{row[-1]}\t{row[0]}\n" if row[0] else "\n" for row in rows)
    predictions = predictions.replace("yes\t0.8", "\nyes\t0.8")
    by_hand = "accuracy  = 0.7500"
    for flags in (["--columns=label"], ["--columns=3", "--header"]):
        assert by_hand in score("classification", header, predictions, *flags).stdout
    assert_user_error(score("classification", header, predictions), "reference, line 1", "looks like a header")
    pytest.importorskip("t2t_lite.extras.tagging")
    conll = "".join(f"{line.replace(' ', chr(9))}\tx\n" if line else "\n" for line in CONLL.splitlines())
    found = json.loads(score("tagging", conll, FILES["tagging"][1], "--columns=1,3", "--json").stdout)
    assert found["metrics"]["token_accuracy"]["score"] == 0.8
    pytest.importorskip("t2t_lite.extras.question_answering")
    assert_user_error(score("spans", *FILES["spans"][:2], "--header"), "--task=spans")


def test_questions_that_squad_2_marks_as_impossible(score):
    pytest.importorskip("t2t_lite.extras.question_answering")
    squad = json.loads(FILES["spans"][0])
    squad["data"][0]["paragraphs"][0]["qas"].append({"id": 3, "question": "?", "is_impossible": True, "answers": []})
    for answer, right in (("", 2 / 3), ("dog", 1 / 3)):
        predictions = json.dumps({"1": "the red fox", "2": "dog sees", "3": answer})
        found = json.loads(score("spans", json.dumps(squad), predictions, "--json").stdout)
        assert found["metrics"]["exact_match"]["score"] == pytest.approx(right)


def test_another_form_of_unicode_is_reported(score):
    reference = "é\tone\nno\ttwo\né\tthree\n"
    said = score("classification", reference, "e\u0301\nno\né\n").stderr
    assert "1 answer, such as answer 1: the text and the reference use different Unicode forms" in said
    assert score("classification", reference, "é\nno\nno\n").stderr == ""


def test_questions_without_an_answer_count_as_wrong(score):
    pytest.importorskip("t2t_lite.extras.question_answering")
    result = score("spans", FILES["spans"][0], '{"1": "fox"}', "--metrics=exact_match")
    assert result.stdout.startswith("exact_match = 0.5000 ")
    assert (
        "predictions: lacks answers to 1 of 2 questions, such as '2'. Missing answers count as wrong." in result.stderr
    )


@pytest.mark.parametrize(
    "task, changed, words",
    registered([
        ("classification", {"predictions": ""}, ["predictions", "empty"]),
        ("classification", {"predictions": "yes\n\nyes\nyes\nno\n"}, ["predictions, line 2: ", "but not in both"]),
        ("classification", {"predictions": "0.9\n0.8\n0.7\n0.1\n"}, ["no line begins with a label", "'yes'"]),
        ("tagging", {"predictions": "Kim\tO\n\n"}, ["predictions has 1 sentence, but reference has 2"]),
        ("tagging", {"predictions": "Tim\tO\n\nAt\tO\n\n"}, ["predictions, line 1", "'Tim'", "'Kim sleeps'"]),
        ("tagging", {"predictions": "Kim\n"}, ["predictions, line 1", "1 column"]),
        ("spans", {"predictions": '{"3": "fox"}'}, ["predictions: does not answer any", "reference"]),
        ("spans", {"predictions": '{"1": 5}'}, ["predictions", "'1'"]),
        ("spans", {"predictions": "fox\ndog\n"}, ["predictions", "JSON"]),
        ("spans", {"reference": "{}"}, ["reference", "SQuAD"]),
    ]),
)  # fmt: skip
def test_files_that_cannot_be_scored(score, assert_user_error, task, changed, words):
    reference, predictions, _ = FILES[task]
    given = {"reference": reference, "predictions": predictions, **changed}
    assert_user_error(score(task, given["reference"], given["predictions"]), *words)


def test_missing_flags(call_command, assert_user_error):
    assert_user_error(call_command("t2t-score", "--task=regression"), "--predictions", "--reference")


def test_standard_input_is_read_only_once(call_command, assert_user_error):
    result = call_command("t2t-score", "--task=regression", "--predictions=-", "--reference=-")
    assert_user_error(result, "standard input (-) can be read only once")

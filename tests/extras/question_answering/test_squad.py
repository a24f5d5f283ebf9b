"""SQuAD's files, and metrics of answers in a text against values worked out by hand."""

import json

import pytest

from t2t_lite.evaluation import answer_scores
from t2t_lite.extras.question_answering.squad import SPAN_METRICS, Question, read_squad, word_f1, words_of
from tests.extras.damaged_files import check_damage
from tests.extras.own_problems import check_names
from tests.extras.question_answering.squads import squad


@pytest.mark.parametrize(
    "name, predicted, expected, score",
    [
        ("exact_match", ["The cat!", "a dog", "fox"], ["cat", ["cat", "dog"], "the red fox"], 2 / 3),
        ("exact_match", ["dog cat", ""], ["cat dog", ["", "cat"]], 1 / 2),
        ("squad_f1", ["The cat!", "red red dog", "bird"], ["cat", ["cat", "red dog"], "fox"], (1 + 4 / 5 + 0) / 3),
        ("squad_f1", ["a red, red dog"], ["red red fox"], 2 * 2 / (3 + 3)),
        ("squad_f1", ["", "the", "cat"], ["", [""], ["", "cat dog"]], (1 + 1 + 2 / 3) / 3),  # SQuAD 2.0
        ("squad_f1", ["北京市", "1949 年。"], ["北京", ["1949年", "一九四九年"]], (4 / 5 + 1) / 2),  # of characters
    ],
)
def test_scores(name, predicted, expected, score):
    assert SPAN_METRICS[name](predicted, expected) == pytest.approx(score, abs=1e-12)


def test_the_words_that_are_compared():
    assert words_of("An apple, the Apple's a-Z (theory)") == ("apple", "apples", "az", "theory")
    assert word_f1("The", ["a"]) == 0, "no words in common, though both have none"


def test_what_an_input_is_called_and_what_an_evaluation_shows():
    check_names("qa_own", "question", "squad_f1")
    assert answer_scores.metric_names("spans", ["x"]) == ["exact_match", "squad_f1"]


def read(folder, text, **options):
    (folder / "a.json").write_text(text)
    return list(read_squad(str(folder / "a.json"), **options))


def test_the_most_frequent_answer_counts_and_the_first_of_several():
    context = "a b c b"
    spans = {"a": (0, 1), "b": (2, 3), "c": (4, 5), "B": (6, 7)}
    for names, best in (("abB", "b"), ("caB", "c"), ("acb", "a"), ("aBcb", "B")):
        assert Question("1", "?", context, [spans[name] for name in names], "a").answer == spans[best]


def test_halves_of_surrogate_pairs_are_one_character_and_blanks_are_left_out(tmp_path):
    context = "Ada \ud83d \U0001f600 was born in London."
    answers = [(context.index(text), text) for text in ("London", "\ud83d \U0001f600 was", " in London", "was ")]
    [found] = read(tmp_path, squad(("\udc00", "Where \ud83d?", answers), context=context))
    assert (found.id, found.question) == ("\ufffd", "Where \ufffd?")
    assert found.context == context.replace("\ud83d", "\ufffd")
    texts = [found.context[start:end] for start, end in found.answers]
    assert texts == ["London", "\ufffd \U0001f600 was", "in London", "was"]


def test_long_ids_of_questions_differ_at_their_end(tmp_path):
    long = [(f"{'long' * 30}{number}", "Where?", [(16, "London")]) for number in range(2)]
    assert [found.id for found in read(tmp_path, squad(*long))] == [name for name, *_ in long]


def test_squad_2_and_whole_numbers_as_ids(tmp_path):
    text = json.loads(squad(*[(n, f"Where, {n}?", [(16, "London")]) for n in range(9)]))
    for entry in text["data"][0]["paragraphs"][0]["qas"][:3]:
        entry.update(is_impossible=True, answers=[], plausible_answers=[{"text": "1833", "answer_start": 0}])
    found = read(tmp_path, json.dumps(text))
    assert [question.id for question in found] == [f"{n}" for n in range(9)]
    assert [len(question.answers) for question in found] == [0] * 3 + [1] * 6
    assert found[3].place == f"{tmp_path}/a.json, question '3'"
    for entry in text["data"][0]["paragraphs"][0]["qas"]:
        del entry["answers"]
    assert [question.answers for question in read(tmp_path, json.dumps(text), with_answers=False)] == [[]] * 9


def test_questions_that_cannot_be_read_are_skipped(tmp_path):
    asked = [("1", "?", [(0, "Ada")]), ("2", "?", [(1, "Ada")]), ("3", "?", []), ("4", "?", [(4, "was")])]
    told = []
    assert [found.id for found in read(tmp_path, squad(*asked), on_bad_line=told.append)] == ["1", "4"]
    assert [message.split(": ")[0].split(" ")[-1] for message in told] == ["'2'", "'3'"]


DAMAGED = {
    "other bytes": (b'{"data": "\xff"}', ", line 1: .*UTF-8"),
    "cut off": (squad()[:-9], ": not JSON"), "a list": ("[]", ": not in SQuAD"), "a number": ("3", ": not in SQuAD"),
    "no text": ('{"data": [{"paragraphs": [{"context": 3, "qas": [{}]}]}]}', ": not in SQuAD"),
    "no answers": ('{"data": [{"paragraphs": [{"context": "a", "qas": [{"id": "1", "question": "?"}]}]}]}', ": not in"),
    "an answer of no text": (squad(("a", "?", [(16, None)])), ": not in SQuAD"),
    "an id of no text": (squad((1.5, "?", [(16, "London")])), ": not in SQuAD"),
    "a blank": (squad(("a", "?", [(3, " ")])), ".* question 'a': .*' '.* 3[.] It is blank"),
    "before the context": (squad(("a", "?", [(-4, "1833")])), ".*'1833'.* character -4[.] .*at character 63[.]"),
    "nothing": (squad(("a", "?", [])), ".* question 'a': has no answer.*is_impossible"),
    "twice": (squad(*[("1", "?", [(16, "London")])] * 2), ".* question '1': two questions"),
    "beside": (squad(("a", "?", [(15, "London")])), ".*'London'.* character 15[.] .*at character 16[.]"),
    "elsewhere": (squad(("a", "?", [(40, "in")])), ".* character 40[.] .*at character 54, and 2 times"),
    "nowhere": (squad(("a", "?", [(3, "Paris")])), ".*'Paris'.* character 3[.] .*not occur"),
    "no number": (squad(("a", "?", [("16", "London")])), ".*'London'.* character '16'[.] .*at character 16[.]"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGED)
def test_damage_is_named(kind, tmp_path):
    check_damage(lambda path: list(read_squad(path)), tmp_path, *DAMAGED[kind])

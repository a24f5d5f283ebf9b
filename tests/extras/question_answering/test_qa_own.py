"""Answers of the user's own files."""

import json

import pytest

from t2t_lite import registry
from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.errors import UserError
from t2t_lite.extras.question_answering.squad_files import read_squad
from t2t_lite.extras.question_answering.windows import windows
from t2t_lite.text.vocabulary import ByteTextEncoder, TextEncoder
from tests.extras.question_answering.squads import QUESTIONS, squad
from tests.problems.own import (
    check_bad_lines,
    check_damaged,
    check_labels_are_not_smoothed,
    files_of,
    generated,
    removed_of,
    rows_of,
)


def test_half_a_surrogate_pair_is_one_character(tmp_path):
    context = "Ada \ud83d \U0001f600 was born in London."
    answers = [(context.index(text), text) for text in ("London", "\ud83d \U0001f600 was")]
    (tmp_path / "a.json").write_text(squad(("\udc00", "Where \ud83d?", answers), context=context))
    [found] = read_squad(str(tmp_path / "a.json"))
    assert (found.id, found.question) == ("\ufffd", "Where \ufffd?")
    assert found.context == context.replace("\ud83d", "\ufffd")
    assert [found.context[start:end] for start, end in found.answers] == ["London", "\ufffd \U0001f600 was"]


def test_long_ids_of_questions_differ_at_their_end(tmp_path):
    long = [(f"{'long' * 30}{number}", "Where?", [(16, "London")]) for number in range(2)]
    (tmp_path / "a.json").write_text(squad(*long))
    assert [found.id for found in read_squad(str(tmp_path / "a.json"))] == [name for name, *_ in long]


def test_answers_are_the_positions_of_their_pieces(tmp_path):
    arguments = files_of(tmp_path, train=squad(*QUESTIONS), dev=squad(*QUESTIONS[:3]))
    generated("qa_own", tmp_path, vocab_size=310, sequence_length=80, doc_stride=20, **arguments)
    problem = registry.problem("qa_own")
    encoders = problem.get_feature_encoders(str(tmp_path))
    assert problem.max_length(registry.hparams("bert_tiny").parse("max_length=9")) == 80, "no row is left out"
    assert (problem.sequence_length, problem.doc_stride, encoders["targets"].vocab_size) == (80, 20, 81)
    rows = rows_of(problem, tmp_path)
    assert len(rows) >= 30 and max(len(row["inputs"]) for row in rows) <= 80
    for row in rows:
        first, last = row["targets"]
        assert encoders["inputs"].decode(row["inputs"][first - 1 : last]) == "London"  # the commonest of the answers
    assert rows_of(problem, tmp_path, DatasetSplit.EVAL)


@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 40])
def test_windows_hold_the_whole_context_and_every_answer(length):
    context = "".join(chr(97 + n % 26) for n in range(length))
    found = windows(ByteTextEncoder(), "Q?", context, longest=14, stride=4)
    assert [window.ids[: window.before] for window in found] == [[*ByteTextEncoder().encode("Q?"), 1]] * len(found)
    assert all(len(window.ids) <= 14 and window.ids[-1] == 1 for window in found)
    assert {at for window in found for at, _ in window.spans} == set(range(length))
    assert len(found) == 1 + max(0, -(-(length - 10) // 4))
    for start in range(length):
        for end in range(start + 1, min(start + 6, length) + 1):
            places = [(window, at) for window in found if (at := window.at(start, end))]
            assert places
            for window, (first, last) in places:
                ids = window.ids[first - 1 : last]
                assert ByteTextEncoder().decode(ids) == context[start:end]
                assert window.spans[first - 1 - window.before][0] == start


def test_blanks_around_a_context_may_belong_to_an_answer():
    """No piece stands for them."""
    (window,) = windows(TextEncoder(50), "3", " 40 41 ", longest=14, stride=4)
    assert window.ids == [5, 1, 42, 43, 1] and window.at(0, 7) == window.at(1, 6) == (3, 4)


def test_answers_longer_than_a_window_are_counted(tmp_path):
    context = "Ada was born in London. She met Charles, who built engines, in 1833."
    asked = [*QUESTIONS, ("long", "What?", [(0, context)])]
    arguments = files_of(tmp_path, train=squad(*asked), dev=squad(*asked))
    problem = generated("qa_own", tmp_path, vocab_size=310, sequence_length=30, **arguments)
    removed = find_manifest(problem, str(tmp_path))["splits"]["train"]["removed"]
    assert removed == {"answers that no window holds": 1}


def test_a_question_that_leaves_no_room_is_refused():
    with pytest.raises(UserError, match=r"'Why so\?': its 8 ids leave no room for a context in 9"):
        windows(ByteTextEncoder(), "Why so?", "because", longest=9, stride=2)


def test_squad_2_and_whole_numbers_as_ids(tmp_path):
    text = json.loads(squad(*[(n, f"Where, {n}?", [(16, "London")]) for n in range(30)]))
    for entry in text["data"][0]["paragraphs"][0]["qas"][:7]:
        entry.update(is_impossible=True, answers=[], plausible_answers=[{"text": "1833", "answer_start": 0}])
    (tmp_path / "a.json").write_text(json.dumps(text))
    found = list(read_squad(str(tmp_path / "a.json")))
    assert [question.id for question in found] == [f"{n}" for n in range(30)]
    assert [len(question.answers) for question in found] == [0] * 7 + [1] * 23
    files = {f"{split}_files": [str(tmp_path / "a.json")] for split in ("train", "dev")}
    problem = generated("qa_own", tmp_path / "d", vocab_size=300, sequence_length=80, **files)
    assert removed_of(problem, tmp_path / "d") == {"questions without an answer": 7}


def test_bad_lines_are_left_out(tmp_path):
    questions = [(n, f"Where was she born, {n}?", [(16, "London")]) for n in range(30)]
    check_bad_lines("qa_own", squad(*questions, (99, "Which year?", [(0, "1833")])).encode(), 1, tmp_path)


def test_a_damaged_file_is_named(tmp_path):
    check_damaged("qa_own", squad(*QUESTIONS), {"dev": squad()[:-9]}, "dev: not JSON, or cut off", tmp_path)


def test_labels_are_not_smoothed():
    check_labels_are_not_smoothed("qa_own")

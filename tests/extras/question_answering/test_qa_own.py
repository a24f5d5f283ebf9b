"""Questions as records: windows of long contexts, positions of answers, the user's own files and SQuAD's."""

# Nearest tests of: extras/question_answering/windows.py

import json

import pytest

from t2t_lite import registry
from t2t_lite.corpora import downloads
from t2t_lite.data.problem import DatasetSplit, SpanProblem, VocabType
from t2t_lite.errors import UserError
from t2t_lite.extras.question_answering.windows import PositionEncoder, windows
from t2t_lite.text.vocabulary import ByteTextEncoder, TextEncoder
from tests.extras import own_problems
from tests.extras.question_answering.squads import QUESTIONS, squad
from tests.problems import own
from tests.problems.own import removed_of, rows_of


def generated(folder, train, dev=None, **options):
    return own.generated(
        "qa_own", folder, vocab_size=310, **own.files_of(folder, train=train, dev=dev or train), **options
    )


def answers_in(rows, encoder):
    """The texts of the pieces at the positions in some rows."""
    return [encoder.decode(row["inputs"][row["targets"][0] - 1 : row["targets"][1]]) for row in rows]


def test_answers_are_the_positions_of_their_pieces(tmp_path):
    generated(tmp_path, squad(*QUESTIONS), squad(*QUESTIONS[:3]), sequence_length=80, doc_stride=20)
    problem = registry.problem("qa_own")
    encoders = problem.get_feature_encoders(str(tmp_path))
    assert problem.max_length(registry.hparams("bert_tiny").parse("max_length=9")) == 80, "no row is left out"
    assert (problem.sequence_length, problem.doc_stride, encoders["targets"].vocab_size) == (80, 20, 81)
    settings = problem.generation_settings()
    assert (settings["sequence_length"], settings["doc_stride"]) == (80, 20)
    rows = rows_of(problem, tmp_path)
    assert len(rows) >= 30 and max(len(row["inputs"]) for row in rows) <= 80
    assert {*answers_in(rows, encoders["inputs"])} == {"London"}  # the commonest of the answers
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
    problem = generated(tmp_path, squad(*asked), sequence_length=30)
    assert removed_of(problem, tmp_path) == {"answers that do not fit into a window": 1}


def test_windows_leave_no_gaps_whatever_the_stride():
    found = windows(ByteTextEncoder(), "Q?", "x" * 23, longest=14, stride=40)  # a row has room for 10
    assert [window.start for window in found] == [0, 10, 13] and [len(window.spans) for window in found] == [10] * 3


def test_a_question_of_64_ids_and_one_that_leaves_no_room():
    (found,) = windows(ByteTextEncoder(), "x" * 64, "y", longest=200, stride=9)
    assert found.before == 65 and windows(ByteTextEncoder(), "x" * 65, "y", longest=200, stride=9) == [found]
    assert windows(ByteTextEncoder(), "Why so?", "b", longest=10, stride=2)[0].spans == [(0, 1)]
    with pytest.raises(UserError, match=r"'Why so\?': its 8 ids .* 9\b"):
        windows(ByteTextEncoder(), "Why so?", "because", longest=9, stride=2)


def test_positions_are_numbers():
    encoder = PositionEncoder(12)
    assert encoder.vocab_size == 13 and encoder.encode(" 3 12 ") == [3, 12] and encoder.decode([0, 12, 3]) == "12 3"
    assert encoder.pieces([0, 12]) == ["<pad>", "12"]
    assert encoder.fingerprint == PositionEncoder(12).fingerprint != PositionEncoder(13).fingerprint
    for text in ("0", "13", "x", "1.0", "1" * 10):
        with pytest.raises(UserError, match=rf"'{text}'.* 1 to 12"):
            encoder.encode(text)


def test_questions_without_an_answer_are_counted(tmp_path):
    text = json.loads(squad(*[(n, f"Where, {n}?", [(16, "London")]) for n in range(30)]))
    for entry in text["data"][0]["paragraphs"][0]["qas"][:7]:
        entry.update(is_impossible=True, answers=[])
    assert removed_of(generated(tmp_path, json.dumps(text), sequence_length=80), tmp_path) == {
        "questions without an answer": 7
    }


@pytest.mark.parametrize("answer", [None, (3, 3), (-1, 2), (0, 8), ("0", "3"), (0, 1, 2)])
def test_an_answer_of_a_problem_of_python_is_a_part_of_its_context(answer, tmp_path):
    class Mine(SpanProblem):
        name, is_generate_per_split, vocab_type = "mine", True, VocabType.CHARACTER

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            yield {"inputs": "Q?", "context": "a bcd e", "answer": answer}

    with pytest.raises(UserError, match=r"mine: .*has 7 characters"):
        Mine().generate_data(str(tmp_path), str(tmp_path))


def test_bad_lines_and_damaged_files(tmp_path):
    questions = [(n, f"Where was she born, {n}?", [(16, "London")]) for n in range(30)]
    data = squad(*questions, (99, "Which year?", [(0, "1833")])).encode()
    own_problems.check_bad_lines("qa_own", data, 1, tmp_path)
    own_problems.check_damaged("qa_own", squad(*QUESTIONS), {"dev": squad()[:-9]}, "dev: not JSON", tmp_path)


def test_labels_are_not_smoothed():
    own_problems.check_labels_are_not_smoothed("qa_own")


def test_squad_as_published(tmp_path, monkeypatch):
    for split, count in (("train", 30), ("dev", 4)):
        (tmp_path / f"{split}-v1.1.json").write_text(squad(*QUESTIONS[:count]))
    problem = registry.problem("squad")
    problem.approx_vocab_size = 310
    problem.generate_data(str(tmp_path), str(tmp_path))
    encoder = problem.get_feature_encoders(str(tmp_path))["inputs"]
    for split, count in ((DatasetSplit.TRAIN, 30), (DatasetSplit.EVAL, 4)):
        assert answers_in(rows_of(problem, tmp_path, split), encoder) == ["London"] * count
    asked = []
    monkeypatch.setattr(downloads, "provide", lambda entries, tmp_dir: asked.extend(entries))
    problem.prepare_generation(str(tmp_path), str(tmp_path))
    address = "https://rajpurkar.github.io/SQuAD-explorer/dataset"
    assert asked == [[f"{address}/{s}-v1.1.json", ("text", f"{s}-v1.1.json")] for s in ("train", "dev")]
    assert (problem.sequence_length, problem.doc_stride) == (383, 128)  # BERT's run_squad.py: 384 and 128

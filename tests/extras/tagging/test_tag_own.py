"""Tags of the user's own files."""

import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, Text2TagProblem, VocabType
from t2t_lite.errors import UserError
from t2t_lite.extras.tagging.conll import read_conll
from t2t_lite.extras.tagging.tag_own import cut_words
from tests.problems.own import (
    check_bad_lines,
    check_damaged,
    check_labels_are_not_smoothed,
    check_what_is_not_found_yet,
    files_of,
    generated,
    rows_of,
)

TAGS = "-DOCSTART- -X- O\n\n" + "".join(f"The DT O\nunaffables NN B-X\n{n} CD O\n\n" for n in range(40))


def test_tags_stand_at_the_first_pieces_of_words(tmp_path):
    generated("tag_own", tmp_path, vocab_size=300, **files_of(tmp_path, train=TAGS, dev=TAGS.replace(" ", "\t")))
    problem = registry.problem("tag_own")
    encoders = problem.get_feature_encoders(str(tmp_path))
    assert encoders["targets"].class_labels == ["B-X", "O"]
    assert problem.eval_metrics() == ["token_accuracy", "entity_f1"]
    for split in (DatasetSplit.TRAIN, DatasetSplit.EVAL):
        rows = rows_of(problem, tmp_path, split)
        assert len(rows) == 40
        for row in rows:
            assert row["inputs"][-1] == 1 and row["targets"][-1] == 0 and len(row["inputs"]) == len(row["targets"])
            pieces = encoders["inputs"].pieces(row["inputs"])
            starts = [piece.startswith("\u2581") for piece in pieces]
            assert [target > 0 for target in row["targets"]] == starts
            assert encoders["targets"].decode(row["targets"]) == "O B-X O"


def test_tags_that_are_no_entities_have_no_such_metric():
    problem = registry.problem("tag_own")
    assert problem.eval_metrics() == ["token_accuracy"]
    problem.remember({"tags": ["NN", "O"]})
    assert problem.eval_metrics() == ["token_accuracy"]


@pytest.mark.parametrize("old, new, odd", [("B-X", "U-X", ""), ("B-X", "B_X", "B_X"), ("NN", "NN", "")])
def test_tags_without_entity_f1_are_warned_of(old, new, odd, tmp_path, caplog):
    tags = TAGS.replace(old, new)
    problem = generated("tag_own", tmp_path, vocab_size=300, **files_of(tmp_path, train=tags, dev=tags))
    assert ("entity_f1" in problem.eval_metrics()) == (not odd) == ("will not have entity_f1" not in caplog.text)
    assert f"because of the tags '{odd}'." in caplog.text or not odd


def test_a_column_may_hold_any_character_but_a_blank(tmp_path):
    path = tmp_path / "a.conll"
    path.write_bytes(
        "\ufeff10\u00a0000 N\r\n\u6771\u4eac\u200b \x07 N\r\n \t \r\n".encode() + b"x" * 100_000 + b"\tN\tO"
    )
    with pytest.raises(UserError, match=r"a\.conll, line 2: found 3 columns, one of them blank"):
        list(read_conll(str(path)))
    path.write_bytes(path.read_bytes().replace(b" \x07", b"").replace(b"\tN", b""))
    first, second = read_conll(str(path))
    assert first.words == ["10\u00a0000", "\u6771\u4eac\u200b"] and first.tags == ["N", "N"]
    assert second == (["x" * 100_000], ["O"], f"{path}, line 4")


def test_as_many_tags_as_words_are_expected(tmp_path):
    class Short(Text2TagProblem):
        name = "short"
        is_generate_per_split = True
        vocab_type = VocabType.CHARACTER

        def tags(self, data_dir):
            return ["A", "B"]

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            yield {"inputs": ["a", "b"], "targets": ["A"]}

    with pytest.raises(
        UserError, match=r"short: generate_samples gave 2 words with the tags \['A'\]. Expected as many"
    ):
        Short().generate_data(str(tmp_path), str(tmp_path))


@pytest.mark.parametrize(
    "targets, longest, kept",
    [
        ([1, 0, 0, 2, 1, 0, 0], 7, 6),  # it fits
        ([1, 0, 0, 2, 1, 0, 0], 6, 4),  # the last word is cut off as a whole
        ([1, 0, 0, 2, 1, 0, 0], 5, 4),
        ([1, 0, 0, 2, 1, 0, 0], 4, 3),
        ([1, 0, 0, 2, 1, 0, 0], 3, 2),  # nothing but a part of the first word has room
        ([1, 0], 8, 1),
    ],
)
def test_sentences_are_cut_between_words(targets, longest, kept):
    inputs = [*range(5, 4 + len(targets)), 1]
    found = tf.function(cut_words)(tf.constant(inputs, tf.int64), tf.constant(targets, tf.int64), longest)
    assert [part.numpy().tolist() for part in found] == [[*inputs[:kept], 1], [*targets[:kept], 0]]


def test_tags_that_generation_has_not_found_yet_are_named(tmp_path):
    check_what_is_not_found_yet("tag_own", "tags", tmp_path)


def test_bad_lines_are_left_out(tmp_path):
    check_bad_lines("tag_own", TAGS.encode() + b"b\xf6d O\n\none\nword X\n", 2, tmp_path)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"dev": "a X\n"}, "dev, line 1: the tag 'X' of 'a' is in no training file"),
        ({"train": "a X\nb X\n\n"}, "train: 1 tag in the last column. Expected 2 to"),
        ({"dev": ""}, "dev: the file is empty"),
    ],
)
def test_damaged_files_are_named(contents, message, tmp_path):
    check_damaged("tag_own", TAGS, contents, message, tmp_path)


def test_labels_are_not_smoothed():
    check_labels_are_not_smoothed("tag_own")

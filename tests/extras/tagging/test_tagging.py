"""The task: sentences as rows, tags of words from the model's output, in Python and in a graph; files of tags."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.decoding.predictor import Predictor
from t2t_lite.errors import UserError
from t2t_lite.evaluation import answer_scores
from t2t_lite.export.encoder_signatures import EncoderSignatures
from t2t_lite.extras.tagging.conll import LAYOUT
from t2t_lite.extras.tagging.tagging import Tagging, TaggingTask
from t2t_lite.models.transformer_encoder import TransformerEncoder
from t2t_lite.text.class_label_encoder import ClassLabelEncoder
from t2t_lite.text.vocabulary import ByteTextEncoder

LABELS = ["A", "B", "C"]


def test_what_the_task_declares():
    """A problem adds entity_f1 if its tags are those of entities."""
    assert TaggingTask.eval_metrics == ("token_accuracy",) and (TaggingTask.head, TaggingTask.output) == ("tag", "tags")
    assert [*TaggingTask.metrics] == ["token_accuracy", "entity_f1", "entity_precision", "entity_recall"]
    assert TaggingTask.sparse_targets and TaggingTask.problems == ("tag_own",)


@pytest.fixture(scope="module")
def predictor():
    """Random weights, which are large, so that answers differ; each byte of a word is a piece."""
    encoders = {"inputs": ByteTextEncoder(), "targets": ClassLabelEncoder(LABELS)}
    keras.utils.set_random_seed(2)
    model = TransformerEncoder(
        encoders["inputs"].vocab_size, 4, head="tag", num_layers=1, hidden_size=16, filter_size=32, num_heads=2,
        max_position=40, initializer_gain=0.8,
    )  # fmt: skip
    model.build()
    return Predictor(model, encoders, registry.problem("tag_own"))


def rows_of(predictor, words, longest):
    """As many whole words as there is room for, and one that is longer alone and truncated: [[pieces of words]]."""
    rows = []
    for at, word in enumerate(words):
        pieces = predictor.encoders["inputs"].encode(f" {word}" if at else word)[: longest - 1]
        if not rows or sum(map(len, rows[-1])) + len(pieces) > longest - 1:
            rows.append([])
        rows[-1].append(pieces)
    return rows


SENTENCES = ["a bb ccc dddd a", "x" * 50, "ab " + "y" * 9 + " cd", "abc defg", ""]


@pytest.mark.parametrize("longest", [4, 5, 8, 9, 10, 39])
def test_every_word_gets_the_tag_at_its_first_piece(predictor, longest):
    exported = EncoderSignatures(predictor, longest).predict(tf.constant(SENTENCES))
    assert not exported["truncated"].numpy().any()
    for number, sentence in enumerate(SENTENCES):
        words, expected = sentence.split(), []
        rows = rows_of(predictor, words, longest)
        for row in rows:
            ids = [i for pieces in row for i in pieces]
            logits = np.array(predictor.model({"inputs": tf.constant([[*ids, 1]])}, training=False))[0]
            odds = np.exp(logits[:, 1:]) / np.exp(logits[:, 1:]).sum(-1, keepdims=True)
            starts = np.cumsum([0, *map(len, row)])[:-1]
            expected += [(LABELS[odds[start].argmax()], odds[start].max()) for start in starts]
        (answer,) = predictor.predict([sentence], max_length=longest)
        assert answer.words == words and answer.tags == [tag for tag, _ in expected]
        assert answer.probabilities == pytest.approx([odd for _, odd in expected], abs=1e-5)
        assert (answer.parts, answer.truncated) == (max(len(rows), 1), False)
        assert [tag.decode() for tag in exported["tags"][number].numpy()][: len(words)] == answer.tags
        assert [word.decode() for word in exported["words"][number].numpy()][: len(words)] == words
        np.testing.assert_allclose(exported["probabilities"][number][: len(words)], answer.probabilities, atol=1e-5)
    assert predictor.predict([("a", "bb")], max_length=longest) == predictor.predict(["a bb"], max_length=longest)


def test_whole_rows_are_truncated_and_say_so(predictor):
    reading = predictor.task.whole("a bb ccc", 5)
    assert (reading.rows, reading.truncated) == ([[*predictor.encoders["inputs"].encode("a bb"), 1]], True)
    assert not predictor.task.whole("a bb", 5).truncated and predictor.task.whole("a bb", 4).truncated
    rows, is_cut = predictor.task.whole_rows([tf.constant(["a bb ccc", "a bb", ""])], 5)
    assert rows.numpy().tolist()[1] == reading.rows[0] and is_cut.numpy().tolist() == [True, False, False]


def test_how_an_answer_is_shown():
    answer = Tagging(["Ada", "a b"], ["B-PER", "O"], [0.75, 0.5])
    assert TaggingTask.as_line(answer) == "Ada\tB-PER\na b\tO\n"
    assert TaggingTask.shown(answer) == ("", [[("Ada B-PER", 0.75), ("a b O", 0.5)]])


def test_what_evaluations_compare(predictor):
    targets, chosen = np.array([[1, 0, 3, 0], [2, 0, 0, 0]]), np.array([[3, 1, 1, 2], [2, 3, 1, 1]])
    compared = [predictor.task.compared(None, *pair) for pair in zip(targets, chosen, strict=True)]
    assert compared == [[["C", "A"], ["A", "C"]], [["B"], ["B"]]]


def test_words_and_tags_are_read_from_files(tmp_path):
    reader = TaggingTask.file_reader("conll", None, None)
    (tmp_path / "a").write_text("Ada\truns\n\nb\tX\n")
    assert reader(str(tmp_path / "a")) == [["Ada"], ["b"]] and TaggingTask.file_reader("txt", None, None) is None
    assert TaggingTask.file_reader("conllu", None, None)(str(tmp_path / "a")) == [["Ada"], ["b"]]
    reference = answer_scores.read_reference(str(tmp_path / "a"), "tagging")
    assert (reference.answers, reference.keys) == ([["runs"], ["X"]], [["Ada"], ["b"]])
    for content, message in (
        ("Ada\tO\n", "b has 1 sentence.* 2"), ("Ada\tO\n\nx y\n", r"b, line 3: .*'x'.*a has 'b'"),
    ):  # fmt: skip
        (tmp_path / "b").write_text(content)
        with pytest.raises(UserError, match=message):
            answer_scores.read_predictions(str(tmp_path / "b"), reference)
    (tmp_path / "b").write_text("Ada\tO\n\nb\tP\n")
    assert answer_scores.read_predictions(str(tmp_path / "b"), reference) == [["O"], ["P"]]
    problem, config = registry.problem("tag_own"), {"vocab_size": 300, "files": {}, "columns": ["2", "1"]}
    (tmp_path / "tag_own.json").write_text(json.dumps({"problem": "tag_own", **config}))
    assert TaggingTask.file_reader("conll", problem, str(tmp_path))(str(tmp_path / "a")) == [["runs"], ["X"]]
    assert LAYOUT.names == TaggingTask.columns == ("word", "tag")

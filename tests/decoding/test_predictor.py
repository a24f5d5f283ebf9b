"""What a Predictor makes of a model's logits, with a model that is written by hand."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.problem import Problem
from t2t_lite.decoding.predictor import Predictor, features_of, features_pooling
from t2t_lite.errors import UserError
from t2t_lite.text.class_label_encoder import RealEncoder
from t2t_lite.text.vocabulary import TextEncoder
from tests.decoding.parity import LABELS, Digits, Labels, Parity


class Texts(Problem):
    def __init__(self, task, num_texts=1):
        super().__init__()
        self.task, self.num_texts = task, num_texts


def predictor(model=None, num_texts=1):
    encoders = {"inputs": TextEncoder(50), "targets": Labels()}
    return Predictor(model or Parity(), encoders, Texts("classification", num_texts))


def test_classes_come_with_their_probabilities_in_the_order_of_the_texts():
    texts = ["3 4 5 6", "", "7", "8 1"]  # ids: the numbers and 2 each, and EOS
    found = predictor().predict(texts, batch_size=2)
    assert [p.label for p in found] == ["odd", "odd", "even", "even"]
    sure = np.exp(4) / (np.exp(4) + 2)
    for prediction in found:
        assert list(prediction.probabilities) == LABELS
        assert sum(prediction.probabilities.values()) == pytest.approx(1)
        assert prediction.probabilities[prediction.label] == pytest.approx(sure)
        assert not prediction.truncated
    assert found == [predictor().predict([text])[0] for text in texts], "neighbours do not matter"


@pytest.mark.parametrize("model", [Parity((-1, Labels.vocab_size)), Parity(named=True)], ids=["rank 2", "named"])
def test_logits_may_have_any_documented_form(model):
    assert predictor(model).predict(["7", "8"]) == predictor().predict(["7", "8"])


def test_a_text_beyond_the_models_length_is_truncated():
    whole, cut = predictor().predict(["1 1 1 1 1 1 1", "1 1 1 1 1 1 1 2"])
    assert (whole.truncated, cut.truncated) == (False, True)
    assert whole.probabilities == cut.probabilities


def test_what_is_read_may_be_given_in_place_of_a_text():
    made, texts = predictor(), ["7", "1 1 1 1 1 1 1 2", "8"]
    assert made.predict([made.read(texts[0]), *texts[1:]]) == made.predict(texts)
    assert made.read("8 9 3", max_length=4).rows == [[10, 11, 5, 1]]
    assert made.predict(texts, max_length=4)[1].truncated


def test_progress_counts_texts():
    told = []
    predictor().predict(["7", "8 9", "3"], batch_size=2, on_progress=told.append)
    assert told == [2, 1]


def test_pairs_are_cut_longest_first():
    made = predictor(num_texts=2)
    assert made.read(("1", "2 3")).rows == [[3, 1, 4, 5, 1]]
    assert made.read(("1 2 3 4 5 6", "7 8")).rows == [[3, 4, 5, 6, 1, 9, 10, 1]]
    with pytest.raises(UserError, match=r"^text 2: 1 text\..* 2"):
        made.predict([("1", "2"), "3"])


def test_a_number_lies_in_the_range_of_the_labels():
    def halves(batch, training):
        return tf.cast(tf.reduce_sum(batch["inputs"], -1, keepdims=True), tf.float32) / 20

    encoders = {"inputs": TextEncoder(50), "targets": RealEncoder(-1, 3)}
    found = Predictor(halves, encoders, Texts("regression")).predict(["7", "17"])
    assert [one.value for one in found] == pytest.approx([-1 + 4 * 10 / 20, -1 + 4 * 20 / 20])


class States:
    """The hidden states of layer n are n everywhere, the embeddings' 0; the final norm makes them tenfold."""

    def __init__(self, num_layers):
        self.config = {"num_layers": num_layers}

    def encode(self, ids, return_hidden_states):
        mask = tf.pad(ids != 0, [[0, 0], [1, 0]], constant_values=True)
        states = [float(n) * tf.ones_like(mask, tf.float32)[..., None] for n in range(1 + self.config["num_layers"])]
        return {"hidden": 10 * states[-1], "mask": mask, "states": states}


@pytest.mark.parametrize(
    "num_layers, layers, values",
    [
        (3, "first", [0]),
        (3, "last", [30]),
        (3, "second_to_last", [2]),
        (3, "last_four", [1, 2, 30]),
        (6, "last_four", [3, 4, 5, 60]),
        (3, "all", [1, 2, 30]),
        (3, [3, 0], [30, 0]),
    ],
)
def test_words_name_layers_of_which_the_last_has_the_final_norm(num_layers, layers, values):
    found = features_of(States(num_layers), layers, "concat")(tf.constant([[5, 1, 0]]))
    assert found.numpy().tolist() == [[values, values, values, [0] * len(values)]]


def test_the_mean_is_of_a_text_without_its_padding():
    """As the first position, it is the same beside a longer text."""
    for pooling in ("mean", "first"):
        found = features_of(States(3), [1, 2], "sum", pooling)(tf.constant([[5, 1, 0, 0], [5, 6, 7, 1]]))
        assert found.numpy().tolist() == [[3], [3]]


def test_a_vector_of_each_text():
    """The model's own pooling by default, and normalization with it; both may be chosen; padding counts in none."""
    ids = tf.constant([[5, 1, 0, 0], [5, 6, 7, 1]])
    model = States(3)
    model.config |= {"features_pooling": "max", "features_normalized": True}
    states = tf.stack([-ids, 2 * ids], -1) + 50 * tf.cast(ids == 0, tf.int32)[..., None]  # of padding, the largest
    hidden = tf.cast(tf.pad(states, [[0, 0], [1, 0], [0, 0]]), tf.float32) - [1.0, 0.0]
    plain = model.encode
    model.encode = lambda ids, return_hidden_states: {**plain(ids, return_hidden_states), "hidden": hidden}
    for options, expected in [
        ({"pooling": "max"}, [[-1, 10], [-1, 14]]),
        ({"pooling": "mean"}, [[-3, 4], [-4.8, 7.6]]),
        ({"pooling": "mean", "normalize": True}, [[-0.6, 0.8], [-4.8 / 80.8**0.5, 7.6 / 80.8**0.5]]),
        ({}, [[-1 / 101**0.5, 10 / 101**0.5], [-1 / 197**0.5, 14 / 197**0.5]]),
        ({"normalize": False}, [[-1, 10], [-1, 14]]),
    ]:
        np.testing.assert_allclose(features_of(model, **options)(ids), expected, rtol=1e-6)
    assert features_of(model, pooling="none")(ids).shape == (2, 5, 2)
    assert features_pooling(States(3)) == features_pooling(model, "none") == (None, False)
    with pytest.raises(UserError, match="normalize=True: only for one vector"):
        features_of(States(3), normalize=True)


def test_each_join_of_the_same_layers_has_its_own_features():
    made = predictor(States(3))
    for join, values in (("concat", [1, 2]), ("sum", [3]), ("concat", [1, 2])):
        (found,) = made.features(["7"], layers=[1, 2], join=join)
        assert found.tolist() == [values] * 3  # the first position, the piece and its end


def parities(batch, training):
    """Sure of "odd" or "even" of each id."""
    return 5 * tf.one_hot(1 + batch["inputs"] % 2, Labels.vocab_size)


def test_every_word_gets_the_tag_at_its_first_piece_in_however_many_parts():
    pytest.importorskip("t2t_lite.extras.tagging")
    parities.max_length = 5
    made = Predictor(parities, {"inputs": Digits(50), "targets": Labels()}, Texts("tagging"))
    (found,) = made.predict([["12", "3", "", "4567890", "5"]])
    assert made.read(("12", "3", "", "4567890", "5")).rows == [[3, 4, 5, 2, 1], [6, 7, 8, 9, 1], [7, 1]]
    assert found.words == ["12", "3", "", "4567890", "5"] and found.parts == 3 and not found.truncated
    assert found.tags == ["odd", "odd", "even", "even", "odd"]
    assert found.probabilities == pytest.approx([np.exp(5) / (np.exp(5) + 2)] * 5)
    assert made.predict(["12 3", ""]) == made.predict([["12", "3"], []])
    assert made.predict([""])[0].tags == []
    with pytest.raises(UserError, match=r"^text 2: .*long_input=refuse"):  # in two rows; the first fills one
        made.predict(["1234", "1234 5"], long_input="refuse")
    told = []
    made.predict([found.words, "12 3"], batch_size=1, on_progress=told.append)
    assert sum(told) == 2 and len(told) == 4, "texts, though there are more rows"


@pytest.mark.parametrize(
    "task", [name for name in registry.list_tasks() if registry.task(name).answered_by == "Predictor"]
)
def test_every_task_of_the_table_is_answered(task):
    made = Predictor(Parity(), {"inputs": TextEncoder(50), "targets": Labels()}, Texts(task))
    assert made.task.name == task


def test_mistakes():
    with pytest.raises(UserError, match=r"^text 2: 'x' is not in the vocabulary"):
        predictor().predict(["1", "x"])
    with pytest.raises(UserError, match="batch_size=0"):
        predictor().predict(["1"], batch_size=0)
    with pytest.raises(TypeError, match="`texts` must be a list of str"):
        predictor().predict("1")
    assert predictor().predict([]) == []
    with pytest.raises(UserError, match="max_length=9: expected a whole number from 4 to 8"):
        predictor().predict(["1"], max_length=9)
    with pytest.raises(UserError, match=r"^Predictor: .* sequence_to_sequence"):
        Predictor(Parity(), {"inputs": TextEncoder(50), "targets": Labels()}, Problem())


def test_long_texts_are_refused_where_that_is_asked():
    made, texts = predictor(), ["7", "1 1 1 1 1 1 1 2", "8"]
    assert (
        made.predict(texts, long_input="truncate") == made.predict(texts) == made.answer(made.reader().read_all(texts))
    )
    assert made.predict(texts[::2], long_input="refuse") == made.predict(texts[::2])
    with pytest.raises(UserError, match=r"^text 2: longer than 8 ids\. .*long_input=refuse\.$"):
        made.predict(texts, long_input="refuse")
    with pytest.raises(UserError, match=r"^long_input=split: "):
        made.predict(texts, long_input="split")

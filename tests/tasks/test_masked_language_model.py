"""Masks in texts: which ids are read, and what may stand there."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.tasks import masked_language_model
from t2t_lite.tasks.encoder_task import Reading
from t2t_lite.tasks.masked_language_model import Candidate, MaskedLanguageModelTask
from tests.tasks.stubs import PIECES, Texts, Words


def task(encoder=None):
    return MaskedLanguageModelTask(Texts("masked_language_model"), {"inputs": encoder or Words()})


def test_the_parts_between_masks_are_encoded_one_by_one():
    own = task()
    assert own.mask == (3, "[MASK]")
    assert own.read("the [MASK]  red[MASK]house", 9) == Reading([[7, 3, 4, 3, 6, 1]])
    assert own.read("[MASK]", 2) == Reading([[3, 1]])
    for text, longest, words in (("the red", 9, r"no \[MASK\]"), ("the [MASK]", 2, "3 ids.* 2")):
        with pytest.raises(UserError, match=words):
            own.read(text, longest)
    with pytest.raises(UserError, match="2 texts"):
        own.read(("the [MASK]", "red"), 9)
    assert own.texts(("the", "red")) == ("the", "red")  # pairs are read for features
    own.problem.input_text = lambda text: text.replace("#", "")
    assert own.read("#the [MASK]", 9) == Reading([[7, 3, 1]]) == own.whole("#the [MASK]", 9)


def test_a_vocabulary_without_a_mask_reads_texts_for_features_alone():
    class Unmasked(Words):
        def pieces(self, ids):
            return [piece.strip("[]") for piece in super().pieces(ids)]

    own = task(Unmasked())
    assert own.encode("the red") == [7, 4]
    with pytest.raises(UserError, match=r"\[MASK\]"):
        own.read("the [MASK]", 9)


class Guessing:
    """Gives the id after a mask, in its place, logits that fall with the distance from it."""

    def guessing_states(self, ids, mask):
        after = tf.concat([ids[:, 1:], tf.ones_like(ids[:, :1])], 1)
        return tf.cast(tf.boolean_mask(after, mask), tf.float32)[:, None]

    def ids_logits(self, states):
        return -2 * tf.abs(tf.range(len(PIECES), dtype=tf.float32) - states)


@pytest.mark.parametrize("at_a_time", [2, 1024])
def test_the_best_candidates_of_each_mask_in_order(at_a_time, monkeypatch):
    monkeypatch.setattr(masked_language_model, "_MASKS", at_a_time)
    ids = tf.constant([[3, 5, 3, 6, 1], [7, 3, 4, 1, 0]])
    probabilities, found = tf.function(lambda ids: task().guesses(Guessing(), ids, 3))(ids)
    assert found[:, 0].numpy().tolist() == [5, 6, 4] and found.shape == (3, 3)
    weights = np.exp(-2.0 * np.abs(np.arange(8) - 5))
    np.testing.assert_allclose(probabilities[0], sorted(weights / weights.sum())[::-1][:3], rtol=1e-5)
    candidates = task().candidates(np.array([0.75, 0.25]), np.array([5, 4]))
    assert candidates == [Candidate("green", 0.75), Candidate("red", 0.25)]
    answer = [candidates, candidates[:1]]
    assert task().shown(answer) == ("", [[("green", 0.75), ("red", 0.25)], [("green", 0.75)]])
    assert task().as_json(answer)["masks"][1] == [{"token": "green", "probability": 0.75}]


def test_labels_of_fit_are_the_masked_ids_of_all_rows():
    batch = {"inputs": tf.constant([[3, 5], [7, 3]]), "targets": tf.constant([[4, 0], [0, 6]]), "sentence": 9}
    assert task().fit_labels(batch, ["inputs", "targets"]).numpy().tolist() == [4, 6]
    named = task().fit_labels(batch, ["inputs", "targets", "sentence"])
    assert named["targets"].numpy().tolist() == [4, 6] and named["sentence"] == 9


def test_settings_of_an_export():
    assert task().export_settings() == {"top": 5} and task().export_settings(top="8") == {"top": 8}
    for top in (0, 9):
        with pytest.raises(UserError, match=f"top={top}: .*from 1 to 8"):
            task().export_settings(top=top)
    assert task().warmup_text(b"red") == b"[MASK] red"
    titles, outputs = task().card(top=7)
    assert "[MASK]" in titles["mask"] and "[batch, masks, 7]" in outputs

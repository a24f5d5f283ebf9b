"""What a model may return beside logits, and what follows from it."""

import numpy as np
import pytest

from t2t_lite.errors import UserError
from t2t_lite.models import outputs
from t2t_lite.registry import Registries
from tests.layers.equations import array
from tests.models.own_model import Called, OwnLanguageModel

tf = pytest.importorskip("tensorflow")


def test_outputs_by_their_names():
    assert outputs.named_outputs("logits") == ({"targets": "logits"}, {})
    given = {"targets": 3, "tags": 5, "costs": {"inputs": 7}, "shares": {"use": 9}, "state": 11}
    assert outputs.named_outputs(given) == ({"targets": 3, "tags": 5}, {"inputs": 7})
    assert given.keys() == {"targets", "tags", "costs", "shares", "state"}, "the model's own dict is changed"


@pytest.mark.parametrize(
    "logits, ids, labels",
    [
        ((2, 3, 9), [[4, 0, 5], [6, 0, 0]], [4, 0, 5, 6, 0, 0]),  # of all positions
        ((3, 9), [[4, 0, 5], [6, 0, 0]], [4, 5, 6]),  # of those with a target
        ((3, 9), [4, 0, 5], [4, 0, 5]),  # of a feature without a length
    ],
)
def test_labels_are_those_of_the_logits(logits, ids, labels):
    assert array(outputs.labels_of(np.zeros(logits), tf.constant(ids))).tolist() == labels


class Remembering:
    """Has a state of a tensor per row, whose first values are larger in evaluation."""

    def initial_state(self, rows, training=False):
        return {"past": tf.fill([rows, 2], 1.0 if training else 3.0)}


def test_rows_that_begin_read_the_initial_state():
    batch, state = {"before": tf.constant([5, 0, 0])}, {"past": tf.constant([[7.0, 8.0]] * 3)}
    for training, first in ((True, 1.0), (False, 3.0)):
        read = outputs.with_state(Remembering(), batch, state, training)
        assert array(read["state"]["past"]).tolist() == [[7, 8], [first, first], [first, first]]
        assert read["before"] is batch["before"]
    assert outputs.with_state(Remembering(), batch, (), True) is batch


def test_the_next_state_is_like_the_one_before():
    state = {"past": tf.zeros([3, 2], tf.float16)}
    new = outputs.next_state({"targets": 1, "state": {"past": tf.ones([3, 2])}}, state)
    assert new["past"].dtype == tf.float16 and array(new["past"]).all()
    assert outputs.next_state({"targets": 1}, ()) == ()
    wrong = ({"past": tf.ones([3, 4])}, {"other": tf.ones([3, 2])}, tf.ones([3, 2]))
    for given in ({"targets": 1}, tf.ones([3]), *({"state": each} for each in wrong)):
        traced = tf.function(lambda given=given: outputs.next_state(given, state), autograph=False)
        with pytest.raises(UserError, match=r"'state' .*\(3, 2\)"):
            traced()


def test_models_with_a_state_need_batches_of_segments(monkeypatch):
    class Carrying(OwnLanguageModel):
        def initial_state(self, rows, training=False):
            return ()

    assert outputs.carries_state(Carrying) and not outputs.carries_state(OwnLanguageModel)
    assert not outputs.carries_state(Called)
    assert outputs.batches_of(Called) is outputs.batches_of(OwnLanguageModel) is Registries.batches.get("examples")
    if "segments" in Registries.batches:
        assert outputs.batches_of(Carrying) is Registries.batches.get("segments")


def test_a_model_that_shows_no_attention_is_named():
    with pytest.raises(UserError, match=r"OwnLanguageModel .*attention_weights\(features\)"):
        outputs.attention_weights(OwnLanguageModel(20), {})

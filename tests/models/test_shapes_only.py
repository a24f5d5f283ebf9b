"""Models whose weights have shapes alone."""

import keras
import pytest

from t2t_lite.errors import UserError
from t2t_lite.models import Transformer
from t2t_lite.models.shapes_only import shapes_only
from t2t_lite.settings.config import HParams
from tests.models.own_model import Called, WithValues

VOCAB = 50
SMALL = HParams().parse("hidden_size=32,filter_size=80,num_heads=2,num_hidden_layers=1")
OPTIONS = {
    "own_head_sizes": "attention_key_channels=12,attention_value_channels=20,attention_bias=1",
    "depths": "num_encoder_layers=1,num_decoder_layers=2",
    "untied": "shared_embedding_and_softmax_weights=0,pos=emb",
    "swiglu": "ffn_activation=swiglu,relu_dropout=0.1",
    "relative": "self_attention_type=dot_product_relative,max_relative_position=2,pos=none,add_relative_to_values=1",
    "bfloat16": "dtype_policy=mixed_bfloat16,attention_dropout=0.1",
}


@pytest.mark.parametrize("changes", OPTIONS.values(), ids=OPTIONS)
def test_shapes_only_are_the_real_shapes_without_values(changes):
    hparams = SMALL.parse(changes)
    shapes, real = shapes_only(Transformer, hparams, VOCAB, 30), Transformer.from_hparams(hparams, VOCAB, 30)
    assert [tuple(w.shape) for w in shapes.weights] == [tuple(w.shape) for w in real.weights]
    with keras.StatelessScope():
        pass  # when one ends, Keras gives values to all variables that it noted down: not to these
    assert all(w._value is None for w in shapes.weights)


@pytest.mark.parametrize(("model_class", "more"), [(Called, 0), (WithValues, 1)])
def test_a_users_own_model_is_made_too(model_class, more):
    assert len(shapes_only(model_class, SMALL, VOCAB).weights) == 3 + more


def test_a_mistake_in_the_hyperparameters_is_the_models_own():
    with pytest.raises(UserError, match="num_heads=3"):
        shapes_only(Transformer, SMALL.parse("num_heads=3"), VOCAB)

"""Models with mixtures of experts: a SavedModel translates as Python does, and other formats refuse them."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.decoding.translator import Translator
from t2t_lite.export.formats import obstacles
from t2t_lite.export.saved_model import export_saved_model
from t2t_lite.models import Transformer, TransformerMoe
from tests.decoding.runs import make_run
from tests.extras.experts.test_transformer_moe import EXPERTS, SIZES, trained


def test_other_formats_refuse_them():
    options = {**SIZES, "num_encoder_layers": 1, "num_decoder_layers": 1, "feed_forward": EXPERTS}
    model, with_experts = TransformerMoe(12, **options), Transformer(12, **options)
    for name in ("ctranslate2", "hugging_face"):
        assert "of class TransformerMoe" in obstacles(name, model)[0]
        (reason,) = [reason for reason in obstacles(name, with_experts) if "local_moe" in reason]
        assert reason.endswith("(hparam ffn_layer), expected dense_relu_dense")


@pytest.mark.long
def test_searches_and_exports_agree(tmp_path):
    """By the chosen experts, and by all of them, which XLA computes; and in a SavedModel."""
    translator = Translator.load(str(make_run(tmp_path, model="transformer_moe", moe_num_experts=3)))
    trained(translator.model)
    texts = ["the red house.", "a green tree", "old", "was new and old is the tree"]
    options = {"beam_size": 3, "alpha": 0.8, "extra_length": 6}
    plain, compiled = (translator.translate(texts, **options, compile=compile) for compile in (False, True))
    assert [each.tokens for each in plain] == [each.tokens for each in compiled]
    exported = export_saved_model(translator, str(tmp_path / "export"), max_input_length=24, **options)
    served = tf.saved_model.load(exported).signatures["serving_default"](inputs=tf.constant(texts))
    assert [text.decode() for text in served["outputs"].numpy()] == [each.text for each in plain]
    np.testing.assert_allclose(served["scores"], [each.score for each in plain], atol=1e-4)

"""Models as LiteRT files: any batch and length, run by the interpreter that comes with TensorFlow."""

import numpy as np
import pytest

from t2t_lite.models import Transformer, TransformerEncoder, TransformerLM
from t2t_lite.models.exported_model import select_operations
from tests.layers.backend import BACKEND
from tests.layers.equations import array
from tests.layers.kinds import MUSIC, RESTRICTED

pytestmark = pytest.mark.skipif(BACKEND != "tensorflow", reason="the converter is TensorFlow's")

SMALL = {"hidden_size": 8, "filter_size": 16, "num_heads": 2}
PAIR = {"num_encoder_layers": 1, "num_decoder_layers": 1, **SMALL}
MODELS = {
    "paper": lambda: Transformer(20, **PAIR),
    "relative and learned": lambda: Transformer(
        20, **PAIR, self_attention=MUSIC, position="learned", norm="pre", tie_embeddings=False
    ),
    "restricted and rotary": lambda: Transformer(
        20, **PAIR, self_attention=RESTRICTED, position="rotary", activation="swiglu", embedding_size=4
    ),
    "language model": lambda: TransformerLM(20, num_layers=1, **SMALL),
    "classes": lambda: TransformerEncoder(
        20, 5, head="class", pooling="mean_max", match_embedding=True, num_layers=1, **SMALL
    ),
    "masked ids": lambda: TransformerEncoder(20, num_layers=1, **SMALL),
}


@pytest.mark.few("relative and learned")
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_any_batch_and_length_is_run_by_the_interpreter(name, tmp_path):
    import tensorflow as tf

    model = MODELS[name]()
    model.export(tmp_path / "model.tflite", format="litert", verbose=False)
    run = tf.lite.Interpreter(str(tmp_path / "model.tflite")).get_signature_runner()
    rng = np.random.default_rng(0)
    for rows, lengths in ((1, (1, 1)), (3, (7, 5)), (2, (150, 140))):
        batch = {
            name: rng.integers(1, 20, (rows, length)).astype("int32")
            for name, length in zip(model.needed_features, lengths, strict=False)
        }
        if rows > 1:
            batch = {
                name: ids * (np.arange(ids.shape[1]) < 3 + np.arange(rows)[:, None]) for name, ids in batch.items()
            }
        (found,) = run(**{name: ids.astype("int32") for name, ids in batch.items()}).values()
        np.testing.assert_allclose(found, array(model(batch)), atol=1e-5)


def test_operations_that_only_tensorflow_has_are_known_by_their_length(tmp_path):
    """Other texts of a file may begin like theirs."""
    named = [len(name).to_bytes(4, "little") + name + b"\0" for name in (b"FlexRoll", b"FlexFFT")]
    (tmp_path / "model.tflite").write_bytes(b"\0".join([*named, b"not of its length: FlexText", named[0]]) + b"\0")
    assert select_operations(tmp_path / "model.tflite") == ["FlexFFT", "FlexRoll"]

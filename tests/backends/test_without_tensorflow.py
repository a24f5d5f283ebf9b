"""Configuration, registry, layers and models where there is no TensorFlow: see `make test-backends`."""

import os
import subprocess
import sys

import keras
import pytest

from tests.backends.blocked import BLOCK_TENSORFLOW

pytestmark = pytest.mark.skipif(keras.backend.backend() == "tensorflow", reason="for the other backends")

USE_THE_MODEL = """
import sys
import keras
import numpy as np
import t2t_lite
from t2t_lite import layers, models, registry
from t2t_lite.settings import config
from t2t_lite.models import Transformer

ops, array = keras.ops, keras.ops.convert_to_numpy
overrides, folder = sys.argv[1:]
hparams = registry.hparams("transformer_tiny").parse(overrides)
assert config.HParams.from_json(hparams.to_json()) == hparams
model = registry.model("transformer").from_hparams(hparams, vocab_size=20)
assert type(model) is Transformer

rng = np.random.default_rng(0)
batch = {"inputs": rng.integers(3, 20, (2, 5)), "targets": rng.integers(3, 20, (2, 4))}
logits = array(model(batch, training=False))
assert logits.shape == (2, 4, 20) and logits.dtype == "float32"

cache, ids = model.init_cache(model.encode(batch["inputs"]), 6, 1), np.zeros(2, "int32")
for i in range(4):
    step, cache = model.decode_step(ops.convert_to_tensor(ids), ops.convert_to_tensor(i, "int32"), cache)
    np.testing.assert_allclose(array(step), logits[:, i], atol=1e-5)
    ids = batch["targets"][:, i].astype("int32")

weights = model.attention_weights(batch)
assert [w.shape for w in weights["memory"]] == [(2, hparams.num_heads, 4, 5)] * hparams.num_hidden_layers

model.save(folder + "/model.keras")
loaded = keras.saving.load_model(folder + "/model.keras")
np.testing.assert_array_equal(array(loaded(batch, training=False)), logits)
assert not [name for name, module in sys.modules.items() if name.startswith("tensorflow") and module is not None]
print("used", keras.backend.backend())
"""


def run(script, *arguments):
    command = [sys.executable, "-W", "ignore", "-c", BLOCK_TENSORFLOW + script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=300, check=False)


def test_tensorflow_cannot_be_imported():
    with pytest.raises(ImportError):
        import tensorflow  # noqa: F401


def test_the_block_works():
    assert "import of tensorflow halted" in run("import tensorflow").stderr


@pytest.mark.parametrize(
    "overrides",
    [
        "",
        "pos=emb,max_position=6,shared_embedding_and_softmax_weights=False",
        "self_attention_type=dot_product_relative,max_relative_position=2",
        "pos=rotary,self_attention_type=dot_product_relative_v2,max_relative_position=2",
        "self_attention_type=restricted,attention_neighborhood=3",
    ],
    ids=["paper", "learned", "relative", "rotary and v2", "restricted"],
)
def test_models_run(overrides, tmp_path):
    result = run(USE_THE_MODEL, overrides, str(tmp_path))
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"used {keras.backend.backend()}\n"


def test_what_needs_tensorflow_says_so():
    """No half-working import: the first line that needs TensorFlow names it."""
    assert "import of tensorflow halted" in run("import t2t_lite; t2t_lite.Translator").stderr

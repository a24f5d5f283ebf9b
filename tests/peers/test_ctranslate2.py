"""The whole model as CTranslate2 holds it: log-probabilities of given targets on the same random weights."""

import os

import numpy as np
import pytest
from keras import ops

from tests.layers.kinds import RELATIVE_VALUES
from tests.peers.models import random_batch, random_model

ctranslate2 = pytest.importorskip("ctranslate2")
model_spec = pytest.importorskip("t2t_lite.extras.ctranslate2.ctranslate2").model_spec

TOKENS = ["<pad>", "</s>", "<unk>", *(f"piece{i}" for i in range(3, 40))]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {"norm": "post"},
        {"norm": "post", "activation": "swish", "softmax_bias": True},
        {"norm": "pre", "key_dim": 6, "value_dim": 6},
        {"norm": "pre", "norm_epsilon": 1e-6, "position_layout": "tensor2tensor"},
        {"norm": "pre", "position": "learned", "activation": "gelu"},
        {"norm": "post", "tie_embeddings": False, "activation": "swiglu"},
        {"norm": "pre", "target_space_embedding": True},
        {"norm": "pre", "position": "none", "target_vocab_size": 30},
        {"norm": "post", "position": "none", "self_attention": RELATIVE_VALUES},
    ],
    ids=str,
)
def test_log_probabilities(tmp_path, options, bias):
    model = random_model("small", attention_bias=bias, **options)
    for matrix in (model.input_embedding, model.target_embedding, model.softmax):
        rows = ops.convert_to_numpy(matrix.embeddings).copy()
        rows[0] = 1  # the padding's: as an id it embeds to zero, as an output its row counts
        matrix.embeddings.assign(rows)
    inputs, targets = random_batch(model.target_vocab_size)
    targets[np.arange(4), [12, 9, 1, 0]] = 1  # each row ends
    inputs[np.arange(4), [18, 6, 0, 11]] = 1
    logits = ops.log_softmax(model({"inputs": inputs, "targets": targets}, training=False))
    ours = np.take_along_axis(ops.convert_to_numpy(logits), targets[..., None], axis=-1)[..., 0]

    spec = model_spec(model, {"inputs": TOKENS, "targets": TOKENS[: model.target_vocab_size]})
    spec.validate()
    spec.optimize()
    spec.save(str(tmp_path))
    assert "model.bin" in os.listdir(tmp_path)
    rows = [[[TOKENS[i] for i in row if i][:-1] for row in ids] for ids in (inputs, targets)]  # it adds the EOS
    found = ctranslate2.Translator(str(tmp_path)).score_batch(*rows)
    for mine, row, theirs in zip(ours, targets, found, strict=True):
        np.testing.assert_allclose(theirs.log_probs, mine[row != 0], atol=3e-5)

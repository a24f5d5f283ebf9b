"""The whole model as CTranslate2 holds it: log-probabilities of given targets on the same random weights."""

import os

import numpy as np
import pytest
from keras import ops

from t2t_lite.errors import UserError
from t2t_lite.export.ctranslate2 import model_spec
from tests.peers.models import random_batch, random_model

ctranslate2 = pytest.importorskip("ctranslate2")

TOKENS = ["<pad>", "</s>", "<unk>", *(f"piece{i}" for i in range(3, 40))]
VOCABULARIES = {"inputs": TOKENS, "targets": TOKENS}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {"norm": "post"},
        {"norm": "pre", "norm_epsilon": 1e-6, "position_layout": "tensor2tensor"},
        {"norm": "pre", "position": "learned", "activation": "gelu"},
        {"norm": "post", "tie_embeddings": False},
        {"norm": "pre", "target_space_embedding": True},
    ],
    ids=str,
)
def test_log_probabilities(tmp_path, options, bias):
    model = random_model("small", attention_bias=bias, **options)
    inputs, targets = random_batch(model.vocab_size)
    targets[np.arange(4), [12, 9, 1, 0]] = 1  # each row ends
    logits = ops.log_softmax(model({"inputs": inputs, "targets": targets}, training=False))
    ours = np.take_along_axis(ops.convert_to_numpy(logits), targets[..., None], axis=-1)[..., 0]

    spec = model_spec(model, VOCABULARIES)
    spec.validate()
    spec.optimize()
    spec.save(str(tmp_path))
    assert "model.bin" in os.listdir(tmp_path)
    rows = [[[TOKENS[i] for i in row if i] for row in ids] for ids in (inputs, targets)]
    found = ctranslate2.Translator(str(tmp_path)).score_batch(rows[0], [row[:-1] for row in rows[1]])
    for mine, row, theirs in zip(ours, targets, found, strict=True):
        np.testing.assert_allclose(theirs.log_probs, mine[row != 0], atol=3e-5)


@pytest.mark.parametrize(
    "option", [{"max_relative_position": 4}, {"neighborhood": 3}, {"key_dim": 4}, {"activation": "swiglu"}], ids=str
)
def test_what_it_does_not_have_is_refused_by_name(option):
    with pytest.raises(UserError, match=next(iter(option))):
        model_spec(random_model("small", **option), VOCABULARIES)

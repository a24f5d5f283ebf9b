"""The Sparse Transformer's sets: each position sees what the equations of its patterns say (paper, section 4.3)."""

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.models import TransformerLM

STRIDE, LENGTH, VOCAB = 4, 14, 20


def strided(i, j):
    return i - j <= STRIDE or (i - j) % STRIDE == 0


def fixed(i, j, summary=1):
    return j // STRIDE == i // STRIDE or j % STRIDE >= STRIDE - summary


@pytest.mark.parametrize(("kind", "sees"), [("strided", strided), ("fixed", fixed)])
def test_a_position_sees_those_of_the_papers_equations(kind, sees):
    hparams = registry.hparams("sparse_transformer_tiny").parse(
        "num_hidden_layers=1,hidden_size=8,filter_size=8,num_heads=1"
    )
    hparams = hparams.parse(f"self_attention_type={kind},attention_stride={STRIDE}")
    model = TransformerLM.from_hparams(hparams, vocab_size=VOCAB)
    ids = np.arange(2, 2 + LENGTH)[None].astype("int32")
    before = np.array(model({"targets": ids}))
    # The logits after position i read i and those that it sees, and no other.
    for j in range(LENGTH - 1):
        changed = ids.copy()
        changed[0, j] = 19
        differs = np.abs(np.array(model({"targets": changed})) - before).max(-1)[0] > 1e-7
        # Targets are shifted right: id j is read at position j + 1.
        assert [bool(d) for d in differs[j + 1 :]] == [sees(i, j + 1) for i in range(j + 1, LENGTH)]
        assert not differs[: j + 1].any()


def test_the_papers_set_for_bytes():
    hparams = registry.hparams("sparse_transformer_enwik8")
    assert (hparams.num_hidden_layers, hparams.attention_stride, hparams.attention_summary) == (30, 128, 32)
    assert hparams.max_position == 12_288

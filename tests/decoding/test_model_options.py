"""Decoding in mixed precision with kinds of attention: steps = one pass over all."""

import keras
import numpy as np
import pytest

from t2t_lite.decoding.alignment import memory_attention
from t2t_lite.decoding.scoring import token_log_probs
from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.models import Transformer
from t2t_lite.settings.search_options import SearchOptions
from tests.layers.kinds import RELATIVE_VALUES, RESTRICTED

OPTIONS = {
    "relative": {"position": "none", "self_attention": RELATIVE_VALUES},
    "restricted": {"self_attention": RESTRICTED, "norm": "pre"},
}


SOURCES = [[5, 9, 20, 3, 1], [7, 7, 12, 28, 3, 15, 4, 9, 11, 1], [6, 8, 1]]


def make_model(**options):
    keras.utils.set_random_seed(2)
    sizes = {"hidden_size": 16, "filter_size": 32, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1}
    model = Transformer(vocab_size=30, **sizes, **options)
    model.build()
    for weight in model.trainable_weights:  # far from uniform: every step is a choice
        weight.assign(weight * 2)
    return model


ERRORS = {"mixed_bfloat16": 0.05, "mixed_float16": 0.01}  # nats a token


@pytest.mark.few("relative-mixed_bfloat16", "restricted-mixed_float16")
@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, dtype", [("relative", "mixed_bfloat16"), ("relative", "mixed_float16"), ("restricted", "mixed_float16")]
)
def test_samples_have_the_scores_and_the_attention_of_one_pass(eager, kind, dtype):
    """The pass over given targets has neither cache nor steps. For float32 see tests/models/test_every_model.py."""
    model, error = make_model(dtype=dtype, **OPTIONS[kind]), ERRORS[dtype]
    drawn = Searcher(model).search(SOURCES, SearchOptions(sampling=True, n_best=3, extra_length=8, top_p=0.9))
    pairs = [(source, result) for source, results in zip(SOURCES, drawn, strict=True) for result in results]
    given = [source for source, _ in pairs], [[*r.ids, 1] if r.ended else r.ids for _, r in pairs]
    for target, log_probs, (_, result) in zip(given[1], token_log_probs(model)(*given), pairs, strict=True):
        assert log_probs.dtype == np.float32
        assert log_probs.sum() == pytest.approx(result.score, abs=error * len(target))
    for source, rows in zip(given[0], memory_attention(model)(*given), strict=True):
        np.testing.assert_allclose(rows[:, : len(source)].sum(1), 1, atol=0.02)

"""A language model decodes through the same search: prompts of unequal lengths, read once and shared by all beams."""

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.layers import (
    LearnedPositionEmbedding,
    LeftRelativeAttention,
    MultiHeadAttention,
    RelativeAttention,
    RestrictedAttention,
    SinusoidalPositionEmbedding,
    TokenEmbedding,
    TransformerDecoderLayer,
    TransformerStack,
)
from t2t_lite.layers.cache import new_ancestry, see_ancestors, see_prompt
from t2t_lite.settings.search_options import SearchOptions
from tests.decoding.scripted import numpy_search
from tests.layers.kinds import absent


class SharpAttention(MultiHeadAttention):
    """Overrides how heads attend, and nothing else."""

    def attend(self, query, key, value, mask, training):
        return super().attend(3 * query, key, value, mask, training)


def made(score, **pattern):
    return MultiHeadAttention(2, score=score, pattern=pattern)


EXTRA = 7
PROMPTS = [[5, 3, 7, 4, 9, 2, 8, 6, 10], [], [4], [6, 6, 3, 10, 2]]
KINDS = {
    "plain": lambda: (MultiHeadAttention(2), SinusoidalPositionEmbedding()),
    "learned": lambda: (MultiHeadAttention(2), LearnedPositionEmbedding(16)),
    "relative": lambda: (RelativeAttention(2, 3, add_relative_to_values=True), None),
    "music": lambda: (LeftRelativeAttention(2, 4, add_relative_to_values=True), None),
    "rotary": lambda: (MultiHeadAttention(2, positions="rotary"), SinusoidalPositionEmbedding()),
    "attend overridden": lambda: (SharpAttention(2), SinusoidalPositionEmbedding()),
    "restricted": lambda: (RestrictedAttention(2, 4), SinusoidalPositionEmbedding()),
    "local": lambda: (made("dot_product", type="local_1d", block_length=3), SinusoidalPositionEmbedding()),
    "strided": lambda: (made("memory", type="strided", stride=3), SinusoidalPositionEmbedding()),
    "fixed": lambda: (made("dot_product", type="fixed", stride=4, summary=2), SinusoidalPositionEmbedding()),
}
_NEED = {"local": ["local_1d"], "strided": ["strided", "memory"], "fixed": ["fixed"]}  # of extras
KINDS = {kind: make for kind, make in KINDS.items() if not absent(*_NEED.get(kind, []))}
COMPILED = [(kind, True) for kind in ("restricted", "strided") if kind in KINDS]


class LanguageModel:
    """Reads [begin, prompt], then its own output; the vector of `begin` is zero, and no output follows an input's."""

    vocab_size = 11

    def __init__(self, kind):
        keras.utils.set_random_seed(1)
        parts = [KINDS[kind]()]
        self.embedding, self.position = TokenEmbedding(self.vocab_size, 16), parts[0][1]
        self.decoder = TransformerStack([TransformerDecoderLayer(2, 32, self_attention=layer) for layer, _ in parts])
        self.logits([2], [3])
        for weight in self.decoder.trainable_weights + self.embedding.trainable_weights:
            weight.assign(weight * 2)  # far from uniform: every step is a choice
        self.prompts_read = []

    def _embedded(self, ids, position=None):
        x = self.embedding(ids)
        return x if self.position is None else self.position(x, position=position)

    def logits(self, prompt, outputs):
        """Returns the logits [V] of what comes after a list of outputs."""
        return self.all_logits(prompt, outputs)[-1]

    def all_logits(self, prompt, outputs):
        """One pass over all, as in training: the logits [outputs + 1, V] of each output and of the next one."""
        x = self.decoder(self._embedded(ops.convert_to_tensor([[0, *prompt, *outputs]])))
        return ops.convert_to_numpy(self.embedding(x, reverse=True))[0, len(prompt) :]

    def encode(self, inputs):
        self.prompts_read.append(inputs.shape)
        shifted = ops.pad(inputs, ((0, 0), (1, 0)))
        length = ops.sum(ops.cast(inputs != 0, "int32"), axis=1)
        _, prompts = self.decoder.prefill(self._embedded(shifted[:, :-1]))
        return {"prompts": prompts, "length": length, "last": ops.take_along_axis(shifted, length[:, None], axis=1)}

    def init_cache(self, memory, max_length, beam_size):
        batch = ops.shape(memory["length"])[0]
        layers = self.decoder.init_cache(None, batch, max_length * beam_size, memory["prompts"], memory["length"])
        fixed = {"layers": layers, "length": memory["length"], "last": memory["last"]}
        return {"beams": {"ancestry": new_ancestry(batch, beam_size, max_length)}, "fixed": fixed}

    def decode_step(self, ids, position, cache):
        fixed = cache["fixed"]
        ancestry, mask = see_ancestors(cache["beams"]["ancestry"], position)
        slots = ops.shape(fixed["layers"][0]["self"].prompt.key)[2]
        ids = ops.where(position > 0, ops.reshape(ids, ops.shape(ancestry)[:2]), fixed["last"])
        mask, x = see_prompt(mask, fixed["length"], slots), self._embedded(ids, fixed["length"] + position)
        x, layers = self.decoder.step(x, fixed["layers"], position, mask)
        logits = ops.reshape(self.embedding(x, reverse=True), (-1, self.vocab_size))
        return logits, {"beams": {"ancestry": ancestry}, "fixed": {**fixed, "layers": layers}}


def searcher_of(model, **options):
    return Searcher(model, longest_output=lambda length, options: options.extra_length, **options)


@pytest.mark.few("restricted-False", "strided-False")
@pytest.mark.slow
@pytest.mark.parametrize("kind, compile", [*((kind, False) for kind in KINDS), *COMPILED])
def test_the_search_is_that_of_full_passes_over_each_prompt_alone(request, kind, compile):
    if not compile:
        request.getfixturevalue("eager")
    model = LanguageModel(kind)
    options = SearchOptions(beam_size=3, n_best=3, extra_length=EXTRA, compile=compile)
    for prompt, results in zip(PROMPTS, searcher_of(model).search(PROMPTS, options), strict=True):
        expected = numpy_search(model, prompt, EXTRA, 3, options.alpha, n_best=3)
        for result, (score, ids, ended) in zip(results, expected, strict=True):
            assert result.ids == [i for i in ids if i != 1]
            assert (result.score, result.ended) == (pytest.approx(score, abs=1e-4), ended)
    assert len(model.prompts_read) == 1, "the prompts were read more than once"


@pytest.mark.slow
@pytest.mark.parametrize("compile", [False, True])
def test_samples_without_an_end_are_as_long_as_the_limit_and_have_the_scores_of_one_pass(request, compile):
    if not compile:
        request.getfixturevalue("eager")
    model = LanguageModel("relative")
    options = SearchOptions(sampling=True, n_best=8, extra_length=EXTRA, seed=4, compile=compile)
    found = searcher_of(model, end_id=None).search(PROMPTS, options)
    assert any(1 in result.ids for results in found for result in results), "not a test otherwise"
    for prompt, results in zip(PROMPTS, found, strict=True):
        for result in results[::3]:
            steps = model.all_logits(prompt, result.ids)[:EXTRA].astype("float64")
            log_probs = [logits[i] - np.log(np.exp(logits).sum()) for i, logits in zip(result.ids, steps, strict=True)]
            assert (result.score, result.ended) == (pytest.approx(sum(log_probs), abs=1e-4), False)


def test_beams_share_the_slots_of_a_prompt():
    model = LanguageModel("plain")
    inputs = np.array([prompt + [0] * (9 - len(prompt)) for prompt in PROMPTS], "int32")
    cache = model.init_cache(model.encode(ops.convert_to_tensor(inputs)), 5, 4)["fixed"]["layers"][0]["self"]
    assert (cache.prompt.key.shape, cache.key.shape) == ((4, 2, 9, 8), (4, 2, 5 * 4, 8))

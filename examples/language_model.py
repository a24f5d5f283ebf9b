"""A decoder-only language model built from layers: it learns to close brackets, and samples with a cache.

    python examples/language_model.py

A closing bracket must match the last open one, at any distance, which no n-gram model can learn. The strings come from
a generator with known probabilities, so the perplexity can be compared with the optimum. Takes half a minute.
"""

import math
import random

import keras
import numpy as np
from keras import ops

from t2t_lite.layers import SinusoidalPositionEmbedding, TokenEmbedding, TransformerDecoderLayer
from t2t_lite.training.losses import SmoothedCrossEntropy

SYMBOLS = " ([{)]}"  # indexed by id; 0 is padding, and id + 3 closes id
LENGTH, MAX_DEPTH = 16, 3


def bracket_strings(count, seed):
    """Returns (int32 ids [count, LENGTH], their perplexity under the generator's own probabilities)."""
    ids, nats, draw = np.zeros((count, LENGTH), "int32"), 0.0, random.Random(seed)
    for row in ids:
        pending = []
        for i in range(LENGTH):
            chance = {0: 1.0, MAX_DEPTH: 0.0}.get(len(pending), 0.5)  # probability of another opening bracket
            if opens := draw.random() < chance:
                pending.append(draw.randint(1, 3))
            row[i] = pending[-1] if opens else pending.pop() + 3
            nats -= math.log(chance / 3 if opens else 1 - chance)
    return ids, math.exp(nats / ids.size)


def is_valid(text):
    """Returns whether each closing bracket matches the last open bracket."""
    pending = []
    for i in map(SYMBOLS.index, text):
        if i <= 3:
            pending.append(i)
        elif not pending or pending.pop() != i - 3:
            return False
    return True


class LanguageModel(keras.Model):
    """A decoder without an encoder: int ids [batch, length] -> logits; each position depends only on earlier ids."""

    def __init__(self, vocab_size, hidden_size=64, num_heads=4, num_layers=2):
        super().__init__()
        self.embedding = TokenEmbedding(vocab_size, hidden_size)
        self.position = SinusoidalPositionEmbedding()
        self.blocks = [TransformerDecoderLayer(num_heads, 4 * hidden_size, dropout=0.0) for _ in range(num_layers)]

    def call(self, ids, training=None):
        """Computes all positions in one pass."""
        x = self.position(self.embedding(ops.pad(ids, ((0, 0), (1, 0)))[:, :-1]))  # shifted; id 0 embeds to zero
        for block in self.blocks:
            x = block(x, training=training)
        return self.embedding(x, reverse=True)

    def step(self, last_ids, position, caches):
        """Computes one position from the previous ids [batch]: returns the logits [batch, vocab] and the new caches."""
        x = self.position(self.embedding(last_ids[:, None]), position=position)
        for i, block in enumerate(self.blocks):
            x, caches[i] = block.step(x, caches[i], position)
        return self.embedding(x, reverse=True)[:, 0], caches

    def sample(self, prompt, seed):
        """Samples from a prompt [batch, length]; returns (ids [batch, LENGTH], logits [batch, LENGTH, vocab])."""
        caches = [block.init_cache(None, len(prompt), LENGTH) for block in self.blocks]
        ids, steps, seeds = ops.zeros((len(prompt), 1), "int32"), [], keras.random.SeedGenerator(seed)
        for position in range(LENGTH):
            logits, caches = self.step(ids[:, -1], position, caches)
            drawn = keras.random.categorical(logits, 1, dtype="int32", seed=seeds)
            ids = ops.concatenate([ids, prompt[:, [position]] if position < prompt.shape[1] else drawn], axis=1)
            steps.append(logits)
        return ids[:, 1:], ops.stack(steps, axis=1)


if __name__ == "__main__":
    keras.utils.set_random_seed(1)
    (train, _), (test, best) = bracket_strings(7200, seed=1), bracket_strings(1000, seed=2)
    model = LanguageModel(len(SYMBOLS))
    rate = keras.optimizers.schedules.CosineDecay(0.0, 390, warmup_target=5e-3, warmup_steps=60)
    model.compile(keras.optimizers.Adam(rate), loss=SmoothedCrossEntropy(label_smoothing=0.0))
    model.fit(train, train, batch_size=64, epochs=4, verbose=2)
    perplexity = math.exp(model.evaluate(test, test, batch_size=1000, verbose=0))
    print(f"held-out perplexity {perplexity:.3f}; the best possible is {best:.3f}")

    ids, logits = model.sample(prompt=np.tile([[1, 2]], (200, 1)), seed=3)
    print(f"cached steps differ from a single pass by at most {ops.max(ops.abs(logits - model(ids))):.1e} (logits)")
    texts = ["".join(SYMBOLS[i] for i in row) for row in ops.convert_to_numpy(ids)]
    print(*texts[:3], f"{np.mean([*map(is_valid, texts)]):.0%} of {len(texts)} are valid", sep="\n")

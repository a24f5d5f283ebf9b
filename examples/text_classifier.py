"""The encoder in a functional Keras model that classifies the agent of a sentence as a person or an animal.

    python examples/text_classifier.py

"The old dog is seen by a girl." and "The old dog sees a girl." have opposite answers and nearly the same words. The
answer depends on the positions of the nouns and on whether the verb is passive, so a bag-of-words model is no better
than chance. The sentences are generated here; test sentences never occur in training. Takes about 20 seconds.
"""

import random

import keras
import numpy as np

from t2t_lite.layers import SinusoidalPositionEmbedding, TokenEmbedding, TransformerEncoderLayer

PERSONS = ["man", "woman", "boy", "girl", "doctor", "teacher", "farmer", "child"]
ANIMALS = ["dog", "cat", "horse", "bear", "wolf", "goat", "donkey", "monkey"]
ADJECTIVES = ["old", "young", "big", "small", "happy", "sad"]
VERBS = {"sees": "seen", "follows": "followed", "likes": "liked", "finds": "found", "hears": "heard", "bites": "bitten"}


def sentences(count, seed):
    """Yields `count` different pairs (sentence, label); the label is 0 if the agent is a person, 1 if an animal."""
    draw, texts = random.Random(seed), set()

    def phrase(nouns):
        return " ".join([draw.choice(("the", "a")), *draw.sample(ADJECTIVES, draw.randint(0, 2)), draw.choice(nouns)])

    while len(texts) < count:
        label = draw.randint(0, 1)
        doer, other = map(phrase, (ANIMALS, PERSONS) if label else (PERSONS, ANIMALS))
        active, participle = draw.choice(list(VERBS.items()))
        text = draw.choice((f"{doer} {active} {other}", f"{other} is {participle} by {doer}"))
        if text not in texts:
            texts.add(text)
            yield text, label


def classifier(vocab_size, hidden_size=64, num_layers=2):
    """Returns a functional model: int ids [batch, length], padded with 0 -> probability of label 1, [batch, 1]."""
    ids = keras.Input((None,), dtype="int32")
    x = TokenEmbedding(vocab_size, hidden_size, mask_zero=True)(ids)
    x = SinusoidalPositionEmbedding()(x)
    for _ in range(num_layers):
        x = TransformerEncoderLayer(num_heads=4, filter_size=2 * hidden_size, dropout=0.1)(x)
    x = keras.layers.GlobalAveragePooling1D()(x)  # over the words only: the layers propagate the mask
    return keras.Model(ids, keras.layers.Dense(1, activation="sigmoid")(x))


if __name__ == "__main__":
    keras.utils.set_random_seed(1)
    texts, labels = map(np.array, zip(*sentences(9000, seed=1), strict=True))
    tokenizer = keras.layers.TextVectorization()
    tokenizer.adapt(texts)
    ids = np.array(tokenizer(texts))
    model = classifier(tokenizer.vocabulary_size())
    model.compile(keras.optimizers.Adam(1e-3), loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(ids[:8000], labels[:8000], batch_size=64, epochs=2, verbose=2)
    _, accuracy = model.evaluate(ids[8000:], labels[8000:], verbose=0)
    print(f"held-out accuracy {accuracy:.3f}")

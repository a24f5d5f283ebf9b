"""Small corpora and records for tests: seeded, without files of their own."""

import itertools
import random

import numpy as np
import tensorflow as tf

from t2t_lite.data import batching, sharding
from t2t_lite.data.problem import Problem
from t2t_lite.settings.config import HParams

_PAIRS = {
    "the": "das", "a": "ein", "small": "kleine", "green": "grüne", "old": "alte", "house": "Haus", "child": "Kind",
    "bread": "Brot", "sees": "sieht", "buys": "kauft", "finds": "findet", "today": "heute", "and": "und",
    "book": "Buch",
}  # fmt: skip


def sentence_pairs(count, seed=0, longest=12):
    """Returns `count` pairs of word-for-word translations."""
    generator = random.Random(seed)
    pairs = []
    for _ in range(count):
        words = generator.choices(list(_PAIRS), k=generator.randint(2, longest))
        pairs.append((" ".join(words), " ".join(_PAIRS[word] for word in words)))
    return pairs


def write_corpus(folder, name, pairs, languages=("en", "de")):
    """Writes `<folder>/<name>.en` and `.de`; returns "path,path" as the flags of t2t-datagen want it."""
    paths = [folder / f"{name}.{language}" for language in languages]
    for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return ",".join(map(str, paths))


def write_numbered(folder, count, shards=3, seed=0, longest=30):
    """Writes records whose first input id is the example's number + 10; returns their paths.

    Lengths of the two sides are alike but not equal, as in real text.
    """
    generator = random.Random(seed)

    def examples():
        for number in range(count):
            length = min(longest - 2, 1 + int(generator.lognormvariate(2, 0.6)))
            other = max(1, min(longest - 1, round(length * generator.uniform(0.7, 1.4))))
            yield {"inputs": [number + 10, *[5] * length, 1], "targets": [*[6] * other, 1]}

    paths = [str(folder / f"numbered-train-{i:05d}-of-{shards:05d}") for i in range(shards)]
    sharding.write_shards(examples(), paths, seed=seed)
    return paths


def training_batches(paths, problem=None, seed=0, **arguments):
    """Returns `batching.training_batches` of two texts; what is not an argument of that is a hyperparameter.

    The same arguments have the same dataset, of which each iterator begins anew: to make one takes half a second.
    """
    given = {"problem": problem, "seed": seed, **arguments}
    values = ((name, id(x) if name in ("problem", "encoders") else x) for name, x in sorted(given.items()))
    key = (*paths, *values)
    if key not in _DATASETS:  # what they are made of is kept with them, so that no other object gets its id
        _DATASETS[key] = new_training_batches(paths, **given), given
    return _DATASETS[key][0]


_DATASETS = {}


def new_training_batches(paths, problem=None, seed=0, **arguments):
    """Returns them made anew."""
    names = ("encoders", "ladder", "pool_size", "shuffle")
    given = {name: arguments.pop(name) for name in names if name in arguments}
    hparams = HParams(**{"max_length": 0, "random_seed": seed, **arguments})
    return batching.training_batches(problem or Problem(), hparams, paths, **given)


def evaluation_batches(paths, problem=None, encoders=None, **hparams):
    """Returns `batching.evaluation_batches` of two texts."""
    return batching.evaluation_batches(problem or Problem(), HParams(**hparams), paths, encoders)


def assert_goes_on_identically(make, folder, read=11, more=30):
    """A stream that is restored after some batches gives those of one that was never stopped.

    Args:
        make: function that returns an iterator which begins anew.
        folder: path, for a checkpoint.
        read, more: int, batches before the checkpoint, and those compared after it.
    """
    iterator, restored = make(), make()
    for _ in range(read):
        next(iterator)
    saved = tf.train.Checkpoint(iterator=iterator).save(str(folder / "it"))
    tf.train.Checkpoint(iterator=restored).restore(saved).assert_consumed()
    for expected, found in itertools.islice(zip(iterator, restored, strict=True), more):
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name])

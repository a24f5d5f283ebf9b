"""`translate_ende_phrasebook`: English-German sentence pairs from a grammar, which need no download.

A random meaning (`sentences.py`) is expressed in both languages (`grammar.py`) with the words of the `.tsv` files. Some
combinations, such as a verb with an object or a noun with an adjective, are held out: they never occur in training, and
every dev and test sentence has at least one. The score therefore shows whether a model has learned the grammar; it says
nothing about news.
"""

import functools
import random
import zlib

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, TranslateProblem
from t2t_lite.extras.phrasebook.sentences import Phrasebook

PAIRS = {DatasetSplit.TRAIN: 100_000, DatasetSplit.EVAL: 1_000, DatasetSplit.TEST: 1_500}
HELD_OUT_PERCENT = 5  # of the combinations, for dev and test each


@registry.register_problem
class TranslateEndePhrasebook(TranslateProblem):
    """English to German from the embedded grammar: 100,000 training pairs, no files needed."""

    language_pair = ("en", "de")
    approx_vocab_size = 2**11

    @property
    def dataset_splits(self):
        """Four shards for training, one each for dev and test."""
        return [{"split": split, "shards": 4 if split == DatasetSplit.TRAIN else 1} for split in PAIRS]

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields the pairs of a split; the same `random_seed` gives the same pairs."""
        for sentence in generate_sentences(self.random_seed, PAIRS[dataset_split], dataset_split):
            yield {"inputs": sentence.inputs, "targets": sentence.targets}


def generate_sentences(seed, count, split):
    """Yields `count` different `Sentence`s of a split ("train", "eval", "test"), no English sentence twice."""
    phrasebook, inputs = Phrasebook(random.Random(f"{seed} {split}")), set()
    required = {split} - {DatasetSplit.TRAIN}
    while len(inputs) < count:
        sentence = phrasebook.sentence()
        held_out = {home_of(combination) for combination in sentence.combinations} - {DatasetSplit.TRAIN}
        if held_out == required and sentence.inputs not in inputs:
            inputs.add(sentence.inputs)
            yield sentence


@functools.cache
def home_of(combination):
    """Returns the split for which a combination such as "kaufen + apple" is held out; "train": allowed in all."""
    bucket = zlib.crc32(combination.encode()) % 100  # Python's hash() differs from run to run
    if bucket >= 2 * HELD_OUT_PERCENT:
        return DatasetSplit.TRAIN
    return DatasetSplit.TEST if bucket < HELD_OUT_PERCENT else DatasetSplit.EVAL

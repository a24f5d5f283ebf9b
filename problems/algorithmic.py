"""Digits to copy or to reverse: exact tasks that a model learns in minutes (mirrors tensor2tensor's algorithmic.py)."""

import random

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, Problem
from t2t_lite.text import vocabulary


class AlgorithmicProblem(Problem):
    """Random sequences of symbols. Ids are symbol + 2, EOS follows; lengths are uniform in [1, longest].

    tensor2tensor's dev sequences are ten times as long as those for training (400 against 40), which tests more than
    what was learned. Here both have the same lengths, so that the dev accuracy shows whether the task was learned.
    """

    num_symbols = 10
    train_length = 40
    dev_length = 40
    train_size = 100_000
    dev_size = 10_000

    def targets_of(self, inputs):
        """Returns the target symbols for the list of symbols `inputs`."""
        raise NotImplementedError(f"{type(self).__name__}: write targets_of.")

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": ids, "targets": ids} ending in 1; each split has its own random generator."""
        is_train = dataset_split == DatasetSplit.TRAIN
        longest, size = (self.train_length, self.train_size) if is_train else (self.dev_length, self.dev_size)
        generator = random.Random(f"{self.random_seed} {dataset_split}")
        for _ in range(size):
            inputs = generator.choices(range(self.num_symbols), k=generator.randint(1, longest))
            yield {"inputs": _ids(inputs), "targets": _ids(self.targets_of(inputs))}

    def feature_encoders(self, data_dir):
        """Returns encoders of space-separated numbers, such as "3 1 4"."""
        encoder = vocabulary.TextEncoder(self.num_symbols + vocabulary.TextEncoder.num_reserved_ids)
        return {"inputs": encoder, "targets": encoder}

    def generation_settings(self):
        """Returns symbols, lengths and sizes."""
        names = ("num_symbols", "train_length", "dev_length", "train_size", "dev_size")
        return {name: getattr(self, name) for name in names}


def _ids(symbols):
    return [*(symbol + vocabulary.TextEncoder.num_reserved_ids for symbol in symbols), vocabulary.EOS_ID]


@registry.register_problem
class AlgorithmicIdentityDecimal40(AlgorithmicProblem):
    """The targets are the inputs."""

    def targets_of(self, inputs):
        """Returns the inputs."""
        return inputs


@registry.register_problem
class AlgorithmicReverseDecimal40(AlgorithmicProblem):
    """The targets are the inputs in reverse order."""

    def targets_of(self, inputs):
        """Returns the inputs reversed."""
        return inputs[::-1]

"""Digits to copy, to reverse or to add: exact tasks, learned in minutes (mirrors tensor2tensor's algorithmic.py)."""

import random

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, Problem
from t2t_lite.errors import NotWritten
from t2t_lite.text import vocabulary


class AlgorithmicProblem(Problem):
    """Random sequences of symbols. Ids are symbol + 2, EOS follows; lengths are uniform in [1, longest].

    tensor2tensor's dev sequences are ten times as long as those for training (400 against 40), which tests more than
    what was learned. Here both have the same lengths, so that the dev accuracy shows whether the task was learned.
    """

    unit = "sequence"
    num_symbols = 10
    train_length = 40
    dev_length = 40
    train_size = 100_000
    dev_size = 10_000

    def targets_of(self, inputs):
        """Returns the target symbols for the list of symbols `inputs`."""
        raise NotWritten(f"{type(self).__name__}: write targets_of.")

    def sample(self, generator, longest):
        """Draws one example.

        Args:
            generator: random.Random.
            longest: int, the most symbols of the inputs.

        Returns:
            (symbols of the inputs, of the targets), lists of int.
        """
        inputs = generator.choices(range(self.num_symbols), k=generator.randint(1, longest))
        return inputs, self.targets_of(inputs)

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": ids, "targets": ids} ending in 1; each split has its own random generator."""
        is_train = dataset_split == DatasetSplit.TRAIN
        longest, size = (self.train_length, self.train_size) if is_train else (self.dev_length, self.dev_size)
        generator = random.Random(f"{self.random_seed} {dataset_split}")
        for _ in range(size):
            inputs, targets = self.sample(generator, longest)
            yield {"inputs": _ids(inputs), "targets": _ids(targets)}

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


@registry.register_problem
class AlgorithmicAdditionDecimal40(AlgorithmicProblem):
    """The inputs are two numbers with symbol 10 between them, the targets their sum; all begin with their last digits.

    tensor2tensor gives symbol 10 an id outside of its vocabulary.
    """

    num_symbols = 11

    def sample(self, generator, longest):
        """Draws two numbers: the first of at most half of the symbols, the second of at most those that are left."""
        one = _number(generator, generator.randint(1, longest // 2))
        two = _number(generator, generator.randint(1, longest - len(one) - 1))
        return [*one, 10, *two], self.targets_of([*one, 10, *two])

    def targets_of(self, inputs):
        """Returns the digits of the sum, the last one first."""
        middle = inputs.index(10)
        numbers = (int("".join(map(str, reversed(digits)))) for digits in (inputs[:middle], inputs[middle + 1 :]))
        return [int(digit) for digit in reversed(str(sum(numbers)))]


def _number(generator, length):
    """Returns digits of a number, the last one first; only a number of one digit may be 0."""
    if length == 1:
        return [generator.randrange(10)]
    return [*generator.choices(range(10), k=length - 1), generator.randrange(1, 10)]

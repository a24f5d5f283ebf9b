"""Algorithmic tasks (copy, reverse or add digits) that are learned in minutes (see tensor2tensor's algorithmic.py)."""

import random

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, Problem
from t2t_lite.errors import NotWritten
from t2t_lite.text import vocabulary


class AlgorithmicProblem(Problem):
    """A problem with random sequences of symbols.

    The id of a symbol is the symbol + 2, and EOS ends a sequence. Lengths are uniform in [1, longest].

    In tensor2tensor, the dev sequences are ten times as long as the training sequences (400 versus 40), which also
    tests generalization to longer sequences. Here both splits have the same lengths, so that the dev accuracy shows
    whether the task was learned.
    """

    unit = "sequence"
    num_symbols = 10
    train_length = 40
    dev_length = 40
    train_size = 100_000
    dev_size = 10_000

    def targets_of(self, inputs):
        """Returns the target symbols for `inputs`, a list of symbols."""
        raise NotWritten(f"{type(self).__name__}: define targets_of.")

    def sample(self, generator, longest):
        """Samples one example.

        Args:
            generator: random.Random.
            longest: int, the maximum number of input symbols.

        Returns:
            (input symbols, target symbols), lists of int.
        """
        inputs = generator.choices(range(self.num_symbols), k=generator.randint(1, longest))
        return inputs, self.targets_of(inputs)

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": ids, "targets": ids} ending in id 1; each split has its own random generator."""
        is_train = dataset_split == DatasetSplit.TRAIN
        longest, size = (self.train_length, self.train_size) if is_train else (self.dev_length, self.dev_size)
        generator = random.Random(f"{self.random_seed} {dataset_split}")
        for _ in range(size):
            inputs, targets = self.sample(generator, longest)
            yield {"inputs": _ids(inputs), "targets": _ids(targets)}

    def feature_encoders(self, data_dir):
        """Returns encoders for ids written as space-separated numbers, such as "3 1 4"."""
        encoder = vocabulary.TextEncoder(self.num_symbols + vocabulary.TextEncoder.num_reserved_ids)
        return {"inputs": encoder, "targets": encoder}

    def generation_settings(self):
        """Returns what determines the files: the number of symbols, the lengths and the numbers of examples."""
        names = ("num_symbols", "train_length", "dev_length", "train_size", "dev_size")
        return {name: getattr(self, name) for name in names}


def _ids(symbols):
    return [*(symbol + vocabulary.TextEncoder.num_reserved_ids for symbol in symbols), vocabulary.EOS_ID]


@registry.register_problem
class AlgorithmicIdentityDecimal40(AlgorithmicProblem):
    """The targets are the inputs."""

    def targets_of(self, inputs):
        """Returns a copy task's targets: the input symbols themselves."""
        return inputs


@registry.register_problem
class AlgorithmicReverseDecimal40(AlgorithmicProblem):
    """The targets are the inputs in reverse order."""

    def targets_of(self, inputs):
        """Returns the input symbols in reverse order."""
        return inputs[::-1]


@registry.register_problem
class AlgorithmicAdditionDecimal40(AlgorithmicProblem):
    """The inputs are two numbers separated by symbol 10, and the targets are their sum, all with reversed digits.

    In tensor2tensor, symbol 10 has an id outside of the vocabulary.
    """

    num_symbols = 11

    def sample(self, generator, longest):
        """Samples two numbers: the first has at most half of the symbols, the second at most the remaining symbols."""
        one = _number(generator, generator.randint(1, longest // 2))
        two = _number(generator, generator.randint(1, longest - len(one) - 1))
        return [*one, 10, *two], self.targets_of([*one, 10, *two])

    def targets_of(self, inputs):
        """Returns the digits of the two numbers' sum, last digit first."""
        middle = inputs.index(10)
        numbers = (int("".join(map(str, reversed(digits)))) for digits in (inputs[:middle], inputs[middle + 1 :]))
        return [int(digit) for digit in reversed(str(sum(numbers)))]


def _number(generator, length):
    """Samples the digits of a number, last digit first; only a one-digit number may be 0."""
    if length == 1:
        return [generator.randrange(10)]
    return [*generator.choices(range(10), k=length - 1), generator.randrange(1, 10)]

"""`regress_own` and `regress_pair_own`: numbers for the user's own texts, or pairs of texts, such as similarities.

    t2t-datagen --problem=regress_pair_own --train_files=train.tsv --dev_files=dev.tsv --vocab_size=8000 --data_dir=D

A line of a file is `number<TAB>text`; for pairs it is `number<TAB>first<TAB>second`. `D/<problem>.json` stores
everything that was asked for, so that later commands need only `--data_dir=D`.
"""

import statistics

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, Text2RealProblem
from t2t_lite.errors import UserError, shown
from t2t_lite.problems.own_corpus import OwnCorpus
from t2t_lite.problems.own_settings import LABELLED, OwnSetting, own_settings
from t2t_lite.text.class_label_encoder import RealEncoder, as_number


def _are_numbers(ends):
    return isinstance(ends, list) and len(ends) == 2 and all(isinstance(end, int | float) for end in ends)


@registry.register_problem
class RegressOwn(OwnCorpus, Text2RealProblem):
    """Texts with a number each, given to `configure`."""

    columns = ("number", "text")
    settings = own_settings(
        *LABELLED, OwnSetting("label_range", list, None, fits=_are_numbers), "problem", vocab_type="subwords"
    )

    def label_range(self, data_dir):
        """Returns (the lowest, the highest) number of all files."""
        return self.determined("label_range", data_dir)

    def check_corpus(self, data_dir, tmp_dir):
        """Finds the range of the numbers; see `OwnCorpus.check_corpus`."""
        numbers = {number for _, number, _ in self._all_numbered()}
        if not numbers:
            raise UserError(
                f"{self.paths_of(DatasetSplit.TRAIN)}: all lines are blank. Expected {self.expected_lines}."
            )
        lowest, highest = min(numbers), max(numbers)
        if lowest == highest:
            raise UserError(
                f"{self.paths_of(DatasetSplit.TRAIN)}: all numbers are {lowest:g}. Expected different ones to learn."
            )
        encode = RealEncoder(lowest, highest).encode
        steps = len({encode(number)[0] for number in numbers})
        if steps < min(len(numbers), 100) / 2:
            far = max(lowest, highest, key=lambda end: abs(end - statistics.median(numbers)))
            where = next(where for _, number, where in self._all_numbered() if number == far)
            raise UserError(
                f"{where}: {far:.15g} is so far from the other numbers that {len(numbers):,} different ones become "
                f"{steps}: {RealEncoder.STEPS:,} steps are between {lowest:.15g} and {highest:.15g}. Expected numbers "
                "of one scale: leave out what is no measurement, or give their logarithms."
            )
        self.config["label_range"] = [lowest, highest]
        super().check_corpus(data_dir, tmp_dir)

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": str or for pairs a list of str, "targets": float}; skips blank lines."""
        for texts, number, _ in self._numbered(dataset_split):
            yield {"inputs": texts if self.num_texts > 1 else texts[0], "targets": number}

    def _all_numbered(self):
        for split in self.config["files"]:
            yield from self._numbered(split)

    def _numbered(self, split):
        for (text, *texts), where in self.rows(split):
            number = as_number(text)
            if number is None:
                header = "; --header if this line names the columns" if where.endswith(", line 1") else ""
                raise UserError(
                    f"{where}: found {shown(text)} in the first column. Expected a number, such as 3.5{header}."
                )
            yield texts, number, where


@registry.register_problem
class RegressPairOwn(RegressOwn):
    """Pairs of texts with a number each, given to `configure`; in a row each of the two ends in 1."""

    columns = ("number", "first", "second")
    num_texts = 2

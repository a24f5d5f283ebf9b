"""Classification and regression on the user's own texts or text pairs: `classify_own`, `regress_own` and so on.

    t2t-datagen --problem=classify_own --train_files=train.tsv --dev_files=dev.tsv --vocab_size=8000 --data_dir=D

A line of a file is `label<TAB>text`; for pairs it is `label<TAB>first<TAB>second`. The classes are the labels in the
training files. `regress_own` and `regress_pair_own` learn numbers, such as similarities of pairs. For pairs, use
`classify_pair_own` and `regress_pair_own`. `D/<problem>.json` stores the settings of this command, so later commands
need only `--data_dir=D`.
"""

import collections
import statistics
import unicodedata

from t2t_lite import registry
from t2t_lite.corpora import tables
from t2t_lite.corpora.plain_text import report
from t2t_lite.data.problem import DatasetSplit, Text2ClassProblem, Text2RealProblem
from t2t_lite.data.splits import FLAGS
from t2t_lite.errors import LOGGER, UserError, several, shown
from t2t_lite.problems.own_corpus import OwnCorpus
from t2t_lite.problems.own_settings import LABELLED, OwnSetting, own_settings
from t2t_lite.text.class_label_encoder import RealEncoder, as_number

_FEW_LABELS = 10  # no warning is logged for this many labels or fewer: the file may just be small


@registry.register_problem
class ClassifyOwn(OwnCorpus, Text2ClassProblem):
    """The problem of classifying the user's own labelled texts, which are given to `configure`."""

    columns = ("label", "text")
    settings = own_settings(*LABELLED, OwnSetting("class_labels", list, None), "problem", vocab_type="subwords")

    @property
    def num_classes(self):
        """The number of different labels in the training files."""
        return len(self.determined("class_labels"))

    def class_labels(self, data_dir):
        """Returns the sorted list of the labels."""
        return self.determined("class_labels", data_dir)

    def check_corpus(self, data_dir, tmp_dir):
        """Finds the classes in the training files, and warns of classes that are missing from the other files."""
        counts = {
            split: collections.Counter(cells[0] for cells, _ in self.rows(split)) for split in self.config["files"]
        }
        train, where = counts[DatasetSplit.TRAIN], f"--{FLAGS[DatasetSplit.TRAIN]}: {self.paths_of(DatasetSplit.TRAIN)}"
        self._check_first_lines(train)
        labels = self.config["class_labels"] = self.enough_labels(train, "label in the first column")
        if len(labels) > max(_FEW_LABELS, train.total() / 2):
            LOGGER.warning(
                f"{where}: {len(labels):,} different labels in {train.total():,} lines, such as {shown(labels[0])}: "
                "these look like ids or texts. Expected labels that many lines share; choose their column with "
                "--columns."
            )
        forms = collections.defaultdict(list)
        for label in labels:
            forms[unicodedata.normalize("NFKC", label).casefold()].append(label)
        if alike := next((same for same in forms.values() if len(same) > 1), None):
            LOGGER.warning(
                f"{where}: the labels {several([*map(shown, alike)])} differ only in case or Unicode form, but are "
                "different classes."
            )
        for split, classes in counts.items():
            if missing := train.keys() - classes:
                LOGGER.warning(
                    f"--{FLAGS[split]}: {self.paths_of(split)}: evaluations cannot measure labels without an example: "
                    f"{several([*map(shown, sorted(missing))])}."
                )
        super().check_corpus(data_dir, tmp_dir)

    def _check_first_lines(self, counts):
        """Raises an error if the first line may be a header, that is, if its label occurs only once."""
        if self.layout.has_header is not None:
            return
        paths = [facts["path"] for facts in self.files_of(DatasetSplit.TRAIN)]
        firsts = [next(tables.read_table(path, self.layout, self.on_bad_line), None) for path in paths]
        for cells, where in filter(None, firsts):
            others = [count for label, count in counts.items() if label != cells[0]]
            is_alone = counts[cells[0]] == sum(first[0][0] == cells[0] for first in firsts if first)
            if is_alone and len(others) > 1 and min(others) > 1 and all(map(tables.is_name, cells)):
                raise UserError(tables.header_question(where, cells, self.layout))

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": str or (for pairs) a list of str, "label": int}; skips blank lines."""
        numbers = {label: number for number, label in enumerate(self.class_labels(data_dir))}
        for (label, *texts), where in self.rows(dataset_split):
            if label in numbers:
                yield {"inputs": texts if self.num_texts > 1 else texts[0], "label": numbers[label]}
                continue
            expected = several([*map(shown, numbers)])
            message = f"{where}: the label {shown(label)} occurs in no training file. Expected one of {expected}."
            report(message, self.on_bad_line)


@registry.register_problem
class ClassifyPairOwn(ClassifyOwn):
    """The problem of classifying the user's own text pairs, given to `configure`; both texts of a row end in id 1."""

    columns = ("label", "first", "second")
    num_texts = 2


def _are_numbers(ends):
    return isinstance(ends, list) and len(ends) == 2 and all(isinstance(end, int | float) for end in ends)


@registry.register_problem
class RegressOwn(OwnCorpus, Text2RealProblem):
    """The problem of predicting a number for each of the user's own texts, which are given to `configure`."""

    columns = ("number", "text")
    settings = own_settings(
        *LABELLED, OwnSetting("label_range", list, None, fits=_are_numbers), "problem", vocab_type="subwords"
    )

    def label_range(self, data_dir):
        """Returns the lowest and the highest number in all of the user's files."""
        return self.determined("label_range", data_dir)

    def check_corpus(self, data_dir, tmp_dir):
        """Finds the range of the numbers in the user's files; see `OwnCorpus.check_corpus`."""
        numbers = {number for _, number, _ in self._all_numbered()}
        if not numbers:
            raise UserError(
                f"{self.paths_of(DatasetSplit.TRAIN)}: all lines are blank. Expected {self.expected_lines}."
            )
        lowest, highest = min(numbers), max(numbers)
        if lowest == highest:
            raise UserError(
                f"{self.paths_of(DatasetSplit.TRAIN)}: all numbers are {lowest:g}. Expected different numbers."
            )
        encode = RealEncoder(lowest, highest).encode
        steps = len({encode(number)[0] for number in numbers})
        if steps < min(len(numbers), 100) / 2:
            far = max(lowest, highest, key=lambda end: abs(end - statistics.median(numbers)))
            where = next(where for _, number, where in self._all_numbered() if number == far)
            raise UserError(
                f"{where}: {far:.15g} is so far from the other numbers that {len(numbers):,} different numbers become "
                f"{steps}, because there are only {RealEncoder.STEPS:,} steps from {lowest:.15g} to {highest:.15g}. "
                "Expected numbers on one scale: remove outliers, or use logarithms."
            )
        self.config["label_range"] = [lowest, highest]
        super().check_corpus(data_dir, tmp_dir)

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": str or (for pairs) a list of str, "targets": float}; skips blank lines."""
        for texts, number, _ in self._numbered(dataset_split):
            yield {"inputs": texts if self.num_texts > 1 else texts[0], "targets": number}

    def _all_numbered(self):
        for split in self.config["files"]:
            yield from self._numbered(split)

    def _numbered(self, split):
        for (text, *texts), where in self.rows(split):
            number = as_number(text)
            if number is not None:
                yield texts, number, where
                continue
            header = ", or --header if this line names the columns" if where.endswith(", line 1") else ""
            message = f"{where}: found {shown(text)} in the first column. Expected a number, such as 3.5{header}."
            report(message, self.on_bad_line)


@registry.register_problem
class RegressPairOwn(RegressOwn):
    """The problem of predicting a number for each of the user's own text pairs; both texts of a row end in id 1."""

    columns = ("number", "first", "second")
    num_texts = 2

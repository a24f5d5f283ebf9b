"""`classify_own` and `classify_pair_own`: classifiers of the user's own texts, or pairs of texts.

    t2t-datagen --problem=classify_own --train_files=train.tsv --dev_files=dev.tsv --vocab_size=8000 --data_dir=D

A line of a file is `label<TAB>text`; for pairs it is `label<TAB>first<TAB>second`. The labels are those of the training
files. `D/<problem>.json` stores everything that was asked for, so that later commands need only `--data_dir=D`.
"""

import collections
import functools
import types

from t2t_lite import registry
from t2t_lite.corpora import plain_text
from t2t_lite.data import own_files
from t2t_lite.data.problem import DatasetSplit, Text2ClassProblem
from t2t_lite.data.text_class_problem import cut_texts
from t2t_lite.errors import UserError, counted, shown
from t2t_lite.problems import own_vocabulary
from t2t_lite.problems.own_vocabulary import OwnVocabulary

_MOST_LABELS = 10_000  # more are texts in the wrong column


@registry.register_problem
class ClassifyOwn(OwnVocabulary, Text2ClassProblem):
    """Texts with a label each, given to `configure`."""

    is_generate_per_split = True
    example_flags = "--train_files=train.tsv --dev_files=dev.tsv"
    columns = ("label", "text")
    _CONFIG = types.MappingProxyType(
        {
            **own_vocabulary.remembered("inputs"),
            "files": own_vocabulary.OwnFiles._CONFIG["files"],
            "class_labels": lambda labels: labels is None or all(isinstance(label, str) for label in labels),
        }
    )

    def configure(
        self,
        train_files=(),
        dev_files=(),
        test_files=(),
        vocab_size=None,
        vocab_type=None,
        vocab_from=(),
        max_samples_for_vocab=None,
    ):
        """Sets what to generate from; the arguments are t2t-datagen's flags of these names.

        Args:
            train_files: paths of files of the columns `columns`, which may be compressed (`.gz`, `.bz2`, `.xz`).
            dev_files: likewise; evaluated while training.
            test_files: likewise; may be left out.
            vocab_size, vocab_type, vocab_from, max_samples_for_vocab: see `OwnVocabulary.vocabulary_config`. A
                classifier that goes on from an encoder takes the vocabulary from that one's output_dir.

        Raises:
            UserError: a flag is missing or malformed, or a file does not exist.
        """
        given = {DatasetSplit.TRAIN: train_files, DatasetSplit.EVAL: dev_files, DatasetSplit.TEST: test_files}
        for split in (DatasetSplit.TRAIN, DatasetSplit.EVAL):
            if not given[split]:
                raise UserError(
                    f"{self.name}: missing --{own_files.FLAGS[split]}. Expected lines of "
                    f"{'<TAB>'.join(self.columns)}: {self.example_flags}."
                )
        self.remember(
            {
                "problem": self.name,
                **self.vocabulary_config(vocab_size, vocab_type, vocab_from, max_samples_for_vocab),
                "class_labels": None,
                "files": {split: own_files.describe_files(split, paths) for split, paths in given.items() if paths},
            }
        )

    @property
    def num_classes(self):
        """The number of classes."""
        return len(self.config["class_labels"])

    def class_labels(self, data_dir):
        """Returns the labels, sorted."""
        return self.read_config(data_dir)["class_labels"]

    def prepare_generation(self, data_dir, tmp_dir):
        """Finds the labels, and reads all files once, so that a fault is found before any work."""
        found = collections.Counter(label for label, *_ in self._rows(DatasetSplit.TRAIN))
        names = ",".join(facts["path"] for facts in self.files_of(DatasetSplit.TRAIN))
        if not 2 <= len(found) <= _MOST_LABELS:
            raise UserError(
                f"{names}: {counted(len(found), 'label')} in the first column. Expected 2 to {_MOST_LABELS:,}."
            )
        self.config["class_labels"] = sorted(found)
        for split in self.config["files"]:
            for _ in self.generate_samples(data_dir, tmp_dir, split):
                pass
        super().prepare_generation(data_dir, tmp_dir)

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": str, "label": int}; blank lines are left out."""
        numbers = {label: number for number, label in enumerate(self.class_labels(data_dir))}
        for label, text, where in self._rows(dataset_split):
            if label not in numbers:
                raise UserError(
                    f"{where}: the label {shown(label)} is in no training file. Expected one of "
                    f"{shown(', '.join(numbers))}."
                )
            yield {"inputs": text, "label": numbers[label]}

    def _rows(self, split):
        """Yields (label, text, place) for every line that is not blank."""
        for facts in self.files_of(split):
            for number, line in enumerate(plain_text.read_lines(facts["path"]), 1):
                if not line.strip():
                    continue
                where = f"{facts['path']}, line {number}"
                cells = [plain_text.clean(cell) for cell in line.split("\t")]
                if len(cells) != len(self.columns) or not all(cells):
                    raise UserError(
                        f"{where}: found {counted(len(cells), 'column')}{'' if all(cells) else ', one of them blank'}. "
                        f"Expected {len(self.columns)}: {'<TAB>'.join(self.columns)}."
                    )
                yield cells[0], "\t".join(cells[1:]), where

    def preprocess_example(self, example, mode, hparams):
        """Cuts rows to the hyperparameter `max_length`, so that every text gets a label: see `cut_texts`."""
        return (
            {**example, "inputs": cut_texts(example["inputs"], hparams.max_length)} if hparams.max_length else example
        )


@registry.register_problem
class ClassifyPairOwn(ClassifyOwn):
    """Pairs of texts with a label each, given to `configure`; in a row each of the two ends in 1."""

    columns = ("label", "first", "second")
    num_texts = 2

    def sample_encoder(self, data_dir):
        """See `Text2TextProblem.sample_encoder`."""
        return functools.partial(_encode_pairs, super().sample_encoder(data_dir))


def _encode_pairs(encode, samples):
    pairs = [sample["inputs"].split("\t") for sample in samples]
    sides = [
        encode([{**sample, "inputs": texts[side]} for sample, texts in zip(samples, pairs, strict=True)])
        for side in (0, 1)
    ]
    return [{**first, "inputs": first["inputs"] + second["inputs"]} for first, second in zip(*sides, strict=True)]

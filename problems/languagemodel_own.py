"""`languagemodel_own` and `languagemodel_own_characters`: language models of the user's own text files.

    t2t-datagen --problem=languagemodel_own --train_files=a.txt --dev_files=b.txt --vocab_size=8000 --data_dir=D

A file is a document; a line `<|endoftext|>` in it ends one and begins another. `D/<problem>.json` stores everything
that was asked for, so that later commands need only `--data_dir=D`. docs/language_models.md has every flag.
"""

import itertools
import operator
import types

from t2t_lite import registry
from t2t_lite.console import Progress
from t2t_lite.data.own_files import OwnFiles
from t2t_lite.data.problem import FILE_TAGS, ChoppedTextProblem, VocabType
from t2t_lite.problems import own_vocabulary
from t2t_lite.problems.own_vocabulary import OwnVocabulary
from t2t_lite.ranges import SEQUENCE_LENGTH, typed_value
from t2t_lite.text.published.byte_level_learning import END_TOKEN


@registry.register_problem
class LanguagemodelOwnCharacters(OwnFiles, ChoppedTextProblem):
    """Text files given to `configure`, by UTF-8 bytes. Once generated, everything is read from the data folder."""

    vocab_type = VocabType.CHARACTER
    default_length = 1024
    example_flags = "--train_files=a.txt --dev_files=b.txt"
    _CONFIG = types.MappingProxyType(
        {
            "sequence_length": lambda length: type(length) is int and length in SEQUENCE_LENGTH,
            "files": OwnFiles._CONFIG["files"],
        }
    )

    def configure(self, train_files=(), dev_files=(), test_files=(), sequence_length=None):
        """Sets what to generate from; the arguments are t2t-datagen's flags of these names.

        Args:
            train_files: paths of UTF-8 texts, which may be compressed (`.gz`, `.bz2`, `.xz`).
            dev_files: likewise; evaluated while training.
            test_files: likewise; may be left out.
            sequence_length: int, ids in a row; None: `default_length`.

        Raises:
            UserError: a flag is missing or malformed, or a file does not exist.
        """
        self._configure(train_files, dev_files, test_files, sequence_length)

    def _configure(self, train_files, dev_files, test_files, sequence_length, **vocabulary):
        described = self.described_files(train_files, dev_files, test_files)
        length = typed_value("--sequence_length", sequence_length, int | None, SEQUENCE_LENGTH)
        self.remember(
            {
                "problem": self.name,
                "sequence_length": self.default_length if length is None else length,
                **vocabulary,
                "files": described,
            }
        )

    @property
    def sequence_length(self):
        """The number of ids in a row."""
        return self.config["sequence_length"]

    @property
    def dataset_splits(self):
        """The splits that have files; see `OwnFiles.dataset_splits`, but for the ordered ones, which have one shard."""
        splits = super().dataset_splits
        return [{**split, "shards": 1} if split["split"] in self.ordered_splits else split for split in splits]

    def prepare_generation(self, data_dir, tmp_dir):
        """Reads all files once, so that a fault is found before any work; then makes the vocabulary."""
        for split in self.config["files"]:
            progress = Progress(f"{self.name}: reading {FILE_TAGS[split]}", "pieces of text")
            for _ in progress.watch(self.generate_samples(data_dir, tmp_dir, split)):
                pass
            progress.done()
        super().prepare_generation(data_dir, tmp_dir)

    def generate_documents(self, data_dir, tmp_dir, dataset_split):
        """Yields the documents of a split's files."""
        self.read_config(data_dir)
        for facts in self.files_of(dataset_split):
            parts = _with_borders(self.filepath_to_unicode_strings(facts["path"]))
            for is_border, document in itertools.groupby(parts, operator.itemgetter(0)):
                if not is_border:
                    yield (part for _, part in document)


@registry.register_problem
class LanguagemodelOwn(OwnVocabulary, LanguagemodelOwnCharacters):
    """Text files given to `configure`, by the pieces of a vocabulary."""

    _CONFIG = types.MappingProxyType({**LanguagemodelOwnCharacters._CONFIG, **own_vocabulary.remembered("targets")})
    default_vocab_type = VocabType.BYTE_LEVEL_BPE

    def configure(
        self,
        train_files=(),
        dev_files=(),
        test_files=(),
        sequence_length=None,
        vocab_size=None,
        vocab_type=None,
        vocab_from=(),
        max_samples_for_vocab=None,
    ):
        """Sets what to generate from; the arguments are t2t-datagen's flags of these names.

        Args:
            train_files, dev_files, test_files, sequence_length: see `LanguagemodelOwnCharacters`.
            vocab_size, vocab_type, vocab_from, max_samples_for_vocab: see `OwnVocabulary.vocabulary_config`; a sample
                is a piece of about 1,000 characters.

        Raises:
            UserError: a flag is missing, malformed or contradicts another, or a file does not exist.
        """
        vocabulary = self.vocabulary_config(vocab_size, vocab_type, vocab_from, max_samples_for_vocab)
        self._configure(train_files, dev_files, test_files, sequence_length, **vocabulary)


def _with_borders(parts):
    """Yields (whether it is a border between documents, part) of the lines of a text; a long line comes in parts."""
    begins_a_line = True
    for part in parts:
        yield begins_a_line and part.strip() == END_TOKEN, part
        begins_a_line = part.endswith("\n")

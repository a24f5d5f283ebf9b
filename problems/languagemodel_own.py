"""`languagemodel_own` and `languagemodel_own_characters`: language models of the user's own text files.

    t2t-datagen --problem=languagemodel_own --train_files=a.txt --dev_files=b.txt --vocab_size=8000 --data_dir=D

A file is a document; a line `<|endoftext|>` in it ends one and begins another. `D/<problem>.json` stores everything
that was asked for, so that later commands need only `--data_dir=D`. docs/language_models.md has every flag.
"""

import itertools
import operator

from t2t_lite import registry
from t2t_lite.data.problem import ChoppedTextProblem, VocabType
from t2t_lite.problems.own_corpus import OwnCorpus
from t2t_lite.problems.own_settings import SENTENCEPIECE, own_settings
from t2t_lite.text.published.byte_level_bpe import END_TOKEN


@registry.register_problem
class LanguagemodelOwn(OwnCorpus, ChoppedTextProblem):
    """Text files given to `configure`, in the pieces of a vocabulary."""

    settings = own_settings(
        "problem", "sequence_length", "vocab_size", "vocab_type", "vocab_from", "max_samples_for_vocab",
        *SENTENCEPIECE, "files",
        sequence_length=1024, vocab_type=VocabType.BYTE_LEVEL_BPE.value,
    )  # fmt: skip
    example_flags = "--train_files=a.txt --dev_files=b.txt"
    expected_lines = "text files"
    sample_unit = "pieces of text"

    @property
    def sequence_length(self):
        """The number of ids in a row."""
        return self.config["sequence_length"]

    def generate_documents(self, data_dir, tmp_dir, dataset_split):
        """Yields the documents of a split's files."""
        self.read_config(data_dir)
        for facts in self.files_of(dataset_split):
            parts = _with_borders(self.filepath_to_unicode_strings(facts["path"]))
            for is_border, document in itertools.groupby(parts, operator.itemgetter(0)):
                if not is_border:
                    yield (part for _, part in document)


@registry.register_problem
class LanguagemodelOwnCharacters(LanguagemodelOwn):
    """Text files given to `configure`, by UTF-8 bytes."""

    vocab_type = VocabType.CHARACTER
    settings = own_settings("problem", "sequence_length", "files", sequence_length=1024)


def _with_borders(parts):
    """Yields (whether it is a border between documents, part) for the lines of a text; long lines come in parts."""
    begins_a_line = True
    for part in parts:
        yield begins_a_line and part.strip() == END_TOKEN, part
        begins_a_line = part.endswith("\n")

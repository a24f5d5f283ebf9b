"""What the problems on the user's own labelled files share: flags, and reading all files before any work."""

from t2t_lite.corpora.tables import Layout, read_table
from t2t_lite.data.own_files import TABLES
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.errors import UserError, counted
from t2t_lite.problems import own_vocabulary
from t2t_lite.problems.own_vocabulary import OwnVocabulary

MOST_LABELS = 10_000  # more are texts in the wrong column


def remembered(**labels):
    """Returns the keys of the configuration, and how each value is checked; see `OwnFiles`."""
    files = own_vocabulary.OwnFiles._CONFIG["files"]
    return {**own_vocabulary.remembered("inputs"), "files": files, **TABLES, **labels}


class LabelledOwn(OwnVocabulary):
    """Mixin, to be listed before the problem's base class. Subclasses write `generate_samples` and `find_labels`.

    Attributes:
        columns: names of the columns of a file, divided by tabs; or of what else it is made of, for messages.
    """

    is_generate_per_split = True
    example_flags = "--train_files=train.tsv --dev_files=dev.tsv"
    columns = ()

    def configure(
        self,
        train_files=(),
        dev_files=(),
        test_files=(),
        vocab_size=None,
        vocab_type=None,
        vocab_from=(),
        max_samples_for_vocab=None,
        columns=(),
        header=None,
    ):
        """Sets what to generate from; the arguments are t2t-datagen's flags of these names.

        Args:
            train_files: paths of labelled files, which may be compressed (`.gz`, `.bz2`, `.xz`).
            dev_files: likewise; evaluated while training.
            test_files: likewise; may be left out.
            vocab_size, vocab_type, vocab_from, max_samples_for_vocab: see `OwnVocabulary.vocabulary_config`. A model
                that goes on from an encoder takes the vocabulary from that one's output_dir.
            columns: for each column that is read its number in the files, from 1, or its name in their first lines.
                Left out: the files have these columns alone, in this order.
            header: bool, whether the first line of a file names the columns. None: one that looks like it is refused.

        Raises:
            UserError: a flag is missing or malformed, or a file does not exist.
        """
        layout = Layout(self.columns, tuple(columns), header).check()
        self.configure_files(
            train_files, dev_files, test_files, vocab_size, vocab_type, vocab_from, max_samples_for_vocab
        )
        self.config.update(columns=list(layout.columns) or None, header=header)

    def configure_files(self, train_files, dev_files, test_files, *vocabulary):
        """Sets what `configure` does of files of any kind; `vocabulary` are the arguments of `vocabulary_config`."""
        described = self.described_files(train_files, dev_files, test_files)
        self.remember(
            {
                **dict.fromkeys(self._CONFIG),  # the labels are not known yet
                "problem": self.name,
                **self.vocabulary_config(*vocabulary),
                "files": described,
            }
        )

    @property
    def expected_lines(self):
        """What a file holds, for messages."""
        return f"lines of {'<TAB>'.join(self.columns)}"

    def find_labels(self):
        """Stores what is to be known of all labels in `config`. Raises `UserError` if that is not enough to learn."""

    def prepare_generation(self, data_dir, tmp_dir):
        """Finds the labels, and reads all files once, so that a fault is found before any work."""
        self.find_labels()
        for split in self.config["files"]:
            for _ in self.generate_samples(data_dir, tmp_dir, split):
                pass
        super().prepare_generation(data_dir, tmp_dir)

    @property
    def layout(self):
        """How the columns are found, a `Layout`."""
        return Layout(self.columns, tuple(self.config.get("columns") or ()), self.config.get("header"))

    def generation_settings(self):
        """Returns also the columns that are read."""
        chosen = {name: self.config[name] for name in TABLES if self.config.get(name) is not None}
        return {**super().generation_settings(), **chosen}

    def rows(self, split):
        """Yields (list of str, place for messages) of every line of a split's files; see `read_table`."""
        for facts in self.files_of(split):
            yield from read_table(facts["path"], self.layout, self.on_bad_line)

    def paths_of(self, split):
        """Returns the paths of a split's files as one text, for messages."""
        return ",".join(facts["path"] for facts in self.files_of(split))

    def enough_labels(self, labels, what):
        """Returns the labels, sorted. Raises `UserError` unless there are 2 to `MOST_LABELS` in the training files."""
        found = sorted(set(labels))
        if not 2 <= len(found) <= MOST_LABELS:
            raise UserError(
                f"{self.paths_of(DatasetSplit.TRAIN)}: {counted(len(found), what)}. Expected 2 to {MOST_LABELS:,}."
            )
        return found

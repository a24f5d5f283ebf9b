"""A mixin for problems with published files, whose archive is found in `tmp_dir` or downloaded to it.

The archive in `tmp_dir` may be packed or unpacked. A module may keep the files' URLs in a `.tsv` table in its own
folder.
"""

import collections
import csv
import importlib.resources

from t2t_lite.corpora import downloads, source_files
from t2t_lite.data.problem import DatasetSplit


def files_of_splits(pattern, train, dev, test=None):
    """Returns {split: file name}: {} in the pattern is replaced by the split's argument; None means no file."""
    names = {DatasetSplit.TRAIN: train, DatasetSplit.EVAL: dev, DatasetSplit.TEST: test}
    return {split: pattern.format(name) for split, name in names.items() if name}


class PublishedFiles:
    """A mixin for problems with published files; list it before the problem's base class.

    Attributes:
        url: str, URL of the archive.
        text_files: {split: name or pattern of the files in the archive}.
        further_files: {url: file name} of additional files to download.
        train_shards: int, the number of training shards.
    """

    is_generate_per_split = True
    url = ""
    text_files = {}  # noqa: RUF012
    further_files = {}  # noqa: RUF012
    train_shards = 10

    @property
    def dataset_splits(self):
        """The splits for which files are published; only the training set has several shards."""
        return [
            {"split": split, "shards": self.train_shards if split == DatasetSplit.TRAIN else 1}
            for split in self.text_files
        ]

    def prepare_generation(self, data_dir, tmp_dir):
        """Finds or downloads the published files, then makes the vocabulary."""
        sources = [[self.url, ("text", name)] for name in self.text_files.values()]
        downloads.provide(sources + [[url, ("text", name)] for url, name in self.further_files.items()], tmp_dir)
        super().prepare_generation(data_dir, tmp_dir)

    def sources(self, tmp_dir, dataset_split):
        """Returns the files of a split, as sources for `plain_text`."""
        return source_files.find_texts(tmp_dir, self.text_files[dataset_split], self.url)


def read_table(package, name, **convert):
    """Returns the rows of the table `<name>.tsv` in a package as named tuples; its first line names the columns.

    Cells are strings, or "" if a line is too short. For columns of other types, `convert` is {column: function that
    converts a string}.
    """
    text = (importlib.resources.files(package) / f"{name}.tsv").read_text(encoding="utf-8")
    reader = csv.DictReader(text.splitlines(), delimiter="\t", restval="")
    row_of = collections.namedtuple(name, reader.fieldnames)
    return [row_of(**{column: convert.get(column, str)(text) for column, text in row.items()}) for row in reader]


def words(text):
    """Splits a table's cell that holds several words into a tuple."""
    return tuple(text.split())

"""The public corpora of tensor2tensor's translation problems; `translate_wmt.py` registers the problems.

`corpora.tsv` has their addresses and members, those of tensor2tensor's translate_*.py and of tensorflow-datasets'
translate/wmt.py, and sizes and SHA-256, those of tensorflow-datasets' url_checksums. `{x}` stands for the language that
is paired with English. Where both are in one file, `english` says how: "tsv 3 2", columns with English first, or "tmx".
"""

import logging

from t2t_lite.corpora import source_files
from t2t_lite.data.problem import FILE_TAGS, DatasetSplit
from t2t_lite.data.text_problems.translate import TranslateProblem
from t2t_lite.problems.tables import read_table, words

_LOGGER = logging.getLogger("t2t_lite")

CORPORA = {row.name: row for row in read_table(__package__, "corpora", languages=words)}
CHECKSUMS = {row.url: (int(row.bytes), row.sha256) for row in CORPORA.values() if row.sha256}


def source(name, language):
    """Returns [url, members] of a corpus for a language, see `TranslateProblem.source_data_files`.

    Raises:
        ValueError: the corpus lacks that language.
    """
    row = CORPORA[name]
    if language not in row.languages:
        raise ValueError(f"corpus {name} has no {language}. Expected one of {' '.join(row.languages)}.")
    url, english, other = (text.format(x=language) for text in (row.url, row.english, row.other))
    kind, *columns = english.split()
    return [url, (kind, *map(int, columns), other) if kind in ("tsv", "tmx") else (english, other)]


class CorporaProblem(TranslateProblem):
    """English to another language, from rows of `corpora.tsv`.

    Attributes:
        language_pair: ("en", the other language).
        train_corpora: names of rows, in the order in which they are read.
        dev_corpora: likewise.
        test_corpora: likewise; empty if there is no test set.
        differs_from_tensor2tensor: differences from tensor2tensor's problem of this name, logged by generation.
    """

    language_pair = None
    train_corpora = ()
    dev_corpora = ("newstest2013",)
    test_corpora = ()
    archive_checksums = CHECKSUMS
    differs_from_tensor2tensor = ""

    @property
    def dataset_splits(self):
        """100 training shards as in tensor2tensor, one for each other set."""
        shards = {DatasetSplit.TRAIN: 100, DatasetSplit.EVAL: 1, DatasetSplit.TEST: 1}
        return [{"split": split, "shards": count} for split, count in shards.items() if self.source_data_files(split)]

    def source_data_files(self, dataset_split):
        """See `TranslateProblem.source_data_files`."""
        names = {
            DatasetSplit.TRAIN: self.train_corpora,
            DatasetSplit.EVAL: self.dev_corpora,
            DatasetSplit.TEST: self.test_corpora,
        }
        return [source(name, self.language_pair[1]) for name in names[dataset_split]]

    def generation_settings(self):
        """Adds the archives, which cannot change once data exist."""
        archives = {
            FILE_TAGS[part["split"]]: [
                source_files.archive_name(url) for url, _ in self.source_data_files(part["split"])
            ]
            for part in self.dataset_splits
        }
        return {**super().generation_settings(), "archives": archives}

    def prepare_generation(self, data_dir, tmp_dir):
        """Logs differences from tensor2tensor's corpora; see `TranslateProblem.prepare_generation`."""
        if self.differs_from_tensor2tensor:
            _LOGGER.info(f"{self.name}: {self.differs_from_tensor2tensor}")
        super().prepare_generation(data_dir, tmp_dir)

"""Translation problems with published corpora (tensor2tensor's translate.py).

@registry.register_problem
class TranslateEnxyNews(TranslateProblem):
    language_pair = ("en", "xy")

    def source_data_files(self, dataset_split):
        part = "train" if dataset_split == DatasetSplit.TRAIN else "dev"
        return [["https://example.org/news.tgz", (f"news/{part}.en", f"news/{part}.xy")]]
"""

from collections.abc import Iterable

from t2t_lite.cli.console import Progress
from t2t_lite.corpora import downloads, source_files
from t2t_lite.data.splits import FILE_TAGS, PREPARED, DatasetSplit
from t2t_lite.data.text_problems.text_problem import Text2TextProblem
from t2t_lite.errors import LOGGER, NotWritten, UserError


class TranslateProblem(Text2TextProblem):
    """Translates between two languages, by default with the corpora listed by `source_data_files`.

    The corpora are first searched for in `tmp_dir`, as archives or extracted files. If they are missing, they are read
    from the tensorflow-datasets set `prepared_dataset` if it has been prepared, or else downloaded to `tmp_dir`.

    Attributes:
        prepared_dataset: name of a tensorflow-datasets set with the same sentence pairs, such as
            "wmt14_translate/de-en". Its features must be named as in `language_pair`.
        archive_checksums: {url: (size in bytes, SHA-256 in hex)} for published archives.
        datatypes_to_clean: not supported, because tensor2tensor's cleaner does not exist here; setting it raises an
            error.
    """

    is_generate_per_split = True
    prepared_dataset = None
    archive_checksums = None
    datatypes_to_clean = None

    def source_data_files(self, dataset_split):
        """Returns the corpora of a split, [[url, members], …], as in tensor2tensor.

        The URL is the URL of an archive (`.tar`, `.tgz`, `.tar.gz`, `.tar.bz2`, `.tar.xz` or `.zip`), the name of an
        archive in `tmp_dir`, or the URL of a single file. Members are (inputs file, targets file), both `.sgm` or both
        plain text; ("tsv", inputs column, targets column, file or pattern); or ("tmx", file), whose segments in the
        languages of `language_pair` may be in any order. All files may be compressed (gzip, bzip2, xz).
        """
        raise NotWritten(f"{type(self).__name__}: define source_data_files, or generate_samples.")

    def vocab_data_files(self):
        """Returns the corpora from which the vocabulary is learned, in the form of `source_data_files`."""
        return self.source_data_files(DatasetSplit.TRAIN)

    def prepare_generation(self, data_dir, tmp_dir):
        """Finds or downloads all corpora, checks the dev and test corpora, then makes the vocabulary."""
        if self.datatypes_to_clean:
            raise UserError(f"{self.name}: datatypes_to_clean is not available. Remove it, or clean the text first.")
        if self._reads_source_files:
            splits = [part["split"] for part in self.dataset_splits]
            for split in splits:
                sources = self.source_data_files(split)
                if folder := self._find_prepared(sources, tmp_dir):
                    LOGGER.info(f"{self.name}: {FILE_TAGS[split]} is read from the prepared set {folder}")
                else:
                    downloads.provide(sources, tmp_dir, self.archive_checksums)
            for split in splits:
                # reads the dev and test sets now, because a fault in these sets would otherwise be found hours later
                if split != DatasetSplit.TRAIN:
                    for _ in self.generate_samples(data_dir, tmp_dir, split):
                        pass
        super().prepare_generation(data_dir, tmp_dir)

    @property
    def _reads_source_files(self):
        if not (self.overrides("source_data_files", TranslateProblem) or self._encodes_text):
            return False  # as in tensor2tensor's `TranslateEnzhWmt32k`, `generate_encoded_samples` finds its own text
        return not self.overrides("generate_samples", TranslateProblem)

    def generate_samples(self, data_dir: str, tmp_dir: str, dataset_split: str) -> Iterable[dict[str, str]]:
        """Yields the sentence pairs of a split from the corpora in `source_data_files`."""
        return self._read(self.source_data_files(dataset_split), tmp_dir, dataset_split)

    def samples_for_vocab(self, data_dir, tmp_dir):
        """Yields the sentence pairs of `vocab_data_files`, or the training samples if there are no such files."""
        if not self._reads_source_files:
            yield from super().samples_for_vocab(data_dir, tmp_dir)
            return
        progress = Progress(f"{self.name}: reading for the vocabulary", "pairs")
        yield from progress.watch(self._read(self.vocab_data_files(), tmp_dir, DatasetSplit.TRAIN))
        progress.done()

    def encoded_text(self, text):
        """See `Problem.encoded_text`. The spaces around a text are not read: see `Translator.translate`."""
        return super().encoded_text(text.strip())

    def _find_prepared(self, sources, tmp_dir):
        """Returns the folder of the prepared set if `tmp_dir` lacks a file of `sources`; otherwise None."""
        if not self.prepared_dataset or downloads.are_there(sources, tmp_dir):
            return None
        splits = [PREPARED[part["split"]] for part in self.dataset_splits]
        return downloads.find_prepared(self.prepared_dataset, splits, tmp_dir)

    def _read(self, sources, tmp_dir, dataset_split):
        if folder := self._find_prepared(sources, tmp_dir):
            yield from downloads.read_prepared(folder, PREPARED[dataset_split], self.language_pair)
            return
        if not downloads.are_there(sources, tmp_dir):  # happens only without an earlier call of `prepare_generation`
            downloads.provide(sources, tmp_dir, self.archive_checksums)
        for url, members in sources:
            yield from source_files.read_members(
                tmp_dir, members, url, self.language_pair, self.removed, self.on_bad_line
            )

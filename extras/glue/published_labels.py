"""Problems that classify published texts and text pairs, under tensor2tensor's names: IMDb, GLUE and SNLI.

docs/extras/glue.md describes the problems. The archives are read from `--tmp_dir`, packed or unpacked. If they are
missing, they are downloaded to that folder. GLUE is downloaded from dl.fbaipublicfiles.com instead of tensor2tensor's
addresses.
"""

from t2t_lite.corpora import plain_text, source_files
from t2t_lite.data.problem import Text2ClassProblem, TextConcat2ClassProblem, VocabType
from t2t_lite.errors import counted, shown
from t2t_lite.problems.published_files import PublishedFiles, files_of_splits
from t2t_lite.registry import register_problem

_IMDB = "http://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"
_GLUE = "https://dl.fbaipublicfiles.com/glue/data"
_SNLI = "https://nlp.stanford.edu/projects/snli/snli_1.0.zip"
_NLI = {"contradiction": "contradiction", "entailment": "entailment", "neutral": "neutral"}


class PublishedTable(PublishedFiles):
    """Mixin, listed before `Text2ClassProblem`, that reads unquoted tab-separated tables.

    Attributes:
        labels: {label in a file: name of the class}, in the order of the classes.
        label_column: int, the index of the label's column; -1 is the last column.
        text_columns: tuple of int, the indices of the columns with the texts.
        has_header: bool, whether the first line names the columns.
    """

    labels = {}  # noqa: RUF012
    label_column = -1
    text_columns = (0,)
    has_header = True

    @property
    def num_classes(self):
        """The number of classes."""
        return len(self.labels)

    def class_labels(self, data_dir):
        """Returns the names of the classes."""
        return list(self.labels.values())

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": str, or a list of str for pairs, "label": int}; skips lines without a label (-)."""
        numbers = {label: number for number, label in enumerate(self.labels)}
        least = 1 + max(self.label_column, *self.text_columns) + (self.label_column < 0)
        for source in self.sources(tmp_dir, dataset_split):
            for line_number, line in enumerate(plain_text.read_lines(source, self.on_bad_line), 1):
                if line is None or not line.strip() or (self.has_header and line_number == 1):
                    continue
                cells = [plain_text.clean(cell) for cell in line.split("\t")]
                where = f"{source}, line {line_number}"
                if len(cells) < least:
                    columns = counted(len(cells), "column")
                    message = f"{where}: found {columns}. Expected at least {least}, separated by tabs."
                    plain_text.report(message, self.on_bad_line)
                    continue
                label, texts = cells[self.label_column], [cells[column] for column in self.text_columns]
                if label == "-":  # means that the annotators disagreed
                    self.removed["no label"] += 1
                elif label not in numbers:
                    message = f"{where}: unknown label {shown(label)}. Expected {', '.join(numbers)}."
                    plain_text.report(message, self.on_bad_line)
                else:
                    yield {"inputs": texts if self.num_texts > 1 else texts[0], "label": numbers[label]}


@register_problem
class SentimentIMDB(PublishedFiles, Text2ClassProblem):
    """IMDb: sentiment of film reviews, 25,000 for training and 25,000 for evaluation."""

    url = _IMDB
    text_files = files_of_splits("aclImdb/{}/pos/*.txt", "train", "test")
    approx_vocab_size = 2**13
    num_classes = 2

    def class_labels(self, data_dir):
        """Returns the names of the classes."""
        return ["neg", "pos"]

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": a review, "label": int}."""
        positive = self.text_files[dataset_split]
        for label, pattern in enumerate((positive.replace("/pos/", "/neg/"), positive)):
            for source in source_files.find_texts(tmp_dir, pattern, self.url):
                lines = plain_text.read_lines(source, self.on_bad_line)
                text = " ".join(map(plain_text.clean, filter(None, lines)))
                yield {"inputs": text, "label": label}


@register_problem
class SentimentSSTBinary(PublishedTable, Text2ClassProblem):
    """The Stanford Sentiment Treebank as in GLUE (SST-2): sentiment of phrases from film reviews."""

    url = f"{_GLUE}/SST-2.zip"
    text_files = files_of_splits("SST-2/{}.tsv", "train", "dev")
    labels = {"0": "neg", "1": "pos"}  # noqa: RUF012
    approx_vocab_size = 2**14


@register_problem
class Cola(PublishedTable, Text2ClassProblem):
    """The Corpus of Linguistic Acceptability: whether a sentence is acceptable English."""

    url = f"{_GLUE}/CoLA.zip"
    text_files = files_of_splits("CoLA/{}.tsv", "train", "dev")
    labels = {"0": "unacceptable", "1": "acceptable"}  # noqa: RUF012
    label_column, text_columns, has_header = 1, (3,), False
    approx_vocab_size = 2**13

    def eval_metrics(self):
        """Adds `mcc`, the usual metric of the corpus."""
        return [*super().eval_metrics(), "mcc"]


@register_problem
class MultiNLI(PublishedTable, TextConcat2ClassProblem):
    """MultiNLI: whether the first text implies the second. The dev set is "matched", the test set "mismatched"."""

    url = f"{_GLUE}/MNLI.zip"
    text_files = files_of_splits("MNLI/{}.tsv", "train", "dev_matched", "dev_mismatched")
    labels = _NLI
    text_columns = (8, 9)
    train_shards = 100
    approx_vocab_size = 2**15


@register_problem
class StanfordNLI(PublishedTable, TextConcat2ClassProblem):
    """SNLI: whether the first sentence implies the second."""

    url = _SNLI
    text_files = files_of_splits("snli_1.0/snli_1.0_{}.txt", "train", "dev", "test")
    labels = _NLI
    label_column, text_columns = 0, (5, 6)
    train_shards = 100
    approx_vocab_size = 2**15


@register_problem
class RTE(PublishedTable, TextConcat2ClassProblem):
    """Recognizing Textual Entailment, as in GLUE: whether the first text implies the second."""

    url = f"{_GLUE}/RTE.zip"
    text_files = files_of_splits("RTE/{}.tsv", "train", "dev")
    labels = {"not_entailment": "not_entailment", "entailment": "entailment"}  # noqa: RUF012
    text_columns = (1, 2)
    train_shards = 1
    approx_vocab_size = 2**13


for _base in (SentimentIMDB, SentimentSSTBinary, Cola, MultiNLI, StanfordNLI, RTE):
    _name, _doc = f"{_base.__name__}Characters", f"Like `{_base.name}`, with UTF-8 bytes as vocabulary."
    _made = type(_name, (_base,), {"__module__": __name__, "__doc__": _doc, "vocab_type": VocabType.CHARACTER})
    globals()[_name] = register_problem(_made)  # importable, as in tensor2tensor

"""Language modelling on published texts (with tensor2tensor's names and URLs) and on the user's own texts.

docs/language_models.md describes the texts and the differences from tensor2tensor.

    t2t-datagen --problem=languagemodel_own --train_files=a.txt --dev_files=b.txt --vocab_size=8000 --data_dir=D

For `languagemodel_own` and `languagemodel_own_characters`, each file is a document, unless lines that consist of
`<|endoftext|>` divide it into several documents. `D/<problem>.json` stores all settings of this command, so later
commands need only `--data_dir=D`.
"""

import collections
import itertools
import operator
import os

from t2t_lite import files, registry
from t2t_lite.corpora import plain_text, source_files
from t2t_lite.corpora.cells import CSV, JSON_LINES
from t2t_lite.data.problem import ChoppedTextProblem, DatasetSplit, Text2SelfProblem, VocabType
from t2t_lite.errors import LOGGER, UserError
from t2t_lite.problems.own_corpus import OwnCorpus
from t2t_lite.problems.own_problem import kept
from t2t_lite.problems.own_settings import SENTENCEPIECE, own_settings
from t2t_lite.problems.published_files import PublishedFiles, files_of_splits
from t2t_lite.text.published.byte_level_bpe import END_TOKEN
from t2t_lite.text.vocabulary import ByteTextEncoder

_PTB = "http://www.fit.vutbr.cz/~imikolov/rnnlm/simple-examples.tgz"
_LM1B = "http://www.statmt.org/lm-benchmark/1-billion-word-language-modeling-benchmark-r13output.tar.gz"
_LM1B_WORDS = "http://download.tensorflow.org/models/LM_LSTM_CNN/vocab-2016-09-10.txt"
_WIKITEXT = "https://s3.amazonaws.com/research.metamind.io/wikitext"
_ENWIK8 = "http://mattmahoney.net/dc/enwik8.zip"


class PublishedText(PublishedFiles, Text2SelfProblem):
    """The base class for language modelling on the lines of published files."""

    def text_of_line(self, line):
        """Returns the text of a line in the files; by default its words, separated by single spaces."""
        return " ".join(line.split())

    def lines(self, tmp_dir, dataset_split):
        """Yields the lines of a split that are not blank."""
        for source in self.sources(tmp_dir, dataset_split):
            yield from (line for line in plain_text.read_lines(source, self.on_bad_line) if line and line.strip())

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"targets": text} for each line that is not blank."""
        return ({"targets": self.text_of_line(line)} for line in self.lines(tmp_dir, dataset_split))


class PublishedWords(PublishedText):
    """Like `PublishedText`, but the words of the training set are the vocabulary; rare words become `<unk>`.

    Attributes:
        most_words: int, size of the vocabulary without padding and EOS; None for all words.
    """

    vocab_type = VocabType.TOKEN
    oov_token = "<unk>"
    most_words = None

    def get_or_create_vocab(self, data_dir, tmp_dir, force_get=False):
        """Returns the encoder. If the vocabulary file does not exist, writes it, most frequent words first."""
        path = os.path.join(data_dir, self.vocab_filename)
        if self.vocab_type == VocabType.TOKEN and not force_get and not files.exists(path):
            reserved = ("<pad>", "<EOS>", self.oov_token)
            lines = self.lines(tmp_dir, DatasetSplit.TRAIN)
            counts = collections.Counter(itertools.chain.from_iterable(map(str.split, lines)))
            words = sorted(counts.keys() - {*reserved}, key=lambda word: (-counts[word], word))
            table = [*reserved, *words[: self.most_words and self.most_words - 1]]
            files.write_bytes(path, "".join(f"{word}\n" for word in table).encode())
        return super().get_or_create_vocab(data_dir, tmp_dir, force_get)

    def learned_files(self, data_dir):
        """See `Problem.learned_files`."""
        return [os.path.join(data_dir, self.vocab_filename)]


# Language-modelling problems based on the Penn Treebank (PTB), as prepared by Mikolov.


@registry.register_problem
class LanguagemodelPtb10k(PublishedWords):
    """Word-level language modelling of the Penn Treebank."""

    url = _PTB
    text_files = files_of_splits("simple-examples/data/ptb.{}.txt", "train", "valid", "test")
    most_words = 10_000


@registry.register_problem
class LanguagemodelPtbCharacters(PublishedText):
    """The Penn Treebank at character level. In its files, spaces separate characters, and `_` stands for a space."""

    url = _PTB
    text_files = files_of_splits("simple-examples/data/ptb.char.{}.txt", "train", "valid", "test")
    vocab_type = VocabType.CHARACTER

    def text_of_line(self, line):
        """Returns the text of a line without the spaces between characters."""
        return "".join(line.split()).replace("_", " ").strip()


# Language-modelling problems based on the one-billion-word benchmark.


@registry.register_problem
class LanguagemodelLm1b32k(PublishedText):
    """Sentences of news, in which UNK replaces words outside of the benchmark's vocabulary of 793,471 words."""

    url = _LM1B
    text_files = files_of_splits(
        "1-billion-word-language-modeling-benchmark-r13output/{}",
        "training-monolingual.tokenized.shuffled/news.en-*-of-00100",
        "heldout-monolingual.tokenized.shuffled/news.en.heldout-00000-of-00050",
        None,
    )
    further_files = {_LM1B_WORDS: source_files.archive_name(_LM1B_WORDS)}  # noqa: RUF012
    train_shards = 100
    approx_vocab_size = 2**15
    max_samples_for_vocab = 63_000

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"targets": sentence} for every sentence of a split."""
        ((url, name),) = self.further_files.items()
        (path,) = source_files.find_texts(tmp_dir, name, url)
        vocabulary = {line.strip() for line in plain_text.read_lines(path, self.on_bad_line) if line}
        for sample in super().generate_samples(data_dir, tmp_dir, dataset_split):
            words = sample["targets"].split(" ")
            yield {"targets": " ".join(word if word in vocabulary else "UNK" for word in words)}


@registry.register_problem
class LanguagemodelLm1b8k(LanguagemodelLm1b32k):
    """Like `languagemodel_lm1b32k`, but with a smaller vocabulary."""

    approx_vocab_size = 2**13


@registry.register_problem
class LanguagemodelLm1bCharacters(LanguagemodelLm1b32k):
    """Like `languagemodel_lm1b32k`, but the text is encoded as UTF-8 bytes."""

    vocab_type = VocabType.CHARACTER


# WikiText-103.


@registry.register_problem
class LanguagemodelWikitext103(PublishedWords):
    """Word-level language modelling of lines from Wikipedia (paragraphs and headings)."""

    url = f"{_WIKITEXT}/wikitext-103-v1.zip"
    text_files = files_of_splits("wikitext-103/wiki.{}.tokens", "train", "valid", "test")


@registry.register_problem
class LanguagemodelWikitext103Characters(PublishedText):
    """Language modelling of lines from Wikipedia, encoded as UTF-8 bytes."""

    url = f"{_WIKITEXT}/wikitext-103-raw-v1.zip"
    text_files = files_of_splits("wikitext-103-raw/wiki.{}.raw", "train", "valid", "test")
    vocab_type = VocabType.CHARACTER


@registry.register_problem
class LanguagemodelWikitext103L4k(LanguagemodelWikitext103, ChoppedTextProblem):
    """Like `languagemodel_wikitext103`, but in rows of 4,096 words; each line ends in id 1."""

    sequence_length = 4096

    def generate_documents(self, data_dir, tmp_dir, dataset_split):
        """Yields the lines of a split."""
        lines = PublishedText.generate_samples(self, data_dir, tmp_dir, dataset_split)
        return ([line["targets"]] for line in lines)

    generate_samples = ChoppedTextProblem.generate_samples


@registry.register_problem
class LanguagemodelWikitext103L16k(LanguagemodelWikitext103L4k):
    """Like `languagemodel_wikitext103`, but in rows of 16,384 words."""

    sequence_length = 16384


# Language-modelling problems based on enwik8, the first 100 MB of Wikipedia's XML dump.


@registry.register_problem
class Enwik8L65k(PublishedText):
    """The bytes of enwik8 in rows of 65,536; the last ten million bytes are the dev and test sets.

    Attributes:
        sequence_length: int, length of each row, in bytes.
        held_out_bytes: int, the size of the dev set in bytes; the test set, which follows it, has the same size.
        overlap: int, number of training rows in which each byte occurs, at different positions.
    """

    url = _ENWIK8
    text_files = files_of_splits("{}", "enwik8", "enwik8", "enwik8")
    vocab_type = VocabType.CHARACTER
    ordered_splits = (DatasetSplit.EVAL, DatasetSplit.TEST)
    train_shards = 16
    sequence_length = 65536
    held_out_bytes = 5_000_000
    overlap = 4

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"targets": ids} for rows of bytes, without EOS."""
        sources = iter(self.sources(tmp_dir, dataset_split))
        source = next(sources)
        with plain_text.open_binary(source) as file:
            data = file.read()
        last = self.held_out_bytes
        if len(data) <= 2 * last:
            raise UserError(
                f"{source}: {len(data):,} bytes. Expected more than the {2 * last:,} bytes that are held out."
            )
        ranges = {DatasetSplit.TRAIN: (0, -2 * last), DatasetSplit.EVAL: (-2 * last, -last)}
        part = data[slice(*ranges.get(dataset_split, (-last, None)))]
        step = self.sequence_length // (self.overlap if dataset_split == DatasetSplit.TRAIN else 1)
        for start in range(0, max(len(part) - self.sequence_length + step, 1), step):
            row = part[start : start + self.sequence_length]
            self.unit_counts.update(character=sum(byte & 0xC0 != 0x80 for byte in row), byte=len(row))
            yield {"targets": [byte + ByteTextEncoder.num_reserved_ids for byte in row]}


for _length in (2**15, 2**14, 2**13, 2**12, 2**11, 2**10, 2**9):
    _name = f"Enwik8L{_length // 1024}k" if _length >= 1024 else f"Enwik8L{_length}"
    _doc = f"Like `enwik8_l65k`, but in rows of {_length:,} bytes."
    _made = type(_name, (Enwik8L65k,), {"__module__": __name__, "__doc__": _doc, "sequence_length": _length})
    globals()[_name] = registry.register_problem(_made)  # the class can be imported by name, as in tensor2tensor


@registry.register_problem
class LanguagemodelOwn(OwnCorpus, ChoppedTextProblem):
    """The user's own text files, given to `configure`, encoded with the pieces of a vocabulary."""

    settings = own_settings(
        "problem", "sequence_length", "vocab_size", "vocab_type", "vocab_from", "max_samples_for_vocab",
        *SENTENCEPIECE, "files",
        sequence_length=1024, vocab_type=VocabType.BYTE_LEVEL_BPE.value,
    )  # fmt: skip
    example_flags = "--train_files=a.txt --dev_files=b.txt"
    expected_lines = "text files"
    sample_unit = "pieces of text"

    sequence_length = kept("sequence_length", "The length of each row, in ids.")

    def check_settings(self, values, paths):
        """See `OwnCorpus.check_settings`; also warns about a table, whose quotes or field names would be learned."""
        super().check_settings(values, paths)
        for path in itertools.chain(*paths.values()):
            if plain_text.kind(path) in (CSV, ".json", *JSON_LINES):
                LOGGER.warning(f"{path}: its rows are read as plain text. Expected a file with text alone.")

    def generate_documents(self, data_dir, tmp_dir, dataset_split):
        """Yields the documents in a split's files."""
        self.read_config(data_dir)
        for facts in self.files_of(dataset_split):
            parts = _with_borders(self.filepath_to_unicode_strings(facts["path"]))
            for is_border, document in itertools.groupby(parts, operator.itemgetter(0)):
                if not is_border:
                    yield (part for _, part in document)


@registry.register_problem
class LanguagemodelOwnCharacters(LanguagemodelOwn):
    """The user's own text files, given to `configure`, encoded as UTF-8 bytes."""

    vocab_type = VocabType.CHARACTER
    settings = own_settings("problem", "sequence_length", "files", sequence_length=1024)


def _with_borders(parts):
    """Yields (whether the line separates documents, line) for each line of a text; long lines are yielded in parts."""
    begins_a_line = True
    for part in parts:
        yield begins_a_line and part.strip() == END_TOKEN, part
        begins_a_line = part.endswith("\n")

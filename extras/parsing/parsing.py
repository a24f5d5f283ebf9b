"""English constituency parsing (paper, section 6.3): translates the words of a sentence to its linearized tree.

    t2t-datagen --problem=parsing_english_own --train_files=a.mrg --dev_files=b.mrg --vocab_size=4000 --data_dir=D
    t2t-datagen --problem=parsing_english_ptb16k --tmp_dir=TREEBANK --data_dir=D

`t2t_lite.extras.parsing.trees` describes the format of trees and token sequences. Words are split into SentencePiece
pieces; labels are whole tokens in a separate vocabulary.
"""

import os
import types

from t2t_lite import files, registry
from t2t_lite.cli.console import Progress
from t2t_lite.data.named_problems import datagen_command
from t2t_lite.data.problem import FILE_TAGS, DatasetSplit
from t2t_lite.data.splits import FLAGS
from t2t_lite.data.text_problems.text_problem import Text2TextProblem
from t2t_lite.errors import MissingFile, NotWritten, UserError, counted
from t2t_lite.extras.parsing import trees
from t2t_lite.problems.own_corpus import OwnCorpus
from t2t_lite.problems.own_settings import own_settings
from t2t_lite.text import vocabulary

_UNKNOWN_TOKEN = "<unk>"
# The split of the WSJ sections that has been usual since Collins (1997).
_WSJ_SECTIONS = {DatasetSplit.TRAIN: range(2, 22), DatasetSplit.EVAL: (22,), DatasetSplit.TEST: (23,)}
_WSJ_FOLDERS = ("", "wsj", "parsed/mrg/wsj", "treebank_3/parsed/mrg/wsj", "combined/wsj")


class ParsingProblem(Text2TextProblem):
    """Translates sentences to trees. Subclasses define `generate_trees` and `approx_vocab_size` (of the words)."""

    is_generate_per_split = True
    # The search settings of the paper's section 6.3.
    decode_defaults = types.MappingProxyType({"beam_size": 21, "alpha": 0.3, "extra_length": 300})

    def __init__(self, was_reversed=False, was_copy=False):
        super().__init__(was_reversed, was_copy)
        self._known_tags = {}  # tags by word, loaded with the vocabularies and used to repair trees

    def generate_trees(self, data_dir, tmp_dir, dataset_split):
        """Yields the normalized nltk Trees of a split."""
        raise NotWritten(f"{type(self).__name__}: write generate_trees.")

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": words, "targets": tokens}, each joined by spaces."""
        for tree in self.generate_trees(data_dir, tmp_dir, dataset_split):
            words, tokens = trees.linearize(tree)
            yield {"inputs": " ".join(words), "targets": " ".join(tokens)}

    # Vocabularies.

    def _paths(self, data_dir):
        """Returns three paths: the words' SentencePiece model, the list of tokens, and the tags of each word."""
        base = os.path.join(data_dir, f"vocab.{self.dataset_filename()}")
        return f"{base}.inputs.{self.approx_vocab_size}.model", f"{base}.targets.tokens", f"{base}.tags.json"

    def prepare_generation(self, data_dir, tmp_dir):
        """Reads all trees once, so that a bad line is found early, and then learns the vocabularies."""
        lines, tokens, tagged = [], set(), []
        for split in (described["split"] for described in self.dataset_splits):
            progress = Progress(f"{self.name}: reading {FILE_TAGS[split]}", "trees")
            for tree in progress.watch(self.generate_trees(data_dir, tmp_dir, split)):
                if split == DatasetSplit.TRAIN:
                    lines.append(" ".join(tree.leaves()))
                    tokens.update(trees.linearize(tree)[1])
                    tagged += tree.pos()
            progress.done()
        self._check_labels(tokens, tagged)
        model, table, tags = self._paths(data_dir)
        if not files.exists(model):
            self._learn(lambda: lines, model, self.text_features[0])
        if not files.exists(table):
            entries = ["<pad>", "<EOS>", _UNKNOWN_TOKEN, *sorted(tokens)]
            files.write_bytes(table, ("\n".join(entries) + "\n").encode())
        if not files.exists(tags):
            files.write_json(tags, trees.learn_tags(tagged))

    def _check_labels(self, tokens, tagged):
        """Raises `UserError` if a tag is also the label of a phrase, since tokens could not distinguish the two."""
        if both := [(word, tag) for word, tag in tagged if f"/{tag}" in tokens]:
            word, tag = both[0]
            raise UserError(
                f"{self.name}: in the training trees, {tag} is a part of speech, as in ({tag} {word}), and also a "
                "phrase. Expected different labels."
            )

    def feature_encoders(self, data_dir):
        """Returns the encoders of words and tokens. Raises `UserError` if a file or nltk is missing."""
        trees.import_nltk()  # fails early if nltk is missing, which evaluation and decoding need
        model, table, tags = self._paths(data_dir)
        for path in (model, table, tags):
            if not files.exists(path):
                raise MissingFile(f"{path}: no such vocabulary. Run: {datagen_command(self, data_dir)}")
        self._known_tags = files.read_json(tags, {str: [str]})
        return {
            "inputs": vocabulary.SentencePieceEncoder(model),
            "targets": vocabulary.TokenTextEncoder(table, replace_oov=_UNKNOWN_TOKEN),
        }

    def vocabulary_files(self, data_dir):
        """Returns the paths of the vocabulary files."""
        model, table, tags = self._paths(data_dir)
        return [model, model.removesuffix(".model") + ".vocab", table, tags]

    def learned_files(self, data_dir):
        """Returns the paths of the vocabulary files, all of which t2t-datagen makes."""
        return ParsingProblem.vocabulary_files(self, data_dir)

    def generation_settings(self):
        """Returns {"vocab_size": the vocabulary size for words}."""
        return {"vocab_size": self.approx_vocab_size}

    # Text.

    @property
    def chooses_output(self):
        """Whether outputs are trees, which are reranked; `_rev` and `_copy` take the output with the best score."""
        return not self.was_reversed and not self.was_copy

    @property
    def eval_decode_metric(self):
        """The metric for decoded outputs: bracketing F1, or the share of exact outputs for `_rev` and `_copy`."""
        return "bracketing_f1" if self.chooses_output else "exact_sequence_accuracy"

    def input_text(self, text):
        """Returns the sentence in treebank form, with single spaces and with brackets as -LRB- and -RRB-."""
        return " ".join(trees.escape_words(text)) if self.chooses_output else text

    def output_text(self, inputs, outputs, encoders):
        """Returns the tree that the tokens in `outputs` describe over the words of `inputs`, repaired if needed."""
        words = trees.escape_words(inputs)
        if not self.chooses_output or not words:
            return outputs
        return trees.to_line(trees.build_tree(_tokens(outputs), words, _phrases(encoders), self._known_tags))

    def choose_output(self, inputs, outputs, encoders):
        """Returns the index of the output whose tags fit the words best (`trees.misfit`); ties go to the first output.

        A model that was trained on few trees may omit words, and another hypothesis in the beam may omit fewer.
        """
        words, phrases = trees.escape_words(inputs), _phrases(encoders)
        misfits = [trees.misfit(_tokens(output), words, phrases, self._known_tags) for output in outputs]
        return misfits.index(min(misfits))


def _tokens(outputs):
    return [trees.UNKNOWN_TAG if token == _UNKNOWN_TOKEN else token for token in outputs.split()]


def _phrases(encoders):
    """Returns the phrase labels, that is, the labels with a closing token in the vocabulary."""
    encoder = encoders["targets"]
    entries = encoder.pieces(range(encoder.vocab_size))
    return {entry[1:] for entry in entries if len(entry) > 1 and entry.startswith("/")}


@registry.register_problem
class ParsingEnglishOwn(OwnCorpus, ParsingProblem):
    """Parsing with the user's own treebank, which has one file of bracketed trees per split."""

    settings = own_settings("format", "problem", "vocab_size", "files", format=1, vocab_size=8000)
    example_flags = "--train_files=train.mrg --dev_files=dev.mrg"
    expected_lines = "one file of bracketed trees per split"
    usual_vocab_sizes = "1000 to 16000"

    def check_files(self, paths):
        """Checks that train and dev have one file each, and that test has at most one: see `OwnCorpus.check_files`."""
        super().check_files(paths)
        for split, split_paths in paths.items():
            if len(split_paths) > 1:
                raise UserError(
                    f"--{FLAGS[split]}={','.join(split_paths)}: {counted(len(split_paths), 'file')}. Expected one file "
                    "of bracketed trees."
                )

    def check_corpus(self, data_dir, tmp_dir):
        """Does nothing: `ParsingProblem.prepare_generation` reads all trees and checks them."""

    def generate_trees(self, data_dir, tmp_dir, dataset_split):
        """Yields the trees in the file of a split."""
        self.read_config(data_dir)
        for facts in self.files_of(dataset_split):
            for tree, _ in trees.read_trees(facts["path"], self.on_bad_line):
                yield tree


class _WallStreetJournal(ParsingProblem):
    """The WSJ part of the user's copy of the Penn Treebank: sections 02-21 for training, 22 for dev, 23 for test."""

    @property
    def dataset_splits(self):
        """Ten shards of training trees, and one shard each for dev and test."""
        return [{"split": split, "shards": 10 if split == DatasetSplit.TRAIN else 1} for split in _WSJ_SECTIONS]

    def generate_trees(self, data_dir, tmp_dir, dataset_split):
        """Yields the trees in the sections of a split, with files sorted by name."""
        for section in _WSJ_SECTIONS[dataset_split]:
            for path in _section_files(tmp_dir, section):
                for tree, _ in trees.read_trees(path, self.on_bad_line):
                    yield tree


def _section_files(tmp_dir, section):
    """Returns the sorted `.mrg` files of a section. Raises `UserError` with the expected layout if there are none."""
    for folder in _WSJ_FOLDERS:
        if paths := files.list_files(os.path.join(tmp_dir, folder, f"{section:02d}"), r"(?i).*\.mrg(\.gz)?"):
            return paths
    raise UserError(
        f"--tmp_dir={tmp_dir}: no .mrg files for WSJ section {section:02d}. Expected your licensed copy of the Penn "
        f"Treebank (LDC99T42): {os.path.join(tmp_dir, 'wsj', '02', 'wsj_0200.mrg')} and so on, folders 02 to 23, in "
        "that folder or in parsed/mrg/wsj."
    )


@registry.register_problem
class ParsingEnglishPtb8k(_WallStreetJournal):
    """Parsing of the WSJ, with 8,192 pieces for the words."""

    approx_vocab_size = 2**13


@registry.register_problem
class ParsingEnglishPtb16k(_WallStreetJournal):
    """Parsing of the WSJ, with 16,384 pieces for the words (the paper's vocabulary size)."""

    approx_vocab_size = 2**14

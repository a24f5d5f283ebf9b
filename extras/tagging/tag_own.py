"""`tag_own`: tags the words of the user's own sentences, for example with parts of speech or names.

    t2t-datagen --problem=tag_own --train_files=train.conll --dev_files=dev.conll --vocab_size=8000 --data_dir=D

Files are in CoNLL format: one line per word, with the word first and its tag last, and a blank line after each
sentence. CoNLL-U is also supported; its columns FORM and UPOS are read. --columns selects other columns. The training
files determine the tags. `D/tag_own.json` stores all settings, so that later commands need only `--data_dir=D`.
"""

import functools

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.splits import FLAGS
from t2t_lite.data.text_problems.text_problem import Text2TextProblem
from t2t_lite.errors import LOGGER, NotWritten, UserError, counted, located, shown
from t2t_lite.extras.tagging.conll import LAYOUT, read_conll
from t2t_lite.extras.tagging.tag_metrics import EXPECTED, are_of_entities, odd_tags
from t2t_lite.problems.own_corpus import OwnCorpus
from t2t_lite.problems.own_settings import LABELLED, OwnSetting, own_settings
from t2t_lite.text.class_label_encoder import ClassLabelEncoder
from t2t_lite.text.offsets import word_pieces
from t2t_lite.text.vocabulary import EOS_ID


class Text2TagProblem(Text2TextProblem):
    """Maps words to one tag per word. Subclasses define `tags` and `generate_samples`.

    Samples are {"inputs": list of str, "targets": list of str} with equal lengths. In records and batches, the inputs
    are the pieces of all words (`word_pieces`), followed by 1. The targets are aligned with the inputs: the first piece
    of each word has the tag's id, counted from 1; all other positions are 0. Rows longer than the hyperparameter
    `max_length` are truncated between words: see `cut_words`.
    """

    text_features = ("inputs",)
    task = "tagging"
    eval_decode_metric = None
    targets_are_places = True
    cuts_rows = True
    expected_sample = '"inputs": list of str, "targets": list of str'

    def tags(self, data_dir):
        """Returns the names of the tags in order of their ids, a list of str."""
        raise NotWritten(f"{type(self).__name__}: write tags.")

    def texts(self, sample):
        """Returns the sentence, from which a vocabulary is learned: see `Text2TextProblem.texts`."""
        words = sample.get("inputs")
        is_list = isinstance(words, list | tuple) and all(isinstance(word, str) for word in words)
        return [" ".join(words) if is_list else None]

    def feature_encoders(self, data_dir):
        """Returns {"inputs": the vocabulary, "targets": a `ClassLabelEncoder` for the tags}."""
        return {**super().feature_encoders(data_dir), "targets": ClassLabelEncoder(self.tags(data_dir))}

    def sample_encoder(self, data_dir):
        """Returns the function that encodes samples: see `Text2TextProblem.sample_encoder`."""
        return functools.partial(_encode, self.name, self.feature_encoders(data_dir))

    def preprocess_example(self, example, mode, hparams):
        """Truncates a row to `max_length` between words: see `cut_words`."""
        inputs, targets = cut_words(example["inputs"], example["targets"], self.max_length(hparams))
        return {**example, "inputs": inputs, "targets": targets}


def _encode(name, encoders, samples):
    examples = []
    for sample in samples:
        words, tags = sample["inputs"], sample.get("targets")
        if not isinstance(tags, list | tuple) or len(tags) != len(words):
            raise UserError(
                f"{name}: generate_samples yielded {counted(len(words), 'word')} with the tags {shown(tags)}. Expected "
                "a list with one tag per word."
            )
        inputs, targets = [], []
        for pieces, tag in zip(word_pieces(encoders["inputs"], words), tags, strict=True):
            inputs += pieces
            with located(f"{name}: generate_samples yielded an unknown tag"):
                targets += [*encoders["targets"].encode(tag), *[0] * (len(pieces) - 1)]
        examples.append({"inputs": [*inputs, EOS_ID], "targets": [*targets, 0]})
    return examples


def cut_words(inputs, targets, longest):
    """Truncates a row to at most `longest` ids in a graph, between words or, if necessary, within the first word.

    Args:
        inputs: int [length], the pieces of words, then 1.
        targets: int [length], nonzero where a word begins.
        longest: int, at least 2.

    Returns:
        (inputs, targets), int [at most `longest`]; the inputs end in 1, the targets in 0.
    """
    import tensorflow as tf

    ends = tf.concat([tf.where(targets[1:] != 0)[:, 0] + 1, [tf.size(inputs, tf.int64) - 1]], 0)  # ends of words
    length = tf.reduce_max(tf.where(ends < longest, ends, 0))
    length = tf.where(length > 0, length, longest - 1)
    end = tf.constant([EOS_ID], inputs.dtype)
    return tf.concat([inputs[:length], end], 0), tf.concat([targets[:length], tf.zeros_like(end)], 0)


@registry.register_problem
class TagOwn(OwnCorpus, Text2TagProblem):
    """Tags the words in the user's own files."""

    columns = LAYOUT.names
    example_flags = "--train_files=train.conll --dev_files=dev.conll"
    expected_lines = "lines of word<TAB>tag, and a blank line after each sentence"
    sample_unit = "sentences"
    settings = own_settings(*LABELLED, OwnSetting("tags", list, None), "problem", vocab_type="subwords")

    def tags(self, data_dir):
        """Returns the tags of the training files, sorted."""
        return self.determined("tags", data_dir)

    def eval_metrics(self):
        """Returns the metrics for tags; entity_f1 is one of them if the tags mark entities."""
        tags = (self._config or {}).get("tags")
        return [*super().eval_metrics(), *(["entity_f1"] if tags and are_of_entities(tags) else [])]

    def _check_tables(self, values, paths):
        if values["separator"]:
            raise UserError("--separator: the columns of CoNLL files are separated by tabs or spaces. Remove the flag.")
        super()._check_tables(values, paths)

    def check_corpus(self, data_dir, tmp_dir):
        """Collects the tags and checks the files: see `OwnCorpus.check_corpus`."""
        tags = {tag for sentence in self._sentences(DatasetSplit.TRAIN) for tag in sentence.tags}
        self.config["tags"] = self.enough_labels(tags, "tag in the last column")
        if odd := odd_tags(tags):
            LOGGER.warning(
                f"--{FLAGS[DatasetSplit.TRAIN]}: {self.paths_of(DatasetSplit.TRAIN)}: evaluations will not report "
                f"entity_f1, because {shown(', '.join(odd))} do not belong to one scheme. Expected {EXPECTED}."
            )
        super().check_corpus(data_dir, tmp_dir)

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        """Yields {"inputs": words, "targets": tags}."""
        tags = set(self.tags(data_dir))
        for sentence in self._sentences(dataset_split):
            for word, tag in zip(sentence.words, sentence.tags, strict=True):
                if tag not in tags:
                    raise UserError(
                        f"{sentence.place}: the training files do not contain the tag {shown(tag)} of {shown(word)}. "
                        f"Expected one of {shown(', '.join(sorted(tags)))}."
                    )
            yield {"inputs": sentence.words, "targets": sentence.tags}

    def _sentences(self, split):
        for facts in self.files_of(split):
            yield from read_conll(facts["path"], layout=self.layout, on_bad_line=self.on_bad_line)

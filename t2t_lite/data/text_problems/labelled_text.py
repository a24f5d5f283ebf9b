"""Problems that map a text to a class or a number, and readers for their files (tensor2tensor's text_problems.py)."""

import collections.abc
import functools
import numbers
import types

from t2t_lite.corpora import tables
from t2t_lite.corpora.plain_text import clean, numbered_pairs, read_lines, read_pairs
from t2t_lite.data.text_problems.text_problem import Text2TextProblem
from t2t_lite.errors import NotWritten, UserError, located, shown
from t2t_lite.text.class_label_encoder import ClassLabelEncoder, RealEncoder
from t2t_lite.text.rows import cut_texts
from t2t_lite.text.vocabulary import EOS_ID


class LabelledTextProblem(Text2TextProblem):
    """Maps one or more texts to a label. Subclasses define `generate_samples` and `label_ids`.

    Samples have "inputs", which is a str or a list of `num_texts` str. In a row of ids, each text ends in 1. A row
    longer than the hyperparameter `max_length` is truncated, so that every text gets a label: see `cut_texts`.

    Attributes:
        num_texts: int, number of texts in each row of inputs.
    """

    num_texts = 1
    features = types.MappingProxyType({"inputs": 2, "targets": 1})
    text_features = ("inputs",)
    eval_decode_metric = None
    cuts_rows = True

    def label_ids(self, data_dir):
        """Returns a picklable function that maps a sample to the id of its label."""
        raise NotWritten(f"{type(self).__name__}: define label_ids.")

    def texts(self, sample):
        """See `Text2TextProblem.texts`."""
        inputs = sample.get("inputs")
        if self.num_texts == 1:
            return [inputs]
        return inputs if isinstance(inputs, list | tuple) and len(inputs) == self.num_texts else [None]

    @property
    def expected_sample(self):
        """See `Text2TextProblem.expected_sample`."""
        return f'"inputs": {"str" if self.num_texts == 1 else f"list of {self.num_texts} str"}, …'

    def sample_encoder(self, data_dir):
        """See `Text2TextProblem.sample_encoder`."""
        encoder = self.feature_encoders(data_dir)["inputs"]
        return functools.partial(_encode, encoder, self.inputs_prefix, self.num_texts, self.label_ids(data_dir))

    def samples_to_encode(self, data_dir, tmp_dir, dataset_split):
        """See `Text2TextProblem.samples_to_encode`; the id 0 as a label of an encoded sample is an error."""
        samples, encode = super().samples_to_encode(data_dir, tmp_dir, dataset_split)
        return (samples if encode else map(self._checked_label, samples)), encode

    def _checked_label(self, sample):
        targets = sample.get("targets") if isinstance(sample, dict) else None
        if isinstance(targets, collections.abc.Iterable) and [*targets] == [0]:
            raise UserError(
                f"{self.name}: generate_encoded_samples gave the targets [0], which is padding. Expected [label + 1]: "
                "unlike in tensor2tensor, the ids of labels begin at 1."
            )
        return sample

    def preprocess_example(self, example, mode, hparams):
        """Truncates the inputs of an example, see `cut_texts`."""
        return {**example, "inputs": cut_texts(example["inputs"], self.max_length(hparams))}


def _encode(encoder, prefix, num_texts, label_id, samples):
    examples = []
    for sample in samples:
        label = label_id(sample)
        texts = [sample["inputs"]] if num_texts == 1 else sample["inputs"]
        row = [i for text in texts for i in (*encoder.encode(prefix + text), EOS_ID)]
        examples.append({"inputs": row, "targets": [label]})
    return examples


class Text2ClassProblem(LabelledTextProblem):
    """Classifies texts. Subclasses define `num_classes` and `generate_samples`, as in tensor2tensor.

    Samples are {"inputs": str, "label": int}, where labels range from 0 to num_classes - 1. Records and batches hold
    label + 1 as `targets`, because id 0 is padding.
    """

    task = "classification"

    @property
    def num_classes(self):
        """The number of classes in the data set."""
        raise NotWritten(f"{type(self).__name__}: define num_classes.")

    def class_labels(self, data_dir):
        """Returns the names of the classes in the order of their numbers, by default ID_0, ID_1, …"""
        return [f"ID_{number}" for number in range(self.num_classes)]

    def feature_encoders(self, data_dir):
        """Returns the vocabulary of the inputs, and a `ClassLabelEncoder`."""
        labels = self.class_labels(data_dir)
        if len(labels) != self.num_classes:
            raise UserError(f"{self.name}: {len(labels)} class labels, but num_classes = {self.num_classes}.")
        return {**super().feature_encoders(data_dir), "targets": ClassLabelEncoder(labels)}

    def label_ids(self, data_dir):
        """See `LabelledTextProblem.label_ids`."""
        return functools.partial(_class_id, self.name, self.num_classes)


class TextConcat2ClassProblem(Text2ClassProblem):
    """Classifies pairs of texts: "inputs" is a list of two str. The name of the class comes from tensor2tensor."""

    num_texts = 2


def _class_id(name, num_classes, sample):
    if not isinstance(label := sample.get("label"), numbers.Integral) or not 0 <= label < num_classes:
        raise UserError(
            f"{name}: generate_samples gave the label {shown(label)}. Expected an int from 0 to {num_classes - 1}."
        )
    return int(label) + 1


class Text2RealProblem(LabelledTextProblem):
    """Predicts a number from a text. Subclasses define `label_range` and `generate_samples`.

    Samples are {"inputs": str, "targets": float}. As in tensor2tensor, the targets may also be a list of one float.
    Records and batches hold the number, scaled to the range, as an id: see `RealEncoder`.
    """

    task = "regression"

    def label_range(self, data_dir):
        """Returns the lowest and the highest number that the targets of any split may have."""
        raise NotWritten(f"{type(self).__name__}: define label_range.")

    def feature_encoders(self, data_dir):
        """Returns the vocabulary of the inputs, and a `RealEncoder`."""
        return {**super().feature_encoders(data_dir), "targets": self._label_encoder(data_dir)}

    def label_ids(self, data_dir):
        """See `LabelledTextProblem.label_ids`."""
        return functools.partial(_real_id, self.name, self._label_encoder(data_dir))

    def _label_encoder(self, data_dir):
        ends = self.label_range(data_dir) if callable(self.label_range) else self.label_range
        if not (isinstance(ends, list | tuple) and len(ends) == 2):
            raise UserError(f"{self.name}: label_range is {shown(ends)}. Expected (lowest number, highest number).")
        with located(f"{self.name}: label_range"):
            return RealEncoder(*ends)


def _real_id(name, encoder, sample):
    number = sample.get("targets")
    with located(f"{name}: generate_samples gave"):
        return encoder.encode(number[0] if isinstance(number, list | tuple) and len(number) == 1 else number)[0]


def txt_line_iterator(txt_path, on_bad_line=None):
    """Yields the lines of a file, str."""
    return (clean(line) for line in read_lines(txt_path, on_bad_line) if line is not None)


def text2text_txt_iterator(source_txt_path, target_txt_path, on_bad_line=None):
    """Yields {"inputs": str, "targets": str} from two parallel files."""
    return read_pairs(source_txt_path, target_txt_path, on_bad_line)


def text2text_txt_tab_iterator(txt_path, on_bad_line=None):
    """Yields {"inputs": str, "targets": str} from lines `inputs<TAB>targets`; blank lines are skipped."""
    return tables.read_pairs(txt_path, tables.Layout(("inputs", "targets"), header=False), on_bad_line)


def text2self_txt_iterator(txt_path, on_bad_line=None):
    """Yields {"targets": str} for each line of a file."""
    return ({"targets": line} for line in txt_line_iterator(txt_path, on_bad_line))


def text2class_txt_iterator(source_txt_path, label_txt_path, class_strs=None, on_bad_line=None):
    """Yields {"inputs": str, "label": int} from two parallel files: texts and their classes.

    Args:
        source_txt_path, label_txt_path: paths.
        class_strs: list of str, the class names, indexed by label. None if the second file contains the labels as
            numbers.
        on_bad_line: see `txt_line_iterator`.
    """
    parse, expected = int, "a whole number"
    if class_strs is not None:
        parse, expected = {name: label for label, name in enumerate(class_strs)}.__getitem__, " or ".join(class_strs)
    for text, label in _labelled(source_txt_path, label_txt_path, on_bad_line, parse, expected):
        yield {"inputs": text, "label": label}


def text2real_txt_iterator(source_txt_path, target_txt_path, on_bad_line=None):
    """Yields {"inputs": str, "targets": list of float} from two parallel files: texts and their numbers."""
    parse, expected = lambda words: [float(word) for word in words.split()], "a number, such as 3.5"
    for text, targets in _labelled(source_txt_path, target_txt_path, on_bad_line, parse, expected):
        yield {"inputs": text, "targets": targets}


def _labelled(text_path, label_path, on_bad_line, parse, expected):
    """Yields (text, label) from two parallel files; `parse` converts a label, and `expected` describes it in errors."""
    for number, pair in numbered_pairs(text_path, label_path, on_bad_line):
        try:
            label = parse(pair["targets"])
        except (ValueError, KeyError):
            raise UserError(f"{label_path}, line {number}: {shown(pair['targets'])}. Expected {expected}.") from None
        yield pair["inputs"], label

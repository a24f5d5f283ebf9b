"""Problems with texts as input and a class label as target (tensor2tensor's text_problems.py)."""

import functools
import numbers

from t2t_lite.data.text_problems.labelled_text import LabelledTextProblem
from t2t_lite.errors import NotWritten, UserError, shown
from t2t_lite.text.class_label_encoder import ClassLabelEncoder


class Text2ClassProblem(LabelledTextProblem):
    """Text in, a class label out. Subclasses write `num_classes` and `generate_samples`, as in tensor2tensor.

    Samples are {"inputs": str, "label": int}, the label from 0 to num_classes - 1. Records and batches hold label + 1
    as `targets`, because id 0 is padding.
    """

    task = "classification"

    @property
    def num_classes(self):
        """The number of classes."""
        raise NotWritten(f"{type(self).__name__}: write num_classes.")

    def class_labels(self, data_dir):
        """Returns the names of the classes in order; by default ID_0, ID_1, …"""
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
    """Pairs of texts in, a class label out: "inputs" is a list of two str (tensor2tensor's name)."""

    num_texts = 2


def _class_id(name, num_classes, sample):
    if not isinstance(label := sample.get("label"), numbers.Integral) or not 0 <= label < num_classes:
        raise UserError(
            f"{name}: generate_samples gave the label {shown(label)}. Expected an int from 0 to {num_classes - 1}."
        )
    return int(label) + 1

"""Class labels <-> ids."""

import hashlib
import json

import numpy as np

from t2t_lite.errors import UserError, shown
from t2t_lite.text.encoder_parts import lines_of, read_content


class ClassLabelEncoder:
    """Ids of class labels, 1, 2, … in the order given; 0 is padding (mirrors tensor2tensor's, whose ids begin at 0).

    Args:
        class_labels: list of str, all different; None: those of the file.
        class_labels_fname: path of a file with one label per line, on any file system that `tf.io.gfile` supports.

    Raises:
        UserError: a label is repeated or not text, there are no labels, or the file does not exist.
    """

    unknown_id = None

    def __init__(self, class_labels=None, class_labels_fname=None):
        self.path = class_labels_fname
        if class_labels is None and class_labels_fname:
            lines = lines_of(read_content(class_labels_fname), class_labels_fname, "one label per line")
            class_labels = [line.strip() for line in lines]
        self.class_labels = list(class_labels or ())
        if not self.class_labels or not all(isinstance(label, str) for label in self.class_labels):
            raise UserError(f"class labels {shown(self.class_labels)}: expected a list of texts.")
        self._ids = {label: i for i, label in enumerate(self.class_labels, 1)}
        if len(self._ids) < len(self.class_labels):
            raise UserError(f"class labels {shown(self.class_labels)}: one occurs twice.")
        self.vocab_size = len(self.class_labels) + 1

    @property
    def fingerprint(self):
        """SHA-256 (hex) of the labels in their order."""
        return hashlib.sha256(json.dumps(self.class_labels).encode()).hexdigest()

    def encode(self, text):
        """Returns the list of the one id of a label. Raises `UserError` for an unknown label."""
        if not isinstance(text, str) or text not in self._ids:
            raise UserError(f"{shown(text)} is no class label. Expected one of {', '.join(self.class_labels)}.")
        return [self._ids[text]]

    def decode(self, ids):
        """Returns the label of an id, or of a list of one id; "" for padding."""
        return " ".join(self.class_labels[i - 1] for i in np.ravel(ids) if i)

    def pieces(self, ids):
        """Returns the label of every id, and `<pad>` for 0."""
        return [self.class_labels[i - 1] if i else "<pad>" for i in ids]

"""Encoders that map class labels or numbers to ids and back."""

import hashlib
import itertools
import json
import math

import numpy as np

from t2t_lite.errors import UserError, shown
from t2t_lite.text.encoder_parts import lines_of, read_content


class ClassLabelEncoder:
    """Maps class labels, in order, to the ids 1, 2, … The id 0 is padding (in tensor2tensor, the ids begin at 0).

    Args:
        class_labels: list of str, all different. If None, the labels are read from the file.
        class_labels_fname: path of a file with one class label per line, on any file system that `tf.io.gfile`
            supports.

    Raises:
        UserError: a label is repeated, blank or not text, the list is empty, or the file does not exist.
    """

    unknown_id = None

    def __init__(self, class_labels=None, class_labels_fname=None):
        self.path, where = class_labels_fname, "class labels"
        if class_labels is None and class_labels_fname:
            lines = lines_of(read_content(class_labels_fname), class_labels_fname, "one label per line")
            class_labels, where = [line.strip() for line in lines], f"{class_labels_fname}: {where}"
        self.class_labels = list(class_labels or ())
        if not self.class_labels or not all(isinstance(label, str) and label for label in self.class_labels):
            raise UserError(f"{where} {shown(self.class_labels)}: expected a list of texts, none of them blank.")
        self._ids = {label: i for i, label in enumerate(self.class_labels, 1)}
        if len(self._ids) < len(self.class_labels):
            raise UserError(f"{where} {shown(self.class_labels)}: a label occurs twice.")
        self.vocab_size = len(self.class_labels) + 1

    @property
    def fingerprint(self):
        """The SHA-256 (hex) of the class labels, in order."""
        return hashlib.sha256(json.dumps(self.class_labels).encode()).hexdigest()

    def encode(self, text):
        """Returns [id] for a label. Raises `UserError` if the label is unknown."""
        if not isinstance(text, str) or text not in self._ids:
            raise UserError(f"{shown(text)} is not a class label. Expected one of {', '.join(self.class_labels)}.")
        return [self._ids[text]]

    def decode(self, ids):
        """Returns the label for an id or a list with one id; "" for padding."""
        return " ".join(self.class_labels[i - 1] for i in np.ravel(ids) if i)

    def pieces(self, ids):
        """Returns the class label of every id, and `<pad>` for id 0."""
        return [self.class_labels[i - 1] if i else "<pad>" for i in ids]


class RealEncoder:
    """Quantizes numbers to the ids 1 (the lowest number) to 65,536 (the highest), evenly spaced; 0 is padding.

    Args:
        lowest, highest: float, the limits of the numbers.

    Raises:
        UserError: the limits or their difference are not finite, or `lowest` is not less than `highest`.
    """

    STEPS = 2**16
    unknown_id = None
    vocab_size = STEPS + 1

    def __init__(self, lowest, highest):
        ends = as_number(lowest), as_number(highest)
        self._step = None if None in ends else (ends[1] - ends[0]) / (self.STEPS - 1)
        if not self._step or not 0 < self._step < math.inf:
            raise UserError(
                f"numbers from {shown(lowest)} to {shown(highest)}: expected two finite numbers, first the lower, then "
                "the higher."
            )
        self.lowest, self.highest = ends

    @property
    def fingerprint(self):
        """The SHA-256 (hex) of the range."""
        return hashlib.sha256(json.dumps([self.lowest, self.highest]).encode()).hexdigest()

    def encode(self, text):
        """Returns [id] for a number, given as str or float. Raises `UserError` if it is not a number in the range."""
        number = as_number(text)
        if number is None or not self.lowest <= number <= self.highest:
            raise UserError(f"{shown(text)}: expected a number from {self.lowest:g} to {self.highest:g}.")
        return [1 + round((number - self.lowest) / (self.highest - self.lowest) * (self.STEPS - 1))]

    @classmethod
    def place(cls, ids):
        """Scales ids, an array of any shape, to floats from 0 for the lowest number to 1 for the highest number."""
        return (ids - 1) / (cls.STEPS - 1)

    def value(self, place):
        """Scales a float from 0 (lowest) to 1 (highest) to the range of the numbers; works elementwise on a tensor."""
        return self.lowest + place * (self.highest - self.lowest)

    def decode(self, ids):
        """Returns the number for an id or a list with one id, as text; "" for padding."""
        return " ".join(self._text(self.value(float(self.place(i)))) for i in np.ravel(ids) if i)

    def _text(self, number):
        """Returns a number as text with the fewest digits that identify its id: 4.3, not 4.29998."""
        number = min(max(number, self.lowest), self.highest)
        for digits in itertools.count(max(0, math.floor(-math.log10(self._step)))):
            rounded = min(max(round(number, digits), self.lowest), self.highest)
            if abs(rounded - number) < 0.499 * self._step:
                return repr(rounded).removesuffix(".0")

    def pieces(self, ids):
        """Returns the number that each id stands for, as text, and `<pad>` for id 0."""
        return [self.decode(i) or "<pad>" for i in ids]


def as_number(text):
    """Converts a str or number to a finite float; returns None if this is not possible."""
    try:
        number = float(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None

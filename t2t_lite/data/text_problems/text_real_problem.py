"""Problems with texts as input and a number as target (tensor2tensor's text_problems.py)."""

import functools

from t2t_lite.data.text_problems.labelled_text import LabelledTextProblem
from t2t_lite.errors import NotWritten, UserError, located, shown
from t2t_lite.text.class_label_encoder import RealEncoder


class Text2RealProblem(LabelledTextProblem):
    """Text in, a number out. Subclasses write `label_range` and `generate_samples`.

    Samples are {"inputs": str, "targets": float, or a list of one float, as in tensor2tensor}. Records and batches hold
    the number, scaled to the range, as an id: see `RealEncoder`.
    """

    task = "regression"

    def label_range(self, data_dir):
        """Returns (the lowest, the highest) number of all splits."""
        raise NotWritten(f"{type(self).__name__}: write label_range.")

    def feature_encoders(self, data_dir):
        """Returns the vocabulary of the inputs, and a `RealEncoder`."""
        return {**super().feature_encoders(data_dir), "targets": self._label_encoder(data_dir)}

    def label_ids(self, data_dir):
        """See `LabelledTextProblem.label_ids`."""
        return functools.partial(_real_id, self.name, self._label_encoder(data_dir))

    def _label_encoder(self, data_dir):
        ends = self.label_range(data_dir) if callable(self.label_range) else self.label_range
        if not (isinstance(ends, list | tuple) and len(ends) == 2):
            raise UserError(f"{self.name}: label_range is {shown(ends)}. Expected (the lowest, the highest) number.")
        with located(f"{self.name}: label_range"):
            return RealEncoder(*ends)


def _real_id(name, encoder, sample):
    number = sample.get("targets")
    with located(f"{name}: generate_samples gave"):
        return encoder.encode(number[0] if isinstance(number, list | tuple) and len(number) == 1 else number)[0]

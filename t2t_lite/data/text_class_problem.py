"""Problems with a text as input and a class label as target (tensor2tensor's text_problems.py)."""

import functools
import types

from t2t_lite.data.text_problem import Text2TextProblem
from t2t_lite.errors import UserError, shown
from t2t_lite.text.class_label_encoder import ClassLabelEncoder
from t2t_lite.text.vocabulary import EOS_ID


class Text2ClassProblem(Text2TextProblem):
    """Text in, a class label out. Subclasses write `num_classes` and `generate_samples`, as in tensor2tensor.

    Samples are {"inputs": str, "label": int}, the label from 0 to num_classes - 1. Records and batches hold label + 1
    as `targets`, because id 0 is padding.

    Attributes:
        num_texts: int, texts in a row of inputs, each ending in 1.
    """

    num_texts = 1
    features = types.MappingProxyType({"inputs": 2, "targets": 1})
    text_features = ("inputs",)
    task = "classification"
    eval_decode_metric = None

    @property
    def num_classes(self):
        """The number of classes."""
        raise NotImplementedError(f"{type(self).__name__}: write num_classes.")

    def class_labels(self, data_dir):
        """Returns the names of the classes in order; by default ID_0, ID_1, …"""
        return [f"ID_{number}" for number in range(self.num_classes)]

    def feature_encoders(self, data_dir):
        """Returns the vocabulary of the inputs, and a `ClassLabelEncoder`."""
        labels = self.class_labels(data_dir)
        if len(labels) != self.num_classes:
            raise UserError(f"{self.name}: {len(labels)} class labels, but num_classes = {self.num_classes}.")
        return {**super().feature_encoders(data_dir), "targets": ClassLabelEncoder(labels)}

    def sample_encoder(self, data_dir):
        """See `Text2TextProblem.sample_encoder`."""
        return functools.partial(_encode, super().sample_encoder(data_dir), self.name, self.num_classes)


def _encode(encode_texts, name, num_classes, samples):
    for sample in samples:
        if not isinstance(label := sample.get("label"), int) or not 0 <= label < num_classes:
            raise UserError(
                f"{name}: generate_samples gave the label {shown(label)}. Expected an int from 0 to {num_classes - 1}."
            )
    texts = encode_texts(samples)
    return [{**example, "targets": [sample["label"] + 1]} for example, sample in zip(texts, samples, strict=True)]


def cut_texts(ids, longest):
    """Cuts a row, in a graph, to at most `longest` ids; of a pair the longer text is cut first, as BERT does.

    Args:
        ids: int [length], a text or a pair, each ending in 1.
        longest: int, at least 4.

    Returns:
        int [at most `longest`], each text ending in 1.
    """
    import tensorflow as tf

    first = tf.where(ids == EOS_ID)[0, 0]  # where the first text ends
    second = tf.maximum(tf.size(ids, tf.int64) - first - 2, 0)  # ids of the second one, if there is one
    is_pair = tf.cast(tf.size(ids, tf.int64) > first + 1, tf.int64)
    room = longest - 1 - is_pair  # beside the ends
    # A text that is alone has all the room, of two the first has what the second leaves, and half at least.
    kept = tf.minimum(first, tf.where(is_pair > 0, tf.maximum(room - second, (room + 1) // 2), room))
    rest = tf.minimum(second, room - kept)
    end = tf.constant([EOS_ID], ids.dtype)
    return tf.concat([ids[:kept], end, ids[first + 1 : first + 1 + rest], tf.repeat(end, is_pair)], 0)

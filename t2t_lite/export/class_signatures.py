"""The function of a classifier's export, from texts to labels: stock TensorFlow and tensorflow-text operations only.

It accepts any bytes: invalid UTF-8 becomes U+FFFD, and long texts are truncated. Rows do not influence one another.
"""

import tensorflow as tf

from t2t_lite.export.reading import TEXTS, longest_input, reader
from t2t_lite.export.warmup import sample_texts
from t2t_lite.ranges import Range, typed_value

_TABLE = """\
| signature | inputs | outputs |
|---|---|---|
| `serving_default` | `inputs` string [batch] | `labels` string, `truncated` bool; `probabilities` [batch, {count}] |
| `predict` | the same | the same |
"""


class ClassSignatures:
    """Builds the signatures of a classifier's export; see `t2t_lite.export.by_task`.

    Args:
        predictor: Predictor.
        max_input_length: int, longest text in ids, EOS included; None: see `longest_input`.

    Raises:
        UserError: the number is out of range.
    """

    SETTINGS = ()
    NAME, OUTPUT, HUB_TASK = "predict", "labels", "text-classification"

    def __init__(self, predictor, max_input_length):
        most = predictor.max_input_length
        self.max_input_length = longest_input(max_input_length, most)
        typed_value("max_input_length", self.max_input_length, int, Range(1, most))
        self.settings = {}
        self._predictor = predictor
        self._read = reader(predictor.encoders["inputs"], self.max_input_length)

    def functions(self):
        """Returns {name of a signature: tf.function}, as docs/serving.md lists them."""
        predict = tf.function(self.predict, input_signature=[TEXTS], autograph=False)
        return {"serving_default": predict, "predict": predict}

    def predict(self, inputs):
        """string [batch] -> {"labels" string, "truncated" bool, both [batch]; "probabilities" [batch, classes]}.

        Probabilities, float32, are in the order of the problem's classes; the label is that of the largest one.
        """
        sources = self._read(inputs)
        probabilities = self._predictor.probabilities(sources.ids)
        labels = tf.gather(tf.constant(self._predictor.labels), tf.argmax(probabilities, -1))
        return {"labels": labels, "probabilities": probabilities, "truncated": sources.truncated}

    def warmup(self):
        """Returns a list of (signature, {name: array})."""
        texts = sample_texts(self._predictor.encoders["inputs"], self.max_input_length)
        return [("serving_default", {"inputs": texts[:1]}), ("serving_default", {"inputs": texts})]

    def card(self):
        """Returns ({title: text}, table of the signatures in Markdown) for the model card."""
        labels = self._predictor.labels
        rows = {"classes": f"{', '.join(labels)}; inputs are cut to {self.max_input_length} pieces"}
        return rows, _TABLE.format(count=len(labels))

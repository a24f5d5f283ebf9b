"""The answers of a classifier's export, and of a model that answers with a number."""

import tensorflow as tf

from t2t_lite.export.encoder_signatures import EncoderSignatures


class ClassSignatures(EncoderSignatures):
    """Classes of texts or pairs."""

    def answers(self, ids):
        """int32 [batch, width] -> {"labels" string [batch], "probabilities" float32 [batch, classes]}.

        Probabilities are in the order of the problem's classes; the label is that of the largest one.
        """
        probabilities = self._predictor.probabilities(ids)
        labels = tf.gather(tf.constant(self._predictor.labels), tf.argmax(probabilities, -1))
        return {"labels": labels, "probabilities": probabilities}

    def described(self):
        """See `EncoderSignatures`."""
        labels = self._predictor.labels
        outputs = f"`labels` string [batch], `probabilities` float32 [batch, {len(labels)}]"
        return {"classes": ", ".join(labels)}, outputs


class ValueSignatures(EncoderSignatures):
    """Numbers that belong to texts or pairs."""

    OUTPUT = "values"

    def answers(self, ids):
        """int32 [batch, width] -> {"values" float32 [batch]}."""
        encoder = self._predictor.encoders["targets"]
        place = self._predictor.probabilities(ids)[:, 0]
        return {"values": encoder.lowest + place * (encoder.highest - encoder.lowest)}

    def described(self):
        """See `EncoderSignatures`."""
        encoder = self._predictor.encoders["targets"]
        return {"numbers": f"{encoder.lowest:g} to {encoder.highest:g} in training"}, "`values` float32 [batch]"

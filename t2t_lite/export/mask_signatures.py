"""The answers of a masked language model's export: what may stand at the masks of texts."""

import tensorflow as tf

from t2t_lite.data.masking import blank_before_mask, mask_of
from t2t_lite.export.encoder_signatures import EncoderSignatures
from t2t_lite.export.reading import beginnings, valid
from t2t_lite.ranges import Range, typed_value
from t2t_lite.text.vocabulary import EOS_ID

# Masks that are computed at a time: the logits of each need 4 bytes per entry of the vocabulary.
_MASKS = 1024


class MaskSignatures(EncoderSignatures):
    """What may stand at the masks of texts, and features.

    Args:
        predictor, max_input_length, **features: see `EncoderSignatures`.
        top: int, candidates per mask.

    Raises:
        UserError: a number is out of range, or the vocabulary has no mask.
    """

    HUB_TASK, NAME, OUTPUT = "fill-mask", "fill_mask", "candidates"

    def __init__(self, predictor, max_input_length, *, top=5, **features):
        super().__init__(predictor, max_input_length, **features)
        self._top = typed_value("top", top, int, Range(1, self._encoder.vocab_size))
        self.settings["top"] = self._top
        self._mask_id, self._mask = mask_of(self._encoder)
        self._blank = blank_before_mask(self._encoder)

    def read(self, inputs):
        """See `EncoderSignatures`; a text is read as `Predictor.fill_mask` does."""
        texts, is_cut = beginnings(valid(inputs), self.max_input_length)
        ids = self._ids_of_parts(texts) if self._blank is None else self._ids_of_whole(texts)
        kept = ids[:, : self.max_input_length - 1]
        ends = tf.fill([tf.size(texts), 1], EOS_ID)
        return tf.concat([kept, ends], 1).to_tensor(), is_cut | (ids.row_lengths() > kept.row_lengths())

    def read_whole(self, inputs):
        """See `EncoderSignatures`; a mask in a text is one here, too."""
        return self.read(inputs)

    def _ids_of_whole(self, texts):
        """string [batch] -> int32 ragged [batch, (length)]; the vocabulary knows the mask, see `blank_before_mask`."""
        ids = self.encode(texts)
        after = tf.concat([ids, tf.fill([tf.size(texts), 1], EOS_ID)], 1)[:, 1:]
        goes = (ids.flat_values == self._blank) & (after.flat_values == self._mask_id)
        return tf.ragged.boolean_mask(ids, ids.with_flat_values(~goes))

    def _ids_of_parts(self, texts):
        """string [batch] -> int32 ragged [batch, (length)]; what stands beside a mask is encoded for itself."""
        parts = tf.strings.split(texts, self._mask)  # ragged [batch, (parts)]
        rows = parts.value_rowids()
        is_last = tf.concat([rows[1:] != rows[:-1], tf.fill([tf.minimum(tf.size(rows), 1)], True)], 0)
        flat = tf.where(is_last, parts.values, tf.strings.regex_replace(parts.values, " +$", ""))
        masks = tf.ragged.boolean_mask(tf.fill([tf.size(rows), 1], self._mask_id), ~is_last[:, None])
        return parts.with_values(tf.concat([self.encode(flat), masks], 1)).merge_dims(1, 2)

    def answers(self, ids):
        """int32 [batch, width] -> {"candidates" string, "probabilities" float32}, [batch, masks, top] each.

        Candidates are the vocabulary's pieces, the most probable first; behind the last mask there is "" and 0.
        """
        model = self._predictor.model
        at = tf.where(ids == self._mask_id)
        hidden = tf.gather_nd(model.encode(ids)["hidden"][:, 1:], at)

        def guess(start, probabilities, found):
            logits = model.ids_logits(hidden[start : start + _MASKS])
            best = tf.math.top_k(tf.nn.softmax(tf.cast(logits, tf.float32)), self._top)
            best = tf.concat([probabilities, best.values], 0), tf.concat([found, best.indices], 0)
            return start + _MASKS, *best

        shape = tf.TensorShape([None, self._top])
        _, probabilities, found = tf.while_loop(
            lambda start, *_: start < tf.shape(hidden)[0],
            guess,
            (tf.constant(0), tf.zeros([0, self._top]), tf.zeros([0, self._top], tf.int32)),
            shape_invariants=(tf.TensorShape([]), shape, shape),
        )
        pieces = tf.gather(tf.constant(self._encoder.pieces(range(self._encoder.vocab_size))), found)
        both = (
            tf.RaggedTensor.from_value_rowids(each, at[:, 0], tf.shape(ids, tf.int64)[0])
            for each in (pieces, probabilities)
        )
        pieces, probabilities = (each.to_tensor(shape=[None, None, self._top]) for each in both)
        return {"candidates": pieces, "probabilities": probabilities}

    def sample_texts(self):
        """See `EncoderSignatures`; each has a mask at its beginning, which is not cut off."""
        return [f"{self._mask} ".encode() + text for text in super().sample_texts()]

    def described(self):
        """See `EncoderSignatures`."""
        outputs = f"`candidates` string and `probabilities` float32, [batch, masks, {self._top}]"
        return {"mask": f"{self._mask} in a text; the blank before it belongs to what is masked"}, outputs

"""The task of a masked language model: predicting the masked pieces of texts."""

import dataclasses
import functools

import tensorflow as tf

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import Range, typed_value
from t2t_lite.tasks.encoder_task import EncoderTask, Reading
from t2t_lite.text.encoder_parts import blank_before_mask, mask_of
from t2t_lite.text.reading_graph import beginnings, valid
from t2t_lite.text.vocabulary import EOS_ID

_MASKS = 1024  # number of masks computed at a time: the logits of a mask need 4 bytes per entry of the vocabulary


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A candidate piece for one mask.

    Attributes:
        token: str, the piece in the vocabulary.
        probability: float.
    """

    token: str
    probability: float


@registry.register_task("masked_language_model")
class MaskedLanguageModelTask(EncoderTask):
    """Predicts masked pieces. Texts without masks, and pairs of texts, can only be read for features."""

    head = "masked_lm"
    sparse_targets = True
    smooths_labels = labels_are_of_all_rows = True
    method, count = "fill_mask", "top"
    has_hypotheses = True
    hub_task, export_name, output = "fill-mask", "fill_mask", "candidates"

    @staticmethod
    def fit_labels(batch, features):
        """Returns the targets at the masked positions, for which models compute logits: see `Task`."""
        guessed = tf.boolean_mask(batch["targets"], batch["targets"] != 0)
        further = {feature: batch[feature] for feature in features if feature not in ("inputs", "targets")}
        return {"targets": guessed, **further} if further else guessed

    @functools.cached_property
    def mask(self):
        """The vocabulary's mask as (id, piece). Raises `UserError` if the vocabulary does not have a mask."""
        return mask_of(self.encoder)

    @functools.cached_property
    def _blank(self):
        return blank_before_mask(self.encoder)

    def texts(self, text):
        """Returns a text or a pair of texts as a tuple. Raises `UserError` for a different number of texts."""
        return text if isinstance(text, tuple) and len(text) == 2 else super().texts(text)

    def read(self, text, longest):
        """Encodes a text with masks; returns its `Reading`.

        Raises:
            UserError: the text has no mask or is too long.
        """
        text = self.problem.input_text(*super().texts(text))
        if self.mask[1] not in text:
            raise UserError(f"has no {self.mask[1]}. Expected {self.mask[1]} in place of each piece to predict.")
        row = [*self.encode(text), EOS_ID]
        if len(row) > longest:
            raise UserError(f"has {len(row):,} ids, but the model reads at most {longest:,}.")
        return Reading([row])

    def encode(self, text):
        """Returns the ids of a text, without the end id. Parts of a text between masks may be encoded separately."""
        try:
            mask_id, mask = self.mask
        except UserError:  # a text without masks can be used for features
            return self.encoder.encode(text)
        if self._blank is None:
            *before, last = text.split(mask)
            first, *rest = map(self.encoder.encode, [*(part.rstrip(" ") for part in before), last])
            return [*first, *(i for ids in rest for i in (mask_id, *ids))]
        ids = self.encoder.encode(text)
        return [i for i, after in zip(ids, [*ids, None][1:], strict=True) if (i, after) != (self._blank, mask_id)]

    def guesses(self, model, ids, top):
        """Returns the best candidates for all masks of a batch, in order, in Python or in a graph.

        Args:
            model: `EncoderModel`.
            ids: int32 [batch, width].
            top: int scalar, number of candidates per mask.

        Returns:
            (probabilities of the candidates, float32; their ids, int32), both [masks, top], the most probable first.
        """
        hidden = model.guessing_states(ids, ids == self.mask[0])

        def guess(start, probabilities, best_ids):
            logits = model.ids_logits(hidden[start : start + _MASKS])
            best = tf.math.top_k(tf.nn.softmax(tf.cast(logits, tf.float32)), top)
            best = tf.concat([probabilities, best.values], 0), tf.concat([best_ids, best.indices], 0)
            return start + _MASKS, *best

        shape = tf.TensorShape([None, top if isinstance(top, int) else None])
        return tf.while_loop(
            lambda start, *_: start < tf.shape(hidden)[0],
            guess,
            (tf.constant(0), tf.zeros([0, top]), tf.zeros([0, top], tf.int32)),
            shape_invariants=(tf.TensorShape([]), shape, shape),
        )[1:]

    def candidates(self, probabilities, ids):
        """Converts arrays [top] of probabilities and ids to a list of `Candidate` for one mask."""
        pairs = zip(self.encoder.pieces(ids.tolist()), probabilities.tolist(), strict=True)
        return [Candidate(piece, probability) for piece, probability in pairs]

    @staticmethod
    def as_json(answer):
        """Returns {"masks": list with a list of candidates for each mask}."""
        return {"masks": [[dataclasses.asdict(candidate) for candidate in mask] for mask in answer]}

    @classmethod
    def shown(cls, answer):
        """Returns "" and a list of (piece, probability) for each mask: see `EncoderTask`."""
        return "", [[(candidate.token, candidate.probability) for candidate in mask] for mask in answer]

    def export_settings(self, top=5):
        """Returns {"top": number of candidates per mask}. Raises `UserError`, also if the vocabulary has no mask."""
        mask_of(self.encoder)
        return {"top": typed_value("top", top, int, Range(1, self.encoder.vocab_size))}

    def whole_rows(self, texts, longest):
        """Encodes texts, in which the mask's text becomes the id of the mask: see `EncoderTask`."""
        texts, is_cut = beginnings(valid(texts[0]), longest)
        ids = self._ids_of_parts(texts) if self._blank is None else self._ids_of_whole(texts)
        truncated = ids[:, : longest - 1]
        ends = tf.fill([tf.size(texts), 1], EOS_ID)
        return tf.concat([truncated, ends], 1).to_tensor(), is_cut | (ids.row_lengths() > truncated.row_lengths())

    def _ids_of_whole(self, texts):
        """Encodes string [batch] to int32 ragged [batch, (length)], and removes the id of a space before each mask."""
        ids = self.encode_texts(texts)
        after = tf.concat([ids, tf.fill([tf.size(texts), 1], EOS_ID)], 1)[:, 1:]
        goes = (ids.flat_values == self._blank) & (after.flat_values == self.mask[0])
        return tf.ragged.boolean_mask(ids, ids.with_flat_values(~goes))

    def _ids_of_parts(self, texts):
        """Encodes string [batch] to int32 ragged [batch, (length)]; the parts between masks are encoded separately."""
        mask_id, mask = self.mask
        parts = tf.strings.split(texts, mask)  # the parts between masks, ragged [batch, (parts)]
        rows = parts.value_rowids()
        is_last = tf.concat([rows[1:] != rows[:-1], tf.fill([tf.minimum(tf.size(rows), 1)], True)], 0)
        flat = tf.where(is_last, parts.values, tf.strings.regex_replace(parts.values, " +$", ""))
        masks = tf.ragged.boolean_mask(tf.fill([tf.size(rows), 1], mask_id), ~is_last[:, None])
        return parts.with_values(tf.concat([self.encode_texts(flat), masks], 1)).merge_dims(1, 2)

    def answers(self, predictor, texts, longest, *, top):
        """See `EncoderTask`.

        Returns:
            {"candidates": string [batch, masks, top], "probabilities": float32 [batch, masks, top], "truncated": bool
            [batch]}. Candidates are pieces of the vocabulary, the most probable first. Rows with fewer masks are padded
            with "" and 0.
        """
        ids, truncated = self.whole_rows(texts, longest)
        probabilities, best_ids = self.guesses(predictor.model, ids, top)
        pieces = tf.gather(tf.constant(self.encoder.pieces(range(self.encoder.vocab_size))), best_ids)
        rows, batch = tf.where(ids == self.mask[0])[:, 0], tf.shape(ids, tf.int64)[0]
        pieces, probabilities = (
            tf.RaggedTensor.from_value_rowids(each, rows, batch).to_tensor(shape=[None, None, top])
            for each in (pieces, probabilities)
        )
        return {"candidates": pieces, "probabilities": probabilities, "truncated": truncated}

    def card(self, *, top):
        """See `EncoderTask`."""
        outputs = f"`candidates` string and `probabilities` float32, [batch, masks, {top}]"
        return {"mask": f"{self.mask[1]} in a text; the space before the mask is masked as well"}, outputs

    def warmup_text(self, text):
        """Returns a text that begins with a mask, so that truncation never removes the mask: see `EncoderTask`."""
        return f"{self.mask[1]} ".encode() + text

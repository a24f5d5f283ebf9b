"""KERMIT (Chan et al. 2019, arXiv 1906.01604): one stack reads a text and a partial translation of it.

KERMIT generates by insertion, like the Insertion Transformer (Stern et al. 2019, arXiv 1902.03249), but without a
decoder.
"""

import dataclasses
import types
from typing import ClassVar

import keras
import tensorflow as tf
from keras import ops

from t2t_lite.data.random_numbers import uniform_numbers
from t2t_lite.layers import Context, Dropout, Results, TransformerEncoderLayer
from t2t_lite.layers.masks import with_mask
from t2t_lite.models.arguments import shared_options
from t2t_lite.models.encoder_decoder import tied_embeddings
from t2t_lite.models.transformer_lm import take_positions
from t2t_lite.models.transformer_parts import TransformerModel, build_parts, is_token, normalized, positioned
from t2t_lite.registry import register_model
from t2t_lite.settings.ranges import setting
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID

SLOT_ORDERS = ("binary_tree", "uniform")  # orders in which the ids of a slot are predicted


@register_model("kermit")
@keras.saving.register_keras_serializable("baselines")
class Kermit(TransformerModel):
    """KERMIT: predicts the ids that are missing in a canvas, which contains some ids of a translation in order.

    The text and the canvas are read as one row, without padding between them and without causal masks. Positions start
    over at the beginning of the canvas, except with `pos=rotary` and relative attention, which count positions in the
    whole row. To distinguish the text from the canvas, one of two learned vectors is added to each id. A canvas ends
    with id 1. There is a slot before each id of the canvas, including this 1. The final state of an id gives the logits
    of its slot, which predict an id that is missing in the slot, or 1 for "nothing is missing".

    Args:
        vocab_size: int, number of ids of the inputs, and of the targets if the vocabulary is shared.
        target_vocab_size: int, number of ids of the targets. If None, inputs and targets share one vocabulary.
        {options}

    Raises:
        ValueError: an argument is out of range; the message states its name and value.

    Example:
        >>> model = Kermit(vocab_size=20, hidden_size=8, filter_size=16, num_heads=2, num_layers=1)
        >>> model({"inputs": keras.ops.ones((1, 3), "int32"), "canvas": keras.ops.ones((1, 4), "int32")}).shape
        (1, 4, 20)
    """

    features = types.MappingProxyType({"inputs": 2, "canvas": 2, "targets": 2})
    needed_features = types.MappingProxyType({"inputs": 2, "canvas": 2})  # a call does not read the targets
    HPARAMS: ClassVar = {
        "slot_order": setting(
            "binary_tree", choices=SLOT_ORDERS,
            meaning="Which missing id a slot predicts: binary_tree prefers the middle id, uniform has no preference.",
        ),
        "slot_temperature": setting(
            1.0, 0.001, 1000, meaning="Temperature of binary_tree: small values nearly always choose the middle id."
        ),
    }  # fmt: skip
    OPTIONS: ClassVar = shared_options(without=["num_encoder_layers", "num_decoder_layers", "target_space_embedding"])

    def __init__(self, vocab_size: int, target_vocab_size: int | None = None, **options):
        super().__init__(vocab_size, target_vocab_size, **options)
        c = self.config
        self.input_embedding, self.target_embedding, self.softmax = tied_embeddings(
            self.make_embedding, vocab_size, target_vocab_size, c["tie_embeddings"], use_bias=c["softmax_bias"]
        )
        self.position = self.make_position("position")
        self.dropout = Dropout(c["dropout"], dtype=self.dtype_policy, name="embedding_dropout")
        self.encoder = self.make_stack("encoder", TransformerEncoderLayer, c["num_layers"])
        self.encoder_norm = self.make_final_norm("encoder_norm")

    def stacks(self):
        """Returns the single stack, which runs over the positions of inputs and targets."""
        return {"inputs": self.encoder, "targets": self.encoder}

    def flops(self, lengths, rows=1):
        """See `SequenceModel`; each position attends to all positions of inputs and targets."""
        from t2t_lite.extras.describe.cost import counted_flops

        return counted_flops(self, dict.fromkeys(lengths, sum(lengths.values())), rows)

    def token_embeddings(self):
        """Returns the embeddings of inputs and targets, which may be the same layer."""
        return {"inputs": self.input_embedding, "targets": self.target_embedding}

    def build_layers(self, shape):
        """Creates the weights of the layers; `shape` is the shape of hidden states."""
        build_parts((None, None), self.input_embedding, self.target_embedding, self.softmax)
        self.side = self.add_weight(name="side", shape=(2, shape[-1]), initializer=keras.initializers.RandomNormal())
        build_parts(shape, self.position, self.encoder, self.encoder_norm)

    @classmethod
    def corrupt(cls, batch, seeds, hparams):
        """Samples a canvas for each row of targets, and the targets of its slots; see `Insertion`."""
        insertion = Insertion(hparams.slot_order, hparams.slot_temperature)
        canvas, targets = insertion(batch["targets"], seeds)
        return {**batch, "canvas": canvas, "targets": targets}

    def call(self, inputs, training=None):
        """Predicts the ids that are missing in the canvas.

        Args:
            inputs: dict of int ids, "inputs" [B, S] and "canvas" [B, T], both padded with 0. "targets" [B, T] are
                ignored.
            training: bool.

        Returns:
            float32 logits [B, T, target_vocab_size], or a dict for a model with costs: see `TransformerModel.outputs`.
        """
        self.check_inputs(inputs)
        self.build_if_needed()
        source, canvas = (ops.convert_to_tensor(inputs[feature]) for feature in ("inputs", "canvas"))
        parts = self.input_embedding(source), self.target_embedding(canvas)
        sides = ops.cast(self.side, self.compute_dtype)
        x = ops.concatenate([positioned(self.position, x) + sides[i] for i, x in enumerate(parts)], axis=1)
        width, length = ops.shape(source)[1], ops.shape(canvas)[1]
        lengths = ops.expand_dims(_lengths(source), 1)
        at = ops.expand_dims(ops.arange(width + length, dtype="int32"), 0)
        ends = lengths + ops.expand_dims(_lengths(canvas), 1)
        # The padding between text and canvas is removed, so that it does not change distances in relative attention.
        x = take_positions(x, ops.where(at < lengths, at, ops.minimum(at - lengths + width, width + length - 1)))
        mask, results = at < ends, Results()
        context = Context(nonpadding=mask, results=results)
        x = self.dropout(x, training=training)
        x = self.encoder(x, attention_mask=ops.expand_dims(mask, 1), context=context, training=training)
        places_of_canvas = lengths + at[:, :length]
        x = normalized(take_positions(x, places_of_canvas), self.encoder_norm)
        costs = {}
        if self.has_costs:
            cost = results.total("cost")
            costs = {"inputs": cost[:, :width], "targets": take_positions(cost, places_of_canvas)}
        return self.outputs(with_mask(self.logits(x), is_token(canvas)), costs, dict.fromkeys(costs, results))

    def compute_mask(self, inputs, mask=None):
        """Returns bool [B, T], True where the canvas is not padding, or None if the model returns a dict."""
        return super().compute_mask({**inputs, "targets": inputs["canvas"]})

    def compute_output_spec(self, inputs, training=None):
        """Returns symbolic outputs, whose logits are float32 with any dtype policy."""
        return super().compute_output_spec({**inputs, "targets": inputs["canvas"]}, training)

    def search(self, inputs, limit, max_length=None):
        """Translates in passes that insert the best id into every slot, until no slot lacks an id.

        If an output would exceed its limit, the rightmost new ids are dropped. A row that has no room for a new id ends
        without EOS.

        Args:
            inputs: int ids [B, S], padded with 0.
            limit: int32 [B], the maximum output length of each row, including EOS; 0 means no output.
            max_length: int, at least the largest limit. It makes shapes static. If None, shapes are dynamic.

        Returns:
            (ids int32 [B, 1, T], with 1 at the end; scores float32 [B, 1], the sum of the log-probabilities (nats) that
            the ids had when they were inserted, and those of "nothing" for all slots in the last pass; ended
            bool [B, 1]; passes int32 [B]).
        """
        inputs, limit = ops.convert_to_tensor(inputs), ops.cast(limit, "int32")
        width = ops.maximum(ops.max(limit), 1)
        if max_length:
            width = min(max_length, self.max_length or max_length)  # the position table limits the output length
        rows = ops.zeros_like(limit)
        canvas = ops.where(ops.arange(width, dtype="int32") == 0, EOS_ID, PAD_ID) + ops.expand_dims(rows, 1)
        state = canvas, limit > 0, ops.cast(rows, "float32"), ops.cast(rows, "bool"), rows

        def insert(canvas, is_open, scores, ended, passes):
            # With dynamic shapes, positions past the longest canvas are not computed.
            shown = canvas if max_length else canvas[:, : ops.max(_lengths(canvas))]
            outputs = self({"inputs": inputs, "canvas": shown}, training=False)
            logits = outputs["targets"] if self.has_costs else outputs
            log_probs = ops.log_softmax(logits)
            best, chosen = (function(log_probs[..., 1:], axis=-1) for function in (ops.max, ops.argmax))  # never id 0
            is_slot = is_token(shown) & ops.expand_dims(is_open, 1)
            lacks = is_slot & (chosen + 1 != EOS_ID)
            room = ops.expand_dims(limit - _lengths(shown), 1)
            is_new = lacks & (ops.cumsum(ops.cast(lacks, "int32"), axis=1) <= room)
            after = inserted(shown, ops.where(is_new, ops.cast(chosen + 1, "int32"), PAD_ID))
            after = ops.concatenate([after, ops.zeros_like(canvas)], axis=1)[:, :width]
            is_done = is_open & ~ops.any(lacks, axis=1)
            counted = is_new | (is_slot & ops.expand_dims(is_done, 1))
            scores = scores + ops.sum(ops.where(counted, best, 0.0), axis=1)
            passes = passes + ops.cast(is_open, "int32")
            return after, ops.any(is_new, axis=1), scores, ended | is_done, passes

        ids, _, scores, ended, passes = ops.while_loop(lambda _, is_open, *others: ops.any(is_open), insert, state)
        return ops.expand_dims(ids, 1), ops.expand_dims(scores, 1), ops.expand_dims(ended, 1), passes


def inserted(canvas, new):
    """Inserts each new id before the canvas's id at the same position. Returns int [B, 2 T].

    Both arguments are int [B, T], where 0 means that there is no id.
    """
    width = 2 * ops.shape(canvas)[1]
    pairs = ops.reshape(ops.stack([new, canvas], axis=2), (-1, width))
    at = ops.expand_dims(ops.arange(width, dtype="int32"), 0)
    order = ops.sort(ops.where(is_token(pairs), at, at + width), axis=1)
    return ops.take_along_axis(pairs, ops.where(order < width, order, order - width), axis=1)


def _lengths(ids):
    """Returns the lengths, int32 [B], of ids int [B, T] that are padded with 0."""
    return ops.sum(ops.cast(is_token(ids), "int32"), axis=1)


@dataclasses.dataclass(frozen=True)
class Insertion:
    """Samples canvases, and for each slot one of the ids that are missing there.

    For a row of n ids and EOS, the canvas contains k of the ids, in order, followed by EOS. As in the training of the
    Insertion Transformer, k is sampled uniformly from 0 to n, and then a set of k ids is sampled uniformly. There is a
    slot before each id of a canvas, including EOS; its missing ids are those between this id and the previous id of the
    canvas. The model predicts one of the missing ids, or 1 for "nothing" if no id is missing. The cross-entropy of
    these predictions is therefore an unbiased estimate of the papers' slot loss, summed over all slots.

    Attributes:
        order: "binary_tree" or "uniform". With "binary_tree" (in the paper "balanced binary tree"), id i of a slot with
            ids a to b has the weight exp(-|i - (a + b) / 2| / temperature), so that the middle id is likely to be
            inserted first. With "uniform", all ids have the same weight.
        temperature: float, above 0.
    """

    order: str = "binary_tree"
    temperature: float = 1.0

    @tf.autograph.experimental.do_not_convert
    def __call__(self, ids, seeds):
        """Samples canvases and their targets for a batch.

        Args:
            ids: int32 [B, T], rows that end with 1, padded with 0.
            seeds: int32 [B, 2].

        Returns:
            (canvas, missing), both int32 [B, T], padded with 0 after EOS: the model's input, and the id to predict
            before each id of the canvas. A row's results depend only on its seed and its ids.
        """
        in_order, size_numbers = tf.unstack(uniform_numbers(seeds, 2, tf.shape(ids)[1]), axis=1)  # both are [B, T, 2]
        on_canvas = _sampled_canvas(ids, in_order[..., 0], size_numbers[:, 0, 0])
        order, slot = places(on_canvas)
        chosen = self._chosen((ids != PAD_ID) & ~on_canvas, slot, self.log_weights(on_canvas), in_order[..., 1])
        canvas = tf.gather(tf.pad(ids, [[0, 0], [0, 1]]), order, batch_dims=1)
        missing = tf.gather(tf.pad(ids, [[0, 0], [0, 1]], constant_values=EOS_ID), chosen, batch_dims=1)
        return canvas, tf.where(canvas != PAD_ID, missing, PAD_ID)

    @tf.autograph.experimental.do_not_convert
    def log_weights(self, on_canvas):
        """Returns the logarithms of the unnormalized weights of missing ids in their slots, float32 [B, T].

        Args:
            on_canvas: bool [B, T], whether each id is in the canvas.
        """
        if self.order == "uniform":
            return tf.zeros(tf.shape(on_canvas))
        order, slot = places(on_canvas)
        after = tf.gather(order, slot, batch_dims=1)
        before = tf.gather(tf.pad(order, [[0, 0], [1, 0]], constant_values=-1), slot, batch_dims=1)
        middle = tf.cast(before + after, tf.float32) / 2  # the middle of the ids between two ids of the canvas
        return -tf.abs(tf.cast(tf.range(tf.shape(on_canvas)[1]), tf.float32) - middle) / self.temperature

    @staticmethod
    def _chosen(is_missing, slot, log_weights, random):
        """Returns each slot's sampled id, as its position in the row, int32 [B, T]; T means that no id is missing."""
        rows, length = tf.unstack(tf.shape(slot))
        segment = tf.range(rows)[:, None] * length + slot
        score = log_weights - tf.math.log(-tf.math.log(random))  # the maximum is a sample with these weights (Gumbel)
        score = tf.where(is_missing, score, -float("inf"))
        highest = tf.math.unsorted_segment_max(score, segment, rows * length)
        is_chosen = is_missing & (score >= tf.gather(highest, segment))
        place = tf.where(is_chosen, tf.range(length), length)
        chosen = tf.math.unsorted_segment_min(place, segment, rows * length)
        return tf.reshape(tf.minimum(chosen, length), tf.shape(slot))


@tf.autograph.experimental.do_not_convert
def places(on_canvas):
    """Returns the position of each canvas id in its row, padded with T, and the slot of each id of the row.

    Args:
        on_canvas: bool [B, T], whether each id is in the canvas.

    Returns:
        Two tensors, each int32 [B, T].
    """
    length = tf.shape(on_canvas)[1]
    order = tf.sort(tf.where(on_canvas, tf.range(length), length), axis=1)
    return order, tf.minimum(tf.cumsum(tf.cast(on_canvas, tf.int32), axis=1, exclusive=True), length - 1)


def _sampled_canvas(ids, rank, size_numbers):
    """Samples which ids are in the canvas, bool [B, T], given random numbers for the ids [B, T] and for k [B]."""
    length = tf.reduce_sum(tf.cast(ids != PAD_ID, tf.int32), axis=1)  # n + 1
    is_end = tf.range(tf.shape(ids)[1]) == length[:, None] - 1
    size = tf.cast(size_numbers * tf.cast(length, tf.float32), tf.int32)  # 0 … n
    by_rank = tf.argsort(tf.where((ids != PAD_ID) & ~is_end, rank, 2.0), axis=1, stable=True)
    return is_end | (tf.argsort(by_rank, axis=1) < tf.minimum(size, length - 1)[:, None])

"""XLNet, an encoder trained to predict words in random order (Yang et al. 2019, arXiv 1906.08237)."""

import types
from typing import ClassVar

import keras
from keras import ops

from t2t_lite.extras.memory.memory import MemoryScore
from t2t_lite.extras.xlnet.segment_attention import SegmentContext
from t2t_lite.layers import Dropout, Results, TransformerEncoderLayer
from t2t_lite.layers.checks import shape_of
from t2t_lite.layers.layer_kinds import name_and_options
from t2t_lite.models.arguments import shared_options
from t2t_lite.models.encoder_model import EncoderModel, ends_before
from t2t_lite.models.transformer_parts import build_parts, normalized
from t2t_lite.registry import register_model
from t2t_lite.settings.ranges import setting

_KIND = "relative_segments"


@register_model("xlnet")
@keras.saving.register_keras_serializable("t2t_lite")
class XLNet(EncoderModel):
    """Maps ids to hidden states, and hidden states to the logits of one head.

    A row of `inputs` is one or more texts, each ending in id 1 (XLNet's <sep>). The model appends one position (XLNet's
    <cls>), whose state represents the whole row. There are no absolute positions: attention depends on distances, and
    on whether two positions are in the same segment, that is, have the same number of 1s before them. The appended
    position is a separate segment.

    With the head for masked ids, the inputs contain the ids to predict, and "order" determines which positions see each
    other: see `call`. Two streams of states then go through the same layers (section 2.3). If nothing is to be
    predicted, there is only one stream, as in other encoders. XLNet's memory of the previous segment is not
    implemented.

    Args:
        vocab_size: int, number of ids of the inputs.
        target_vocab_size: int, number of ids of the targets: 1 + the number of classes or tags; None for masked ids.
        {options}

    Raises:
        ValueError: an argument is out of its range, or the attention type is not relative_segments; the message has the
            argument's name and value.

    Example:
        >>> model = XLNet(vocab_size=20, target_vocab_size=4, head="class", hidden_size=8, filter_size=16, num_heads=2,
        ...               num_layers=1)
        >>> model({"inputs": keras.ops.ones((3, 5), "int32"), "targets": keras.ops.ones((3,), "int32")}).shape
        (3, 4)
    """

    HPARAMS: ClassVar = {
        **EncoderModel.HPARAMS,
        "last_id": setting(
            0, 0, 2**24, argument="last_id", fixed=True,
            meaning="The id of the position that is appended to each row, XLNet's <cls>; 0 stands for a zero vector.",
        ),
        **MemoryScore.HPARAMS,
    }  # fmt: skip

    OPTIONS: ClassVar = shared_options(
        without=[
            "num_encoder_layers", "num_decoder_layers", "target_space_embedding", "tie_embeddings", "scale_embeddings",
            "embedding_size",
        ],
        num_layers=12, hidden_size=768, filter_size=3072, num_heads=12, attention_dropout=0.1, relu_dropout=0.1,
        norm_epsilon=1e-12, activation="gelu", position="none", self_attention=_KIND, softmax_bias=True,
        initializer="normal", initializer_gain=0.02,
    )  # fmt: skip

    predicted_share = 1 / 6  # section 3.1: K = 6
    context_class = SegmentContext

    def __init__(self, vocab_size: int, target_vocab_size: int | None = None, **options):
        super().__init__(vocab_size, target_vocab_size, **options)
        c = types.SimpleNamespace(**self.config)
        self.check_id("last_id")
        if c.position != "none":
            raise ValueError(
                f"`position` must be none, because attention depends on distances: received position={c.position!r}."
            )
        kinds = c.self_attention if isinstance(c.self_attention, list) else [c.self_attention]
        if any(name_and_options(kind)[0] != _KIND for kind in kinds):
            raise ValueError(f"`self_attention` must be {_KIND}: received self_attention={c.self_attention!r}.")
        matrices = self.kernel_initializer()
        common = {"dtype": self.dtype_policy}
        self.make_input_embedding(c.hidden_size)
        self.dropout = Dropout(c.dropout, name="embedding_dropout", **common)
        self.encoder = self.make_stack("encoder", TransformerEncoderLayer, c.num_layers)
        self.encoder_norm = self.make_final_norm("encoder_norm")
        self.output_dropout = Dropout(c.dropout, name="output_dropout", **common)
        self.make_heads(matrices, 0.0)
        self.query = None

    def build_layers(self, shape):
        """Creates the weights of the layers; `shape` is the shape of hidden states."""
        build_parts((None, None), self.embedding)
        build_parts(shape, self.encoder, self.encoder_norm)
        if self.config["head"] == "masked_lm":
            initializer = self.embeddings_initializer() or "normal"
            self.query = self.add_weight(name="query", shape=(1, 1, shape[-1]), initializer=initializer)
        self.build_heads(shape)

    def head_weights(self):
        """Returns the weights of the heads; for masked ids, these are the bias and the queries' initial vector."""
        weights = [weight for part in (self.class_head, self.span_head) if part is not None for weight in part.weights]
        weights += [self.embedding.bias] if self.embedding.use_bias else []
        return weights if self.query is None else [*weights, self.query]

    @property
    def features(self):
        """{feature: rank} for the features of a batch: see `SequenceModel`."""
        return super().features | ({"order": 2} if self.config["head"] == "masked_lm" else {})

    def call(self, inputs, training=None):
        """Predicts the targets.

        Args:
            inputs: as for `EncoderModel.call`. With the head for masked ids, "inputs" contains the ids to predict, and
                there may be an "order", int [B, S]: each id sees the ids that have no target, the predicted ids with a
                lower number, and, in the first stream, itself. Without an order, no id sees other predicted ids.
            training: bool.

        Returns:
            As for `EncoderModel.call`. With two streams, costs are reported for the ids of the first stream; the load
            of experts, and hence its balancing cost, also counts the queries.
        """
        if self.config["head"] != "masked_lm" or inputs.get("targets") is None:
            return super().call(inputs, training)
        self.check_inputs(inputs)
        is_predicted = ops.not_equal(inputs["targets"], 0)
        order = is_predicted if inputs.get("order") is None else inputs["order"]
        results = {feature: Results() for feature in self.cost_features}
        states = self._predicting_states(inputs["inputs"], is_predicted, order, training, results.get("inputs"))
        return self.outputs(self.ids_logits(states), self.costs_of_ids(results, inputs["inputs"]), results)

    def flops(self, lengths, rows=1):
        """Adds the queries of predicted positions and their projections of distances: see `SequenceModel`."""
        from t2t_lite.extras.describe.cost import counted_flops, layer_flops

        counted, length = counted_flops(self, lengths, rows), lengths["inputs"]
        if self.config["head"] != "masked_lm":
            return counted
        attentions = [layer.self_attention.layer for layer in self.encoder.layers]
        distances = [attention.position_projection for attention in attentions]
        apart = [*distances, *(part for one in attentions for part in (one.key_projection, one.value_projection))]
        queries = self.predicted_share * sum(layer_flops(layer, length, apart) for layer in self.encoder.layers)
        return {"inputs": counted["inputs"] + queries + 2 / rows * sum(layer_flops(one, length) for one in distances)}

    def encode(self, inputs, training=None, return_hidden_states=False, return_attention_scores=False, results=None):
        """Encodes rows with bidirectional attention.

        Args:
            inputs: int ids [B, S], padded with 0.
            training: bool.
            return_hidden_states, return_attention_scores: bool.
            results: `Results`, to which the layers add their results. If None, their costs are a loss in training
                (`add_loss`).

        Returns:
            {"hidden": [B, S + 1, hidden], in each row the states of its ids, then the state of the appended position;
            "mask": bool [B, S + 1]}. If requested, also "states", a list of the embeddings and each layer's output,
            [B, S + 1, hidden], and "attention", a list with one [B, heads, S + 1, S + 1] per layer.
        """
        self.build_if_needed()
        row, mask, segments = self._rows(inputs)
        x = self.dropout(self.embedding(row), training=training)
        read = self.run_encoder(
            x, mask, training, return_hidden_states, return_attention_scores, results, segments=segments
        )
        return {**read, "hidden": self.output_dropout(read["hidden"], training=training)}

    def _rows(self, inputs):
        """Appends the last position; returns (ids, whether they are not padding, segments), each [B, S + 1]."""
        ids = ops.convert_to_tensor(inputs)
        ids = ops.cast(ids, keras.backend.result_type(ids.dtype, "int32"))  # fits `last_id`
        count = ops.expand_dims(_lengths(ids), 1)
        row = ops.pad(ids, ((0, 0), (0, 1)))
        at = ops.expand_dims(ops.arange(shape_of(row)[1], dtype="int32"), 0)
        row = ops.where(at == count, self.config["last_id"], row)
        segments = ops.where(at == count, -1, ends_before(row))
        return row, at <= count, segments

    def _predicting_states(self, inputs, is_predicted, order, training, results=None):
        """Returns the second stream's states at the positions to predict, [N, hidden]; the arguments are [B, S].

        Layers add the results of both streams to `results`; the queries' results come after the row's S + 1 positions.
        """
        self.build_if_needed()
        row, mask, segments = self._rows(inputs)
        is_predicted, order = (ops.pad(ops.convert_to_tensor(x), ((0, 0), (0, 1))) for x in (is_predicted, order))
        order = ops.where(is_predicted, ops.maximum(ops.cast(order, "int32"), 1), 0)
        length = shape_of(row)[1]
        at = ops.arange(length, dtype="int32")
        counts = ops.sum(ops.cast(is_predicted, "int32"), axis=1)
        # All rows get as many queries as the row with the most queries. Backends other than TensorFlow need a static
        # size.
        most = ops.maximum(ops.max(counts), 1) if keras.backend.backend() == "tensorflow" else length
        places = ops.sort(ops.where(is_predicted, at, length), axis=1)[:, :most]
        is_asked = places < length
        places = ops.minimum(places, length - 1)

        def visible(own):
            """Returns which keys are visible to queries with the ranks `own`, int [B, T], as bool [B, T, S]."""
            others = ops.expand_dims(order, 1)
            seen = (others == 0) | (others < ops.expand_dims(own, 2))
            return seen & ops.expand_dims(mask, 1)

        itself = ops.expand_dims(ops.expand_dims(at, 1) == ops.expand_dims(at, 0), 0)  # each id sees itself
        masks = [visible(order) | itself, visible(ops.take_along_axis(order, places, axis=1))]
        queries = ops.broadcast_to(
            ops.cast(self.query, self.compute_dtype), (*shape_of(places), self.config["hidden_size"])
        )
        x = self.dropout(ops.concatenate([self.embedding(row), queries], axis=1), training=training)
        nonpadding = ops.concatenate([mask, is_asked], axis=1)
        results = Results() if results is None else results
        context = SegmentContext(segments=segments, places=places, nonpadding=nonpadding, results=results)
        x = self.encoder(x, attention_mask=ops.concatenate(masks, axis=1), context=context, training=training)
        x = normalized(x[:, length:], self.encoder_norm)
        return self.chosen(self.output_dropout(x, training=training), is_asked)

    def attention_weights(self, inputs):
        """Returns the weights as other encoders do, with each row's appended position first: see `EncoderModel`."""
        count, at = _lengths(inputs["inputs"])[:, None], ops.arange(1 + shape_of(inputs["inputs"])[1], dtype="int32")
        places = ops.where(at == 0, count, ops.where(at <= count, at - 1, at))

        def moved(weights):
            queries_first = ops.take_along_axis(weights, places[:, None, :, None], axis=2)
            return ops.take_along_axis(queries_first, places[:, None, None, :], axis=3)

        return {kind: [*map(moved, layers)] for kind, layers in super().attention_weights(inputs).items()}

    def of_ids(self, states):
        """Drops the last position, which is padding except in the longest row: see `EncoderModel`."""
        return states[:, :-1]

    def of_row(self, states, inputs):
        """Returns the state of each row's last position: see `EncoderModel`."""
        at = ops.reshape(_lengths(ops.convert_to_tensor(inputs)), (-1, 1, 1))
        return ops.take_along_axis(states, at, axis=1)[:, 0]

    def guessing_states(self, inputs, mask):
        """Returns the states of queries at the masked positions, whose ids they do not see: see `EncoderModel`."""
        return self._predicting_states(inputs, mask, ops.cast(mask, "int32"), False)

    def ids_logits(self, hidden):
        """Computes logits for the id at each position: [..., hidden] -> float32 [..., vocab_size]."""
        return self.embedding(hidden, reverse=True)


def _lengths(ids):
    """Returns the row lengths, int32 [B], of ids [B, S] padded with 0."""
    return ops.sum(ops.cast(ids != 0, "int32"), axis=1)

"""Encoders that read a text or a pair in both directions: BERT (Devlin et al. 2019) and its successors."""

import numbers
import types
from typing import ClassVar

import keras
from keras import ops

from t2t_lite.layers import (
    ClassHead,
    Dropout,
    LayerNormalization,
    MaskedIdsHead,
    TokenEmbedding,
    TransformerEncoderLayer,
    number_seeds,
)
from t2t_lite.layers.base import matrix_initializer, own_initializer
from t2t_lite.layers.checks import check_sizes
from t2t_lite.layers.dense import Dense
from t2t_lite.models.arguments import shared_options
from t2t_lite.models.encoder_model import EncoderModel, ends_before
from t2t_lite.models.transformer_parts import normalized, positioned
from t2t_lite.registry import register_model
from t2t_lite.settings.ranges import setting
from t2t_lite.text.vocabulary import UNK_ID

POOLINGS = ("first", "mean_max")
POOLER_ACTIVATIONS = ("tanh", "relu", "gelu")


@register_model("transformer_encoder")
@keras.saving.register_keras_serializable("t2t_lite")
class TransformerEncoder(EncoderModel):
    """Maps ids to hidden states, and these to the logits of one head.

    A row of `inputs` is one or more texts, each ending in id 1 (BERT's [SEP]); the number of 1s before an id is its
    segment. One position comes before all of them (BERT's [CLS]); predictions for the whole row are made from it.

    Args:
        vocab_size: int, ids of the inputs.
        target_vocab_size: int, ids of the targets: 1 + the number of classes or tags; None for masked ids.
        {options}

    Sources: the pooling mean_max is ULMFiT's (Howard and Ruder 2018, section 3.3), match_embedding "exact match" (Chen
    et al. 2017, "Reading Wikipedia to answer open-domain questions", section 3.2). Groups of layers, and embeddings
    that are projected to hidden_size, are ALBERT's (Lan et al. 2020), task types ERNIE 2.0's (Sun et al. 2019).

    Raises:
        ValueError: an argument is out of its range; the message has its name and value.

    Example:
        >>> model = TransformerEncoder(vocab_size=20, target_vocab_size=4, head="class", hidden_size=8, filter_size=16,
        ...                            num_heads=2, num_layers=1)
        >>> model({"inputs": keras.ops.ones((3, 5), "int32"), "targets": keras.ops.ones((3,), "int32")}).shape
        (3, 4)
    """

    HPARAMS: ClassVar = {
        **EncoderModel.HPARAMS,
        "sentence_classes": setting(
            0, 0, 2**16, argument="sentence_classes", fixed=True,
            meaning='Classes of a second feature "sentence", such as whether it follows the first; 0: no such feature.',
        ),
        "first_id": setting(
            0, 0, 2**24, argument="first_id", fixed=True,
            meaning="The id before each row, BERT's [CLS]; 0: a zero vector.",
        ),
        "pooling": setting(
            "first", choices=POOLINGS, argument="pooling", fixed=True,
            meaning="State from which a row's class or number is predicted: that of the first position, or mean and "
            "maximum over all positions.",
        ),
        "pooler_activation": setting(
            "tanh", choices=POOLER_ACTIVATIONS, argument="pooler_activation", fixed=True,
            meaning="Activation of the dense layer before the logits of a row's class or number: BERT's is tanh, "
            "DistilBERT's relu, ELECTRA's gelu.",
        ),
        "num_segments": setting(
            2, 0, 2**16, argument="num_segments", fixed=True, meaning="Rows of the table of segments; 0: no table."
        ),
        "match_embedding": setting(
            False, argument="match_embedding", fixed=True,
            meaning="Whether an embedding marks ids that also occur in another segment.",
        ),
        "embedding_norm": setting(
            True, argument="embedding_norm", fixed=True, meaning="Whether the sum of embeddings is normalized."
        ),
        "num_hidden_groups": setting(
            0, 0, 2**9, argument="num_hidden_groups", zero="none", fixed=True,
            meaning="Groups of neighbouring layers that share their weights; 0: no layers share any.",
        ),
        "num_task_types": setting(
            0, 0, 2**16, argument="num_task_types", fixed=True,
            meaning="Rows of the table of task types, whose first one is added to all embeddings; 0: no table.",
        ),
    }  # fmt: skip

    OPTIONS: ClassVar = shared_options(
        without=[
            "num_encoder_layers", "num_decoder_layers", "target_space_embedding", "tie_embeddings", "scale_embeddings"
        ],
        num_layers=12, hidden_size=768, filter_size=3072, num_heads=12, attention_dropout=0.1, norm_epsilon=1e-12,
        attention_bias=True, activation="gelu", position="learned", max_position=512, softmax_bias=True,
        initializer="normal", initializer_gain=0.02,
    )  # fmt: skip

    def __init__(self, vocab_size: int, target_vocab_size: int | None = None, **options):
        super().__init__(vocab_size, target_vocab_size, **options)
        c = types.SimpleNamespace(**self.config)
        if not isinstance(c.first_id, numbers.Integral) or not 0 <= c.first_id < vocab_size:
            raise ValueError(f"`first_id` must be an id from 0 to {vocab_size - 1}: received first_id={c.first_id!r}.")
        self.check_classes()
        counts = {name: getattr(c, name) for name in ("num_segments", "num_task_types", "sentence_classes")}
        check_sizes(**{name: count for name, count in counts.items() if count != 0})  # 0: no such table or head
        if c.num_hidden_groups is not None and c.num_hidden_groups > c.num_layers:
            raise ValueError(
                f"`num_hidden_groups` must be at most num_layers={c.num_layers}: received "
                f"num_hidden_groups={c.num_hidden_groups}."
            )
        self.width = c.embedding_size or c.hidden_size
        matrices = c.kernel_initializer or matrix_initializer(c.initializer, c.initializer_gain)
        own = {"dtype": self.dtype_policy}
        self.embedding = TokenEmbedding(
            vocab_size, self.width, use_bias=c.softmax_bias and c.head == "masked_lm", scale=False,
            embeddings_initializer=self.embeddings_initializer(), name="embedding", **own,
        )  # fmt: skip
        self.segment_embedding = self._table(c.num_segments, "segment_embedding")
        self.match_embedding = self._table(2 if c.match_embedding else 0, "match_embedding")
        self.task_embedding = self._table(c.num_task_types, "task_embedding")
        self.position = self.make_position("position")
        self.embedding_norm = None
        if c.embedding_norm:
            self.embedding_norm = LayerNormalization(epsilon=c.norm_epsilon, name="embedding_norm", **own)
        self.dropout = Dropout(c.dropout, name="embedding_dropout", **own)
        self.projection = None
        if c.embedding_size is not None:
            self.projection = Dense(
                c.hidden_size, kernel_initializer=own_initializer(matrices), name="projection", **own
            )
        self.encoder = self.make_stack("encoder", TransformerEncoderLayer, c.num_layers, num_groups=c.num_hidden_groups)
        self.encoder_norm = self.make_final_norm("encoder_norm")
        self.masked_ids_head = None
        if c.head == "masked_lm":
            self.supports_jit = False  # for `fit`: XLA cannot compute logits whose number depends on the targets
            self.softmax = self.embedding
            self.masked_ids_head = MaskedIdsHead(
                self.width, c.activation, c.norm_epsilon, matrices, name="ids_head", **own
            )
        self.make_heads(matrices, c.dropout)
        if c.sentence_classes:
            self.sentence_head = ClassHead(
                c.sentence_classes, True, dropout=0.0, kernel_initializer=matrices, name="sentence_head", **own
            )

    def _table(self, rows, name):
        if not rows:
            return None
        initializer = self.embeddings_initializer() or keras.initializers.RandomNormal(stddev=self.width**-0.5)
        return keras.layers.Embedding(
            rows, self.width, embeddings_initializer=initializer, dtype=self.dtype_policy, name=name
        )

    def head_weights(self):
        """Returns the weights of the heads, the bias of masked ids, and the table of matches, which pairs may add."""
        heads = (self.masked_ids_head, self.class_head, self.span_head, self.sentence_head)
        found = [weight for part in (*heads, self.match_embedding) if part is not None for weight in part.weights]
        return found + ([self.embedding.bias] if self.embedding.use_bias else [])

    @property
    def max_length(self):
        """The length of the longest row that fits the table of positions, int; None: no limit."""
        longest = super().max_length
        return None if longest is None else longest - 1

    def build(self, input_shape=None):
        """Creates all weights; `input_shape` is not used."""
        if self.built:
            return
        embedded, hidden = (None, None, self.width), (None, None, self.config["hidden_size"])
        for layer in (self.embedding, self.segment_embedding, self.match_embedding, self.task_embedding):
            if layer is not None:
                layer.build((None, None))
        for layer in (self.position, self.embedding_norm, self.projection):
            if layer is not None:
                layer.build(embedded)
        self.encoder.build(hidden)
        for layer in (self.encoder_norm, self.masked_ids_head):
            if layer is not None:
                layer.build(hidden)
        self.build_heads(hidden)
        number_seeds(self)
        self.built = True

    def encode(self, inputs, training=None, return_hidden_states=False, return_attention_scores=False, results=None):
        """Reads rows in both directions.

        Args:
            inputs: int ids [B, S], padded with 0.
            training: bool.
            return_hidden_states, return_attention_scores: bool.
            results: `Results`, to which layers add; None: their results are dropped.

        Returns:
            {"hidden" [B, 1 + S, hidden], the first position and those of the ids; "mask" bool [B, 1 + S]}; on request
            also "states", a list of the embeddings and of each layer's output, [B, 1 + S, hidden] each, and
            "attention", a list, one [B, heads, 1 + S, 1 + S] per layer.
        """
        self.build_if_needed()
        ids = ops.convert_to_tensor(inputs)
        row = ops.pad(ids, ((0, 0), (1, 0)), constant_values=self.config["first_id"])
        mask = ops.pad(ids != 0, ((0, 0), (1, 0)), constant_values=True)
        x = positioned(self.position, self.embedding(row))
        segments = ends_before(row)
        if self.segment_embedding is not None:
            x = x + self.segment_embedding(ops.minimum(segments, self.config["num_segments"] - 1))
        if self.match_embedding is not None:
            x = x + self.match_embedding(ops.where(_in_another_segment(row, segments), 1, 0))  # LiteRT: no cast
        if self.task_embedding is not None:
            x = x + self.task_embedding(ops.zeros((1, 1), "int32"))
        x = self.dropout(normalized(x, self.embedding_norm), training=training)
        x = x if self.projection is None else self.projection(x)
        return self.read(x, mask, training, return_hidden_states, return_attention_scores, results)

    def of_ids(self, states):
        """See `EncoderModel`: the states of all positions except the first."""
        return states[:, 1:]

    def of_row(self, states, inputs):
        """See `EncoderModel`: the states of the first position."""
        return states[:, 0]

    def ids_logits(self, hidden):
        """[..., hidden] -> float32 [..., vocab_size], logits of the id at a position."""
        return self.embedding(self.masked_ids_head(hidden), reverse=True)


def _in_another_segment(row, segments):
    """int [B, T] each -> bool [B, T]: whether an id that is not special also occurs in another segment of its row."""
    same = ops.expand_dims(row, 2) == ops.expand_dims(row, 1)
    same = same & (ops.expand_dims(segments, 2) != ops.expand_dims(segments, 1))
    return ops.any(same, axis=2) & (row > UNK_ID)

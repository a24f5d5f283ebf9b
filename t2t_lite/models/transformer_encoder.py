"""Bidirectional encoders for texts or pairs of texts: BERT (Devlin et al. 2019) and its successors."""

import types
from typing import ClassVar

import keras
from keras import ops

from t2t_lite.layers import (
    ClassHead,
    Dropout,
    LayerNormalization,
    MaskedIdsHead,
    TransformerEncoderLayer,
)
from t2t_lite.layers.base import own_initializer, table_initializer
from t2t_lite.layers.checks import check_sizes
from t2t_lite.layers.dense import Dense
from t2t_lite.models.arguments import shared_options
from t2t_lite.models.encoder_model import EncoderModel, ends_before
from t2t_lite.models.transformer_parts import build_parts, normalized, positioned
from t2t_lite.registry import register_model
from t2t_lite.settings.ranges import setting
from t2t_lite.text.vocabulary import UNK_ID

POOLINGS = ("first", "mean_max")
POOLER_ACTIVATIONS = ("tanh", "relu", "gelu")


@register_model("transformer_encoder")
@keras.saving.register_keras_serializable("t2t_lite")
class TransformerEncoder(EncoderModel):
    """A bidirectional encoder, such as BERT, with a prediction head on its hidden states.

    A row of `inputs` is one or more texts, which all end in id 1 (BERT's [SEP]). The segment of an id is the number of
    1s before it. An additional position at the beginning (BERT's [CLS]) is used for predictions about the whole row.

    Args:
        vocab_size: int, the vocabulary size of the inputs.
        target_vocab_size: int, 1 + the number of classes or tags; None for masked ids.
        {options}

    Sources: the pooling mean_max is from ULMFiT (Howard and Ruder 2018, section 3.3). match_embedding is the feature
    "exact match" of Chen et al. 2017, "Reading Wikipedia to answer open-domain questions", section 3.2. Groups of
    layers and projected embeddings are from ALBERT (Lan et al. 2020), and task types from ERNIE 2.0 (Sun et al. 2019).

    Raises:
        ValueError: if an argument is out of range. The error message has the argument's name and value.

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
            meaning='Number of classes of the feature "sentence" (2: whether one text follows another); 0: not used.',
        ),
        "first_id": setting(
            0, 0, 2**24, argument="first_id", fixed=True,
            meaning="The id before each row (BERT's [CLS]); 0: a zero vector.",
        ),
        "pooling": setting(
            "first", choices=POOLINGS, argument="pooling", fixed=True,
            meaning="State from which a row's class or number is predicted: that of the first position, or the mean "
            "and maximum of all states.",
        ),
        "pooler_activation": setting(
            "tanh", choices=POOLER_ACTIVATIONS, argument="pooler_activation", fixed=True,
            meaning="Activation of the dense layer before the logits of a row's class or number: tanh in BERT, "
            "relu in DistilBERT, gelu in ELECTRA.",
        ),
        "num_segments": setting(
            2, 0, 2**16, argument="num_segments", fixed=True, meaning="Number of segment embeddings; 0: none."
        ),
        "match_embedding": setting(
            False, argument="match_embedding", fixed=True,
            meaning="Whether an embedding marks the ids that also occur in another segment.",
        ),
        "embedding_norm": setting(
            True, argument="embedding_norm", fixed=True, meaning="Whether the sum of embeddings is normalized."
        ),
        "num_hidden_groups": setting(
            0, 0, 2**9, argument="num_hidden_groups", zero="none", fixed=True,
            meaning="Number of groups of adjacent layers that share their weights; 0: no sharing.",
        ),
        "num_task_types": setting(
            0, 0, 2**16, argument="num_task_types", fixed=True,
            meaning="Number of task type embeddings, of which the first is added to all tokens; 0: none.",
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
        self.check_id("first_id")
        counts = {name: getattr(c, name) for name in ("num_segments", "num_task_types", "sentence_classes")}
        check_sizes(**{name: count for name, count in counts.items() if count != 0})  # 0 means no such table or head
        if c.num_hidden_groups is not None and c.num_hidden_groups > c.num_layers:
            raise ValueError(
                f"`num_hidden_groups` must be at most num_layers={c.num_layers}: received "
                f"num_hidden_groups={c.num_hidden_groups}."
            )
        self.width = c.embedding_size or c.hidden_size
        matrices = self.kernel_initializer()
        common = {"dtype": self.dtype_policy}
        self.make_input_embedding(self.width)
        self.segment_embedding = self._table(c.num_segments, "segment_embedding")
        self.match_embedding = self._table(2 if c.match_embedding else 0, "match_embedding")
        self.task_embedding = self._table(c.num_task_types, "task_embedding")
        self.position = self.make_position("position")
        if self.max_length is not None:
            self.max_length -= 1  # leaves room for the first position
        self.embedding_norm = None
        if c.embedding_norm:
            self.embedding_norm = LayerNormalization(epsilon=c.norm_epsilon, name="embedding_norm", **common)
        self.dropout = Dropout(c.dropout, name="embedding_dropout", **common)
        self.projection = None
        if c.embedding_size is not None:
            self.projection = Dense(
                c.hidden_size, kernel_initializer=own_initializer(matrices), name="projection", **common
            )
        self.encoder = self.make_stack("encoder", TransformerEncoderLayer, c.num_layers, num_groups=c.num_hidden_groups)
        self.encoder_norm = self.make_final_norm("encoder_norm")
        self.masked_ids_head = None
        if c.head == "masked_lm":
            self.masked_ids_head = MaskedIdsHead(
                self.width, c.activation, c.norm_epsilon, matrices, name="ids_head", **common
            )
        self.make_heads(matrices, c.dropout)
        if c.sentence_classes:
            self.sentence_head = ClassHead(
                c.sentence_classes, True, dropout=0.0, kernel_initializer=matrices, name="sentence_head", **common
            )

    def _table(self, rows, name):
        if not rows:
            return None
        initializer = table_initializer(self.embeddings_initializer(), self.width)
        return keras.layers.Embedding(  # Keras rejects NumPy integers
            int(rows), int(self.width), embeddings_initializer=initializer, dtype=self.dtype_policy, name=name
        )

    def head_weights(self):
        """Returns the weights of the heads, the bias for masked ids, and the match embedding of models for pairs."""
        heads = (self.masked_ids_head, self.class_head, self.span_head, self.sentence_head)
        weights = [weight for part in (*heads, self.match_embedding) if part is not None for weight in part.weights]
        return weights + ([self.embedding.bias] if self.embedding.use_bias else [])

    def build_layers(self, shape):
        """Creates the weights of the layers; `shape` is the shape of hidden states."""
        build_parts((None, None), self.embedding, self.segment_embedding, self.match_embedding, self.task_embedding)
        build_parts((*shape[:-1], self.width), self.position, self.embedding_norm, self.projection)
        build_parts(shape, self.encoder, self.encoder_norm, self.masked_ids_head)
        self.build_heads(shape)

    def encode(self, inputs, training=None, return_hidden_states=False, return_attention_scores=False, results=None):
        """Encodes rows of ids bidirectionally.

        Args:
            inputs: int ids [B, S], padded with 0.
            training: bool.
            return_hidden_states, return_attention_scores: bool.
            results: `Results`, to which the layers add their results. If None, their costs are a loss in training
                (`add_loss`).

        Returns:
            A dict with "hidden" [B, 1 + S, hidden], the states of the first position and of the ids, and "mask" bool
            [B, 1 + S]. On request the dict also has "states", a list with the embeddings and the output of each layer,
            [B, 1 + S, hidden], and "attention", a list with the weights [B, heads, 1 + S, 1 + S] of each layer.
        """
        self.build_if_needed()
        ids = ops.convert_to_tensor(inputs)
        ids = ops.cast(ids, keras.backend.result_type(ids.dtype, "int32"))  # fits `first_id`
        row = ops.pad(ids, ((0, 0), (1, 0)), constant_values=self.config["first_id"])
        mask = ops.pad(ids != 0, ((0, 0), (1, 0)), constant_values=True)
        x = positioned(self.position, self.embedding(row))
        segments = ends_before(row)
        if self.segment_embedding is not None:
            x = x + self.segment_embedding(ops.minimum(segments, self.config["num_segments"] - 1))
        if self.match_embedding is not None:
            # LiteRT requires `where` here instead of a cast from bool.
            x = x + self.match_embedding(ops.where(_in_another_segment(row, segments), 1, 0))
        if self.task_embedding is not None:
            x = x + self.task_embedding(ops.zeros((1, 1), "int32"))
        x = self.dropout(normalized(x, self.embedding_norm), training=training)
        x = x if self.projection is None else self.projection(x)
        return self.run_encoder(x, mask, training, return_hidden_states, return_attention_scores, results)

    def of_ids(self, states):
        """Selects the states of all positions except the first: see `EncoderModel`."""
        return states[:, 1:]

    def of_row(self, states, inputs):
        """Selects the states of the first position: see `EncoderModel`."""
        return states[:, 0]

    def ids_logits(self, hidden):
        """Computes the logits for masked ids, float32 [..., vocab_size], from hidden states [..., hidden]."""
        return self.embedding(self.masked_ids_head(hidden), reverse=True)


def _in_another_segment(row, segments):
    """Returns a mask, bool [B, T], True where an id is not special and also occurs in another segment of its row."""
    same = ops.expand_dims(row, 2) == ops.expand_dims(row, 1)
    same = same & (ops.expand_dims(segments, 2) != ops.expand_dims(segments, 1))
    return ops.any(same, axis=2) & (row > UNK_ID)

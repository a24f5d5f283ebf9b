"""Language models of LSTMs in both directions, whose layers are features for other tasks: ELMo (Peters et al. 2018)."""

from typing import ClassVar

import keras
from keras import ops

from t2t_lite.layers import ClassHead, LayerMix, LSTMStack, TokenEmbedding, number_dropouts
from t2t_lite.layers.checks import check_sizes
from t2t_lite.layers.encoder_heads import mean_and_maximum
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.models.transformer_lm import join_prompts
from t2t_lite.ranges import setting
from t2t_lite.registry import register_model
from t2t_lite.text.vocabulary import EOS_ID

HEADS = {"lm": 2, "class": 1, "tag": 2, "real": 1}  # rank of the targets


@register_model("lstm_lm")
@keras.saving.register_keras_serializable("t2t_lite")
class LSTMLanguageModel(SequenceModel):
    """Two stacks of LSTMs with one embedding and one softmax, one from left to right and one from right to left.

    With the head "lm" each predicts the next id of "targets" in its direction; the loss of the second one is a cost,
    as `named_outputs` has it. The other heads read "inputs" by a learned mix of all layers (`LayerMix`). ELMo's
    characters, and the projections inside of its cells, are not copied: the embeddings are those of ids.

    Args:
        vocab_size: int, ids of the texts.
        target_vocab_size: int, 1 + the number of classes or tags; None or vocab_size with the head "lm".
        head: "lm", "class" or "real", one class or number of the text, or "tag", a class of each position.
        num_layers: int, of each stack.
        hidden_size: int, of embeddings and cells; a state of both directions is twice as large.
        dropout: float, of each layer's input and of what a head reads.
        tie_embeddings: bool, whether embeddings and softmax share one matrix.

    Raises:
        ValueError: an argument is out of its range; the message has its name and value.

    Example:
        >>> model = LSTMLanguageModel(vocab_size=20, target_vocab_size=4, head="class", num_layers=1, hidden_size=8)
        >>> model({"inputs": keras.ops.ones((3, 5), "int32"), "targets": keras.ops.ones((3,), "int32")}).shape
        (3, 4)
    """

    HPARAMS: ClassVar = {
        "head": setting(
            "lm", choices=tuple(HEADS), argument="head", fixed=True,
            meaning="What is predicted: the next id in both directions, a class, a number, or a tag of each position.",
        ),
    }  # fmt: skip

    def __init__(
        self,
        vocab_size: int,
        target_vocab_size: int | None = None,
        head: str = "lm",
        num_layers: int = 2,
        hidden_size: int = 512,
        dropout: float = 0.1,
        tie_embeddings: bool = True,
        **kwargs,
    ):
        config = {name: value for name, value in locals().items() if name not in ("self", "kwargs", "__class__")}
        super().__init__(**kwargs)
        check_sizes(vocab_size=vocab_size, target_vocab_size=target_vocab_size)
        if head not in HEADS:
            raise ValueError(f"`head` must be one of {', '.join(HEADS)}: received head={head!r}.")
        if head == "lm" and target_vocab_size not in (None, vocab_size):
            raise ValueError(f"A language model has one vocabulary: received target_vocab_size={target_vocab_size}.")
        if head in ("class", "tag") and (target_vocab_size is None or target_vocab_size < 2):
            raise ValueError(f"A {head} head needs target_vocab_size of at least 2: received {target_vocab_size}.")
        self.config = config
        self.vocab_size, self.target_vocab_size = vocab_size, target_vocab_size or vocab_size
        own = {"dtype": self.dtype_policy}
        self.embedding = TokenEmbedding(vocab_size, hidden_size, name="embedding", **own)
        self.forward_stack = LSTMStack(num_layers, hidden_size, dropout, name="forward", **own)
        self.backward_stack = LSTMStack(num_layers, hidden_size, dropout, name="backward", **own)
        self.mix = self.class_head = None
        if head != "lm":
            self.mix = LayerMix(1 + num_layers, name="mix", **own)
            classes = 1 if head == "real" else target_vocab_size - 1
            self.class_head = ClassHead(classes, False, dropout, name="class_head", **own)
        elif tie_embeddings:
            self.softmax = self.embedding
        else:
            self.softmax = TokenEmbedding(vocab_size, hidden_size, name="softmax_embedding", **own)

    @property
    def features(self):
        """{feature: rank} of a batch: see `SequenceModel`."""
        head = self.config["head"]
        return {"targets": 2} if head == "lm" else {"inputs": 2, "targets": HEADS[head]}

    @property
    def needed_features(self):
        """{feature: rank} of what is read: of a class, number or tags the texts alone."""
        return {"targets": 2} if self.config["head"] == "lm" else {"inputs": 2}

    def token_embeddings(self):
        """Returns the look-up of the texts."""
        return {"targets" if self.config["head"] == "lm" else "inputs": self.embedding}

    def head_weights(self):
        """Returns the weights of the mix, the head and a softmax of its own."""
        softmax = None if self.softmax is self.embedding else self.softmax
        return [
            weight for layer in (self.mix, self.class_head, softmax) if layer is not None for weight in layer.weights
        ]

    def build(self, input_shape=None):
        """Creates all weights; `input_shape` is not used."""
        if self.built:
            return
        size = self.config["hidden_size"]
        self.embedding.build()
        self.forward_stack.build((None, None, size))
        self.backward_stack.build((None, None, size))
        if self.mix is not None:
            self.mix.build()
            self.class_head.build((None, (4 if HEADS[self.config["head"]] == 1 else 2) * size))
        elif self.softmax is not self.embedding:
            self.softmax.build()
        number_dropouts(self)
        self.built = True

    def call(self, inputs, training=None):
        """Predicts the targets.

        Args:
            inputs: dict of int ids by feature, padded with 0: "inputs" [B, S]; "targets" may be there, and are not
                read. But with the head "lm" "targets" [B, T], and "inputs" are prompts, which may be left out.
            training: bool.

        Returns:
            With the head "lm" {"targets": float32 logits [B, T, vocab_size] of each id given those before it, "costs":
            {"targets": float32 [B, T], nats of each id given those after it}}. Else float32 logits of "targets": of a
            class [B, target_vocab_size], of a number [B, 1], of tags [B, S, target_vocab_size].
        """
        self.check_inputs(inputs)
        self.build_if_needed()
        head = self.config["head"]
        if head == "lm":
            return self._language_model(inputs, training)
        found = self.encode(inputs["inputs"], training, return_hidden_states=True)
        mixed = self.mix(found["states"])
        if head == "tag":
            return self.class_head(mixed[:, 1:], training=training)
        logits = self.class_head(mean_and_maximum(mixed, found["mask"]), training=training)
        return logits[:, 1:] if head == "real" else logits

    def _language_model(self, features, training):
        targets = ops.convert_to_tensor(features["targets"])
        if features.get("inputs") is None:
            read = self.forward_stack(self.embedding(_after_end(targets)[:, :-1]), training=training)[-1]
        else:
            prompts = _after_end(ops.cast(features["inputs"], targets.dtype))
            lengths = ops.sum(ops.cast(prompts != 0, "int32"), axis=1, keepdims=True)
            row = join_prompts(prompts, lengths[:, 0], targets)
            read = self.forward_stack(self.embedding(row[:, :-1]), training=training)[-1]
            read = _rows(read, lengths - 1 + ops.arange(ops.shape(targets)[1], dtype="int32"))
        lengths = ops.sum(ops.cast(targets != 0, "int32"), axis=1)
        labels = _reversed(targets, lengths)
        backward = self.backward_stack(self.embedding(_after_end(labels)[:, :-1]), training=training)[-1]
        nats = ops.sparse_categorical_crossentropy(labels, self.softmax(backward, reverse=True), from_logits=True)
        return {"targets": self.softmax(read, reverse=True), "costs": {"targets": _reversed(nats, lengths)}}

    def encode(self, inputs, training=None, return_hidden_states=False):
        """Reads texts in both directions.

        Args:
            inputs: int ids [B, S], padded with 0.
            training: bool.
            return_hidden_states: bool.

        Returns:
            {"hidden" [B, 1 + S, 2 · hidden], the top layers of both directions, "mask" bool [B, 1 + S]}, and where
            asked for "states", a list of the embeddings, twice beside one another, and of each layer's output. The
            first position is that of an id 1 before the text; the right-to-left state there has read the whole text.
        """
        self.build_if_needed()
        row = _after_end(ops.convert_to_tensor(inputs))
        mask = ops.pad(row[:, 1:] != 0, ((0, 0), (1, 0)), constant_values=True)
        lengths = ops.sum(ops.cast(mask, "int32"), axis=1)
        embedded = self.embedding(row)
        forward = self.forward_stack(embedded, training=training)
        backward = self.backward_stack(self.embedding(_after_end(_reversed(row, lengths))), training=training)
        states = [ops.concatenate([embedded, embedded], axis=-1)]
        for left, right in zip(forward, backward, strict=True):
            states.append(ops.concatenate([left, _reversed(right[:, 1:], lengths)], axis=-1))
        found = {"hidden": states[-1], "mask": mask}
        return {**found, "states": states} if return_hidden_states else found

    def compute_mask(self, inputs, mask=None):
        """Returns None: losses leave id 0 out."""
        return None

    def compute_output_spec(self, inputs, training=None):
        """Returns symbolic logits, float32 whatever the dtype policy."""
        head, size = self.config["head"], self.target_vocab_size
        if head == "lm":
            shape = inputs["targets"].shape
            costs = {"targets": keras.KerasTensor(shape, dtype="float32")}
            return {"targets": keras.KerasTensor((*shape, size), dtype="float32"), "costs": costs}
        rows, length = inputs["inputs"].shape
        shape = {"class": (rows, size), "real": (rows, 1), "tag": (rows, length, size)}[head]
        return keras.KerasTensor(shape, dtype="float32")


def _after_end(ids):
    """[B, T] -> [B, 1 + T], with id 1 before each row."""
    return ops.pad(ids, ((0, 0), (1, 0)), constant_values=EOS_ID)


def _reversed(x, lengths):
    """Returns x [B, T, …] with the first `lengths` [B] positions of each row in reverse, the others where they are."""
    at, lengths = ops.arange(ops.shape(x)[1], dtype="int32"), ops.expand_dims(lengths, 1)
    return _rows(x, ops.where(at < lengths, lengths - 1 - at, at))


def _rows(x, at):
    """Returns of x [B, T, …] the positions `at` [B, n] of each row: [B, n, …], in one gather."""
    batch, length = ops.shape(x)[:2]
    first = ops.expand_dims(ops.arange(batch, dtype="int32"), 1) * length
    return ops.take(ops.reshape(x, (-1, *x.shape[2:])), first + at, axis=0)

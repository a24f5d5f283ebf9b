"""ELMo (Peters et al. 2018): a bidirectional LSTM language model whose states serve as features for other tasks."""

from typing import ClassVar

import keras
from keras import ops

from t2t_lite.extras.baselines.lstm_seq2seq_attention import lstm
from t2t_lite.layers import ClassHead, Dropout, TokenEmbedding, masked_softmax, number_seeds
from t2t_lite.layers.base import Layer
from t2t_lite.layers.checks import check_sizes
from t2t_lite.layers.encoder_heads import mean_and_maximum
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.models.transformer_lm import join_prompts, take_positions
from t2t_lite.models.transformer_parts import build_parts
from t2t_lite.registry import register_model
from t2t_lite.settings.ranges import setting
from t2t_lite.text.vocabulary import EOS_ID

HEADS = {"lm": 2, "class": 1, "tag": 2, "real": 1}  # {head: rank of the targets}


class LSTMStack(Layer):
    """A stack of left-to-right LSTMs with residual connections from the second layer on, as in ELMo."""

    def __init__(self, num_layers: int, size: int, dropout: float, **kwargs):
        super().__init__(**kwargs)
        common = {"dtype": self.dtype_policy}
        self.dropouts = [Dropout(dropout, name=f"dropout_{i}", **common) for i in range(num_layers)]
        self.layers = [lstm(size, name=f"{self.name}_{i}", **common) for i in range(num_layers)]

    def build(self, input_shape):
        """Creates the weights for inputs [B, T, size]."""
        build_parts(input_shape, *self.layers)

    def call(self, inputs, training=None, mask=None):
        """Maps [B, T, size] to each layer's outputs [B, T, size] and its last unmasked states h and c [B, size]."""
        outputs, states = [], []
        for layer, dropout in zip(self.layers, self.dropouts, strict=True):
            output, *state = layer(dropout(outputs[-1] if outputs else inputs, training=training), mask=mask)
            outputs.append(output + outputs[-1] if outputs else output)
            states.append(state)
        return outputs, states

    def step(self, x, states):
        """Returns each layer's next state, given x [N, size] and the states; the stack's output is the sum of all h."""
        following = []
        for layer, state in zip(self.layers, states, strict=True):
            h, state = layer.cell(x, state)
            x = h + x if following else h
            following.append(list(state))
        return following


class LayerMix(Layer):
    """Computes γ · Σ softmax(w)_j · h_j over a model's layers h_j, initially their mean (ELMo, equation 1)."""

    def build(self, shapes):
        """Creates the weights w, initially 0, and γ, initially 1, for a list of tensors with these shapes."""
        self.weight = self.add_weight(name="weight", shape=(len(shapes),), initializer="zeros")
        self.gamma = self.add_weight(name="gamma", shape=(), initializer="ones")

    def call(self, states):
        """Mixes a list of tensors of the same shape into one tensor of that shape."""
        shares = ops.unstack(ops.cast(masked_softmax(self.weight) * self.gamma, states[0].dtype), len(states))
        return sum(share * state for share, state in zip(shares, states, strict=True))


@register_model("lstm_lm")
@keras.saving.register_keras_serializable("baselines")
class LSTMLanguageModel(SequenceModel):
    """A language model of a forward and a backward LSTM stack, which share an embedding and a softmax.

    With the head "lm", each stack predicts the next id of "targets" in its direction; the loss of the backward stack is
    a cost (see `named_outputs`). The other heads read a learned mix of all layers' states for "inputs", and need a
    `target_vocab_size` of 1 + the number of classes or tags. `hidden_size` is the size of embeddings and cells,
    `num_layers` the number of layers per direction, and `dropout` the dropout rate for the input of each layer and
    head.
    """

    HPARAMS: ClassVar = {
        "head": setting(
            "lm",
            choices=tuple(HEADS),
            argument="head",
            fixed=True,
            meaning="What the model predicts: lm (the next id), class, tag or real (a number).",
        )
    }

    def __init__(
        self, vocab_size, target_vocab_size=None, head="lm", num_layers=2, hidden_size=512, dropout=0.1,
        tie_embeddings=True, **kwargs
    ):  # fmt: skip
        super().__init__(**kwargs)
        self.config = {name: value for name, value in locals().items() if name not in ("self", "kwargs", "__class__")}
        check_sizes(vocab_size=vocab_size, target_vocab_size=target_vocab_size, num_layers=num_layers)
        if head == "lm" and target_vocab_size not in (None, vocab_size):
            raise ValueError(f"A language model has one vocabulary: received target_vocab_size={target_vocab_size}.")
        self.vocab_size, self.target_vocab_size = vocab_size, target_vocab_size or vocab_size
        common = {"dtype": self.dtype_policy}
        self.embedding = TokenEmbedding(vocab_size, hidden_size, name="embedding", **common)
        self.forward_stack = LSTMStack(num_layers, hidden_size, dropout, name="forward", **common)
        self.backward_stack = LSTMStack(num_layers, hidden_size, dropout, name="backward", **common)
        self.mix = self.class_head = None
        if head != "lm":
            self.mix = LayerMix(name="mix", **common)
            classes = 1 if head == "real" else (target_vocab_size or 1) - 1
            self.class_head = ClassHead(classes, False, dropout, name="class_head", **common)
        elif tie_embeddings:
            self.softmax = self.embedding
        else:
            self.softmax = TokenEmbedding(vocab_size, hidden_size, name="softmax_embedding", **common)

    @property
    def features(self):
        """{feature: rank} of the features in a batch: see `SequenceModel`."""
        return {**self.needed_features, "targets": HEADS[self.config["head"]]}

    @property
    def needed_features(self):
        """{feature: rank} of the features that a call reads, which do not include the labels."""
        return {"targets": 2} if self.config["head"] == "lm" else {"inputs": 2}

    def token_embeddings(self):
        """Returns the embedding of the texts."""
        return dict.fromkeys(self.needed_features, self.embedding)

    def head_weights(self):
        """Returns the weights of the mix, the head, and the softmax if it is not tied."""
        softmax = None if self.softmax is self.embedding else self.softmax
        return [w for layer in (self.mix, self.class_head, softmax) if layer is not None for w in layer.weights]

    def build(self, input_shape=None):
        """Creates all weights; `input_shape` is not used."""
        if self.built:
            return
        size, layers = self.config["hidden_size"], self.config["num_layers"]
        build_parts((None, None), self.embedding)
        build_parts((None, None, size), self.forward_stack, self.backward_stack)
        if self.mix is not None:
            self.mix.build([(None, None, 2 * size)] * (1 + layers))
            self.class_head.build((None, (4 if HEADS[self.config["head"]] == 1 else 2) * size))
        build_parts((None, None), self.softmax)
        number_seeds(self)
        self.built = True

    def call(self, inputs, training=None):
        """Maps {feature: ids, int, padded with 0} to float32 logits [B, (S,) target_vocab_size] or numbers [B, 1].

        With the head "lm", the optional "inputs" are prompts, and the result is {"targets": logits [B, T, V] of each id
        given the previous ids, "costs": {"targets": float32 [B, T], nats of each id given the following ids}}.
        """
        self.check_inputs(inputs)
        self.build_if_needed()
        head = self.config["head"]
        if head == "lm":
            return self._language_model(inputs, training)
        encoded = self.encode(inputs["inputs"], training, return_hidden_states=True)
        mixed = self.mix(encoded["states"])
        read = mixed[:, 1:] if head == "tag" else mean_and_maximum(mixed, encoded["mask"])
        logits = self.class_head(read, training=training)
        return logits[:, 1:] if head == "real" else logits

    def _language_model(self, features, training):
        targets = ops.convert_to_tensor(features["targets"])
        if features.get("inputs") is None:
            read = self._top(self.forward_stack, _after_end(targets), training)
        else:
            prompts = _after_end(ops.cast(features["inputs"], targets.dtype))
            lengths = ops.sum(ops.cast(prompts != 0, "int32"), axis=1, keepdims=True)
            read = self._top(self.forward_stack, join_prompts(prompts, lengths[:, 0], targets), training)
            read = take_positions(read, lengths - 1 + ops.arange(ops.shape(targets)[1], dtype="int32"))
        lengths = ops.sum(ops.cast(targets != 0, "int32"), axis=1)
        labels = _reversed(targets, lengths)
        logits = self.softmax(self._top(self.backward_stack, _after_end(labels), training), reverse=True)
        nats = ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        return {"targets": self.softmax(read, reverse=True), "costs": {"targets": _reversed(nats, lengths)}}

    def _top(self, stack, row, training):
        return stack(self.embedding(row[:, :-1]), training=training)[0][-1]

    def encode(self, inputs, training=None, return_hidden_states=False):
        """Encodes texts, ids int [B, S] padded with 0, and puts an id 1 before each text.

        The result is {"hidden": [B, 1 + S, 2 · hidden], "mask": bool [B, 1 + S]}; with `return_hidden_states` it also
        has "states", the list that `LayerMix` reads. With the head "lm", the result is the initial state for decoding.
        """
        self.build_if_needed()
        row = _after_end(ops.convert_to_tensor(inputs))
        mask, embedded = row != 0, self.embedding(row)
        if self.config["head"] == "lm":
            return self.forward_stack(embedded, mask=mask)[1]
        lengths = ops.sum(ops.cast(mask, "int32"), axis=1)
        forward, _ = self.forward_stack(embedded, training=training)
        backward, _ = self.backward_stack(self.embedding(_after_end(_reversed(row, lengths))), training=training)
        backward = [_reversed(right[:, 1:], lengths) for right in backward]
        both = zip([embedded, *forward], [embedded, *backward], strict=True)
        states = [ops.concatenate(pair, axis=-1) for pair in both]
        return {"hidden": states[-1], "mask": mask} | ({"states": states} if return_hidden_states else {})

    def init_cache(self, memory, max_length, beam_size=1):
        """Returns the cache for decoding: the state of each beam, [B, beam_size, hidden], for any `max_length`."""
        beams = keras.tree.map_structure(lambda x: ops.repeat(ops.expand_dims(x, 1), beam_size, axis=1), memory)
        return {"beams": beams, "shared": self.softmax.reverse_matrix()}

    def decode_step(self, ids, position, cache):
        """Reads ids, int32 [B * K], except at position 0; returns (float32 logits [B * K, vocab_size], new cache)."""
        before = keras.tree.map_structure(lambda x: ops.reshape(x, (-1, x.shape[-1])), cache["beams"])
        after = self.forward_stack.step(self.embedding(ids), before)
        state = keras.tree.map_structure(lambda old, new: ops.where(position > 0, new, old), before, after)
        beams = keras.tree.map_structure(lambda x, old: ops.reshape(x, ops.shape(old)), state, cache["beams"])
        logits = self.softmax(sum(h for h, _ in state), reverse=True, matrix=cache["shared"])
        return logits, {**cache, "beams": beams}

    def compute_mask(self, inputs, mask=None):
        """Returns None, because the losses already ignore id 0."""

    def compute_output_spec(self, inputs, training=None):
        """Returns symbolic logits, which are float32 with any dtype policy."""
        (rows, length), size = inputs[next(iter(self.needed_features))].shape, self.target_vocab_size
        shapes = {"lm": (rows, length, size), "tag": (rows, length, size), "class": (rows, size), "real": (rows, 1)}
        logits = keras.KerasTensor(shapes[self.config["head"]], dtype="float32")
        costs = {"targets": keras.KerasTensor((rows, length), dtype="float32")}
        return {"targets": logits, "costs": costs} if self.config["head"] == "lm" else logits


def _after_end(ids):
    """Maps ids [B, T] to [B, 1 + T], with id 1 before each row."""
    return ops.pad(ids, ((0, 0), (1, 0)), constant_values=EOS_ID)


def _reversed(x, lengths):
    """Reverses the first `lengths` [B] positions of each row of x [B, T, …]; other positions are unchanged."""
    at, lengths = ops.arange(ops.shape(x)[1], dtype="int32"), ops.expand_dims(lengths, 1)
    return take_positions(x, ops.where(at < lengths, lengths - 1 - at, at))

"""The base class for encoder models, which predict ids, classes, tags, numbers or spans from hidden states."""

import numbers
import types
from typing import ClassVar

import keras
from keras import ops

from t2t_lite.layers import ClassHead, Results, SpanHead, TokenEmbedding
from t2t_lite.layers.checks import shape_of
from t2t_lite.layers.encoder_heads import mean_and_maximum
from t2t_lite.layers.masks import with_mask
from t2t_lite.models.transformer_parts import TransformerModel, build_parts, is_token
from t2t_lite.settings.ranges import ALL_POSITIONS, POOLINGS, setting
from t2t_lite.text.vocabulary import EOS_ID

HEADS = {  # {head: rank of the targets}
    "masked_lm": 2,  # targets are the original ids at masked positions, and 0 elsewhere
    "class": 1,  # the target is the class of a text or of a pair of texts
    "tag": 2,  # targets are the classes of all positions; 0 means no class
    "real": 1,  # the target is a number: see `RealEncoder`
    "span": 2,  # targets [B, 2] are the first and last position of a span in the inputs, counted from 1
}


class EncoderModel(TransformerModel):
    """Base class for models that encode ids [B, S] bidirectionally and have one prediction head.

    Each row holds one or more texts, which all end in id 1. One additional position represents the row as a whole. A
    subclass defines `encode` (which returns the states of this position and of the ids as "hidden"), `of_row` and
    `of_ids` (which select from these states), and `ids_logits`. Its `HPARAMS` include all `HPARAMS` of this class that
    apply to it, and its constructor calls `make_heads`.
    """

    HPARAMS: ClassVar = {
        "head": setting(
            "masked_lm", choices=tuple(HEADS), argument="head", fixed=True,
            meaning="What is predicted: masked ids, a class, a tag for each position, a number or a span.",
        ),
        "features_pooling": setting(
            ALL_POSITIONS, choices=(ALL_POSITIONS, *POOLINGS), argument="features_pooling",
            meaning="How Predictor.features pools a text into one vector by default; none: one vector per position.",
        ),
        "features_normalized": setting(
            False, argument="features_normalized",
            meaning="Whether Predictor.features scales a text's vector to length 1 by default.",
        ),
        "features_length": setting(
            0, 0, 2**20, argument="features_length",
            meaning="Maximum number of ids that Predictor.features reads per row by default; 0: all that fit the "
            "model.",
        ),
    }  # fmt: skip

    needed_features = types.MappingProxyType({"inputs": 2})  # targets are read only to predict masked ids
    predicted_share = 0.15  # BERT's proportion of masked ids

    def check_id(self, argument):
        """Raises `ValueError` if the value of a constructor's argument is not an id of the inputs."""
        value, last = self.config[argument], self.vocab_size - 1
        if not isinstance(value, numbers.Integral) or not 0 <= value <= last:
            raise ValueError(f"`{argument}` must be an id from 0 to {last}: received {argument}={value!r}.")

    def make_input_embedding(self, width):
        """Creates the embedding of ids, of size `width`; with the head for masked ids, it also computes the logits."""
        is_softmax = self.config["head"] == "masked_lm"
        self.embedding = TokenEmbedding(
            self.vocab_size, width, use_bias=is_softmax and self.config["softmax_bias"], scale=False,
            embeddings_initializer=self.embeddings_initializer(), name="embedding", dtype=self.dtype_policy,
        )  # fmt: skip
        if is_softmax:
            self.supports_jit = False  # in `fit`, because XLA cannot compute logits whose number depends on the targets
            self.softmax = self.embedding

    def make_heads(self, matrices, tag_dropout):
        """Creates the head for spans, classes, tags or numbers. (The prediction of masked ids does not need this head.)

        Args:
            matrices: the initializer of the kernels.
            tag_dropout: float, the dropout rate of the states from which tags are predicted.

        Raises:
            ValueError: if a class or tag head does not have enough classes.
        """
        c, common = types.SimpleNamespace(**self.config), {"dtype": self.dtype_policy}
        if c.head in ("class", "tag") and (c.target_vocab_size or 0) < 2:
            raise ValueError(
                f"A {c.head} head needs a target_vocab_size of at least 2: received {c.target_vocab_size}."
            )
        # not attributes of the class, which would hide the heads from PyTorch, where a layer's parts are a dictionary
        self.span_head = self.class_head = self.sentence_head = None
        if c.head == "span":
            self.span_head = SpanHead(matrices, name="span_head", **common)
        elif c.head != "masked_lm":
            classes = 1 if c.head == "real" else c.target_vocab_size - 1
            is_tag = c.head == "tag"
            dropout = tag_dropout if is_tag else c.dropout
            activation = self.config.get("pooler_activation", "tanh")
            self.class_head = ClassHead(classes, not is_tag, dropout, matrices, activation, name="class_head", **common)

    def build_heads(self, hidden):
        """Builds the heads; `hidden` is the shape of the hidden states."""
        build_parts(hidden, self.span_head)
        build_parts((None, hidden[-1]), self.sentence_head)
        if self.class_head is not None:
            rank = HEADS[self.config["head"]]
            pooled = rank == 1 and self.config.get("pooling") == "mean_max"
            self.class_head.build((*[None] * rank, (2 if pooled else 1) * hidden[-1]))

    def stacks(self):
        """Returns the encoder as the only stack, under the feature "inputs"."""
        return {"inputs": self.encoder}

    def token_embeddings(self):
        """Returns the embedding layer of the inputs."""
        return {"inputs": self.embedding}

    @property
    def features(self):
        """The features of a batch, {feature: rank}: see `SequenceModel`."""
        features = {"inputs": 2, "targets": HEADS[self.config["head"]]}
        return features | ({"sentence": 1} if self.sentence_head else {})

    def check_inputs(self, inputs):
        """Raises `ValueError` as in `SequenceModel`, and if masked ids and inputs have different lengths."""
        super().check_inputs(inputs)
        if self.config["head"] == "masked_lm" and inputs.get("targets") is not None:
            sequences = [f for f, rank in self.features.items() if rank == 2 and inputs.get(f) is not None]
            lengths = {feature: inputs[feature].shape[1] for feature in sequences}
            if len({length for length in lengths.values() if isinstance(length, int)}) > 1:
                raise ValueError(
                    f"{type(self).__name__}: the features have the lengths {lengths}. Expected equal lengths."
                )

    def call(self, inputs, training=None):
        """Predicts the targets with the model's head.

        Args:
            inputs: dict of int ids by feature, padded with 0: "inputs" [B, S]. The dict may also have "targets" and,
                with `sentence_classes`, "sentence" [B]. Both features are ignored, with one exception: if the targets
                are masked ids, the head only computes logits at positions that have a target.
            training: bool.

        Returns:
            float32 logits of the targets. Their shape depends on the head: for masked ids [N, vocab_size], where N is
            the number of positions with a target, or [B, S, vocab_size] without targets; for a class [B,
            target_vocab_size]; for tags [B, S, target_vocab_size]; for a span [B, 2, 1 + S]; for a number [B, 1],
            scaled so that 0 is the lowest and 1 the highest value. With `sentence_classes`, the result is a dict,
            {"targets": logits, "sentence": [B, 1 + sentence_classes]}. A model with costs also returns a dict: see
            `TransformerModel.outputs`. Only the positions of ids have costs.
        """
        self.check_inputs(inputs)
        results = {feature: Results() for feature in self.cost_features}
        more = {"results": results["inputs"]} if results else {}
        hidden = self.encode(inputs["inputs"], training=training, **more)["hidden"]
        logits, others = self.head_logits(hidden, inputs, training=training), {}
        if self.sentence_head is not None:
            row_state = self.of_row(hidden, inputs["inputs"])
            others["sentence"] = self.sentence_head(row_state, training=training)
        return self.outputs(logits, self.costs_of_ids(results, inputs["inputs"]), results, **others)

    def costs_of_ids(self, results, ids):
        """Extracts the costs, {feature: float32 [B, S]} with 0 at padding, from the stack's {feature: Results}.

        `ids` are int [B, S]. The 1 + S positions of a row may be followed by other positions, such as a second stream.
        """
        ids = ops.convert_to_tensor(ids)
        row = 1 + shape_of(ids)[1]
        costs = {feature: self.of_ids(side_results.total("cost")[:, :row]) for feature, side_results in results.items()}
        return {feature: ops.where(ids != 0, cost, 0.0) for feature, cost in costs.items()}

    def head_logits(self, hidden, inputs, training=None):
        """Returns the logits of the head (see `call`) from the "hidden" states of `encode`."""
        id_states = self.of_ids(hidden)
        if self.config["head"] == "masked_lm":
            if inputs.get("targets") is None:
                return self.ids_logits(id_states)
            return self.ids_logits(self.chosen(id_states, inputs["targets"] != 0))
        if self.span_head is not None:
            return self.span_head(id_states, ops.convert_to_tensor(inputs["inputs"]) != 0)
        if self.config["head"] == "tag":
            return with_mask(self.class_head(id_states, training=training), _is_tagged(inputs))
        if self.config.get("pooling") == "mean_max":
            is_there = ops.convert_to_tensor(inputs["inputs"]) != 0
            logits = self.class_head(mean_and_maximum(id_states, is_there), training=training)
        else:
            logits = self.class_head(self.of_row(hidden, inputs["inputs"]), training=training)
        return logits[:, 1:] if self.config["head"] == "real" else logits

    def of_ids(self, states):
        """Selects the states of the ids, [B, S, …], from the states of all positions, [B, 1 + S, …]."""
        raise NotImplementedError(f"{type(self).__name__} must implement of_ids.")

    def of_row(self, states, inputs):
        """Selects the states [B, …] of the positions that represent whole rows.

        Args:
            states: [B, 1 + S, …], the states of all positions.
            inputs: int ids [B, S].
        """
        raise NotImplementedError(f"{type(self).__name__} must implement of_row.")

    @staticmethod
    def chosen(states, mask):
        """Selects the states [N, …] of the positions in a mask, bool [B, T], from states [B, T, …]."""
        # Every backend can index by a mask. `ops.where` would create unstacked indices, which LiteRT does not support.
        return ops.reshape(states, (-1, states.shape[-1]))[ops.reshape(mask, (-1,))]

    def guessing_states(self, inputs, mask):
        """Returns the states [N, hidden] from which `ids_logits` predicts the ids at masked positions.

        Args:
            inputs: int ids [B, S].
            mask: bool [B, S], True at the N masked positions.
        """
        return self.chosen(self.of_ids(self.encode(inputs)["hidden"]), mask)

    def attention_weights(self, inputs):
        """Returns {"encoder": [weights [B, heads, 1 + S, 1 + S] per layer]}: see `models.attention_weights`."""
        return {"encoder": self.encode(inputs["inputs"], return_attention_scores=True)["attention"]}

    def compute_mask(self, inputs, mask=None):
        """Returns the mask of tags, bool [B, S], True at the positions with a tag; None for outputs that are a dict.

        Other logits need no mask, because either all logits have a target or the loss ignores id 0.
        """
        is_dict = self.sentence_head is not None or self.has_costs
        return _is_tagged(inputs) if self.config["head"] == "tag" and not is_dict else None

    def compute_output_spec(self, inputs, training=None):
        """Returns symbolic logits, float32 whatever the dtype policy."""
        rows, length = inputs["inputs"].shape
        size = self.target_vocab_size
        masked_shape = (rows, length) if inputs.get("targets") is None else (None,)
        shape = {
            "masked_lm": (*masked_shape, size), "class": (rows, size), "real": (rows, 1), "tag": (rows, length, size),
            "span": (rows, 2, None if length is None else 1 + length),
        }[self.config["head"]]  # fmt: skip
        logits, others = keras.KerasTensor(shape, dtype="float32"), {}
        if self.sentence_head is not None:
            others["sentence"] = keras.KerasTensor((rows, 1 + self.config["sentence_classes"]), dtype="float32")
        return self.outputs(logits, self.cost_specs(inputs), **others)


def _is_tagged(inputs):
    """Returns a mask, bool [B, S], True at the positions whose tag is known or, without targets, is predicted."""
    return is_token(inputs["inputs"] if inputs.get("targets") is None else inputs["targets"])


def ends_before(row):
    """Returns the segment number of each position in ids [B, T]: the number of 1s before the position, int32."""
    ends = ops.cast(row == EOS_ID, "int32")
    return ops.cumsum(ends, axis=1) - ends

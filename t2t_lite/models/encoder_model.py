"""The base of encoders: heads over the hidden states of rows, the features of batches, and masks."""

import types
from typing import ClassVar

import keras
from keras import ops

from t2t_lite.layers import ClassHead, Results, SpanHead
from t2t_lite.layers.checks import shape_of
from t2t_lite.layers.encoder_heads import mean_and_maximum
from t2t_lite.models.transformer_parts import TransformerModel, normalized
from t2t_lite.settings.ranges import ALL_POSITIONS, POOLINGS, setting
from t2t_lite.text.vocabulary import EOS_ID

HEADS = {  # rank of the targets
    "masked_lm": 2,  # the ids at masked positions, 0 elsewhere
    "class": 1,  # a class of the text or pair
    "tag": 2,  # a class of each position, 0: no class
    "real": 1,  # a number, see `RealEncoder`
    "span": 2,  # [B, 2]: the first and the last position of a span of the inputs, from 1 on
}


class EncoderModel(TransformerModel):
    """Base of models that read rows, ids [B, S] of texts that each end in 1, in both directions, and have a head.

    One additional position stands for the row as a whole. A subclass writes `encode`, whose "hidden" has the states of
    this position and of the ids, `of_row` and `of_ids`, which select them, and `ids_logits`. Its `HPARAMS` include
    those of this class that it needs, and its constructor calls `make_heads`.
    """

    HPARAMS: ClassVar = {
        "head": setting(
            "masked_lm", choices=tuple(HEADS), argument="head", fixed=True,
            meaning="What is predicted: masked ids, a class, a tag of each position, a number or a span.",
        ),
        "features_pooling": setting(
            ALL_POSITIONS, choices=(ALL_POSITIONS, *POOLINGS), argument="features_pooling",
            meaning="How Predictor.features makes one vector of a text by default; none: it returns all positions.",
        ),
        "features_normalized": setting(
            False, argument="features_normalized", meaning="Whether that vector is divided by its length.",
        ),
        "features_length": setting(
            0, 0, 2**20, argument="features_length",
            meaning="Ids of a text that Predictor.features reads by default; 0: as many as the model can.",
        ),
    }  # fmt: skip

    predicted_share = 0.15  # BERT's share of masked ids
    span_head = class_head = sentence_head = None

    def check_classes(self):
        """Raises `ValueError` if a head of classes or tags has no classes."""
        head, size = self.config["head"], self.config["target_vocab_size"]
        if head in ("class", "tag") and (size is None or size < 2):
            raise ValueError(f"A {head} head needs target_vocab_size of at least 2: received {size}.")

    def make_heads(self, matrices, tag_dropout):
        """Makes the head for spans, classes, tags or numbers; none for masked ids.

        Args:
            matrices: initializer of the kernels.
            tag_dropout: float, dropout rate of the states from which tags are predicted.
        """
        c, own = types.SimpleNamespace(**self.config), {"dtype": self.dtype_policy}
        if c.head == "span":
            self.span_head = SpanHead(matrices, name="span_head", **own)
        elif c.head != "masked_lm":
            classes = 1 if c.head == "real" else c.target_vocab_size - 1
            is_tag = c.head == "tag"
            dropout = tag_dropout if is_tag else c.dropout
            activation = self.config.get("pooler_activation", "tanh")
            self.class_head = ClassHead(classes, not is_tag, dropout, matrices, activation, name="class_head", **own)

    def build_heads(self, hidden):
        """Builds the heads; `hidden`: the shape of hidden states."""
        if self.span_head is not None:
            self.span_head.build(hidden)
        if self.sentence_head is not None:
            self.sentence_head.build((None, hidden[-1]))
        if self.class_head is not None:
            rank = HEADS[self.config["head"]]
            pooled = rank == 1 and self.config.get("pooling") == "mean_max"
            self.class_head.build((*[None] * rank, (2 if pooled else 1) * hidden[-1]))

    def stacks(self):
        """Returns the encoder."""
        return {"inputs": self.encoder}

    def token_embeddings(self):
        """Returns the look-up of the inputs."""
        return {"inputs": self.embedding}

    @property
    def features(self):
        """{feature: rank} of a batch: see `SequenceModel`."""
        features = {"inputs": 2, "targets": HEADS[self.config["head"]]}
        return features | ({"sentence": 1} if self.sentence_head else {})

    @property
    def needed_features(self):
        """{"inputs": 2}: targets are not read, except those of masked ids if they are given."""
        return {"inputs": 2}

    def check_inputs(self, inputs):
        """Raises `ValueError` as `SequenceModel` does, and if masked ids are not at the positions of the inputs."""
        super().check_inputs(inputs)
        if self.config["head"] == "masked_lm" and inputs.get("targets") is not None:
            of_positions = [f for f, rank in self.features.items() if rank == 2 and inputs.get(f) is not None]
            lengths = {feature: inputs[feature].shape[1] for feature in of_positions}
            if len({length for length in lengths.values() if isinstance(length, int)}) > 1:
                raise ValueError(
                    f"{type(self).__name__}: the lengths are {lengths}. Expected a target for each position."
                )

    def call(self, inputs, training=None):
        """Predicts the targets.

        Args:
            inputs: dict of int ids by feature, padded with 0: "inputs" [B, S]. It may have "targets" and, with
                `sentence_classes`, "sentence" [B], which are not read. Only for masked ids are targets read: the head
                then only computes the positions with a target.
            training: bool.

        Returns:
            float32 logits of the targets: masked ids [N, vocab_size], the positions with a target in order, or without
            targets [B, S, vocab_size]; a class [B, target_vocab_size]; tags [B, S, target_vocab_size]; a span
            [B, 2, 1 + S]; a number [B, 1], between the lowest, 0, and the highest, 1. With `sentence_classes`
            {"targets": logits, "sentence": [B, 1 + sentence_classes]}. With costs also a dict: see
            `TransformerModel.outputs`; costs are only those of the ids' positions.
        """
        self.check_inputs(inputs)
        results = {feature: Results() for feature in self.cost_features}
        asked = {"results": results["inputs"]} if results else {}
        hidden = self.encode(inputs["inputs"], training=training, **asked)["hidden"]
        logits, others = self.head_logits(hidden, inputs, training=training), {}
        if self.sentence_head is not None:
            of_row = self.of_row(hidden, inputs["inputs"])
            others["sentence"] = self.sentence_head(of_row, training=training)
        return self.outputs(logits, self.costs_of_ids(results, inputs["inputs"]), results, **others)

    def costs_of_ids(self, results, ids):
        """Returns {feature: costs float32 [B, S]}, 0 at padding, from {feature: Results} of the stack and ids [B, S].

        The row's 1 + S positions may be followed by others, such as those of a second stream.
        """
        ids = ops.convert_to_tensor(ids)
        row = 1 + shape_of(ids)[1]
        costs = {feature: self.of_ids(of_layers.total("cost")[:, :row]) for feature, of_layers in results.items()}
        return {feature: ops.where(ids != 0, cost, 0.0) for feature, cost in costs.items()}

    def head_logits(self, hidden, inputs, training=None):
        """Returns the head's logits (see `call`) from the "hidden" of `encode`."""
        of_ids = self.of_ids(hidden)
        if self.config["head"] == "masked_lm":
            if inputs.get("targets") is None:
                return self.ids_logits(of_ids)
            return self.ids_logits(self.chosen(of_ids, inputs["targets"] != 0))
        if self.span_head is not None:
            return self.span_head(of_ids, ops.convert_to_tensor(inputs["inputs"]) != 0)
        if self.config["head"] == "tag":
            return self.class_head(of_ids, training=training)
        if self.config.get("pooling") == "mean_max":
            is_there = ops.convert_to_tensor(inputs["inputs"]) != 0
            logits = self.class_head(mean_and_maximum(of_ids, is_there), training=training)
        else:
            logits = self.class_head(self.of_row(hidden, inputs["inputs"]), training=training)
        return logits[:, 1:] if self.config["head"] == "real" else logits

    def of_ids(self, states):
        """Returns the states of the ids, [B, S, …], from those of all positions, [B, 1 + S, …]."""
        raise NotImplementedError(f"{type(self).__name__}: write of_ids.")

    def read(self, x, mask, training, states=False, scores=False, results=None, **context):
        """Runs the stack over embeddings.

        Args:
            x: [B, T, hidden].
            mask: bool [B, T], which positions exist.
            training: bool.
            states, scores: bool, whether to return hidden states and attention weights.
            results: `Results`, to which layers add; None: their results are dropped.
            **context: further attributes of the layers' `Context`.

        Returns:
            The same as `encode`.
        """
        output = self.encoder(
            x,
            attention_mask=ops.expand_dims(mask, 1),
            context=self.context_class(nonpadding=mask, results=Results() if results is None else results, **context),
            return_attention_scores=scores,
            return_hidden_states=states,
            training=training,
        )
        hidden, *rest = output if isinstance(output, tuple) else (output,)
        result = {"hidden": normalized(hidden, self.encoder_norm), "mask": mask}
        if scores:
            result["attention"] = rest.pop(0)
        if states:
            result["states"] = rest.pop()
        return result

    def of_row(self, states, inputs):
        """Returns the states [B, …] of the positions that stand for whole rows.

        Args:
            states: [B, 1 + S, …], states of all positions.
            inputs: int ids [B, S].
        """
        raise NotImplementedError(f"{type(self).__name__}: write of_row.")

    @staticmethod
    def chosen(states, mask):
        """Returns the states [N, …] of the positions in a mask, bool [B, T], in order, from states [B, T, …]."""
        # Not by `ops.where`, whose unstacked indices LiteRT cannot hold; every backend can index by a mask.
        return ops.reshape(states, (-1, states.shape[-1]))[ops.reshape(mask, (-1,))]

    def guessing_states(self, inputs, mask):
        """Returns the states [N, hidden] from which `ids_logits` predicts the ids at some positions.

        Args:
            inputs: int ids [B, S].
            mask: bool [B, S], the N positions.
        """
        return self.chosen(self.of_ids(self.encode(inputs)["hidden"]), mask)

    def attention_weights(self, inputs):
        """Returns {"encoder": a list, one [B, heads, 1 + S, 1 + S] per layer}: see `models.attention_weights`."""
        return {"encoder": self.encode(inputs["inputs"], return_attention_scores=True)["attention"]}

    def compute_mask(self, inputs, mask=None):
        """Returns None: the head only has rows with a target, or the loss ignores id 0."""
        return None

    def compute_output_spec(self, inputs, training=None):
        """Returns symbolic logits, float32 whatever the dtype policy."""
        rows, length = inputs["inputs"].shape
        size = self.target_vocab_size
        of_masked_ids = (rows, length) if inputs.get("targets") is None else (None,)
        shape = {
            "masked_lm": (*of_masked_ids, size), "class": (rows, size), "real": (rows, 1), "tag": (rows, length, size),
            "span": (rows, 2, None if length is None else 1 + length),
        }[self.config["head"]]  # fmt: skip
        logits, others = keras.KerasTensor(shape, dtype="float32"), {}
        if self.sentence_head is not None:
            others["sentence"] = keras.KerasTensor((rows, 1 + self.config["sentence_classes"]), dtype="float32")
        return self.outputs(logits, self.cost_specs(inputs), **others)


def ends_before(row):
    """int ids [B, T] -> int32 [B, T], the number of 1s before each position, which is the number of its segment."""
    ends = ops.cast(row == EOS_ID, "int32")
    return ops.cumsum(ends, axis=1) - ends

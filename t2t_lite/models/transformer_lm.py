"""The decoder-only language model (Liu et al. 2018, "Generating Wikipedia"; Radford et al. 2019, "GPT-2")."""

import types
from typing import ClassVar

import keras
import numpy as np
from keras import ops

from t2t_lite.layers import Context, Dropout, Results, TransformerDecoderLayer
from t2t_lite.layers.cache import new_ancestry, see_ancestors, see_prompt
from t2t_lite.layers.checks import shape_of
from t2t_lite.layers.masks import with_mask
from t2t_lite.layers.positions import POSITIONS
from t2t_lite.layers.quantization import is_quantized
from t2t_lite.models.arguments import shared_options
from t2t_lite.models.transformer_parts import TransformerModel, build_parts, is_token, normalized, positioned
from t2t_lite.registry import register_model
from t2t_lite.settings.ranges import setting
from t2t_lite.settings.reserved_names import BEFORE
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID

# Added to the logits of unused ids. Their probability becomes 0 in float32, but label smoothing over all ids stays
# finite.
_NEVER = -1e4


@register_model("transformer_lm")
@keras.saving.register_keras_serializable("t2t_lite")
class TransformerLM(TransformerModel):
    """A decoder-only language model, which maps ids of "targets", or of "inputs" and "targets", to next-token logits.

    One stack reads the inputs followed by the targets, without a gap (tensor2tensor's `prepend_mode`
    "prepend_inputs_masked_attention"). Only targets are predicted. Id 0 is padding on the right of inputs and targets,
    and id 1 ends a text.

    Args:
        vocab_size: int, the vocabulary size.
        target_vocab_size: None or vocab_size, because inputs and targets share one vocabulary.
        {options}

    If `begin` is "zero", each row, including its inputs, begins with the zero vector, as in tensor2tensor. If `begin`
    is "end", a row without inputs begins with the embedding of id 1, and a row with inputs begins with the inputs, as
    in GPT-2. If `unconditional` is False, the embedding of a prompt's first id is added at all positions.
    tensor2tensor's Image Transformer adds the class of an image in this way, because local attention would not see it.

    Raises:
        ValueError: if an argument is out of range. The error message has the argument's name and value.

    Example:
        >>> model = TransformerLM(vocab_size=20, hidden_size=8, filter_size=16, num_heads=2, num_layers=1)
        >>> model({"targets": keras.ops.ones((1, 4), "int32")}).shape
        (1, 4, 20)
    """

    features = types.MappingProxyType({"targets": 2})
    joins_inputs = True  # whether inputs and targets form one sequence
    HPARAMS: ClassVar = {
        "begin": setting(
            "zero", choices=("zero", "end"), argument="begin", fixed=True,
            meaning="The first input of a row: zero (the zero vector) or end (id 1, for rows without a prompt, as in "
            "GPT-2).",
        ),
        "unused_ids": setting(
            [], argument="unused_ids", fixed=True, meaning="Ids that are never predicted, for imported models."
        ),
        "scale_residuals": setting(
            False, argument="scale_residuals",
            meaning="Whether the initial output matrices of sub-layers are divided by the square root of 2 N (GPT-2).",
        ),
        "unconditional": setting(
            True, argument="unconditional", fixed=True,
            meaning="If False, the embedding of a prompt's first id, such as an image's class, is added at all "
            "positions.",
        ),
    }  # fmt: skip

    OPTIONS: ClassVar = shared_options(without=["num_encoder_layers", "num_decoder_layers", "target_space_embedding"])

    def __init__(self, vocab_size: int, target_vocab_size: int | None = None, **options):
        super().__init__(vocab_size, target_vocab_size, **options)
        c = self.config
        c["unused_ids"] = _ids(c["unused_ids"], vocab_size)
        if target_vocab_size not in (None, vocab_size):
            raise ValueError(
                "`target_vocab_size` must be None or `vocab_size`, since a language model has one vocabulary: received "
                f"target_vocab_size={target_vocab_size}, vocab_size={vocab_size}."
            )
        if c["begin"] == "zero" and POSITIONS[c["position"]].embedding is None:
            # The variance of the zero vector is 0, so each of the 2 N + 1 normalizations (2 N with post-norm)
            # multiplies the gradient by norm_epsilon^-0.5, which is 1000 for 1e-6, until float32 overflows.
            raise ValueError(
                f"`begin` must be end if position={c['position']}, which leaves the zero vector unchanged: "
                "received begin=zero."
            )
        is_tied, bias = c["tie_embeddings"], c["softmax_bias"]
        self.target_embedding = self.make_embedding(vocab_size, "target_embedding", is_tied and bias)
        self.softmax = self.target_embedding if is_tied else self.make_embedding(vocab_size, "softmax_embedding", bias)
        self.decoder_position = self.make_position("decoder_position")
        self.decoder_dropout = Dropout(c["dropout"], dtype=self.dtype_policy, name="decoder_dropout")
        self.decoder = self.make_stack("decoder", TransformerDecoderLayer, c["num_layers"])
        self.decoder_norm = self.make_final_norm("decoder_norm")

    def stacks(self):
        """Returns the decoder as the stack for "targets"."""
        return {"targets": self.decoder}

    def token_embeddings(self):
        """Returns the embedding of the targets, which is also used for inputs."""
        return {"targets": self.target_embedding}

    def build_layers(self, shape):
        """Creates the weights of the layers; `shape` is the shape of hidden states."""
        build_parts((None, None), self.target_embedding, self.softmax)
        build_parts(shape, self.decoder_position, self.decoder, self.decoder_norm)

    def call(self, inputs, training=None):
        """Runs a teacher-forced pass and returns the logits.

        Args:
            inputs: dict of int ids, padded with 0: "targets" [B, T] and optionally "inputs" [B, S]. Without "inputs",
                the dict may have "before" [B], the ids before the targets, with 0 for the beginning of a text.
            training: bool.

        Returns:
            float32 logits [B, T, vocab_size]. The logits at position t depend on the inputs and on the targets before
            t. A model with costs returns a dict, with costs for the targets' positions: see `TransformerModel.outputs`.
        """
        self.check_inputs(inputs)  # checked here as well, because `fit` on JAX bypasses `__call__`
        hidden, _, *beside = self._read(inputs, training)
        return self.outputs(with_mask(self.logits(hidden), is_token(inputs["targets"])), *beside)

    def _read(self, features, training=None, states=None, **options):
        """Runs the stack; returns (states of the targets [B, T, hidden], the stack's other outputs, costs, `Results`).

        Costs and `Results` are dicts by feature. `states` is None, or a list with the earlier states of each layer, as
        arguments for its `Context`.
        """
        self.build_if_needed()
        targets, condition = ops.convert_to_tensor(features["targets"]), None
        targets = ops.cast(targets, keras.backend.result_type(targets.dtype, "int32"))  # fits the ids of other features
        batch, length = shape_of(targets)
        if features.get("inputs") is None:
            begin = ops.full((batch, 1), EOS_ID if self.config["begin"] == "end" else PAD_ID, targets.dtype)
            before = features.get(BEFORE)
            if before is not None:
                before = ops.expand_dims(ops.cast(before, targets.dtype), 1)
                begin = ops.where(before == PAD_ID, begin, before)
            row, lengths = ops.concatenate([begin, targets], axis=1), None
        else:
            inputs = ops.cast(features["inputs"], targets.dtype)
            prompts, lengths = self._prompts(inputs)
            row, condition = join_prompts(prompts, lengths, targets), self._condition(inputs)
        x = self.decoder_dropout(self._embedded(row[:, :-1], condition=condition), training=training)
        results = Results()
        context = Context(nonpadding=is_token(row[:, 1:]), results=results)  # positions at which an id is predicted
        if states is not None:
            context = [context.replace(**state) for state in states]
        output = self.decoder(x, training=training, context=context, **options)
        x, *rest = output if isinstance(output, tuple) else (output,)
        costs = {feature: results.total("cost") for feature in self.cost_features}
        if lengths is not None:
            # Target t is predicted at the position of target t - 1, or of the prompt's last id if t is 0.
            at = ops.expand_dims(lengths - 1, 1) + ops.arange(length, dtype="int32")
            x, costs = take_positions(x, at), {feature: take_positions(cost, at) for feature, cost in costs.items()}
        return normalized(x, self.decoder_norm), rest, costs, dict.fromkeys(costs, results)

    def _prompts(self, inputs):
        """Prepends the first input of a text to the inputs [B, P].

        Returns:
            (ids, lengths). The ids are [B, P + 1], or [B, P] if nothing is prepended to prompts. The lengths are int32
            [B], at least 1.
        """
        lengths = ops.sum(ops.cast(inputs != PAD_ID, "int32"), axis=1)
        if self.config["begin"] == "zero":
            return ops.pad(inputs, ((0, 0), (1, 0))), lengths + 1  # id 0 has the zero vector as its embedding
        first = ops.where(ops.expand_dims(lengths, 1) == 0, EOS_ID, ops.pad(inputs, ((0, 0), (0, 1)))[:, :1])
        prompts = ops.concatenate([ops.cast(first, inputs.dtype), inputs[:, 1:]], axis=1)
        return prompts, ops.maximum(lengths, 1)

    def _condition(self, inputs):
        """Returns the ids [B, 1] whose embeddings are added at all positions, or None; `inputs` are prompts [B, P]."""
        # an empty prompt gives id 0
        return None if self.config["unconditional"] else ops.pad(inputs, ((0, 0), (0, 1)))[:, :1]

    def _embedded(self, ids, position=None, condition=None):
        x = self.target_embedding(ids)
        if condition is not None:
            x = x + self.target_embedding(condition)
        return positioned(self.decoder_position, x, position)

    def logits(self, hidden, matrix=None):
        """Maps hidden states [..., hidden] to float32 logits; for `matrix` see `TokenEmbedding.reverse_matrix`."""
        logits = super().logits(hidden, matrix)
        if not self.config["unused_ids"]:
            return logits
        unused = np.zeros(self.vocab_size, "float32")
        unused[list(self.config["unused_ids"])] = _NEVER
        return ops.add(logits, unused)

    def attention_weights(self, inputs):
        """Returns the attention weights of every layer and head: see `t2t_lite.models.outputs`.

        Args:
            inputs: as in `call`.

        Returns:
            {"decoder": a list with the weights [B, heads, T, T] of each layer}. With "inputs", T is the number of
            inputs and targets, which form one sequence without a gap; one less if `begin` is "end".
        """
        return {"decoder": [scores["self"] for scores in self._read(inputs, return_attention_scores=True)[1][0]]}

    # Step-by-step decoding: see `t2t_lite.layers.cache`.

    def encode(self, inputs):
        """Processes prompts, except for the last id of each prompt.

        Args:
            inputs: int ids [B, P], padded with 0 on the right; a prompt may be empty.

        Returns:
            memory, a dict with "prompts" (keys and values from `TransformerStack.prefill`), "length" int32 [B] (the
            number of positions processed) and "last" [B, 1] (the input id of the first step). If `unconditional` is
            False, the dict also has "condition" [B, 1], the first id of each prompt.
        """
        self.build_if_needed()
        inputs = ops.convert_to_tensor(inputs)
        (prompts, lengths), condition = self._prompts(inputs), self._condition(inputs)
        read = prompts[:, :-1]
        if is_quantized(self):
            read = ops.pad(read, ((0, 0), (0, 1)))  # Keras cannot quantize the activations of empty prompts
        _, memories = self.decoder.prefill(self._embedded(read, condition=condition))
        last = ops.take_along_axis(prompts, ops.expand_dims(lengths, 1) - 1, axis=1)
        memory = {"prompts": memories, "length": lengths - 1, "last": last}
        return memory if condition is None else {**memory, "condition": condition}

    def init_cache(self, memory, max_length, beam_size=1):
        """Returns the cache for the start of decoding; all beams share the slots of their prompt.

        Args:
            memory: the result of `encode` for a batch of size B.
            max_length: int, T, the number of positions to allocate. To decode more positions, pad the cache with zeros.
            beam_size: int, K.

        Returns:
            {"beams": {"ancestry" int [B, K, T]}, "shared": the matrix for the logits, "fixed": everything else}.
        """
        batch = shape_of(memory["length"])[0]
        layers = self.decoder.init_cache(None, batch, max_length * beam_size, memory["prompts"], memory["length"])
        fixed = {"layers": layers, **{name: memory[name] for name in memory if name != "prompts"}}
        return self.new_cache(new_ancestry(batch, beam_size, max_length), fixed)

    def decode_step(self, ids, position, cache):
        """Decodes one position of every beam.

        Args:
            ids: int32 [B * K], the tokens before this position. At position 0 the ids are ignored, and the input is the
                prompt's last id.
            position: int32 scalar, counted from the first output token.
            cache: from `init_cache` or the previous step, with "beams" reordered by parent.

        Returns:
            (float32 logits [B * K, vocab_size], the updated cache).
        """
        fixed = cache["fixed"]
        ancestry, mask = see_ancestors(cache["beams"]["ancestry"], position)
        ids, last = (ops.cast(tensor, ancestry.dtype) for tensor in (ids, fixed["last"]))
        ids = ops.where(position > 0, ops.reshape(ids, shape_of(ancestry)[:2]), last)
        slots = shape_of(fixed["layers"][0]["self"].prompt.key)[2] if fixed["layers"] else 0
        mask = see_prompt(mask, fixed["length"], slots)
        x = self._embedded(ids, fixed["length"] + position, fixed.get("condition"))
        return self.next_logits(x, position, cache, ancestry, mask)


def join_prompts(prompts, lengths, targets):
    """Joins the first `lengths` [B] ids of prompts [B, P] with targets [B, T], without a gap: [B, P + T]."""
    row = ops.concatenate([prompts, targets], axis=1)
    width, lengths = shape_of(row)[1], ops.expand_dims(lengths, 1)
    at = ops.arange(width, dtype="int32")
    at = ops.where(at < lengths, at, at + shape_of(prompts)[1] - lengths)
    return ops.where(at < width, ops.take_along_axis(row, ops.minimum(at, width - 1), axis=1), PAD_ID)


def take_positions(x, at):
    """Selects the positions `at`, int32 [B, n], from the rows of x [B, T, …] with a single gather: [B, n, …]."""
    batch, length = shape_of(x)[:2]
    first = ops.expand_dims(ops.arange(batch, dtype="int32"), 1) * length
    return ops.take(ops.reshape(x, (-1, *x.shape[2:])), first + at, axis=0)


def _ids(values, vocab_size):
    """Parses the option `unused_ids` into a list of int. Raises `ValueError` if an id is outside the vocabulary."""
    try:
        ids = [int(i) for i in values]
    except (TypeError, ValueError):
        ids = [-1]
    if not all(0 <= i < vocab_size for i in ids):
        raise ValueError(f"`unused_ids` must be ids from 0 to {vocab_size - 1}: received unused_ids={[*values]}.")
    return ids

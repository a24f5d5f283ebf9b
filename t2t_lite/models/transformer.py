"""The encoder-decoder Transformer (Vaswani et al. 2017; mirrors tensor2tensor's models/transformer.py)."""

from typing import ClassVar

import keras
from keras import ops

from t2t_lite.layers import Context, Dropout, Results, TransformerDecoderLayer, TransformerEncoderLayer
from t2t_lite.layers.cache import new_ancestry, see_ancestors
from t2t_lite.layers.checks import shape_of
from t2t_lite.layers.context import results_or_loss
from t2t_lite.layers.masks import with_mask
from t2t_lite.models.arguments import shared_options
from t2t_lite.models.encoder_decoder import shifted_right, tied_embeddings
from t2t_lite.models.transformer_parts import TransformerModel, build_parts, is_token, normalized, positioned
from t2t_lite.registry import register_model


@register_model("transformer")
@keras.saving.register_keras_serializable("t2t_lite")
class Transformer(TransformerModel):
    """The encoder-decoder Transformer, which maps ids of "inputs" and "targets" to logits of the next target token.

    The defaults are the paper's base model. Id 0 is padding, and id 1 ends a sentence. The targets are shifted right,
    so the decoder's first input is the zero vector, as in tensor2tensor.

    Args:
        vocab_size: int, the vocabulary size of the inputs (and of the targets, if shared).
        target_vocab_size: int, the vocabulary size of the targets. Defaults to one vocabulary for both.
        {options}

    To use your own kind of self-attention, add it to `layers.SELF_ATTENTION`. For other changes, override `attention`.

    Raises:
        ValueError: if an argument is out of range. The error message has the argument's name and value.

    Example:
        >>> model = Transformer(vocab_size=20, hidden_size=8, filter_size=16, num_heads=2,
        ...                     num_encoder_layers=1, num_decoder_layers=1)
        >>> model({"inputs": keras.ops.ones((1, 3), "int32"), "targets": keras.ops.ones((1, 4), "int32")}).shape
        (1, 4, 20)
    """

    OPTIONS: ClassVar = shared_options(without=["num_layers"])

    def __init__(self, vocab_size: int, target_vocab_size: int | None = None, **options):
        super().__init__(vocab_size, target_vocab_size, **options)
        self.make_parts()

    def make_parts(self):
        """Creates embeddings, positions and stacks from `config`; a constructor must call this method last."""
        c = self.config
        vocab_sizes, dropout = (c["vocab_size"], c["target_vocab_size"]), c["dropout"]
        self.input_embedding, self.target_embedding, self.softmax = tied_embeddings(
            self.make_embedding, *vocab_sizes, c["tie_embeddings"], use_bias=c["softmax_bias"]
        )
        self.encoder_position = self.make_position("encoder_position")
        self.decoder_position = self.make_position("decoder_position")
        self.encoder_dropout = Dropout(dropout, dtype=self.dtype_policy, name="encoder_dropout")
        self.decoder_dropout = Dropout(dropout, dtype=self.dtype_policy, name="decoder_dropout")
        encoder_layers, decoder_layers = self.depths()
        self.encoder = self.make_stack("encoder", TransformerEncoderLayer, encoder_layers)
        self.decoder = self.make_stack("decoder", TransformerDecoderLayer, decoder_layers, True)
        # Created after both stacks, because checkpoints identify the optimizer's variables by their order.
        self.encoder_norm = self.make_final_norm("encoder_norm")
        self.decoder_norm = self.make_final_norm("decoder_norm")

    def depths(self):
        """Returns the numbers of layers in the encoder and the decoder."""
        return self.config["num_encoder_layers"], self.config["num_decoder_layers"]

    def stacks(self):
        """Returns the encoder and the decoder, as {feature: stack}."""
        return {"inputs": self.encoder, "targets": self.decoder}

    def token_embeddings(self):
        """Returns the embedding layers of inputs and targets, which may be the same layer."""
        return {"inputs": self.input_embedding, "targets": self.target_embedding}

    def build_layers(self, shape):
        """Creates the weights of the layers; `shape` is the shape of hidden states."""
        build_parts((None, None), self.input_embedding, self.target_embedding, self.softmax)
        if self.config["target_space_embedding"]:
            self.target_space = self.add_weight(name="target_space", shape=shape[-1:], initializer="zeros")
        positions, norms = (self.encoder_position, self.decoder_position), (self.encoder_norm, self.decoder_norm)
        build_parts(shape, *positions, *norms, self.encoder)
        self.decoder.build(shape, shape)

    def call(self, inputs, training=None):
        """Runs a teacher-forced pass and returns the logits.

        Args:
            inputs: dict of int ids "inputs" [B, S] and "targets" [B, T], padded with 0.
            training: bool.

        Returns:
            float32 logits [B, T, target_vocab_size]. The logits at position t depend on the targets before t. A model
            with costs returns a dict: see `TransformerModel.outputs`.
        """
        self.check_inputs(inputs)  # checked here as well, because `fit` on JAX bypasses `__call__`
        results = {feature: Results() for feature in self.cost_features}
        more = {feature: {"results": side_results} for feature, side_results in results.items()}
        memory = self.encode(inputs["inputs"], training=training, **more.get("inputs", {}))
        hidden, _ = self.decode(inputs["targets"], memory, training=training, **more.get("targets", {}))
        logits = with_mask(self.logits(hidden), is_token(inputs["targets"]))
        costs = {feature: side_results.total("cost") for feature, side_results in results.items()}
        return self.outputs(logits, costs, results)

    def encode(self, inputs, training=None, return_attention_scores=False, results=None):
        """Encodes the inputs.

        Args:
            inputs: int ids [B, S].
            training: bool.
            return_attention_scores: bool.
            results: `Results`, to which the layers add their results. If None, their costs are a loss in training
                (`add_loss`).

        Returns:
            memory: {"hidden" [B, S, hidden], "mask" bool [B, S], True where not padding}. With
            `return_attention_scores`, the dict also has "attention", a list with the weights [B, heads, S, S] of each
            layer.
        """
        self.build_if_needed()
        inputs = ops.convert_to_tensor(inputs)
        mask = inputs != 0
        x = self.input_embedding(inputs)
        if self.config["target_space_embedding"]:
            x = x + ops.cast(self.target_space, x.dtype)  # also added to padding positions, which are masked
        x = positioned(self.encoder_position, x)
        x = self.encoder_dropout(x, training=training)
        return self.run_encoder(x, mask, training, scores=return_attention_scores, results=results)

    def decode(self, targets, memory, training=None, return_attention_scores=False, results=None):
        """Runs the decoder on `targets`, which are shifted right.

        Args:
            targets: int ids [B, T].
            memory: from `encode`.
            training: bool.
            return_attention_scores: bool.
            results: as in `encode`.

        Returns:
            (hidden [B, T, hidden], scores), where scores is a list with {"self", "memory"} for each layer. The list is
            empty unless scores are requested.
        """
        x = shifted_right(self.target_embedding(targets))
        x = positioned(self.decoder_position, x)
        x = self.decoder_dropout(x, training=training)
        options = {"memory_mask": ops.expand_dims(memory["mask"], 1), "training": training}
        options["context"] = Context(nonpadding=is_token(targets), results=results_or_loss(results))
        output = self.decoder(x, memory["hidden"], return_attention_scores=return_attention_scores, **options)
        x, scores = output if return_attention_scores else (output, [])
        return normalized(x, self.decoder_norm), scores

    def attention_weights(self, inputs):
        """Returns the attention weights of every layer and head: see `t2t_lite.models.outputs`.

        Args:
            inputs: as in `call`.

        Returns:
            A dict with "encoder" and "decoder" (self-attention) and "memory". Each value is a list with the weights [B,
            heads, query, key] of each layer.
        """
        memory = self.encode(inputs["inputs"], return_attention_scores=True)
        _, scores = self.decode(inputs["targets"], memory, return_attention_scores=True)
        return {
            "encoder": memory["attention"],
            "decoder": [s["self"] for s in scores],
            "memory": [s["memory"] for s in scores],
        }

    # Step-by-step decoding: see `t2t_lite.layers.cache`.

    def init_cache(self, memory, max_length, beam_size=1):
        """Returns the cache for the start of decoding.

        Args:
            memory: the result of `encode` for a batch of size B.
            max_length: int, T, the number of positions to allocate. To decode more positions, pad the cache with zeros.
            beam_size: int, K.

        Returns:
            {"beams": {"ancestry" int [B, K, T]}, "shared": the matrix for the logits, "fixed": everything else}.
        """
        batch = shape_of(memory["hidden"])[0]
        layers = self.decoder.init_cache(memory["hidden"], batch, max_length * beam_size)
        fixed = {"layers": layers, "memory_mask": memory["mask"]}
        return self.new_cache(new_ancestry(batch, beam_size, max_length), fixed)

    def decode_step(self, ids, position, cache):
        """Decodes one position of every beam.

        Args:
            ids: int32 [B * K], the tokens before this position. At position 0 the ids are ignored, and the decoder's
                input is the zero vector.
            position: int32 scalar.
            cache: from `init_cache` or the previous step, with "beams" reordered by parent.

        Returns:
            (float32 logits [B * K, target_vocab_size], the updated cache).
        """
        ancestry, mask = see_ancestors(cache["beams"]["ancestry"], position)
        x = self.target_embedding(ops.reshape(ops.cast(ids, ancestry.dtype), shape_of(ancestry)[:2]))
        x = ops.where(position > 0, x, ops.zeros_like(x))
        x = positioned(self.decoder_position, x, position)
        memory_mask = ops.expand_dims(cache["fixed"]["memory_mask"], 1)
        return self.next_logits(x, position, cache, ancestry, mask, memory_mask)

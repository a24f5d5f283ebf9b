"""The base class of Transformer models, which creates embeddings, positions and stacks from constructor arguments."""

import inspect
from typing import ClassVar

import keras
from keras import ops

from t2t_lite.errors import UserError
from t2t_lite.layers import (
    Context,
    FeedForward,
    LayerNormalization,
    MultiHeadAttention,
    TokenEmbedding,
    TransformerStack,
    number_seeds,
)
from t2t_lite.layers import attention_kinds as attentions
from t2t_lite.layers import feed_forward as networks
from t2t_lite.layers.base import matrix_initializer
from t2t_lite.layers.checks import check_sizes
from t2t_lite.layers.context import results_or_loss
from t2t_lite.layers.layer_kinds import kinds_config, words_of
from t2t_lite.layers.positions import POSITIONS
from t2t_lite.models.arguments import check_option, described, in_hparams_words, own_options, with_options
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.settings.ranges import own_settings
from t2t_lite.settings.reserved_names import COSTS, SHARES
from t2t_lite.text.vocabulary import PAD_ID


class TransformerModel(SequenceModel):
    """Base class of `Transformer`, `TransformerLM` and `TransformerEncoder`, with methods for creating their parts.

    A subclass declares `OPTIONS` (see `shared_options`), to which the options from `HPARAMS` are added. Its constructor
    receives all options by name, and passes them to the base constructor before it creates parts from `config`.
    """

    OPTIONS: ClassVar = {}
    context_class = Context  # the class of the context that the stacks receive
    max_length = None  # the length of the longest row that fits the position table; None: there is no limit

    def __init_subclass__(cls, **kwargs):
        if {"OPTIONS", "__init__"} <= vars(cls).keys():
            cls.OPTIONS = cls.OPTIONS | own_options(own_settings(cls))
            cls.__init__, cls.__doc__ = with_options(cls.__init__, cls.OPTIONS), described(cls.__doc__, cls.OPTIONS)
        super().__init_subclass__(**kwargs)

    def __init__(self, vocab_size, target_vocab_size, **options):
        """Stores the arguments in `config`. Raises `ValueError` if an argument is out of range."""
        chosen = {name: options.pop(name) for name in self.OPTIONS}
        super().__init__(**options)
        check_sizes(vocab_size=vocab_size, target_vocab_size=target_vocab_size)
        for name, option in self.OPTIONS.items():
            check_option(option, chosen[name])
        chosen["self_attention"] = kinds_config(attentions.kinds_of(chosen["self_attention"]))
        chosen["feed_forward"] = kinds_config(networks.kinds_of(chosen["feed_forward"]))
        self.config = {"vocab_size": vocab_size, "target_vocab_size": target_vocab_size, **chosen}
        self.vocab_size, self.target_vocab_size = vocab_size, target_vocab_size or vocab_size

    @classmethod
    def kind_hparams(cls, self_attention_type, ffn_layer):
        """Returns {name: setting} for the settings declared by kinds of layers.

        Raises:
            UserError: if a kind is unknown or cannot be parsed.
        """
        settings = {}
        for kinds, text in ((attentions, self_attention_type), (networks, ffn_layer)):
            try:
                words = words_of(kinds.spelled_kinds(text))
            except ValueError as error:
                raise UserError(in_hparams_words(error, cls)) from error
            for made_by in (made_by for name, _ in words for made_by in kinds.classes_of(name)):
                settings |= getattr(made_by, "HPARAMS", {})
        return settings

    def build(self, input_shape=None):
        """Creates all weights, unless they exist; `input_shape` is unused."""
        if not self.built:
            self.build_layers((None, None, self.config["hidden_size"]))
            number_seeds(self)

    def build_layers(self, shape):
        """Creates the weights of the layers; `shape` is the shape of hidden states."""
        raise NotImplementedError(f"{type(self).__name__} must implement build_layers.")

    def make_embedding(self, size, name, use_bias=False):
        """Creates a `TokenEmbedding` for a vocabulary."""
        c = self.config
        options = {"scale": c["scale_embeddings"], "embedding_size": c["embedding_size"], "use_bias": use_bias}
        options["embeddings_initializer"] = self.embeddings_initializer()
        return TokenEmbedding(size, c["hidden_size"], **options, dtype=self.dtype_policy, name=name)

    def embeddings_initializer(self):
        """Returns the initializer of embedding tables, or None for the layers' default initializer.

        The initializer "normal" applies to all weights, as in GPT-2 and BERT. Other initializers only apply to the
        layers' weight matrices.
        """
        c = self.config
        return matrix_initializer("normal", c["initializer_gain"]) if c["initializer"] == "normal" else None

    def make_position(self, name):
        """Creates the layer that adds positions to embeddings, or returns None; sets `max_length` to its limit."""
        make = POSITIONS[self.config["position"]].embedding
        layer = make and make(self.config, self.embeddings_initializer(), dtype=self.dtype_policy, name=name)
        self.max_length = getattr(layer, "max_length", None)
        return layer

    def make_stack(self, name, layer_class, num_layers, attends_to_memory=False, num_groups=None):
        """Creates a `TransformerStack` and its layers.

        Args:
            name: "encoder" or "decoder".
            layer_class: `TransformerEncoderLayer` or `TransformerDecoderLayer`.
            num_layers: int.
            attends_to_memory: bool, whether the decoder's layers have cross-attention.
            num_groups: int, the number of groups of adjacent layers that share weights, or None for no sharing.
        """
        c = {**self.config, "output_initializer": self._output_initializer(num_layers)}
        c["kernel_initializer"] = self.kernel_initializer()
        options = _layer_options(MultiHeadAttention, c) | {
            "dropout": c["attention_dropout"],
            "use_bias": c["attention_bias"],
        }
        options |= {"dtype": self.dtype_policy, "name": "attention"}
        positions = {"positions": c["position"]} if POSITIONS[c["position"]].turn else {}  # self-attention only
        network = _layer_options(FeedForward, c) | {"dropout": c["relu_dropout"], "dtype": self.dtype_policy}
        layers = []
        for i in range(num_groups or num_layers):
            layer_options = _layer_options(layer_class, c) | {
                "self_attention": self.attention(name, i, **options, **positions)
            }
            if attends_to_memory:
                layer_options["cross_attention"] = self.attention("memory", i, **options)
            layer_options["feed_forward"] = self.feed_forward(name, i, **network, name="network")
            layers.append(layer_class(**layer_options, dtype=self.dtype_policy, name=f"{name}_{i}"))
        layers = [layers[i * len(layers) // num_layers] for i in range(num_layers)]
        return self.stack_of(layers, recompute=c["recompute_grad"], dtype=self.dtype_policy, name=name)

    def stack_of(self, layers, **options):
        """Creates a `TransformerStack` from layers. Override this method to use your own class of stack.

        Args:
            layers: list of layers.
            **options: further arguments of `TransformerStack`.
        """
        return TransformerStack(layers, **options)

    def kernel_initializer(self):
        """Returns the initializer of the layers' matrices."""
        c = self.config
        return c["kernel_initializer"] or matrix_initializer(c["initializer"], c["initializer_gain"])

    def _output_initializer(self, num_layers):
        """Returns the initializer of sub-layers' output matrices, or None if they have no initializer of their own."""
        c = self.config
        if not c.get("scale_residuals") or c["kernel_initializer"]:
            return None
        scale = (2 * num_layers) ** -0.5
        is_variance = c["initializer"].endswith("unit_scaling")
        return matrix_initializer(c["initializer"], c["initializer_gain"] * (scale**2 if is_variance else scale))

    def make_final_norm(self, name):
        """Returns the normalization after a stack of pre-norm layers, or None."""
        if self.config["norm"] == "post":
            return None
        return LayerNormalization(epsilon=self.config["norm_epsilon"], dtype=self.dtype_policy, name=name)

    def attention(self, role, index, **options):
        """Creates the attention of one layer. Override this method to use your own kinds of attention.

        Args:
            role: "encoder" or "decoder" for self-attention, or "memory" for attention to the encoder's output.
            index: int, the number of the layer in its stack.
            **options: arguments of `MultiHeadAttention`.

        Returns:
            A layer with the same methods as `MultiHeadAttention`.
        """
        if role == "memory":
            return MultiHeadAttention(**options)
        options |= {"has_order": role == "decoder", "context_class": self.context_class}
        return attentions.make_self_attention(self.config["self_attention"], index, **options)

    def feed_forward(self, role, index, **options):
        """Creates the feed-forward network of one layer. Override this method to use your own kinds of networks.

        Args:
            role, index: as in `attention`.
            **options: arguments of `FeedForward`.

        Returns:
            A layer called with [B, T, hidden] and `training`, and with `context` if its `call` has this argument; or
            None for the default `FeedForward`.
        """
        return networks.make_feed_forward(self.config["feed_forward"], index, **options)

    def run_encoder(self, x, mask, training, states=False, scores=False, results=None, **context):
        """Runs the encoder stack on embeddings.

        Args:
            x: [B, T, hidden].
            mask: bool [B, T], True where a position is not padding.
            training: bool.
            states, scores: bool, whether to also return the hidden states and the attention weights.
            results: `Results`, to which the layers add their results. If None, their costs are a loss in training
                (`add_loss`).
            **context: further attributes of the layers' `Context`.

        Returns:
            The dict that `encode` returns.
        """
        output = self.encoder(
            x, attention_mask=ops.expand_dims(mask, 1),
            context=self.context_class(nonpadding=mask, results=results_or_loss(results), **context),
            return_attention_scores=scores, return_hidden_states=states, training=training,
        )  # fmt: skip
        hidden, *rest = output if isinstance(output, tuple) else (output,)
        result = {"hidden": normalized(hidden, self.encoder_norm), "mask": mask}
        if scores:
            result["attention"] = rest.pop(0)
        if states:
            result["states"] = rest.pop()
        return result

    @property
    def cost_features(self):
        """The features whose stacks have costs, a list that may contain "inputs" and "targets"."""
        return [feature for feature, stack in self.stacks().items() if stack.has_costs]

    def outputs(self, logits, costs, results=None, **others):
        """Combines the outputs of a call, or returns only the logits if there are no other outputs.

        Args:
            logits: the logits of the targets.
            costs: {feature: float32 [B, length]} for `cost_features`.
            results: {feature: Results}, which hold the shares in training.
            **others: further outputs by name.

        Returns:
            The logits, or {"targets": logits, **others}, including "costs" and "shares" if they exist: see
            `named_outputs`.
        """
        others |= {COSTS: costs} if costs else {}
        names = dict.fromkeys(name for side in (results or {}).values() for name in side.tensors)
        if counted := [name for name in names if name.startswith(f"{SHARES}/")]:
            others[SHARES] = {
                name.removeprefix(f"{SHARES}/"): {feature: side.each(name) for feature, side in results.items()}
                for name in counted
            }
        return {"targets": logits, **others} if others else logits

    def compute_mask(self, inputs, mask=None):
        """Returns a mask, bool [B, T], True where a target is not padding, or None if the output is a dict."""
        return None if self.has_costs else super().compute_mask(inputs)

    def compute_output_spec(self, inputs, training=None):
        """Returns symbolic outputs; logits are float32 whatever the dtype policy."""
        return self.outputs(super().compute_output_spec(inputs, training), self.cost_specs(inputs))

    def cost_specs(self, inputs):
        """Returns symbolic costs for a dict of symbolic inputs."""
        return {f: keras.KerasTensor(inputs[f].shape, dtype="float32") for f in self.cost_features}

    def logits(self, hidden, matrix=None):
        """Maps hidden states [..., hidden] to float32 logits; for `matrix` see `TokenEmbedding.reverse_matrix`."""
        return self.softmax(hidden, reverse=True, matrix=matrix)

    # Step-by-step decoding, for models with a decoder: see `t2t_lite.layers.cache`.

    def new_cache(self, ancestry, fixed):
        """Returns the cache for the start of decoding, with the table of ancestors and the parts that never move."""
        return {"beams": {"ancestry": ancestry}, "shared": self.softmax.reverse_matrix(), "fixed": fixed}

    def next_logits(self, x, position, cache, ancestry, mask, memory_mask=None):
        """Runs the decoder for one position of every beam.

        Args:
            x: [B, K, hidden], the embeddings of the tokens before this position.
            position, cache: as in `decode_step`.
            ancestry, mask: from `see_ancestors`.
            memory_mask: as in `TransformerStack.step`.

        Returns:
            (float32 logits [B * K, target_vocab_size], the updated cache).
        """
        fixed = cache["fixed"]
        x, layers = self.decoder.step(x, fixed["layers"], position, mask, memory_mask)
        x = ops.reshape(normalized(x, self.decoder_norm), (-1, self.config["hidden_size"]))
        cache = {**cache, "beams": {"ancestry": ancestry}, "fixed": {**fixed, "layers": layers}}
        return self.logits(x, cache["shared"]), cache


def _layer_options(layer_class, config):
    """Returns the options of a model that are also arguments of a layer class."""
    return {name: config[name] for name in inspect.signature(layer_class.__init__).parameters if name in config}


def build_parts(shape, *layers):
    """Builds layers for inputs of a shape; skips None and layers that are built, such as a layer that occurs twice."""
    for layer in layers:
        if layer is not None and not layer.built:
            layer.build(shape)


def is_token(ids):
    """Returns a mask, bool, True where ids are not padding."""
    return ops.not_equal(ids, PAD_ID)


def positioned(layer, x, position=None):
    """Adds positions to embeddings `x` with a layer; returns `x` if the layer is None."""
    return x if layer is None else layer(x, position=position)


def normalized(x, norm):
    """Returns `norm(x)`, or `x` if `norm` is None."""
    return x if norm is None else norm(x)

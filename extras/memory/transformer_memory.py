"""Transformer-XL, a language model that also sees the previous segment (Dai et al. 2019, arXiv 1901.02860)."""

from typing import ClassVar

import keras
from keras import ops

from t2t_lite.errors import UserError
from t2t_lite.layers.checks import shape_of
from t2t_lite.layers.positions import POSITIONS
from t2t_lite.models.arguments import shared_options
from t2t_lite.models.transformer_lm import TransformerLM
from t2t_lite.registry import register_model
from t2t_lite.settings.ranges import setting
from t2t_lite.settings.reserved_names import STATE


@register_model("transformer_memory")
@keras.saving.register_keras_serializable("t2t_lite")
class TransformerMemory(TransformerLM):
    """A `TransformerLM` whose layers also attend to a memory: their inputs at the positions before the segment.

    The model is trained and evaluated on the segments of a text, in order: see `SequenceModel.initial_state`. Without a
    state, as in decoding and scoring, the model reads a text in one pass. The memory contains hidden states of earlier
    steps; each step applies its current weights to them. No gradient flows through the memory. The paper's adaptive
    softmax is not implemented.

    Args:
        vocab_size: int.
        target_vocab_size: None, or the same as vocab_size, because inputs and targets share one vocabulary.
        {options}

    Raises:
        ValueError: an argument is out of its range, or positions are absolute; the message states the argument's name
            and value. Also if the memory would shift the blocks of a pattern such as local_1d: see `check_lengths`.

    Example:
        >>> model = TransformerMemory(vocab_size=20, hidden_size=8, filter_size=16, num_heads=2, num_layers=1)
        >>> batch = {"targets": keras.ops.ones((1, 4), "int32"), "state": model.initial_state(1)}
        >>> model(batch)["targets"].shape
        (1, 4, 20)
    """

    HPARAMS: ClassVar = {
        **TransformerLM.HPARAMS,
        "begin": setting(
            "end", choices=("zero", "end"), argument="begin", fixed=True,
            meaning="The first input, before all tokens: end (id 1) or zero (the zero vector).",
        ),
        "segment_length": setting(128, 1, 2**20, fixed=True, meaning="Number of ids in each step's segment."),
        "memory_length": setting(
            128, 1, 2**20, argument="memory_length", fixed=True,
            meaning="The number of positions before a segment that each layer also sees.",
        ),
        "eval_memory_length": setting(
            0, 0, 2**20, argument="eval_memory_length", zero="none",
            meaning="The memory_length in evaluation; 0: as in training.",
        ),
    }  # fmt: skip

    OPTIONS: ClassVar = shared_options(
        without=["num_encoder_layers", "num_decoder_layers", "target_space_embedding"],
        position="none",
        self_attention="dot_product_relative_memory",
    )

    def __init__(self, vocab_size: int, target_vocab_size: int | None = None, **options):
        super().__init__(vocab_size, target_vocab_size, **options)
        position = self.config["position"]
        if POSITIONS[position].embedding is not None:
            raise ValueError(
                "`position` must be none or rotary, because a memory has no absolute positions: received "
                f"position={position!r}."
            )
        self.check_lengths(self.config["memory_length"], self.config["eval_memory_length"])

    def check_lengths(self, *lengths):
        """Checks that segments and memories of some lengths do not shift the blocks of attention patterns.

        In one pass, blocks begin at multiples of their size, counted from the beginning of the text.

        Args:
            *lengths: int, or None if a length is unknown.

        Raises:
            UserError: a length is not a multiple of the period of a pattern.
        """
        for layer in self.decoder.layers:
            period = getattr(getattr(layer.self_attention.layer, "pattern", None), "period", 1)
            for length in lengths:
                if length is not None and length % period:
                    raise UserError(
                        f"A segment or a memory of {length} positions would shift the blocks of the self-attention, "
                        f"which repeat every {period} positions. Expected multiples of {period} as segment_length and "
                        "memory_length, or attention that depends only on distances."
                    )

    @property
    def context_length(self):
        """The number of memory positions: see `SequenceModel`."""
        return self.config["memory_length"]

    def initial_state(self, rows, training=False):
        """Returns an empty memory: {"memory": list of [rows, M, hidden], one per layer, "visible": bool [rows, M]}."""
        lengths = self.config["memory_length"], self.config["eval_memory_length"]
        length = lengths[0] if training else lengths[1] or lengths[0]
        layers, hidden_size = self.config["num_layers"], self.config["hidden_size"]
        memory = [ops.zeros((rows, length, hidden_size), self.compute_dtype) for _ in range(layers)]
        return {"memory": memory, "visible": ops.zeros((rows, length), "bool")}

    def call(self, inputs, training=None):
        """Predicts the targets of a segment.

        Args:
            inputs: as for `TransformerLM`. If there are no "inputs", there may be a "state", which has the form of
                `initial_state`.
            training: bool.

        Returns:
            float32 logits [B, T, vocab_size]; with a state, {"targets": logits, "state": the next state}.

        Raises:
            UserError: see `check_lengths`.
        """
        if (state := inputs.get(STATE)) is None:
            return super().call(inputs, training)
        self.check_inputs(inputs)
        visible = ops.cast(state["visible"], "bool")
        self.check_lengths(inputs["targets"].shape[1])
        before = [{"earlier": memory, "visible": visible} for memory in state["memory"]]
        x, (states,), *beside = self._read(inputs, training, before, return_hidden_states=True)
        is_there = ops.ones(shape_of(x)[:2], "bool")
        new = {
            "memory": [_last(*pair) for pair in zip(state["memory"], states[:-1], strict=True)],
            "visible": _last(visible, is_there),
        }
        return self.outputs(self.logits(x), *beside, **{STATE: new})

    def compute_mask(self, inputs, mask=None):
        """Returns bool [B, T], True where the target is not padding; with a state, returns None."""
        return super().compute_mask(inputs) if inputs.get(STATE) is None else None

    def compute_output_spec(self, inputs, training=None):
        """Returns the symbolic outputs, in which logits are float32 under any dtype policy."""
        outputs = super().compute_output_spec(inputs, training)
        if (state := inputs.get(STATE)) is None:
            return outputs
        return {**(outputs if isinstance(outputs, dict) else {"targets": outputs}), STATE: state}


def _last(before, new):
    """Concatenates [B, M, …] and [B, T, …] along the positions, and returns the last M positions."""
    return ops.concatenate([before, ops.cast(new, before.dtype)], axis=1)[:, -before.shape[1] :]

"""The Universal Transformer, which repeats the same layers (Dehghani et al. 2019, arXiv 1807.03819).

Mirrors tensor2tensor's models/research/universal_transformer.py.
"""

from typing import ClassVar

import keras
from keras import ops

from t2t_lite.errors import UserError
from t2t_lite.extras.universal.adaptive_computation import ACT_TYPES, AdaptiveComputation
from t2t_lite.extras.universal.universal_stack import POSITION_STARTS, StepSignals, UniversalStack
from t2t_lite.layers.context import Results
from t2t_lite.layers.positions import POSITIONS
from t2t_lite.models.arguments import shared_options
from t2t_lite.models.transformer import Transformer
from t2t_lite.models.transformer_parts import TransformerModel, is_token
from t2t_lite.registry import register_model
from t2t_lite.settings.ranges import setting

_NO_SETTINGS = ("num_hidden_layers", "num_encoder_layers", "num_decoder_layers")
# For each recurrence_type, the settings that have no effect.
_UNREAD_BY_KIND = {
    "act": ("num_rec_steps",),
    "basic": ("act_type", "act_max_steps", "act_epsilon", "act_halting_bias_init", "act_loss_weight"),
}


@register_model("universal_transformer")
@keras.saving.register_keras_serializable("t2t_lite")
class UniversalTransformer(Transformer):
    """A `Transformer` whose encoder and decoder each repeat the same layers.

    Position and step signals are added before each step. With recurrence_type "act", each position decides after how
    many steps it halts: see `AdaptiveComputation` and `UniversalStack`.

    Args:
        vocab_size: int, the number of ids of the inputs, and of the targets if they share the vocabulary.
        target_vocab_size: int, the number of ids of the targets; None means one vocabulary for both.
        {options}

    Raises:
        ValueError: an argument is out of its range, or positions would be added twice; the message has the argument's
            name and value.

    Example:
        >>> model = UniversalTransformer(vocab_size=20, hidden_size=8, filter_size=16, num_heads=2, num_rec_steps=3)
        >>> model({"inputs": keras.ops.ones((1, 3), "int32"), "targets": keras.ops.ones((1, 4), "int32")}).shape
        (1, 4, 20)
    """

    HPARAMS: ClassVar = {
        "recurrence_type": setting(
            "basic", choices=("basic", "act"), argument="recurrence_type", fixed=True,
            meaning="basic: all positions take num_rec_steps steps; act: each position decides when it stops.",
        ),
        "num_rec_steps": setting(
            6, 1, 2**9, argument="num_rec_steps", fixed=True, meaning="The number of steps, T (basic only)."
        ),
        "num_inrecurrence_layers": setting(
            1, 1, 2**6, argument="num_inrecurrence_layers", fixed=True, meaning="The number of layers in each step."
        ),
        "add_position_timing_signal": setting(
            True, argument="add_position_timing_signal", fixed=True,
            meaning="Whether position sinusoids are added before each step.",
        ),
        "position_start_index": setting(
            "none", choices=POSITION_STARTS, argument="position_start_index", fixed=True,
            meaning="The first position. none: 0; random: in training, a random number below the row's length, drawn "
            "in each step; step: the length of the inputs · step / T.",
        ),
        "add_step_timing_signal": setting(
            True, argument="add_step_timing_signal", fixed=True,
            meaning="Whether a vector that encodes the step is added before each step.",
        ),
        "step_timing_signal_type": setting(
            "learned", choices=("learned", "sinusoid"), argument="step_timing_signal_type", fixed=True,
            meaning="How the step is encoded: as a learned vector or as a sinusoid.",
        ),
        "act_type": setting(
            "basic", choices=ACT_TYPES, argument="act_type", fixed=True,
            meaning="The output with act. basic: a running average of the states; accumulated: their weighted sum "
            "(Graves 2016); global: like basic, but all positions of a row halt together.",
        ),
        "act_max_steps": setting(
            12, 1, 2**9, argument="act_max_steps", fixed=True, meaning="The maximum number of steps (act only)."
        ),
        "act_epsilon": setting(
            0.01, 0, below=1, argument="act_epsilon", fixed=True,
            meaning="A position halts once its probabilities sum to more than 1 - act_epsilon (act only).",
        ),
        "act_halting_bias_init": setting(
            1.0, -100, 100, argument="act_halting_bias_init",
            meaning="Initial bias of the halting probabilities (act only); larger values mean fewer steps.",
        ),
        "act_loss_weight": setting(
            0.01, 0, 10**6, argument="act_loss_weight",
            meaning="Weight of the ponder cost (steps + remainder per position) in the loss; 0 disables it (act only).",
        ),
    }  # fmt: skip

    OPTIONS: ClassVar = shared_options(
        without=["num_layers", "num_encoder_layers", "num_decoder_layers"], position="none"
    )

    def __init__(self, vocab_size: int, target_vocab_size: int | None = None, **options):
        TransformerModel.__init__(self, vocab_size, target_vocab_size, **options)  # skips Transformer's constructor
        position = self.config["position"]
        if self.config["add_position_timing_signal"] and POSITIONS[position].embedding is not None:
            raise ValueError(
                "`position` (the hyperparameter pos) must be none or rotary if add_position_timing_signal adds "
                f"positions before each step: received position={position!r}."
            )
        self.make_parts()

    @classmethod
    def check_has(cls, names, hparams=None):
        """Checks that this model has the hyperparameters `names`: see `SequenceModel.check_has`."""
        names = list(names)
        if without_effect := [name for name in names if name in _NO_SETTINGS]:
            raise UserError(
                f"{without_effect[0]}: {cls.__name__} does not have this setting. Expected num_rec_steps, or "
                "act_max_steps with recurrence_type=act, and num_inrecurrence_layers for the layers of a step."
            )
        super().check_has(names, hparams)
        kind = hparams and hparams.get("recurrence_type", "basic")
        if without_effect := [name for name in names if kind and name in _UNREAD_BY_KIND[kind]]:
            raise UserError(f"{without_effect[0]}: no effect with recurrence_type={kind}. Remove it.")

    def ponder_steps(self, inputs):
        """Returns how many steps each position took, in a teacher-forced pass without dropout.

        Args:
            inputs: as for `call`.

        Returns:
            {"inputs": float32 [B, S], "targets": float32 [B, T]}; the values are integers, and 0 at padding. Entry t
            of "targets" belongs to the prediction of target t. With recurrence_type "basic", all other values are
            num_rec_steps.
        """
        results = {feature: Results() for feature in ("inputs", "targets")}
        memory = self.encode(inputs["inputs"], results=results["inputs"])
        self.decode(inputs["targets"], memory, results=results["targets"])
        if self.config["recurrence_type"] == "act":
            return {feature: sums.total("ponder_steps") for feature, sums in results.items()}
        return {
            feature: self.config["num_rec_steps"] * ops.cast(is_token(inputs[feature]), "float32")
            for feature in results
        }

    def depths(self):
        """Returns (encoder, decoder): the number of layers that each runs in one step."""
        return (self.config["num_inrecurrence_layers"],) * 2

    def stack_of(self, layers, **options):
        """Creates the stack that repeats `layers` for all steps."""
        c, name = self.config, options["name"]
        is_act = c["recurrence_type"] == "act"
        num_steps = c["act_max_steps"] if is_act else c["num_rec_steps"]
        common = {"dtype": self.dtype_policy}
        signals = StepSignals(
            num_steps,
            add_position=c["add_position_timing_signal"],
            step_signal=c["step_timing_signal_type"] if c["add_step_timing_signal"] else "none",
            position_start=c["position_start_index"],
            layout=c["position_layout"],
            **common,
            name=f"{name}_signals",
        )
        halting = AdaptiveComputation(
            c["act_type"],
            c["act_epsilon"],
            c["act_halting_bias_init"],
            c["act_loss_weight"],
            self.kernel_initializer(),
            **common,
            name=f"{name}_halting",
        )
        return UniversalStack(layers, num_steps, signals, halting if is_act else None, **options)

"""HParams: every setting of a model and its training, typed, with overrides and JSON.

Mirrors tensor2tensor's utils/hparam.py and layers/common_hparams.py. The defaults are the paper's base model.
"""

import dataclasses
import json
import re
import types
import typing

from t2t_lite.data.safe_json import parse_json
from t2t_lite.errors import UserError, nearest, shown


@dataclasses.dataclass(eq=False)
class HParams:
    """Hyperparameters. Assigning a name that is not declared here is an error: see `add_hparam`.

    Values keep the type of their declaration; an int accepts `1e3`, a float accepts `1`.
    """

    # Sizes (paper, table 3). 0 layers: num_hidden_layers; 0 channels: hidden_size, the total over all heads.
    hidden_size: int = 512
    filter_size: int = 2048
    num_heads: int = 8
    num_hidden_layers: int = 6
    num_encoder_layers: int = 0
    num_decoder_layers: int = 0
    attention_key_channels: int = 0
    attention_value_channels: int = 0

    # Structure. "none" + "dan": post-norm, the paper's; "n" + "da": pre-norm.
    layer_preprocess_sequence: str = "none"
    layer_postprocess_sequence: str = "dan"
    norm_epsilon: float = 1e-5
    attention_bias: bool = False
    ffn_activation: str = "relu"
    shared_embedding_and_softmax_weights: bool = True
    softmax_bias: bool = False
    use_target_space_embedding: bool = False  # one learned vector on all encoder inputs, as tensor2tensor's models have
    pos: str = "timing"  # "timing" (sinusoids), "emb" (learned) or "none"
    position_layout: str = "interleaved"  # "interleaved" (the paper's), "marian" or "tensor2tensor"
    max_position: int = 1024  # rows of a learned position table
    # "dot_product", "dot_product_relative" (Shaw et al. 2018) or "restricted" (paper, section 4)
    self_attention_type: str = "dot_product"
    max_relative_position: int = 0  # of dot_product_relative: where distances are clipped
    add_relative_to_values: bool = False  # of dot_product_relative
    attention_neighborhood: int = 0  # of restricted: r, the positions that each one sees

    # Regularisation.
    layer_prepostprocess_dropout: float = 0.1
    attention_dropout: float = 0.0
    relu_dropout: float = 0.0
    label_smoothing: float = 0.1

    # Batches. batch_size: tokens a replica (rows x the longest of either side, padding counted).
    batch_size: int = 4096
    max_length: int = 256  # longer training examples are dropped and counted
    min_length: int = 0
    bpe_dropout: float = 0.0  # of training sentences, both sides: the chance of leaving a merge out (bpe_dropout.py)
    gradient_accumulation_steps: int = 1

    # Optimizer (paper, 5.3). The schedule is a product of the factors in training/schedules.py.
    optimizer: str = "adam"  # or "adafactor", "sgd", "multistep_adam" (training/optimizers.py)
    optimizer_adam_beta1: float = 0.9
    optimizer_adam_beta2: float = 0.98
    optimizer_adam_epsilon: float = 1e-9
    optimizer_adafactor_beta1: float = 0.0
    optimizer_adafactor_beta2: float = 0.999
    optimizer_adafactor_factored: bool = True
    optimizer_adafactor_decay_type: str = "pow"
    optimizer_adafactor_memory_exponent: float = 0.8
    optimizer_adafactor_clipping_threshold: float = 1.0
    optimizer_adafactor_multiply_by_parameter_scale: bool = True
    optimizer_multistep_accumulate_steps: int = 0  # of multistep_adam: another name of gradient_accumulation_steps
    ema_decay: float = 0.0  # of a moving average of the weights, which is evaluated, saved and used; 0: off
    learning_rate_schedule: str = "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size"
    learning_rate_constant: float = 1.0
    learning_rate_warmup_steps: int = 4000
    learning_rate_decay_steps: int = 5000
    learning_rate_decay_rate: float = 1.0
    learning_rate_decay_staircase: bool = False
    clip_grad_norm: float = 0.0  # global norm; 0: off
    max_skipped_steps: int = 10  # steps in a row with a loss or gradient that is not finite, before stopping

    # The machine.
    dtype_policy: str = "float32"  # or "mixed_bfloat16"
    recompute_grad: bool = False  # activations inside the layers are computed again for their gradients, not kept
    random_seed: int = 429459

    # Evaluation during training.
    eval_decode_examples: int = 200  # dev sentences really translated at each evaluation; 0: none
    eval_beam_size: int = 4
    eval_alpha: float = 0.6

    def __post_init__(self):
        object.__setattr__(self, "_own", {})

    def __setattr__(self, name, value):
        if name in _TYPES:
            object.__setattr__(self, name, typed_value(name, value, _TYPES[name]))
        elif name in self.__dict__.get("_own", {}):
            self._own[name] = typed_value(name, value, type(self._own[name]))
        else:
            raise UserError(f"hparam {name!r} is not declared. {self._nearest(name)} For your own: add_hparam().")

    def __getattr__(self, name):  # only reached when the dataclass has no such attribute
        if name.startswith("_"):  # copy and pickle probe for these before there is any state
            raise AttributeError(name)
        if name in self._own:
            return self._own[name]
        raise AttributeError(f"hparam {name!r} is not declared. {self._nearest(name)}")

    def _nearest(self, name):
        return nearest(name, self.values())

    def add_hparam(self, name, value):
        """Declares a hyperparameter of the user's own; its type is the value's. Raises `UserError` if it exists."""
        if name in self:
            raise UserError(f"hparam {shown(name)} exists already; assign to it instead of adding it.")
        if not isinstance(value, bool | int | float | str | list):
            raise UserError(
                f"hparam {shown(name)}: expected a bool, int, float, str or list, got {type(value).__name__}."
            )
        self._own[name] = value

    def set_hparam(self, name, value):
        """Sets a declared hyperparameter."""
        setattr(self, name, value)

    def values(self):
        """Returns a dict of all names and values, the user's own included."""
        return {**{f: getattr(self, f) for f in _TYPES}, **self._own}

    def get(self, name, default=None):
        """Returns the value, or `default` where the name is not declared."""
        return self.values().get(name, default)

    def __eq__(self, other):
        return isinstance(other, HParams) and self.values() == other.values()

    def __contains__(self, name):
        return name in _TYPES or name in self._own

    def copy(self):
        """Returns an independent copy."""
        return HParams.from_dict(self.values())

    __copy__ = copy  # copy.copy() would share the user's own values

    def override_from_dict(self, overrides):
        """Returns a new HParams with the given values. Raises `UserError` for unknown names or wrong types."""
        made = self.copy()
        for name, value in overrides.items():
            setattr(made, name, value)
        return made

    def parse(self, text):
        """Returns a new HParams changed by `name=value,name=[1,2],…` (tensor2tensor's `--hparams` grammar).

        Raises:
            UserError: unknown name (the nearest ones are named), a value of another type, a name given twice,
                or text that is not of this form.
        """
        made = self.copy()
        for name, value in parse_assignments(text, "--hparams").items():
            if name not in made:
                raise UserError(f"--hparams: {name!r} is not a hyperparameter. {made._nearest(name)}")
            setattr(made, name, value)
        return made

    def to_json(self):
        """Returns sorted JSON, one value a line."""
        return json.dumps(self.values(), indent=1, sort_keys=True)

    @classmethod
    def from_dict(cls, values):
        """Makes HParams from a dict; names that are not declared become the user's own."""
        made = cls()
        for name, value in values.items():
            if name in _TYPES:
                setattr(made, name, value)
            else:
                made.add_hparam(name, value)
        return made

    @classmethod
    def from_json(cls, text):
        """Reads what `to_json` wrote. Raises `UserError` when it is not a JSON object of hyperparameters."""
        values = parse_json(text, "hyperparameters")
        if not isinstance(values, dict):
            raise UserError(f"hyperparameters: expected a JSON object, got {type(values).__name__}.")
        return cls.from_dict(values)


_TYPES = typing.get_type_hints(HParams)


def parse_assignments(text, where):
    """Splits `name=value,name=[1,2]` into a dict of strings and lists of strings; blanks are ignored.

    Args:
        text: the assignments; "" gives {}.
        where: what to call the text in errors, such as "--decode_hparams".

    Raises:
        UserError: not of that form, or a name given twice.
    """
    found, rest = {}, text.strip()
    pattern = re.compile(r"\s*([A-Za-z][\w.]*)\s*=\s*(\[[^\]]*\]|[^,\[]*)\s*(?:,|$)")
    while rest:
        match = pattern.match(rest)
        if not match:
            raise UserError(f"{where}: cannot read {rest!r}. Expected name=value,name=value.")
        name, value = match[1], match[2].strip()
        if name in found:
            raise UserError(f"{where}: {name!r} is given twice.")
        if value.startswith("["):
            value = [item.strip() for item in value[1:-1].split(",") if item.strip()]
        found[name], rest = value, rest[match.end() :]
    return found


def typed_value(name, value, kind):
    """Returns `value` as `kind` (a type, or a type or None); strings are parsed. Raises `UserError`."""
    if isinstance(kind, types.UnionType):
        if value is None or value == "None":
            return None
        kind = next(k for k in typing.get_args(kind) if k is not type(None))
    try:
        if kind is list:
            if not isinstance(value, list):
                raise ValueError
            return value
        if kind is str:
            if not isinstance(value, str):
                raise ValueError
            return value
        if kind is bool:
            if isinstance(value, str):
                return {"true": True, "1": True, "false": False, "0": False}[value.lower()]
            if not isinstance(value, bool):
                raise ValueError
            return value
        if isinstance(value, bool | list) or value is None:
            raise ValueError
        number = float(value)
        if kind is int:
            if number != int(number):
                raise ValueError
            return int(value) if not isinstance(value, str) or re.fullmatch(r"[+-]?\d+", value) else int(number)
        return number
    except (ValueError, KeyError, OverflowError, TypeError):
        raise UserError(f"hparam {name}: expected {kind.__name__}, got {shown(value)}.") from None

"""HParams: every setting of a model and its training, typed, with overrides and JSON.

Mirrors tensor2tensor's utils/hparam.py and layers/common_hparams.py. The defaults are the paper's base model.
"""

import dataclasses
import json
import re

from t2t_lite.errors import UserError, located, nearest, shown
from t2t_lite.files.safe_json import parse_json
from t2t_lite.ranges import ALPHA, BEAM_SIZE, COUNT, LOSS_SCALE, SEED, setting, settings_of, typed_value
from t2t_lite.search_options import SearchOptions
from t2t_lite.tensor2tensor_names import hparam_answer


@dataclasses.dataclass(eq=False)
class HParams:
    """Hyperparameters. Assigning a name that is not declared here is an error: see `add_hparam`.

    Values keep the type of their declaration, and stay in its range (`t2t_lite.ranges`); an int accepts `1e3`, a float
    accepts `1`.
    """

    # Sizes (paper, table 3). 0 layers: num_hidden_layers; 0 channels: hidden_size, the total over all heads.
    hidden_size: int = setting(512, 1, 2**16)
    filter_size: int = setting(2048, 1, 2**18)
    num_heads: int = setting(8, 1, 2**12)
    num_hidden_layers: int = setting(6, 0, 2**9)
    num_encoder_layers: int = setting(0, 0, 2**9)
    num_decoder_layers: int = setting(0, 0, 2**9)
    attention_key_channels: int = setting(0, 0, 2**18)
    attention_value_channels: int = setting(0, 0, 2**18)

    # Structure. "none" + "dan": post-norm, the paper's; "n" + "da": pre-norm.
    layer_preprocess_sequence: str = setting("none", choices=("none", "n"))
    layer_postprocess_sequence: str = setting("dan", choices=("dan", "da"))
    norm_epsilon: float = setting(1e-5, 1e-20, 1)
    attention_bias: bool = False
    ffn_activation: str = "relu"
    shared_embedding_and_softmax_weights: bool = True
    softmax_bias: bool = False
    use_target_space_embedding: bool = False  # one learned vector on all encoder inputs, as tensor2tensor's models have
    pos: str = setting("timing", choices=("timing", "emb", "none"))  # sinusoids, learned positions or no positions
    # "interleaved": the paper's.
    position_layout: str = setting("interleaved", choices=("interleaved", "marian", "tensor2tensor"))
    max_position: int = setting(1024, 1, 2**20)  # rows of a learned position table
    # The paper's; relative positions (Shaw et al. 2018); a neighbourhood (paper, section 4).
    self_attention_type: str = setting("dot_product", choices=("dot_product", "dot_product_relative", "restricted"))
    max_relative_position: int = setting(0, 0, 2**16)  # of dot_product_relative: where distances are clipped
    add_relative_to_values: bool = False  # of dot_product_relative
    attention_neighborhood: int = setting(0, 0, 2**20)  # of restricted: r, the positions that each one sees

    # Regularisation.
    layer_prepostprocess_dropout: float = setting(0.1, 0, below=1)
    attention_dropout: float = setting(0.0, 0, below=1)
    relu_dropout: float = setting(0.0, 0, below=1)
    label_smoothing: float = setting(0.1, 0, below=1)

    # Batches. batch_size: tokens per replica (rows x the longest of either side, padding counted).
    batch_size: int = setting(4096, 1, 2**24)
    max_length: int = setting(256, 0, 2**24)  # longer training examples are dropped and counted; 0: batch_size
    min_length: int = setting(0, 0, 2**24)
    # Of training sentences, both sides: the chance of leaving a merge out (text/bpe_dropout.py).
    bpe_dropout: float = setting(0.0, 0, 1)
    gradient_accumulation_steps: int = setting(1, 1, 256)

    # Optimizer (paper, 5.3). The schedule is a product of the factors in training/schedules.py.
    optimizer: str = setting("adam", choices=("adam", "true_adam", "adafactor", "sgd", "multistep_adam"))
    optimizer_adam_beta1: float = setting(0.9, 0, below=1)
    optimizer_adam_beta2: float = setting(0.98, 0, below=1)
    optimizer_adam_epsilon: float = setting(1e-9, 1e-20, 1)
    optimizer_adafactor_beta1: float = setting(0.0, 0, below=1)
    optimizer_adafactor_beta2: float = setting(0.999, above=0, below=1)
    optimizer_adafactor_factored: bool = True
    optimizer_adafactor_decay_type: str = setting("pow", choices=("pow", "adam"))
    optimizer_adafactor_memory_exponent: float = setting(0.8, above=0, most=10)
    optimizer_adafactor_clipping_threshold: float = setting(1.0, 0, 10**6)
    optimizer_adafactor_multiply_by_parameter_scale: bool = True
    # Of multistep_adam: another name of gradient_accumulation_steps.
    optimizer_multistep_accumulate_steps: int = setting(0, 0, 256)
    # Of a moving average of the weights, which is evaluated, saved and used; 0: off.
    ema_decay: float = setting(0.0, 0, below=1)
    learning_rate_schedule: str = "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size"
    learning_rate_constant: float = setting(1.0, 0, 10**6)
    learning_rate_warmup_steps: int = setting(4000, limits=COUNT)
    learning_rate_decay_steps: int = setting(5000, 1, 2**31 - 1)
    learning_rate_decay_rate: float = setting(1.0, above=0, most=10)
    learning_rate_decay_staircase: bool = False
    clip_grad_norm: float = setting(0.0, 0, 10**9)  # global norm; 0: off
    # Steps in a row with a loss or gradient that is not finite, before stopping.
    max_skipped_steps: int = setting(10, limits=COUNT)

    # The machine.
    dtype_policy: str = setting(
        "float32", choices=("float32", "mixed_bfloat16", "bfloat16", "mixed_float16", "float16", "float64")
    )
    # Of float16 (training/loss_scale.py): the first scale, and the good steps after which it doubles.
    mixed_precision_optimizer_init_loss_scale: float = setting(2.0**15, limits=LOSS_SCALE)
    loss_scale_growth_steps: int = setting(2000, 1, 2**31 - 1)
    recompute_grad: bool = False  # activations inside the layers are computed again for their gradients, not kept
    random_seed: int = setting(429459, limits=SEED)

    # Evaluation during training.
    eval_decode_examples: int = setting(200, limits=COUNT)  # dev sentences really translated each time; 0: none
    eval_beam_size: int = setting(SearchOptions.beam_size, limits=BEAM_SIZE)
    eval_alpha: float = setting(SearchOptions.alpha, limits=ALPHA)

    def __post_init__(self):
        object.__setattr__(self, "_own", {})

    def __setattr__(self, name, value):
        if name in _SETTINGS:
            object.__setattr__(self, name, typed_value(name, value, *_SETTINGS[name]))
        elif name in self.__dict__.get("_own", {}):
            self._own[name] = _storable(name, typed_value(name, value, type(self._own[name])))
        else:
            raise UserError(f"hparam {shown(name)} is not declared. {self._nearest(name)} For your own: add_hparam().")

    def __getattr__(self, name):  # only reached when the dataclass has no such attribute
        if name.startswith("_"):  # copy and pickle probe for these before there is any state
            raise AttributeError(name)
        if name in self._own:
            return self._own[name]
        raise AttributeError(f"hparam {shown(name)} is not declared. {self._nearest(name)}")

    def _nearest(self, name):
        return hparam_answer(name) or nearest(name, self.values())

    def add_hparam(self, name, value):
        """Declares a hyperparameter of the user's own; its type is the value's.

        Raises:
            UserError: it exists, or the value is not a bool, int, float, str or list that JSON can hold (no NaN).
        """
        if name in self:
            raise UserError(f"hparam {shown(name)} exists already; assign to it instead of adding it.")
        self._own[name] = _storable(name, value)

    def set_hparam(self, name, value):
        """Sets a declared hyperparameter."""
        setattr(self, name, value)

    def values(self):
        """Returns a dict of all names and values, the user's own included."""
        return {**{f: getattr(self, f) for f in _SETTINGS}, **self._own}

    def get(self, name, default=None):
        """Returns the value, or `default` where the name is not declared."""
        return self.values().get(name, default)

    def __eq__(self, other):
        return isinstance(other, HParams) and self.values() == other.values()

    def __contains__(self, name):
        return name in _SETTINGS or name in self._own

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
                raise UserError(f"--hparams: {shown(name)} is not a hyperparameter. {made._nearest(name)}")
            with located("--hparams"):
                setattr(made, name, value)
        return made

    def to_json(self):
        """Returns sorted JSON, one value a line. Raises `UserError` for NaN in a list of the user's own."""
        for name, value in self._own.items():
            _storable(name, value)
        return json.dumps(self.values(), indent=1, sort_keys=True, allow_nan=False)

    @classmethod
    def from_dict(cls, values):
        """Makes HParams from a dict; names that are not declared become the user's own."""
        made = cls()
        for name, value in values.items():
            if name in _SETTINGS:
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


_SETTINGS = settings_of(HParams)


def _storable(name, value):
    """Returns a value of the user's own. Raises `UserError` for what `hparams.json` cannot hold."""
    try:
        if not isinstance(value, bool | int | float | str | list):
            raise TypeError
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise UserError(
            f"{shown(name)}: expected true or false, a finite number, text or a list of these, found {shown(value)}."
        ) from None
    return value


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
            raise UserError(f"{where}: cannot read {shown(rest)}. Expected name=value,name=value.")
        name, value = match[1], match[2].strip()
        if name in found:
            raise UserError(f"{where}: {shown(name)} is given twice.")
        if value.startswith("["):
            value = [item.strip() for item in value[1:-1].split(",") if item.strip()]
        found[name], rest = value, rest[match.end() :]
    return found

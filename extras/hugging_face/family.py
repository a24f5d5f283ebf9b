"""A foreign family of models, declared once: a table of its settings, and one of its weights' names.

These determine how its `config.json` is read and checked, the resulting hyperparameters, what is written for a model of
ours, and which options of a model prevent an export. A function that returns a `Family` is registered:

    @registry.register_family("toy")
    def toy():
        return gpt2.gpt2()._replace(class_prefix="Toy", prefix="toy.")
"""

from collections.abc import Callable
from typing import NamedTuple

from t2t_lite import registry
from t2t_lite.errors import UserError, shown
from t2t_lite.files.safe_json import check_schema
from t2t_lite.models.arguments import model_settings, to_hparam
from t2t_lite.registry import Registries
from t2t_lite.settings.config import HParams

NEEDED, OPTIONAL = object(), object()  # instead of a default
# Far beyond any Transformer. The exact numbers are checked by the shapes of the weights.
_MOST = {
    "vocab_size": 2**24, "max_position": 2**20, "hidden_size": 2**16, "filter_size": 2**18, "num_heads": 2**12,
    "num_layers": 2**9, "num_encoder_layers": 2**9, "num_decoder_layers": 2**9, "embedding_size": 2**16,
    "num_segments": 2**16,
}  # fmt: skip


class Field(NamedTuple):
    """A field of `config.json`.

    Attributes:
        name: str.
        argument: str, the argument of our model's constructor that the field sets, or "".
        kind: its type, or a union of a type with None; None: it is not checked.
        usual: its value if a file omits it; a function of the previous fields, which also replaces null; NEEDED: it is
            required; OPTIONAL: it has no default.
        values: {foreign value: ours}; if several mean the same, the first one is written.
        is_right: function of (value, dict of the previous fields), instead of `values`; None: every value is valid.
        expected: str, a description of valid values, which may name previous fields in braces.
        divides: str, the name of the field that must be a multiple of it.
        value: function of our model's config that returns the value to write; None: that of `argument`.
        is_read, is_written: bool, whether it is read and written.
    """

    name: str
    argument: str = ""
    kind: object = None
    usual: object = None
    values: dict | None = None
    is_right: Callable | None = None
    expected: str = ""
    divides: str = ""
    value: Callable | None = None
    is_read: bool = True
    is_written: bool = True

    def read(self, path, config):
        """Sets the default if the field is missing, and checks the field. Raises `UserError`."""
        if config.get(self.name) is None and (callable(self.usual) or self.name not in config):
            if self.usual is OPTIONAL:
                return
            if self.usual is not NEEDED:
                config[self.name] = self.usual(config) if callable(self.usual) else self.usual
        if self.kind:
            check_schema(config, {self.name: self.kind}, path)
        value = config.get(self.name)
        if self.values is not None:
            is_right = any(value == other and type(value) is type(other) for other in self.values)
            words = " or ".join(str(other) for other in self.values if other is not None)
            check(path, self.name, value, is_right, f"{words}: the Transformer here has no other")
        if self.is_right:
            check(path, self.name, value, self.is_right(value, config), self.expected.format_map(config))
        if self.divides:
            size = config[self.divides]
            check(path, self.name, value, size % value == 0, f"a divisor of {self.divides}={size}")

    def ours(self, value):
        """Returns the value of our model for a foreign value."""
        return value if self.values is None else self.values[value]

    def written(self, config):
        """Returns the foreign value for our model's config."""
        if self.value:
            return self.value(config)
        if self.values is None:
            return config[self.argument]
        if not self.argument:
            return next(iter(self.values))
        return next(theirs for theirs, ours in self.values.items() if ours == config[self.argument])


def number(name, argument, **more):
    """Declares a positive integer, such as a size."""
    most = _MOST[argument]
    kind = {"kind": int, "usual": NEEDED, "is_right": lambda value, _: 1 <= value <= most}
    return Field(name, argument, **{**kind, "expected": f"a number from 1 to {most:,}", **more})


def rate(name, argument, **more):
    """Declares a rate of dropout."""
    return Field(
        name, argument, float, OPTIONAL, None, lambda value, _: 0 <= value < 1, "a number from 0 to below 1", **more
    )


def epsilon(name, usual):
    """Declares the epsilon of normalizations."""
    is_right, expected = (lambda value, _: 1e-20 <= value <= 1), "a number from 1e-20 to 1"
    return Field(name, "norm_epsilon", float, usual, None, is_right, expected)


def choice(name, argument, values, **more):
    """Declares a word, one of {foreign word: ours}; the first one is the default."""
    return Field(name, argument, values=values, **{"usual": next(iter(values)), **more})


def only(name, *values, **more):
    """Declares a field with a single value, or others of the same meaning that are not written; null by default."""
    return Field(name, values=dict.fromkeys(values), **more)


def off(*names):
    """Declares options that must be off."""
    return [only(name, False, None, is_written=False) for name in names]


def same(name, other, argument=""):
    """Declares a field that must equal a previous one."""
    is_right = lambda value, config: value == config[other] and type(value) is type(config[other])  # noqa: E731
    return Field(name, argument, is_right=is_right, expected=f"{{{other}}}: the Transformer here has no other")


def fact(*names, **more):
    """Declares fields that the exporter provides and that are not read."""
    return [Field(name, is_read=False, is_written=False, **more) for name in names]


class Family(NamedTuple):
    """A family in its own package ("foreign"), and its counterpart here.

    Attributes:
        class_prefix: str, prefix of the names of its classes.
        model: our class.
        matches: function of our model's config that returns whether the model belongs to this family.
        heads: {suffix of a class name: (our head or None, its weights)}.
        fields: sequence of Field, in the order in which they are written.
        options: {argument of our model's constructor: the value of all models of the family}.
        limits: function of our model's config that returns {argument: tuple of the foreign values; None: any}, in
            addition to what follows from `fields` and `options`.
        weights: {path of a layer or a weight of our model: foreign name, or PerHead}; `*` is the number of a layer.
        vocabularies: (tuple of the kinds of TextEncoders that its folder can hold, their name in messages). A kind is a
            class, or the name of a registered vocabulary.
        complete: function of (path, dict of all fields) that checks combinations of fields, and may change some.
        is_transposed: bool, whether foreign dense kernels are [outputs, inputs].
        prefix: str, prefix of the names of the body's weights, except in the files of a model without head.
        unused: tuple of str, suffixes of the names of weights that are computed at load time, or also stored under
            another name.
        hparams_set: str, the set of its training settings; "": the default ones.
        text_problem: str, the problem of its pretraining.
        sentence_problem: str, the problem of its pretraining with sentences, or None.
        first_position: function of the id of padding that returns the number of unused rows of the position table.
        tokenizer: {name: value} in `tokenizer_config.json`, instead of what follows from the vocabulary.
        row_id: str, the argument of our model that is the id of the position that stands for a whole row.
        constants: {foreign name: function of our model's config that returns an array} of tensors that only some of our
            models have, although all of the foreign ones do; without them our models compute the same.
        model_type: str, as in `config.json`: the name by which it is registered, see `registry.family`.
    """

    class_prefix: str
    model: type
    matches: Callable
    heads: dict
    fields: tuple
    options: dict
    limits: Callable
    weights: dict
    vocabularies: tuple
    complete: Callable = lambda path, config: None
    is_transposed: bool = True
    prefix: str = ""
    unused: tuple = ()
    hparams_set: str = ""
    text_problem: str = "masked_lm_own"
    sentence_problem: str | None = None
    first_position: Callable = lambda padding: 0
    tokenizer: dict = {}  # noqa: RUF012
    row_id: str = "first_id"
    constants: dict = {}  # noqa: RUF012
    model_type: str = ""

    @property
    def described(self):
        """The names of its classes, for messages."""
        return f"{self.class_prefix}{min(self.heads, key=len)}{' or another' if len(self.heads) > 1 else ''}"

    def read(self, path, document):
        """Returns the contents of `config.json` with defaults. Raises `UserError`, which names a wrong field."""
        config = dict(document)
        for field in self.fields:
            if field.is_read:
                field.read(path, config)
        self.complete(path, config)
        return config

    def arguments(self, config):
        """Returns {argument of our model's constructor: value} for a result of `read`."""
        fields = [f for f in reversed(self.fields) if f.argument and f.is_read and f.name in config]
        return self.options | {f.argument: f.ours(config[f.name]) for f in fields}  # of several the first one counts

    def strange_encoders(self, model, encoders):
        """Returns the TextEncoders of a model's texts that the family's folder cannot hold.

        Args:
            model: Keras model.
            encoders: {"inputs": TextEncoder, "targets": TextEncoder}, or a part of it.
        """
        kinds, _ = self.vocabularies
        texts = [encoders[side] for side in model.stacks() if side in encoders]
        return [encoder for encoder in texts if not any(_is_of(kind, encoder) for kind in kinds)]

    def written(self, config, class_name, facts):
        """Returns the `config.json` of a model of ours: {name: value}.

        Args:
            config: dict, the constructor's arguments.
            class_name: str, the foreign class.
            facts: {name: value} of further fields.
        """
        facts = {"architectures": [class_name], "model_type": self.model_type, **facts}
        fields = [field for field in self.fields if field.is_written or field.name in facts]
        return {f.name: facts[f.name] if f.name in facts else f.written(config) for f in fields}

    def supported(self, config):
        """Returns {argument of our model's constructor: tuple of the supported values; None: any}."""
        values = {f.argument: f.values and tuple(dict.fromkeys(f.values.values())) for f in self.fields if f.argument}
        options = {name: (False, True) if name.endswith("_bias") else (v,) for name, v in self.options.items()}
        head_size = config["hidden_size"] // config["num_heads"]
        sizes = dict.fromkeys(("key_dim", "value_dim"), (None, head_size))
        # What features are by default does not change the model: see `encoders.encoder_folder`.
        features = dict.fromkeys(("features_pooling", "features_normalized", "features_length"))
        return {**sizes, **features, "attention_bias": (False, True), **values, **options, **self.limits(config)}


def _is_of(kind, encoder):
    if isinstance(kind, type):
        return isinstance(encoder, kind)
    return kind in Registries.vocabularies and Registries.vocabularies.get(kind)().is_of(encoder)


def hparams_of(arguments, model_class, base=None):
    """Returns HParams, based on `base` or the defaults, that make a model with these constructor arguments."""
    settings = model_settings(model_class).values()
    values = {s.name: to_hparam(s, arguments) for s in settings if s.argument in arguments}
    return (base or HParams()).of_model(model_class).override_from_dict(values)


def check(path, name, value, is_right, expected):
    """Raises `UserError` unless a value `is_right`."""
    if not is_right:
        raise UserError(f"{path}: {name}={shown(value).strip(chr(39))}. Expected {expected}.")


def families():
    """Returns the registered Families, in the order of their names; imports them all."""
    return [registry.family(model_type) for model_type in registry.list_families()]


def family_of(model, encoders=None):
    """Returns the Family of a Keras model, or None.

    Args:
        model: Keras model.
        encoders: {"inputs": TextEncoder, "targets": TextEncoder}, which decide between several families, or None.
    """
    found = [family for family in families() if family.model is type(model) and family.matches(model.config)]
    if encoders:
        found.sort(key=lambda family: bool(family.strange_encoders(model, encoders)))
    return next(iter(found), None)

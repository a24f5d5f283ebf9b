"""Declares the model families of other packages, each by a table of settings and a table of weight names.

The tables determine how a `config.json` is read and checked, and which hyperparameters follow from it. They also
determine how the `config.json` of an exported model is written, and which options of a model prevent its export. A
function that returns a `Family` is registered:

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

NEEDED, OPTIONAL = object(), object()  # values of `Field.usual` for a field without a default
# Upper limits, far beyond any Transformer. The exact sizes are checked against the shapes of the weights.
_MOST = {
    "vocab_size": 2**24, "max_position": 2**20, "hidden_size": 2**16, "filter_size": 2**18, "num_heads": 2**12,
    "num_layers": 2**9, "num_encoder_layers": 2**9, "num_decoder_layers": 2**9, "embedding_size": 2**16,
    "num_segments": 2**16,
}  # fmt: skip


class Field(NamedTuple):
    """A field of `config.json`.

    Attributes:
        name: str, the name of the field.
        argument: str, the argument of our model's constructor that the field sets, or "".
        kind: the type of the value, or a union of a type and None. If None, the type is not checked.
        usual: the default value, or a function that computes the default from the previous fields. The result of the
            function also replaces null. NEEDED marks a required field, and OPTIONAL a field without a default.
        values: {foreign value: our value}. If several foreign values have the same meaning, the first of them is
            written.
        is_right: function of (value, dict of the previous fields) that returns whether the value is valid, instead of
            `values`. If None, every value is valid.
        expected: str, a description of valid values, which may name previous fields in braces.
        divides: str, the name of a field that must be a multiple of this field.
        value: function of our model's config that returns the value to write. If None, the value of `argument` is
            written.
        is_read, is_written: bool, whether an import reads the field, and whether an export writes it.
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
        """Sets the field's default in `config` if it is missing, and checks its value. Raises `UserError`."""
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
            check(path, self.name, value, is_right, f"{words}; no other value is supported here")
        if self.is_right:
            check(path, self.name, value, self.is_right(value, config), self.expected.format_map(config))
        if self.divides:
            size = config[self.divides]
            check(path, self.name, value, size % value == 0, f"a divisor of {self.divides}={size}")

    def ours(self, value):
        """Returns our model's value for a foreign value."""
        return value if self.values is None else self.values[value]

    def written(self, config):
        """Returns the foreign value to write for our model's config."""
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
    """Declares a dropout rate."""
    return Field(
        name, argument, float, OPTIONAL, None, lambda value, _: 0 <= value < 1, "a number from 0 to below 1", **more
    )


def epsilon(name, usual):
    """Declares the epsilon of the normalization layers."""
    is_right, expected = (lambda value, _: 1e-20 <= value <= 1), "a number from 1e-20 to 1"
    return Field(name, "norm_epsilon", float, usual, None, is_right, expected)


def choice(name, argument, values, **more):
    """Declares a `config.json` field with one of the words in {foreign word: our word}; the first is the default."""
    return Field(name, argument, values=values, **{"usual": next(iter(values)), **more})


def only(name, *values, **more):
    """Declares a field that accepts only these synonymous values. Exports write the first one; the default is null."""
    return Field(name, values=dict.fromkeys(values), **more)


def off(*names):
    """Declares boolean fields of `config.json` that must be false."""
    return [only(name, False, None, is_written=False) for name in names]


def same(name, other, argument=""):
    """Declares a field of `config.json` that must equal a previous field."""
    is_right = lambda value, config: value == config[other] and type(value) is type(config[other])  # noqa: E731
    return Field(name, argument, is_right=is_right, expected=f"{{{other}}}, as in {other}")


def fact(*names, **more):
    """Declares fields that imports do not read, and whose values the exporter provides."""
    return [Field(name, is_read=False, is_written=False, **more) for name in names]


class Family(NamedTuple):
    """A family of models in another package ("foreign"), and the corresponding model class of ours.

    Attributes:
        class_prefix: str, prefix of the foreign class names.
        model: our model class.
        matches: function of our model's config that returns whether the model belongs to this family.
        heads: {suffix of a foreign class name: (our head or None, the table of its weights)}.
        fields: sequence of Field, in the order in which they are written.
        options: {argument of our model's constructor: the value that all models of the family have}.
        limits: function of our model's config that returns {argument: tuple of the supported values, or None for any
            value}. These limits are added to those that follow from `fields` and `options`.
        weights: {path of a layer or a weight of our model: foreign name, or PerHead}; `*` stands for the number of a
            layer.
        vocabularies: (tuple of the kinds of TextEncoders that a foreign folder can hold, the name of these kinds in
            messages). A kind is a class, or the name of a registered vocabulary.
        complete: function of (path, dict of all fields) that checks combinations of fields, and may change fields.
        is_transposed: bool, whether foreign dense kernels are [outputs, inputs].
        prefix: str, prefix of the names of the body's weights. The files of a model without a head lack this prefix.
        unused: tuple of str, suffixes of the names of weights that are not read, because they are computed at load time
            or also stored under another name.
        hparams_set: str, the hyperparameter set with the family's training settings. If it is "", the default
            hyperparameters are used.
        text_problem: str, the problem for pretraining on single texts.
        sentence_problem: str, the problem for pretraining on pairs of sentences, or None.
        first_position: function of the padding id that returns how many rows at the start of the position table are
            unused.
        tokenizer: {name: value} for `tokenizer_config.json`; replaces the values that follow from the vocabulary.
        row_id: str, the argument of our model that holds the id of the token whose output represents the whole row.
        constants: {foreign name: function of our model's config that returns an array}, for tensors that every foreign
            model has but not every model of ours. The arrays, such as zeros, do not change the model's outputs.
        model_type: str, the `model_type` in `config.json` and the name under which the family is registered, see
            `registry.family`.
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

    def read(self, path, document):
        """Returns the contents of `config.json`, completed with defaults. Raises `UserError` if a field is wrong."""
        config = dict(document)
        for field in self.fields:
            if field.is_read:
                field.read(path, config)
        self.complete(path, config)
        return config

    def arguments(self, config):
        """Returns {argument of our model's constructor: value} for a result of `read`."""
        fields = [f for f in reversed(self.fields) if f.argument and f.is_read and f.name in config]
        return self.options | {f.argument: f.ours(config[f.name]) for f in fields}  # an argument's first field wins

    def strange_encoders(self, model, encoders):
        """Returns those TextEncoders of a model that the family's folder cannot hold.

        Args:
            model: Keras model.
            encoders: {"inputs": TextEncoder, "targets": TextEncoder}, or only one of the two entries.
        """
        kinds, _ = self.vocabularies
        texts = [encoders[side] for side in model.stacks() if side in encoders]
        return [encoder for encoder in texts if not any(_is_of(kind, encoder) for kind in kinds)]

    def written(self, config, class_name, facts):
        """Returns the contents of the `config.json` to write for one of our models: {name: value}.

        Args:
            config: dict, the arguments of our model's constructor.
            class_name: str, the name of the foreign class.
            facts: {name: value}, additional fields.
        """
        facts = {"architectures": [class_name], "model_type": self.model_type, **facts}
        fields = [field for field in self.fields if field.is_written or field.name in facts]
        return {f.name: facts[f.name] if f.name in facts else f.written(config) for f in fields}

    def supported(self, config):
        """Returns {argument of our model's constructor: tuple of the supported values, or None for any value}."""
        values = {f.argument: f.values and tuple(dict.fromkeys(f.values.values())) for f in self.fields if f.argument}
        options = {name: (False, True) if name.endswith("_bias") else (v,) for name, v in self.options.items()}
        head_size = config["hidden_size"] // config["num_heads"]
        sizes = dict.fromkeys(("key_dim", "value_dim"), (None, head_size))
        # The arguments for default features do not change the model's outputs: see `encoders.encoder_folder`.
        features = dict.fromkeys(("features_pooling", "features_normalized", "features_length"))
        return {**sizes, **features, "attention_bias": (False, True), **values, **options, **self.limits(config)}


def _is_of(kind, encoder):
    if isinstance(kind, type):
        return isinstance(encoder, kind)
    return kind in Registries.vocabularies and Registries.vocabularies.get(kind)().is_of(encoder)


def hparams_of(arguments, model_class, base=None):
    """Returns HParams for a model with these constructor arguments; other values come from `base` or the defaults."""
    settings = model_settings(model_class).values()
    values = {s.name: to_hparam(s, arguments) for s in settings if s.argument in arguments}
    return (base or HParams()).of_model(model_class).override_from_dict(values)


def check(path, name, value, is_right, expected):
    """Raises `UserError` unless `is_right` accepts the value of a field."""
    if not is_right:
        raise UserError(f"{path}: {name}={shown(value).strip(chr(39))}. Expected {expected}.")


def families():
    """Imports all registered Families and returns them, sorted by name."""
    return [registry.family(model_type) for model_type in registry.list_families()]


def family_of(model, encoders=None):
    """Returns the Family that can represent a Keras model, or None.

    Args:
        model: Keras model.
        encoders: {"inputs": TextEncoder, "targets": TextEncoder} or None; needed if several families match.
    """
    fitting = [family for family in families() if family.model is type(model) and family.matches(model.config)]
    if encoders:
        fitting.sort(key=lambda family: bool(family.strange_encoders(model, encoders)))
    return next(iter(fitting), None)

"""A foreign family of models, declared once: a table of its settings, and one of its weights' names.

From these follow how its `config.json` is read and checked, which hyperparameters that makes, what is written for a
model of ours, and which of a model's options stand in the way.
"""

from collections.abc import Callable
from typing import NamedTuple

from t2t_lite.config import HParams
from t2t_lite.errors import UserError, shown
from t2t_lite.files.safe_json import check_schema
from t2t_lite.models.arguments import model_settings, to_hparam

NEEDED, OPTIONAL = object(), object()  # instead of a usual value
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
        argument: str, of our model's constructor: what the field sets; "": none.
        kind: its type, or a union of one with None; None: it is not checked.
        usual: its value where a file leaves it out; a function of the fields before: also where it is null there;
            NEEDED: none may leave it out; OPTIONAL: then it says nothing.
        values: {value there: ours}; of several for one of ours the first one is written.
        is_right: function of (value, dict of the fields before), instead of `values`; None: every value is.
        expected: str, what a right value is; fields before may be named in braces.
        divides: str, the name of the field that its number divides.
        value: function of our model's config: what is written; None: as `argument` says.
        is_read, is_written: bool, whether it is.
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
        """Puts the usual value where there is none, and checks the field. Raises `UserError`."""
        if config.get(self.name) is None and (callable(self.usual) or self.name not in config):
            if self.usual is OPTIONAL:
                return
            if self.usual is not NEEDED:
                config[self.name] = self.usual(config) if callable(self.usual) else self.usual
        if self.kind:
            check_schema(config, {self.name: self.kind}, path)
        value = config.get(self.name)
        if self.values is not None:
            is_right = any(value == known and type(value) is type(known) for known in self.values)
            words = " or ".join(str(known) for known in self.values if known is not None)
            check(path, self.name, value, is_right, f"{words}: the Transformer here has no other")
        if self.is_right:
            check(path, self.name, value, self.is_right(value, config), self.expected.format_map(config))
        if self.divides:
            size = config[self.divides]
            check(path, self.name, value, size % value == 0, f"a divisor of {self.divides}={size}")

    def ours(self, value):
        """Returns what a value there is in our model."""
        return value if self.values is None else self.values[value]

    def written(self, config):
        """Returns what is written of our model's config."""
        if self.value:
            return self.value(config)
        if self.values is None:
            return config[self.argument]
        if not self.argument:
            return next(iter(self.values))
        return next(theirs for theirs, ours in self.values.items() if ours == config[self.argument])


def number(name, argument, **more):
    """Declares a whole number from 1, such as a size."""
    most = _MOST[argument]
    kind = {"kind": int, "usual": NEEDED, "is_right": lambda value, _: 1 <= value <= most}
    return Field(name, argument, **{**kind, "expected": f"a number from 1 to {most:,}", **more})


def rate(name, argument, **more):
    """Declares a rate of dropout."""
    return Field(
        name, argument, float, OPTIONAL, None, lambda value, _: 0 <= value < 1, "a number from 0 to below 1", **more
    )


def epsilon(name, usual):
    """Declares what normalizations add to a variance."""
    is_right, expected = (lambda value, _: 1e-20 <= value <= 1), "a number from 1e-20 to 1"
    return Field(name, "norm_epsilon", float, usual, None, is_right, expected)


def choice(name, argument, values, **more):
    """Declares a word, one of {word there: ours}, the first one where it is left out."""
    return Field(name, argument, values=values, **{"usual": next(iter(values)), **more})


def only(name, *values, **more):
    """Declares what has one value, or, not written, others that mean the same; left out, it is null."""
    return Field(name, values=dict.fromkeys(values), **more)


def off(*names):
    """Declares what must not be on."""
    return [only(name, False, None, is_written=False) for name in names]


def same(name, other, argument=""):
    """Declares what must equal a field before it."""
    is_right = lambda value, config: value == config[other] and type(value) is type(config[other])  # noqa: E731
    return Field(name, argument, is_right=is_right, expected=f"{{{other}}}: the Transformer here has no other")


def fact(*names, **more):
    """Declares what the exporter knows; nothing of it is read."""
    return [Field(name, is_read=False, is_written=False, **more) for name in names]


class Family(NamedTuple):
    """What a family is there, and what it is here.

    Attributes:
        model_type: str, in `config.json`.
        class_prefix: str, how the names of its classes begin.
        model: class of ours.
        matches: function of our model's config: whether its family is this one.
        heads: {how a class name ends: (our head or None, weights of it)}.
        fields: sequence of Field, in the order in which they are written.
        options: {argument of our model's constructor: the value that all models of the family have}.
        limits: function of our model's config: {argument: tuple of the values that are possible there; None: any},
            beside what follows from `fields` and `options`.
        weights: {path of a layer or a weight of our model: name there}; `*` is the number of a layer.
        vocabularies: (classes of encoders that its folder can hold, their name in messages).
        complete: function of (path, dict of all fields) that checks what concerns several, and may change some.
        is_transposed: bool, whether dense kernels are [outputs, inputs] there.
        prefix: str, with which the names of the body's weights begin, but in the files of a model without head.
        unused: tuple of str, ends of the names of weights that are computed when a model is loaded, or stored under
            another name, too.
        hparams_set: str, the set that its settings for training are taken from; "": the usual ones.
        sentence_problem: str, the problem of its pretraining with sentences; None: there is none.
        first_position: function of the id of padding: the rows of the table of positions that no text uses.
        reads_two_ends: bool, whether there are two ends between the texts of a pair.
    """

    model_type: str
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
    sentence_problem: str | None = None
    first_position: Callable = lambda padding: 0
    reads_two_ends: bool = False

    @property
    def described(self):
        """Its classes, for messages."""
        return f"{self.class_prefix}{min(self.heads, key=len)}{' or another' if len(self.heads) > 1 else ''}"

    def read(self, path, document):
        """Returns what `config.json` says, with usual values. Raises `UserError`, which names what is wrong."""
        config = dict(document)
        for field in self.fields:
            if field.is_read:
                field.read(path, config)
        self.complete(path, config)
        return config

    def arguments(self, config):
        """Returns {argument of our model's constructor: value} of what `read` returned."""
        fields = [f for f in reversed(self.fields) if f.argument and f.is_read and f.name in config]
        return self.options | {f.argument: f.ours(config[f.name]) for f in fields}  # of several the first one counts

    def written(self, config, class_name, facts):
        """Returns the `config.json` of a model of ours: {name: value}.

        Args:
            config: dict, the constructor's arguments.
            class_name: str, of its class there.
            facts: {name: value} of fields that these do not say.
        """
        facts = {"architectures": [class_name], "model_type": self.model_type, **facts}
        fields = [field for field in self.fields if field.is_written or field.name in facts]
        return {f.name: facts[f.name] if f.name in facts else f.written(config) for f in fields}

    def supported(self, config):
        """Returns {argument: tuple of the values that are possible there; None: any} of our model's constructor."""
        values = {f.argument: f.values and tuple(dict.fromkeys(f.values.values())) for f in self.fields if f.argument}
        options = {name: (False, True) if name.endswith("_bias") else (v,) for name, v in self.options.items()}
        head_size = config["hidden_size"] // config["num_heads"]
        sizes = dict.fromkeys(("key_dim", "value_dim"), (None, head_size))
        return {**sizes, "attention_bias": (False, True), **values, **options, **self.limits(config)}


def hparams_of(arguments, model_class, base=None):
    """Returns HParams, by default the usual ones, that make a model of these arguments of its constructor."""
    settings = model_settings(model_class).values()
    values = {s.name: to_hparam(s, arguments) for s in settings if s.argument in arguments}
    return (base or HParams()).of_model(model_class).override_from_dict(values)


def check(path, name, value, is_right, expected):
    """Raises `UserError` unless a value `is_right`."""
    if not is_right:
        raise UserError(f"{path}: {name}={shown(value).strip(chr(39))}. Expected {expected}.")

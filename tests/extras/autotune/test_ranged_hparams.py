"""Ranges that users register: what may be in them, and what the answer to a mistake is."""

import math

import pytest

from t2t_lite import registry
from t2t_lite.errors import UnknownName, UserError
from t2t_lite.extras.autotune.ranged_hparams import RangedHParams


@pytest.fixture
def registered():
    """Registers functions, and takes them out again."""
    names = []

    def register(function, *name):
        names.append(name[0] if name else function.__name__)
        return registry.register_ranged_hparams(*name)(function) if name else registry.register_ranged_hparams(function)

    yield register
    for name in names:
        registry.register_ranged_hparams.__self__.remove(name)


def test_register_and_look_up(registered):
    def own_range(rhp):
        registry.ranged_hparams("transformer_base_range")(rhp)
        rhp.set_float("learning_rate_constant", 1.0, 2.0)

    assert registered(own_range) is own_range
    assert registry.ranged_hparams("own_range") is own_range
    registered(own_range, "another_range")
    assert {"own_range", "another_range", "transformer_base_range"} <= {*registry.list_ranged_hparams()}
    assert "RangedHParams:\n" in registry.help_string() and "* own_range" in registry.help_string()
    with pytest.raises(UnknownName, match="Nearest: own_range"):
        registry.ranged_hparams("own_rang")
    ranges = RangedHParams()
    own_range(ranges)
    assert (ranges.ranges["learning_rate_constant"].least, ranges.ranges["learning_rate_constant"].most) == (1, 2)


@pytest.mark.parametrize("function", [lambda: None, lambda a, b: None, lambda *a: None])
def test_a_function_has_one_argument(function):
    with pytest.raises(UserError, match="must be a function of one argument"):
        registry.register_ranged_hparams("wrong")(function)


@pytest.mark.parametrize(
    "name", ["transformer_base_range", "transformer_regularization_range", "encoder_fine_tuning_range"]
)
def test_built_in_ranges_are_of_hyperparameters_that_exist(name):
    ranges = RangedHParams()
    registry.ranged_hparams(name)(ranges)
    ranges.check(registry.hparams("transformer_base"), name)


def test_tensor2tensor_s_range():
    ranges = RangedHParams()
    registry.ranged_hparams("transformer_base_range")(ranges)
    found = {name: (each.least, each.most, each.points, each.scale) for name, each in ranges.ranges.items()}
    assert found == {
        "learning_rate_constant": (0.3, 3.0, (), ranges.LOG_SCALE),
        "learning_rate_warmup_steps": (None, None, (1000, 2000, 4000, 8000, 16000), ranges.LINEAR_SCALE),
        "initializer_gain": (0.5, 2.0, (), ranges.LINEAR_SCALE),
        "optimizer_adam_beta1": (0.85, 0.95, (), ranges.LINEAR_SCALE),
        "optimizer_adam_beta2": (0.97, 0.99, (), ranges.LINEAR_SCALE),
        "weight_decay": (0.0, 1e-4, (), ranges.LINEAR_SCALE),
    }


def test_bounds_are_included_and_may_be_equal():
    ranges = RangedHParams()
    ranges.set_float("label_smoothing", 0.1, 0.1)
    ranges.set_int("num_heads", 1, 4096, scale=ranges.LOG_SCALE)
    ranges.set_discrete("batch_size", (512, 256, 512), scale=ranges.LOG_SCALE)
    ranges.set_categorical("optimizer", range(2))
    ranges.set_categorical("optimizer", ["adam"])  # replaces it
    ranges.check(registry.hparams("transformer_tiny"), "--hparams_range=range")
    points = {name: each.points for name, each in ranges.ranges.items() if each.points}
    assert points == {"batch_size": (512, 256), "optimizer": ("adam",)}


def test_other_built_in_ranges():
    """BERT's appendix A.3 has the rates 2e-5, 3e-5 and 5e-5; RoBERTa's table 10 has 1e-5, 2e-5 and 3e-5."""
    ranges = RangedHParams()
    registry.ranged_hparams("encoder_fine_tuning_range")(ranges)
    registry.ranged_hparams("transformer_regularization_range")(ranges)
    found = {name: each.facts() for name, each in ranges.ranges.items()}
    rates = {"name": "learning_rate_constant", "kind": "discrete", "points": [1e-5, 2e-5, 3e-5, 5e-5]}
    assert found.pop("learning_rate_constant") == {**rates, "least": None, "most": None, "scale": ranges.LINEAR_SCALE}
    assert {name: (one["kind"], one["least"], one["most"], one["scale"]) for name, one in found.items()} == {
        "layer_prepostprocess_dropout": ("float", 0.0, 0.5, 1), "attention_dropout": ("float", 0.0, 0.3, 1),
        "relu_dropout": ("float", 0.0, 0.3, 1), "label_smoothing": ("float", 0.0, 0.2, 1),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: r.set_float("label_smoothing", 0.2, 0.1), "0.2 to 0.1 is empty"),
        (lambda r: r.set_float("label_smoothing", 0.0, 0.1, scale=r.LOG_SCALE), "logarithmic scale"),
        (lambda r: r.set_int("num_heads", 0, 8, scale=r.REVERSE_LOG_SCALE), "logarithmic scale"),
        (lambda r: r.set_float("label_smoothing", 0.0, math.nan), "nan: expected a finite number"),
        (lambda r: r.set_float("label_smoothing", "0", 0.1), "'0': expected a finite number"),
        (lambda r: r.set_int("num_heads", 1.5, 8), "1.5: expected a whole number"),
        (lambda r: r.set_float("label_smoothing", 0.0, 0.1, scale="log"), "scale='log': expected rhp.LINEAR_SCALE"),
        (lambda r: r.set_discrete("num_heads", []), r"\[\]: expected a list"),
        (lambda r: r.set_categorical("optimizer", "adam"), "'adam': expected a list"),
        (lambda r: r.set_categorical("optimizer", [None]), "None: expected a number, text, true or false"),
        (lambda r: r.set_discrete("num_heads", [1], length=3), "length=3: "),
        (lambda r: r.set_int("num_heads", 1, 8, length=3), "length=3: "),
        (lambda r: r.set_discrete("num_heads", [1], scale=4), "scale=4: "),
        (lambda r: r.set_int("num_heads", True, 8), "True: expected a whole number"),
        (lambda r: r.set_float("label_smoothing", 0.0, math.inf), "inf: expected a finite number"),
    ],
)
def test_mistakes_in_a_range(call, words):
    with pytest.raises(UserError, match=words):
        call(RangedHParams())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: None, "range: no range is set"),
        (
            lambda r: r.set_float("label_smothing", 0.0, 0.1),
            "'label_smothing' is not a hyperparameter. Nearest: label_",
        ),
        (lambda r: r.set_float("learning_rate", 0.1, 1.0), "Set learning_rate_constant to 10 times"),
        (lambda r: r.set_int("random_seed", 1, 5), "random_seed .*cannot vary"),
        (lambda r: r.set_int("eval_beam_size", 1, 5), "eval_beam_size .*cannot vary"),
        (lambda r: r.set_float("label_smoothing", 0.0, 1.0), "label_smoothing=1.0: expected a number at least 0 and"),
        (lambda r: r.set_discrete("num_heads", [4, 5000]), "num_heads=5000: expected a whole number from 1 to 4,096"),
        (lambda r: r.set_categorical("optimizer", ["adam", "adm"]), "optimizer=adm: expected one of"),
        (lambda r: r.set_float("num_heads", 1, 4), "num_heads: its values are integers. Expected set_int"),
        (lambda r: r.set_int("attention_bias", 0, 1), "attention_bias: its values are not numbers. Expected set_cat"),
        (lambda r: r.set_int("optimizer", 0, 1), "optimizer: its values are not numbers. Expected set_categorical"),
    ],
)
def test_ranges_that_a_set_cannot_have(call, words):
    ranges = RangedHParams()
    call(ranges)
    with pytest.raises(UserError, match=words):
        ranges.check(registry.hparams("transformer_tiny"), "--hparams_range=range")

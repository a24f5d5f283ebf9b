"""What a model says of itself, and copies that it makes from what it says."""

import copy
import json
import pickle

import keras
import numpy as np
import pytest

from t2t_lite.models.transformer_parts import TransformerModel
from tests.layers.equations import array
from tests.models.keras_methods.table import Outer, method, same


def summed_up(model, **options):
    """Returns the lines of a summary."""
    lines = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "250")  # of a terminal that breaks no line
        model.summary(print_fn=lines.append, line_length=250, **options)
    return "\n".join(lines)


def check_summary(model):
    """Asserts that a summary has each layer with its numbers of parameters, and their sums, in all forms."""
    for options in ({}, {"expand_nested": True}, {"show_trainable": True}, {"layer_range": [model.layers[0].name] * 2}):
        text = summed_up(model, **options)
        for layer in model.layers[:1] if "layer_range" in options else model.layers:
            line = next(line for line in text.splitlines() if f" {layer.name} (" in line)
            assert f" {layer.count_params():,} " in line, line
        optimizer = model.optimizer if model.compiled and model.optimizer.built else None
        of_optimizer = [int(np.prod(variable.shape)) for variable in optimizer.variables] if optimizer else []
        assert f"Total params: {model.count_params() + sum(of_optimizer):,} " in text
        of_trainable = sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)
        assert f"Trainable params: {of_trainable:,} " in text


@method("summary", "build", of_kinds=True, is_quick=True)
def summary(case):
    model = case.compiled(model=case.fresh())
    check_summary(model)
    model(case.x)
    check_summary(model)
    model.train_on_batch(case.x, case.y)
    assert "Optimizer params: " in summed_up(model)
    check_summary(model)
    model.save(case.folder / "model.keras")
    check_summary(keras.saving.load_model(case.folder / "model.keras"))
    model.layers[0].trainable = False
    check_summary(model)


@method()
def summary_with_lora(case):
    model = case.fresh()
    if not isinstance(model, TransformerModel):
        pytest.skip("it has no LoRA")
    model.enable_lora(2)
    check_summary(model)


@method()
def summary_of_a_model_around_it(case):
    symbols = {f: keras.Input(ids.shape[1:], dtype="int32", name=f) for f, ids in case.x.items()}
    check_summary(keras.Model(symbols, case.model(symbols)))
    outer = Outer(case.fresh())
    outer(case.x)
    check_summary(outer)
    unbuilt = Outer(case.row.unbuilt())
    unbuilt(case.x)
    check_summary(unbuilt)


@method(
    "count_params", "weights", "variables", "trainable_weights", "trainable_variables", of_kinds=True, is_quick=True
)
def count_params(case):
    model = case.model
    assert model.count_params() == sum(array(weight).size for weight in model.weights)
    assert len({id(weight) for weight in model.weights}) == len(model.weights)
    assert model.trainable_variables == model.trainable_weights


@method("get_config", "from_config", "to_json", of_kinds=True, is_quick=True)
def get_config(case):
    config = case.model.get_config()
    assert json.loads(json.dumps(config)) is not None
    again = type(case.model).from_config(config)
    assert again.get_config() == config
    again.build()
    again.set_weights(case.model.get_weights())
    same(case.logits(again), case.logits(case.model), 0)
    of_json = keras.models.model_from_json(case.model.to_json())
    assert type(of_json) is type(case.model) and of_json.get_config() == config


@method()
def clone_model(case):
    clone = keras.models.clone_model(case.model)
    assert type(clone) is type(case.model) and clone.get_config() == case.model.get_config()
    clone.build()
    clone.set_weights(case.model.get_weights())
    same(case.logits(clone), case.logits(case.model), 0)
    clone.weights[0].assign(array(clone.weights[0]) + 1)
    assert not np.array_equal(array(clone.weights[0]), array(case.model.weights[0]))


@method()
def copies(case):
    expected = case.logits(case.model)
    for made in (copy.deepcopy(case.model), pickle.loads(pickle.dumps(case.model)), copy.copy(case.model)):
        assert type(made) is type(case.model)
        same(case.logits(made), expected, 0)
    fitted = case.compiled(keras.optimizers.Adam(0.01), case.fresh())
    fitted.train_on_batch(case.x, case.y)
    made = pickle.loads(pickle.dumps(fitted))
    assert int(made.optimizer.iterations) == 1
    same(made.get_weights(), fitted.get_weights(), 0)


@method("get_layer", "layers", is_quick=True)
def get_layer(case):
    for index, layer in enumerate(case.model.layers):
        assert case.model.get_layer(layer.name) is case.model.get_layer(index=index) is layer
    with pytest.raises(ValueError, match="No such layer: nobody"):
        case.model.get_layer("nobody")


@method(
    "path", "dtype", "dtype_policy", "compute_dtype", "variable_dtype", "input_dtype", "supports_masking", is_quick=True
)
def representation(case):
    model = case.model
    assert repr(model) == f"<{type(model).__name__} name={model.name}, built=True>" == str(model)
    for layer in model._flatten_layers():
        assert layer.name in repr(layer)
    assert model.path == model.name
    assert {model.dtype, model.compute_dtype, model.variable_dtype, model.dtype_policy.name} == {"float32"}


@method()
def model_to_dot(case):
    pytest.importorskip("pydot")
    dot = keras.utils.model_to_dot(case.model, show_shapes=True, expand_nested=True)
    assert type(case.model).__name__ in dot.to_string()

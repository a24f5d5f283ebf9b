"""Gives a model's weights and their moving averages stable names, which are used in checkpoints."""

import contextlib
import os
import re

import numpy as np
import tensorflow as tf

from t2t_lite.errors import UserError, first_line
from t2t_lite.files import exists, plain_path
from t2t_lite.layers.dense import merged

_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"


def named_weights(model):
    """Returns {name: Keras variable} of all weights, such as `encoder_0/feed_forward/network/inner/kernel`.

    The names do not depend on other models in the process. Keras names the first unnamed layer `dense` and a later
    layer `dense_7`. Here such numbers start from 0 in each model, and are omitted for a single layer.
    """
    paths = [_without_stacks(weight.path.split("/")[1:]) for weight in model.weights]  # without the model's name
    variants = {}
    for part in (part for path in paths for part in path):
        numbered = variants.setdefault(_base(part), [])
        if part not in numbered:
            numbered.append(part)

    def stable(part):
        base = _base(part)
        return f"{base}_{variants[base].index(part)}" if len(variants[base]) > 1 else base

    weights = {}
    for path, weight in zip(paths, model.weights, strict=True):
        name = "/".join(map(stable, path))
        if name in weights:
            raise ValueError(f"two weights of {model.name} are named {name}. Give their layers different names.")
        weights[name] = weight
    return weights


def _without_stacks(parts):
    """Removes the name of a stack if the name of its layer begins with it: `encoder/encoder_0` becomes `encoder_0`."""
    return [part for part, inner in zip(parts, [*parts[1:], ""], strict=True) if not inner.startswith(f"{part}_")]


def _base(part):
    return re.sub(r"_\d+$", "", part)


def trackable_weights(model):
    """Returns the object to save and restore as `model` in a `tf.train.Checkpoint`.

    The object is not the model itself, in which weights would be named after attributes.
    """
    return trackable({name: weight.value for name, weight in named_weights(model).items()})


def trackable(variables):
    """Returns a `tf.train.Checkpoint` that saves {"a/b": variable} under these names."""

    def nest(node):
        return tf.train.Checkpoint(**{k: nest(v) if isinstance(v, dict) else v for k, v in node.items()})

    return nest(nested(variables))


def nested(variables):
    """Converts {"a/b": variable} to {"a": {"b": variable}}, which a `tf.Module` saves under the same names."""
    tree = {}
    for name, variable in variables.items():
        *folders, last = name.split("/")
        node = tree
        for folder in folders:
            node = node.setdefault(folder, {})
        node[last] = variable
    return tree


class Damaged(UserError):
    """Raised for a checkpoint that cannot be read, or for weights with NaN or infinity."""


def open_checkpoint(path):
    """Returns the reader of a checkpoint (without suffix), even if TensorFlow would treat its path as a pattern."""
    return tf.train.load_checkpoint(plain_path(path))


def saved_shapes(path, name="model"):
    """Returns {name: shape} of the weights of the model named `name` in a checkpoint (without suffix).

    Raises:
        Damaged: the checkpoint cannot be read.
    """
    try:
        shapes = open_checkpoint(path).get_variable_to_shape_map()
    except Exception as error:  # TensorFlow's reader may raise any error for untrusted bytes
        raise Damaged(unreadable(path, error)) from error
    return {weight_name(key, name): tuple(shape) for key, shape in shapes.items() if key.startswith(f"{name}/")}


def unreadable(path, error, remedy="Copy it again."):
    """Returns the message for a checkpoint that is damaged, or that has been deleted since it was found."""
    if exists(f"{path}.index") or os.path.basename(path) == "variables":  # no trainer deletes a part of an export
        return f"{path}: damaged, or a part of it is missing: {first_line(error)}. {remedy}"
    return (
        f"{path}: has been deleted since this command began, perhaps by a running t2t-trainer, which keeps only "
        "--keep_checkpoint_max checkpoints. Run the command again."
    )


def weight_name(key, name="model"):
    """Returns a weight's name in the model named `name`, given its key in a checkpoint."""
    return key.removeprefix(f"{name}/").removesuffix(_SUFFIX)


def assign_saved(path, weights, name="model", added=None):
    """Sets weights, {name: variable}, to their values in a checkpoint, which may have a different dtype.

    Args:
        path: str, path of a checkpoint, without suffix.
        weights: {name: variable}.
        name: the name of the model in the checkpoint.
        added: {name of a kernel: (name of A, name of B, factor)}, the LoRA matrices that are added to kernels.
    """
    reader = open_checkpoint(path)
    reader.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")  # stored last, so that a truncated file raises an error
    for key, weight in weights.items():
        value = saved_value(reader, path, key, name)
        if added and key in added:
            *pair, factor = added[key]
            value = merged(value, *(saved_value(reader, path, matrix, name) for matrix in pair), factor)
        # Cast by NumPy, because TensorFlow's allocator would keep the memory of both arrays.
        weight.assign(np.asarray(value).astype(tf.as_dtype(weight.dtype).as_numpy_dtype, copy=False))


def saved_value(reader, path, key, name="model"):
    """Reads a weight of the model named `name`, as an array, from the reader of the checkpoint `path`.

    Raises:
        Damaged: the weight contains NaN or infinity.
    """
    value = reader.get_tensor(f"{name}/{key}{_SUFFIX}")
    check_finite(path, {key: value})
    return value


def check_finite(where, weights):
    """Raises `Damaged`, with the name of the first bad weight, if {name: array} contains NaN or infinity.

    Args:
        where: str, the source of the weights: a checkpoint or a file.
        weights: {name: array of any dtype}.
    """
    for name, value in weights.items():
        value = np.asarray(value)
        if tf.as_dtype(value.dtype).is_floating and not (finite := np.isfinite(value)).all():
            raise Damaged(
                f"{where}: {name}: {np.size(finite) - np.count_nonzero(finite):,} of {np.size(finite):,} numbers are "
                "NaN or infinite. Such a model cannot be used. Choose an earlier checkpoint, or train it again."
            )


def check_fits(path, model, apart=(), name="model"):
    """Raises `UserError` unless the names and shapes of a checkpoint's weights are those of `model`.

    Args:
        path: str, path of a checkpoint, without suffix.
        model: a built Keras model.
        apart: names of weights that are not compared.
        name: the name of the model in the checkpoint.
    """
    saved = saved_shapes(path, name)
    shapes = {name: tuple(weight.shape) for name, weight in named_weights(model).items()}
    for key in sorted({*saved, *shapes} - {*apart}):
        saved_shape, shape = saved.get(key), shapes.get(key)
        if saved_shape != shape:
            raise UserError(
                f"{path}: does not match this model: {key} is {shape_text(saved_shape)} there, but {shape_text(shape)} "
                "in the model. Expected the settings with which it was trained."
            )


def shape_text(shape):
    """Formats a shape as "8 x 16" or "a scalar", or returns "missing" for None."""
    if shape is None:
        return "missing"
    return " x ".join(map(str, shape)) or "a scalar"


def averages(model, optimizer):
    """Returns {weight's name: Keras variable}, with the moving average in place of each trainable weight.

    If the optimizer keeps no averages, the result is `named_weights`.

    Args:
        model: a built Keras model.
        optimizer: the model's built Keras optimizer.
    """
    weights = named_weights(model)
    if not optimizer.use_ema:
        return weights
    of = {id(v): a for v, a in zip(model.trainable_variables, optimizer._model_variables_moving_average, strict=True)}
    return {name: of.get(id(weight), weight) for name, weight in weights.items()}


def start_averages(model, optimizer):
    """Sets the moving averages to the current weights.

    Keras does so only in the first training step, and evaluations may come before this step.
    """
    weights = named_weights(model)
    for name, average in averages(model, optimizer).items():
        if average is not weights[name]:
            average.assign(weights[name].value)


@contextlib.contextmanager
def averaged_weights(model, optimizer):
    """Context manager that replaces the model's weights with their averages, and then restores them bit for bit."""
    pairs = zip(named_weights(model).values(), averages(model, optimizer).values(), strict=True)
    pairs = [(weight, average) for weight, average in pairs if weight is not average]
    trained = [weight.numpy() for weight, _ in pairs]
    for weight, average in pairs:
        weight.assign(average.value)
    try:
        yield
    finally:
        for (weight, _), value in zip(pairs, trained, strict=True):
            weight.assign(value)

"""Fine-tuning with frozen parts of a model and with LoRA (Hu et al. 2022, arXiv 2106.09685)."""

import math
import re

from t2t_lite.errors import LOGGER, UserError, counted, nearest
from t2t_lite.layers.checks import check_positive, check_required_sizes
from t2t_lite.layers.dense import Dense

HEAD, EMBEDDING, SOFTMAX = "head", "embedding", "softmax"  # the other parts are the stacks, under their own names
# the layer "projection" maps embeddings to hidden_size
_EMBEDDING = re.compile(r"^(?!.*softmax).*(embedding|position|(^|/)projection/)")
_RANGE = re.compile(r"(.+_)([0-9]{1,9})-([0-9]{1,9})")
# Kernels that `lora_targets` can name: the projections of attention, and both kernels of feed-forward networks.
TARGETS = ("query", "key", "value", "output", "filter")
_PROJECTION = re.compile(r"(query|key|value|output)_projection")
_LORA = re.compile(r"/lora_\w+_[ab]$")


def is_embedding(path):
    """Returns whether a weight belongs to the embeddings, given the weight's path without the model's name."""
    return bool(_EMBEDDING.search(path))


def parameters(layer):
    """Returns the trainable and frozen weights of a layer or model, but not its counters and seeds."""
    ids = {id(weight) for part in layer._flatten_layers() for weight in part._trainable_variables}
    return [weight for weight in layer.weights if id(weight) in ids]


def parts_of(model):
    """Returns the parts of a model that `frozen` can name, as {part: {layer name: weights}}.

    The parts are "embedding" (everything before the layers: ids, positions and segments, with their normalization), the
    stacks "encoder" and "decoder" with their final normalizations, "softmax" if it is a separate matrix, and "head"
    (`SequenceModel.head_weights`). Any other weight belongs to a part named after its layer. Each
    weight belongs to exactly one part.

    Args:
        model: a built keras.Model, whose weights may have shapes but no values.
    """
    parts, left = {}, {id(weight) for weight in parameters(model)}

    def add(part, name, weights):
        remaining = [weight for weight in weights if id(weight) in left]
        left.difference_update(map(id, remaining))
        if remaining:
            parts.setdefault(part, {}).setdefault(name, []).extend(remaining)

    stacks = getattr(model, "stacks", dict)()
    heads = getattr(model, "head_weights", list)()
    looked_up, softmax = [*getattr(model, "token_embeddings", dict)().values()], getattr(model, "softmax", None)
    for weight in heads:
        add(HEAD, HEAD, [weight])
    for layer in looked_up:
        add(EMBEDDING, layer.name, layer.weights)
    if softmax is not None:
        add(SOFTMAX, softmax.name, softmax.weights)
    for stack in stacks.values():
        for layer in stack.layers:
            add(stack.name, layer.name, layer.weights)
        add(stack.name, stack.name, stack.weights)
    names = [stack.name for stack in stacks.values()]
    for layer in model.layers:
        stack_name = next((name for name in names if layer.name.startswith(f"{name}_")), layer.name)
        add(EMBEDDING if is_embedding(f"{layer.name}/") else stack_name, layer.name, layer.weights)
    for weight in model.weights:  # weights that do not belong to a layer
        add(EMBEDDING if stacks else weight.name, weight.name, [weight])
    order = [EMBEDDING, *names, SOFTMAX, HEAD]
    return dict(sorted(parts.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


def fine_tune(model, hparams):
    """Adds LoRA to a built model and freezes weights, as set by hyperparameters; a second call has no effect.

    Frozen weights have no gradients, and frozen kernels have no LoRA. With LoRA, only the LoRA matrices and the heads
    are trained. But if `frozen` names parts, only these parts and the kernels with LoRA are frozen.

    Args:
        model: keras.Model, whose weights may have shapes but no values. A model that has no weights before its first
            call is not changed.
        hparams: HParams, of which only frozen, lora_rank, lora_alpha and lora_targets are used.

    Raises:
        UserError: if the model lacks a part that `frozen` names, or lacks layers for LoRA; nothing is left to train; or
            `lora_alpha` or `lora_targets` is given without `lora_rank`.
    """
    for name in ("lora_alpha", "lora_targets"):
        if (value := getattr(hparams, name)) and not hparams.lora_rank:
            shown = f"{value:g}" if isinstance(value, float) else value
            raise UserError(f"{name}={shown} has no effect without lora_rank. Also set lora_rank, for example to 8.")
    if not model.weights:
        return
    frozen = _named(model, hparams.frozen) if hparams.frozen else []
    if hparams.lora_rank:
        _add_lora(model, hparams.lora_rank, hparams.lora_alpha or None, frozen, hparams.lora_targets)
    if frozen:
        freeze(model, frozen)
    elif hparams.lora_rank:
        _freeze_all_but_heads(model)


def enable_lora(model, rank, lora_alpha=None, targets=""):
    """Adds LoRA to a built model: see `keras.layers.Dense.enable_lora`.

    Two small matrices are added to each kernel W of attention and feed-forward networks: W + (lora_alpha / rank) A B. B
    is initialized with zeros, so the outputs do not change at first. Layers with a description in `without_lora` and
    frozen layers (`trainable=False`) are skipped. Only the added matrices and the weights of heads are trained, unless
    they are frozen; all other weights become frozen.

    Args:
        model: a built keras.Model.
        rank: int, r, the number of columns of A and rows of B.
        lora_alpha: float. Defaults to rank.
        targets: str, the kernels with LoRA, such as "query/value", as in the hyperparameter `lora_targets`; "" for all.

    Raises:
        UserError: if the model has no such layers, or all of them are frozen or have LoRA already.
        ValueError: if `rank` is not a positive integer, or `lora_alpha` is not above 0.
    """
    check_required_sizes(rank=rank)
    if lora_alpha is not None:
        check_positive(lora_alpha=lora_alpha)
    trained = [layer for layer in _lora_layers(model) if layer.trainable]
    if trained and all(layer.lora_enabled for layer in trained):
        raise UserError(
            f"{type(model).__name__} already has LoRA of rank {trained[0].lora_rank}. Call merge_lora before you add "
            "LoRA again."
        )
    _add_lora(model, rank, lora_alpha, targets=targets)
    _freeze_all_but_heads(model)


def describe_frozen(model, text):
    """Returns a log line with the layers and the number of weights that `frozen` names in a model.

    Args:
        model: a built keras.Model.
        text: str, the value of the hyperparameter `frozen`, not empty.
    """
    chosen = {id(weight) for weight in _named(model, text)}
    layers = {name: weights for part in parts_of(model).values() for name, weights in part.items()}
    names = [name for name, weights in layers.items() if any(id(weight) in chosen for weight in weights)]
    numbers = sum(math.prod(weight.shape) for weight in model.weights if id(weight) in chosen)
    return f"frozen={text}: {counted(numbers, 'weight')} of {', '.join(names)}"


def merge_lora(model):
    """Merges LoRA into a model's kernels, without changing the outputs, and makes all weights trainable again.

    A model without LoRA is not changed.

    Raises:
        ValueError: if the model is quantized.
    """
    layers = [part for part in model._flatten_layers() if isinstance(part, Dense) and part.lora_enabled]
    for layer in layers:
        layer.merge_lora()
    if layers:
        model.trainable = False  # with TensorFlow, setting an attribute to its own value has no effect
        model.trainable = True


def freeze(model, weights):
    """Freezes some weights of a model; a layer whose weights are all frozen becomes `trainable=False`, as in Keras."""
    frozen = {id(weight) for weight in weights}
    trained = [weight for weight in model.trainable_weights if id(weight) not in frozen]
    if not trained:
        raise UserError(f"frozen leaves the model {type(model).__name__} without weights to train. Freeze fewer parts.")
    for layer in model._flatten_layers(include_self=False):
        weights_of_layer = parameters(layer)
        if weights_of_layer and all(id(weight) in frozen for weight in weights_of_layer):
            layer.trainable = False
    for weight in weights:
        weight.trainable = False


def _freeze_all_but_heads(model):
    head_ids = {id(weight) for weight in getattr(model, "head_weights", list)()}
    freeze(model, [w for w in parameters(model) if id(w) not in head_ids and not _LORA.search(w.path)])


def _add_lora(model, rank, alpha, frozen=(), targets=""):
    """Adds LoRA to all kernels of the targets, except kernels in `frozen` and kernels that are already frozen."""
    layers = _lora_layers(model)
    if not layers:
        raise UserError(
            f"lora_rank={rank}: the model {type(model).__name__} has no attention or feed-forward layers to add LoRA "
            "to. Set lora_rank=0. To train only some of the weights, use frozen=…, which works with any model."
        )
    for name in dict.fromkeys(getattr(part, "without_lora", None) for part in model._flatten_layers()):
        if name:
            LOGGER.warning(f"LoRA is not added to {name}, which stay frozen")
    layers = _targeted(layers, targets, type(model).__name__)
    frozen = {id(weight) for weight in frozen}
    layers = [layer for layer in layers if layer.trainable and id(layer._kernel) not in frozen]
    if not layers:
        raise UserError(
            f"lora_rank={rank}: all layers of the model {type(model).__name__} that could have LoRA are frozen. Freeze "
            "fewer parts, or set lora_rank=0."
        )
    for layer in layers:
        if not layer.lora_enabled:
            layer.enable_lora(rank, lora_alpha=alpha)


def _lora_layers(model):
    """Returns the dense layers in a model's stacks, to which LoRA can be added."""
    candidates = (part for stack in getattr(model, "stacks", dict)().values() for layer in stack.layers
                  for part in layer._flatten_layers())  # fmt: skip
    return [part for part in dict.fromkeys(candidates) if isinstance(part, Dense)]


def target_of(layer):
    """Returns the name in `TARGETS` for a dense layer of a stack, such as "query"."""
    match = _PROJECTION.fullmatch(layer.name)
    return match[1] if match else "filter"


def _targeted(layers, targets, name):
    """Returns the layers that `lora_targets` names. Raises `UserError` for unknown names or missing kernels."""
    words = [word.strip() for word in targets.split("/")] if targets else TARGETS
    expected = f"Expected one or more of these, with / between them: {', '.join(TARGETS)}."
    for word in words:
        if word not in TARGETS:
            raise UserError(f"lora_targets={targets}: {nearest(word, TARGETS, end=' ')}{expected}")
        if targets and not any(target_of(layer) == word for layer in layers):
            raise UserError(f"lora_targets={targets}: the model {name} has no kernel named {word}. {expected}")
    return [layer for layer in layers if target_of(layer) in words]


def _named(model, text):
    """Returns the weights of the parts and layers named in `frozen`."""
    parts, named = parts_of(model), []
    by_name = {name: weights for layers in parts.values() for name, weights in layers.items()}
    words = [word for word in map(str.strip, text.split("/")) if word]
    where = f"frozen={text}: the model {type(model).__name__}"
    expected = f"Expected one or more of these, with / between them: {_shown_parts(parts)}."
    if not words:
        raise UserError(f"frozen={text} does not name a part. {expected}")
    for name in (name for word in words for name in _layer_names(word)):
        if name not in parts and name not in by_name:
            raise UserError(f"{where} has no part {name}. {nearest(name, [*parts, *by_name], end=' ')}{expected}")
        named += by_name[name] if name not in parts else [w for group in parts[name].values() for w in group]
    return named


def _layer_names(word):
    """Expands a range of layer names: `encoder_0-2` yields three names."""
    numbers = _RANGE.fullmatch(word)
    if numbers and int(numbers[2]) <= int(numbers[3]):
        yield from (f"{numbers[1]}{i}" for i in range(int(numbers[2]), int(numbers[3]) + 1))
    else:
        yield word


def _shown_parts(parts):
    """Formats the parts of a model with the names of their layers, such as "embedding, encoder (encoder_0-5)"."""

    def shown(part, names):
        numbered = [name for name in names if re.fullmatch(rf"{re.escape(part)}_\d+", name)]
        if len(numbered) > 1:
            return f"{part} ({part}_0-{len(numbered) - 1})"
        others = [name for name in names if part == EMBEDDING and name != part]
        return f"{part} ({', '.join(others)})" if others else part

    return ", ".join(shown(part, layers) for part, layers in parts.items())

"""Estimates what the training of a model costs: operations, memory, and bytes to all-reduce."""

import dataclasses
import math

import keras

from t2t_lite.layers import Dropout, LayerNormalization, MultiHeadAttention, Residual
from t2t_lite.models.fine_tuning import parameters, parts_of

SENTENCE = 25  # assumed number of tokens per side; attention is then 1 % of the operations
# Attributes of Keras' dense, convolutional and recurrent layers that hold the matrices applied to each position.
_MATRICES = ("kernel", "recurrent_kernel", "depthwise_kernel", "pointwise_kernel")
_BYTES = {"float32": 4, "float64": 8}  # per number; all other dtypes have half precision
SCALARS = 3  # values all-reduced with the gradients: the objective, the loss in nats, and whether a machine stops


@dataclasses.dataclass(frozen=True)
class Flops:
    """Floating-point operations in the matrix products of a forward pass; a multiply-add counts as two.

    Attributes:
        per_token: {feature: float}, operations per token of a feature. In a model with an encoder and a
            decoder, "inputs" counts the encoder, and also the decoder's keys and values for the encoder's outputs;
            "targets" counts the rest of the decoder, and the softmax.
        saved: {feature: float}, operations per token that the backward pass skips because weights are frozen; {} if no
            weights are frozen.
    """

    per_token: dict
    saved: dict = dataclasses.field(default_factory=dict)

    def training(self, tokens):
        """Returns the operations to train on `tokens` tokens of each feature.

        The backward pass costs as much as two forward passes, minus the operations that it skips.
        """
        return tokens * (3 * sum(self.per_token.values()) - sum(self.saved.values()))


def assumed_lengths(model, hparams, longest_row=None):
    """Returns {feature: tokens per row}: `SENTENCE` for several features, otherwise the maximum length.

    `longest_row` is the problem's maximum length, or None if the problem is unknown.
    """
    longest = longest_row or min(hparams.max_length or hparams.batch_size, hparams.batch_size)
    longest = hparams.get("segment_length") or longest
    features = model.stacks() or [feature for feature, rank in model.needed_features.items() if rank == 2]
    return dict.fromkeys(features, SENTENCE if len(features) > 1 else longest)


def forward_flops(model, lengths, rows=1):
    """Counts the matrix products of a forward pass.

    If the model has a method `flops(lengths, rows)`, which returns {feature: operations per token}, the method is used.
    Otherwise the operations of the layers are added up: see `counted_flops`.

    Args:
        model: SequenceModel; only the shapes of its weights matter.
        lengths: {feature: int}, tokens per row.
        rows: int, rows per batch.

    Returns:
        Flops.
    """
    per_token = model.flops(lengths, rows) if hasattr(model, "flops") else counted_flops(model, lengths, rows)
    has_frozen = not all(weight.trainable for weight in parameters(model))
    return Flops(per_token, _saved_flops(model, lengths, rows) if has_frozen else {})


def counted_flops(model, lengths, rows=1):
    """Counts the matrix products of a forward pass, layer by layer.

    A layer is counted as often as it occurs in a stack. The softmax is counted only for the share of positions at which
    the model makes predictions (`predicted_share`). Every element of a weight matrix (dense layers with LoRA,
    convolutions, recurrent cells) costs 2 operations per position. If a layer has a method `flops(length)`, this method
    is used; it returns the operations for one position in a row of `length` positions, without those of inner layers.
    Attention over n positions costs 2 · h · d_k · n for the scores of one position and 2 · h · d_v · n for the weighted
    sums. Masked positions count, because they are computed; for attention patterns, `Pattern.seen` returns the number
    of positions. Relative attention counts its products with 2k + 1 vectors, but not their distribution over positions.
    The `context_length` positions of a memory are also attended to, and their keys and values are projected;
    Transformer-XL's distance matrix is applied to each distance once for all rows. Look-ups cost no operations. Not
    counted are additions, softmax, normalization and dropout, which are a few per cent of all operations, and the
    weights of user-defined layers without `flops`.

    In a model without `stacks`, each layer is assumed to run once over the positions of one feature: "inputs" if the
    layer's name begins with "encoder", otherwise "targets" (or the model's only feature). Models whose layers run
    differently define a method `flops`.

    Args:
        model: SequenceModel; only the shapes of its weights matter.
        lengths: {feature: int}, tokens per row.
        rows: int, rows per batch.

    Returns:
        {feature: float}, per token: see `Flops`.
    """
    flops, stacks = dict.fromkeys(lengths, 0), model.stacks()
    for feature, stack in stacks.items():
        for layer in stack.layers:
            sizes = lengths[feature], lengths.get("inputs", 0), model.context_length
            per_position, memory = _block_flops(layer, *sizes, rows)
            flops[feature] += per_position
            if memory:
                flops["inputs"] += memory
    if not stacks:
        apart = {id(layer) for layer in (model.softmax, *model.token_embeddings().values())}
        for layer in model._layers:
            if id(layer) not in apart:
                feature = "inputs" if layer.name.startswith("encoder") and "inputs" in flops else [*flops][-1]
                flops[feature] += layer_flops(layer, lengths[feature])
    if model.softmax is not None:
        matrices = [w.shape for w in model.softmax.weights if len(w.shape) > 1]
        flops[[*flops][-1]] += 2 * model.predicted_share * sum(map(math.prod, matrices))
    return flops


def layer_flops(layer, length, without=()):
    """Counts the operations of a layer's matrix products for one position in one pass, for a model's method `flops`.

    Args:
        layer: a Keras layer, counted with its inner layers.
        length: int, positions per row.
        without: iterable of the inner layers to leave out.

    Returns:
        int.
    """
    apart = {id(part) for part in without}
    return sum(_own_flops(part, length) for part in layer._flatten_layers() if id(part) not in apart)


def _block_flops(layer, length, memory_length, context, rows, only_frozen=False):
    """Returns a layer's operations as a pair: (per position of its own side, per position of the encoder's outputs).

    With `only_frozen`, only products with frozen kernels are counted.
    """
    cross, per_position, memory = _cross_attention(layer), 0, 0
    times = {}  # {layer: how often it is applied to each position}, unless it is applied once
    for part in layer._flatten_layers():
        if isinstance(part, MultiHeadAttention) and part is not cross:
            if context:
                times |= dict.fromkeys((part.key_projection, part.value_projection), 1 + context / length)
            if hasattr(part, "position_projection"):
                times[part.position_projection] = (2 * length + context) / (length * rows)
    for part in layer._flatten_layers():
        if only_frozen:
            kernel = getattr(part, "_kernel", None)
            flops = 0 if kernel is None or kernel.trainable else 2 * math.prod(kernel.shape)
        else:
            flops = _own_flops(part, memory_length if part is cross else length, **_before(part, cross, context))
        if cross is not None and part in (cross.key_projection, cross.value_projection):
            memory += flops
        else:
            per_position += flops * times.get(part, 1)
    return per_position, memory


def _own_flops(layer, length, **context):
    """Returns a layer's operations for one position, except those of inner layers."""
    if callable(method := getattr(layer, "flops", None)):
        return method(length, **context)
    if not isinstance(layer, keras.layers.Dense) and not type(layer).__module__.startswith("keras."):
        return 0
    matrices = [getattr(layer, name, None) for name in _MATRICES]
    if getattr(layer, "lora_enabled", False):
        matrices += [layer.lora_kernel_a, layer.lora_kernel_b]
    return sum(2 * math.prod(matrix.shape) for matrix in matrices if matrix is not None)


def _passed(model):
    """Returns {feature: [bool per layer of its stack]}, whether gradients pass through the layer."""
    passed, embedding = {}, parts_of(model).get("embedding", {})
    for feature, stack in model.stacks().items():
        now = any(weight.trainable for weights in embedding.values() for weight in weights)
        now = now or any(_cross_attention(layer) is not None and passed.get("inputs", [False])[-1:] == [True]
                         for layer in stack.layers)  # fmt: skip
        passed[feature] = []
        for layer in stack.layers:
            now = now or bool(layer.trainable_weights)
            passed[feature].append(now)
    return passed


def _saved_flops(model, lengths, rows):
    """Returns {feature: operations per token} that a backward pass skips because of frozen weights.

    No gradient is computed for a frozen kernel, nor for anything in a layer below all trained weights. The lowest
    trained layer skips slightly more than is counted here.
    """
    saved, stacks, passed = dict.fromkeys(lengths, 0), model.stacks(), _passed(model)
    to_memory = any(passed.get("inputs", ()))
    for feature, stack in stacks.items():
        for layer, is_passed in zip(stack.layers, passed[feature], strict=True):
            per_position, memory = _block_flops(
                layer, lengths[feature], lengths.get("inputs", 0), model.context_length, rows, only_frozen=is_passed
            )
            saved[feature] += per_position if is_passed else 2 * per_position
            if memory:
                saved["inputs"] += memory if is_passed and to_memory else 2 * memory
    if model.softmax is not None:
        matrices = [w for w in model.softmax.weights if len(w.shape) > 1 and not w.trainable]
        saved[[*saved][-1]] += 2 * model.predicted_share * sum(math.prod(w.shape) for w in matrices)
    return saved


def training_memory(model, hparams, lengths):
    """Estimates the memory of one training step on one replica, with `batch_size` tokens per side.

    The estimate adds up all tensors that exist at any time during the step. It includes neither the allocator's
    overhead nor the memory of the program itself (a few hundred MB). Measured peaks of a step on a CPU, minus the
    memory before the model was built, are 4.77 GB for base_v1 with 4,000 tokens and a vocabulary of 37,000 (estimate:
    4.47 GB), and 3.88 GB for base with sentences of 50 tokens and 8,000 ids (estimate: 3.51 GB). Accumulated batches
    are assumed to be computed one after another; TensorFlow needs more memory if it computes several at the same time.

    weights     w bytes per parameter (4 in float32 and mixed precision, 2 in bfloat16); 2 more in mixed precision, for
                the copies in half precision
    gradients   w bytes per trained parameter, 2 w with accumulation; a tied embedding counts twice (look-up, softmax)
    optimizer   2 w bytes per trained parameter with Adam, 0 with SGD, rows and columns with Adafactor; w more with
                ema_decay
    activations all values that the backward pass needs (a: 4 bytes in float32, 2 in half precision; a dropout mask:
                1 byte):
                  attention, per query: a · 2 h (d_k + d_v) for the query, key, value and output; for each head and
                    visible position, 4 for the softmax, a for the weights after dropout or in half precision, and the
                    mask; per position of a memory: a · h (d_k + d_v) for keys and values, (4 + 2 a) d for the state
                  feed-forward, per position: a · d_ff; 4 times that for gelu, swish and swiglu; once more with dropout,
                    and the mask
                  residual connection, per position: (4 + a) d for its normalization, and the mask
                  final normalization: (4 + a) d; sum of embedding and position: a · d, and the mask
                with recompute_grad, only a · d per layer, for its input, and the activations of one whole layer
                layers below all trained weights need no activations
    logits      12 bytes for each predicted token and id: the logits, their softmax, their gradient

    Args:
        model: SequenceModel with `stacks`; only the shapes of its weights matter.
        hparams: HParams: hidden_size, batch_size, optimizer, ema_decay, gradient_accumulation_steps, recompute_grad.
        lengths: {feature: int}, tokens per row, to which the size of attention weights is proportional.

    Returns:
        {"weights", "gradients", "optimizer", "activations", "logits": int, bytes}.
    """
    weights = sum(math.prod(w.shape) for w in parameters(model))
    trained, share = sum(math.prod(w.shape) for w in model.trainable_weights), model.predicted_share
    tied = any(layer is model.softmax for layer in model.token_embeddings().values())
    embedding = math.prod(model.softmax.embeddings.shape) if tied and model.softmax.embeddings.trainable else 0
    passed = _passed(model)
    stored, compute = (_BYTES.get(dtype, 2) for dtype in (model.variable_dtype, model.compute_dtype))
    hidden_size = hparams.hidden_size
    layers = [
        _layer_memory(layer, hidden_size, lengths[feature], lengths.get("inputs", 0), model.context_length, compute)
        for feature, stack in model.stacks().items()
        for layer, is_passed in zip(stack.layers, passed[feature], strict=True)
        if is_passed
    ] or [0]
    per_token = max(layers) + len(layers) * compute * hidden_size if hparams.recompute_grad else sum(layers)
    for layer in model.layers:  # layers outside the stacks
        if isinstance(layer, Dropout):  # after the sum of embeddings and positions
            per_token += hidden_size * (compute + (layer.rate > 0))
        elif isinstance(layer, LayerNormalization):
            per_token += (4 + compute) * hidden_size
    return {
        "weights": weights * (stored + compute * (compute != stored)),
        "gradients": stored * (trained * (2 if hparams.gradient_accumulation_steps > 1 else 1) + embedding),
        "optimizer": stored * _optimizer_numbers(model, hparams),
        "activations": round(hparams.batch_size * per_token),
        "logits": 0 if model.softmax is None else round(hparams.batch_size * share * 12 * model.softmax.vocab_size),
    }


def largest_batch_size(memory, batch_size, limit):
    """Returns the largest batch size that fits into `limit` bytes; 0 if not even one token fits.

    Args:
        memory: dict of bytes for `batch_size`: see `training_memory`. "activations" and "logits" grow with the batch.
        batch_size: int, tokens.
        limit: float, bytes.
    """
    growing = memory["activations"] + memory["logits"]
    return max(0, int((limit - sum(memory.values()) + growing) * batch_size // growing))


def all_reduced_bytes(parameters):
    """Returns the size in bytes of the float32 buffer that each step all-reduces, whatever the dtype policy."""
    return 4 * (parameters + SCALARS)


def sent_bytes(size, replicas):
    """Returns the number of bytes that each replica sends (and receives) in a ring all-reduce of `size` bytes.

    Every replica sends 1/N of the buffer in each of 2 (N - 1) turns: N - 1 turns to sum, and N - 1 turns to distribute
    the sum (Patarasuk and Yuan 2009).
    """
    return 2 * (replicas - 1) / replicas * size


def _optimizer_numbers(model, hparams):
    """Returns how many numbers the optimizer stores, in the dtype of the weights."""
    shapes = [tuple(w.shape) for w in model.trainable_weights]
    weights = sum(map(math.prod, shapes))
    if hparams.optimizer == "adafactor":
        factored = [s for s in shapes if hparams.optimizer_adafactor_factored and len(s) > 1]
        numbers = sum(math.prod(s) // s[-1] + math.prod(s) // s[-2] for s in factored)  # row and column statistics
        numbers += weights - sum(map(math.prod, factored))
        numbers += weights * (hparams.optimizer_adafactor_beta1 > 0)
    else:
        numbers = 0 if hparams.optimizer == "sgd" else 2 * weights
    return numbers + weights * (hparams.ema_decay > 0)


def _layer_memory(layer, hidden_size, length, memory_length, context, compute):
    """Returns the bytes per token that an encoder or decoder layer keeps for the backward pass."""
    cross = _cross_attention(layer)
    per_token = (4 + 2 * compute) * hidden_size * context / length if context else 0
    for part in layer._flatten_layers():
        if isinstance(part, Residual):
            per_token += (4 + compute + (part.dropout_rate > 0)) * hidden_size
        elif callable(method := getattr(part, "activations", None)):
            before = _before(part, cross, context)
            per_token += method(memory_length if part is cross else length, compute, **before)
    return per_token


def _before(layer, cross, context):
    """Returns {"context": number of memory positions} for attention that also sees a memory, otherwise {}."""
    return {"context": context} if context and isinstance(layer, MultiHeadAttention) and layer is not cross else {}


def _cross_attention(layer):
    residual = getattr(layer, "cross_attention", None)
    return None if residual is None else residual.layer


@dataclasses.dataclass(frozen=True)
class PaperCost:
    """The paper's estimate of the cost of training (section 6.1, table 2), and its schedule (sections 5.1, 5.2).

    Attributes:
        hours: float, training time on `gpus` P100 GPUs.
        steps: int.
        tokens: int, the number of source tokens per step, which is also the number of target tokens per step.
        gpus: int.
        sustained: float, the single-precision operations per second that the paper assumes for one GPU.
    """

    hours: float
    steps: int
    tokens: int = 25_000
    gpus: int = 8
    sustained: float = 9.5e12

    @property
    def flops(self):
        """The product of training time, number of GPUs and sustained operations per second."""
        return self.hours * 3600 * self.gpus * self.sustained


PAPER = {
    "transformer_base_v1": PaperCost(12, 100_000),
    "transformer_big_v1": PaperCost(84, 300_000),
    "transformer_big_enfr_v1": PaperCost(84, 300_000),
}

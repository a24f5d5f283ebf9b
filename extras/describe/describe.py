"""Describes a model's layers and training cost, without data, a GPU or weights."""

import collections
import dataclasses
import itertools
import math

from t2t_lite import registry
from t2t_lite.cli.console import table
from t2t_lite.errors import counted
from t2t_lite.extras.describe import cost
from t2t_lite.layers import TransformerStack
from t2t_lite.models.fine_tuning import parameters
from t2t_lite.models.sequence_model import SequenceModel
from t2t_lite.models.shapes_only import shapes_only as shapes_only
from t2t_lite.settings.config import HParams
from t2t_lite.settings.ranges import settings_of

_SIDES = {"inputs": "source ", "targets": "target "}


@dataclasses.dataclass(frozen=True)
class ModelPart:
    """A group of adjacent layers that have the same class and the same weight shapes.

    Attributes:
        names: tuple of str, names of the layers.
        weights: tuple of (str, tuple of int), names and shapes of one layer's weights.
        calls: int, how often each layer runs in a forward pass; more than once if layers share weights.
    """

    names: tuple
    weights: tuple
    calls: int = 1

    @property
    def parameters(self):
        """The number of parameters of one layer."""
        return sum(math.prod(shape) for _, shape in self.weights)


class Description:
    """What a model consists of and what its training costs; `text()` formats it for printing.

    Args:
        model: keras.Model, built. Only the shapes of its weights matter (see `shapes_only`).
        hparams: HParams that the model was made from.
        hparams_set: str, name of the hparams set, for a comparison with the paper's own estimate; "" if not known.
        train_steps: int.
        replicas: int, total number of replicas across all machines.
        gpu_memory: float, the memory per replica in GB, for which the largest batch size is estimated; None means no
            estimate.
        longest_row: int, the maximum number of tokens per row, see `manifests.longest_row`; None if the problem is
            unknown.

    Attributes:
        parts: list of ModelPart, in the order of the model.
        parameters: int, all weights, including frozen ones.
        trained_parameters: int, the weights that are not frozen.
        embedding_parameters: int, the weights of token embeddings and softmax.
        lengths: {feature: tokens per row}, the lengths for which the cost is counted; {} if the model is not a
            `SequenceModel`.
        flops: Flops of a forward pass; None if the model is not a `SequenceModel`.
        memory: dict of bytes, see `training_memory`; None if the model is not a `SequenceModel` or has no `stacks`.

    Example:
        >>> hparams = registry.hparams("transformer_base_v1")
        >>> model = shapes_only(registry.model("transformer"), hparams, vocab_size=37000)
        >>> Description(model, hparams).parameters
        63045632
    """

    def __init__(
        self, model, hparams, hparams_set="", train_steps=250_000, replicas=1, gpu_memory=None, *, longest_row=None
    ):
        self.hparams, self.hparams_set = hparams, hparams_set
        self.train_steps, self.replicas, self.gpu_memory = train_steps, replicas, gpu_memory
        hooked = isinstance(model, SequenceModel)
        embeddings = [*model.token_embeddings().values(), model.softmax] if hooked else []
        matrices = {id(layer.embeddings): layer.embeddings for layer in embeddings if layer is not None}
        self.parts = _parts(model)
        self.parameters = sum(math.prod(w.shape) for w in parameters(model))
        self.trained_parameters = sum(math.prod(w.shape) for w in model.trainable_weights)
        self.embedding_parameters = sum(math.prod(matrix.shape) for matrix in matrices.values())
        self.lengths = cost.assumed_lengths(model, hparams, longest_row) if hooked else {}
        rows = max(1, hparams.batch_size // max(self.lengths.values(), default=1))
        self.flops = cost.forward_flops(model, self.lengths, rows) if self.lengths else None
        self.memory = cost.training_memory(model, hparams, self.lengths) if hooked and model.stacks() else None

    @property
    def tokens_a_step(self):
        """The number of tokens of each feature in one step, over all replicas and including padding."""
        return self.hparams.batch_size * self.replicas * self.hparams.gradient_accumulation_steps

    @property
    def schedule_flops(self):
        """The number of floating-point operations in the whole training run."""
        return self.train_steps * self.flops.training(self.tokens_a_step)

    def text(self):
        """Returns the description as lines of text."""
        return "\n".join([*_settings_text(self.hparams), *_parts_text(self), "", *_cost_text(self)])


def _parts(model):
    """Groups the layers that have weights into a list of ModelPart."""
    outer = [_layers_of(layer) if isinstance(layer, TransformerStack) else [layer] for layer in model.layers]
    calls = collections.Counter(layer for parts in outer for layer in parts if parameters(layer))
    model_parts, inside = [], {id(w) for layer in calls for w in parameters(layer)}
    for _, alike in itertools.groupby(calls, key=lambda layer: (type(layer), _weights(layer), calls[layer])):
        alike = list(alike)
        model_parts.append(ModelPart(tuple(layer.name for layer in alike), _weights(alike[0]), calls[alike[0]]))
    own_weights = tuple((w.name, tuple(w.shape)) for w in parameters(model) if id(w) not in inside)
    return model_parts + ([ModelPart((model.name,), own_weights)] if own_weights else [])


def _layers_of(stack):
    """Returns the layers of a stack, each as often as it runs, followed by the stack's other parts."""
    return [*stack.layers, *(layer for layer in stack._layers if layer not in stack.layers)]


def _weights(layer):
    return tuple((w.path.removeprefix(f"{layer.path}/"), tuple(w.shape)) for w in parameters(layer))


def _settings_text(hparams):
    """Formats the settings that differ from the defaults, with their meaning, as lines."""
    settings = hparams.settings().values()
    changed = {f"{s.name}={hparams.get(s.name)}": s.meaning for s in settings if hparams.get(s.name) != s.default}
    width = max(map(len, changed), default=0)
    lines = [f"  {setting:{width}}  {meaning}".rstrip() for setting, meaning in changed.items()]
    return ["hyperparameters that differ from the defaults", *lines, ""] if lines else []


def _parts_text(d):
    rows = [("layer", "shape", "parameters")]
    for part in d.parts:
        many = len(part.names) > 1
        name = f"{part.names[0]} … {part.names[-1]}, each" if many else part.names[0]
        name += f", run {part.calls} times" if part.calls > 1 else ""
        rows.append((name, "", f"{part.parameters:,}"))
        rows += [(f"  {name}", " x ".join(map(str, shape)), "") for name, shape in part.weights]
    rows.append(("total", "", f"{d.parameters:,}"))
    if d.embedding_parameters:
        rows.append(("  embeddings", "", f"{d.embedding_parameters:,}"))
        rows.append(("  all others", "", f"{d.parameters - d.embedding_parameters:,}"))
    if frozen := d.parameters - d.trained_parameters:
        rows.append(("  trained", "", f"{d.trained_parameters:,}"))
        rows.append(("  frozen", "", f"{frozen:,}"))
    return table(rows, left=(0,))


def _cost_text(d):
    if d.flops is None:
        return ["FLOPs and memory: not counted, because the model is not a SequenceModel"]
    batch, tokens, accumulation = d.hparams.batch_size, d.tokens_a_step, d.hparams.gradient_accumulation_steps
    features = d.flops.per_token
    sides = [_SIDES.get(feature, f"{feature} ") for feature in features] if len(features) > 1 else [""]
    step = f"  one step of {_tokens(tokens, sides)}"
    if tokens != batch:
        step += f" ({counted(d.replicas, 'replica')}, accumulation {accumulation})"
    rows = "sentences" if len(d.lengths) > 1 else "rows"
    pairs = [
        (f"FLOPs of matrix products, {rows} of {' + '.join(map(str, d.lengths.values()))} tokens", ""),
        *(
            (f"  forward, per {side}token", _number(flops))
            for side, flops in zip(sides, features.values(), strict=True)
        ),
        (f"  training, per {'and '.join(sides)}token", _number(d.flops.training(1))),
        (step, _number(d.flops.training(tokens))),
        (f"  {d.train_steps:,} steps", _number(d.schedule_flops)),
        *_paper_pairs(d),
        ("", ""),
        *_memory_pairs(d, _tokens(batch, sides)),
        *_all_reduce_pairs(d),
    ]
    width = max(len(name) for name, value in pairs if value)
    return [f"{name:{width}}  {value:>9}" if value else name for name, value in pairs]


def _tokens(count, sides):
    """Formats a number of tokens, e.g. as "4,096 source + 4,096 target tokens"."""
    return " + ".join(f"{count:,} {side}".rstrip() for side in sides) + " tokens"


def _paper_pairs(d):
    """Returns table rows that compare the paper's cost estimate with our count, if the hparams are the paper's."""
    paper = cost.PAPER.get(d.hparams_set)
    if paper is None or d.hparams != registry.hparams(d.hparams_set):
        return []
    counted = paper.steps * d.flops.training(paper.tokens)
    estimate = f"  {paper.hours:g} h x {paper.gpus} GPUs x {_number(paper.sustained)} FLOP/s"
    return [
        ("", ""),
        ("the paper's estimate (section 6.1)", ""),
        (estimate, _number(paper.flops)),
        (f"  counted for its {paper.steps:,} steps of {paper.tokens:,} + {paper.tokens:,} tokens", _number(counted)),
        ("  utilization that this implies", f"{counted / paper.flops:.0%}"),
    ]


def _memory_pairs(d, tokens):
    """Returns table rows that show how much memory a training step uses."""
    if d.memory is None:
        return [("memory: not estimated, because the model's stacks() does not return its layers", "")]
    return [
        (f"memory per replica, estimated, {tokens}", ""),
        *((f"  {name}", _size(size)) for name, size in d.memory.items()),
        ("  sum", _size(sum(d.memory.values()))),
        *_batch_size_pairs(d),
    ]


def _batch_size_pairs(d):
    """Returns a table row that shows the largest batch size for --gpu_memory."""
    limit = d.gpu_memory
    if limit is None:
        return []
    most = settings_of(HParams)["batch_size"].limits.most
    largest = min(most, cost.largest_batch_size(d.memory, d.hparams.batch_size, 1e9 * limit))
    if largest:
        return [(f"  largest batch_size in {limit:g} GB", f"{largest:,}")]
    fixed = _size(sum(d.memory[name] for name in ("weights", "gradients", "optimizer")))
    return [(f"  largest batch_size in {limit:g} GB: none fits; weights, gradients and optimizer take {fixed}", "")]


def _all_reduce_pairs(d):
    """Returns table rows that show how many bytes the replicas exchange at each step."""
    if d.replicas == 1:
        return []
    size = cost.all_reduced_bytes(d.trained_parameters)
    return [
        ("", ""),
        (f"all-reduce of one step, {d.replicas:,} replicas, float32", ""),
        ("  gradients, in one buffer", _size(size)),
        ("  sent by each replica, in a ring", _size(cost.sent_bytes(size, d.replicas))),
    ]


def _number(value):
    return f"{value:.2e}".replace("e+", "e")


def _size(size):
    """Formats a number of bytes, e.g. as "1.50 GB"; a GB is 10^9 bytes."""
    return f"{size / 1e9:.2f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"

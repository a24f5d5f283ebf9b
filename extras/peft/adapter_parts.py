"""Converts LoRA matrices between our models and PEFT: names, shapes, the order of features, and joined kernels.

For a kernel [inputs, outputs], our matrices are A [inputs, r] and B [r, outputs]; PEFT's are `lora_A.weight` [r,
inputs] and `lora_B.weight` [outputs, r]. Queries, keys and values have three kernels in our models, but a single kernel
in GPT-2. Its A concatenates our three A, and its B is block diagonal, so that its rank is three times ours.
"""

import hashlib
from typing import NamedTuple

import numpy as np

from t2t_lite.errors import UserError
from t2t_lite.export.formats import option_obstacles
from t2t_lite.extras.hugging_face import named_weights
from t2t_lite.extras.hugging_face.encoders import class_of_head
from t2t_lite.extras.hugging_face.family import families, family_of
from t2t_lite.extras.hugging_face.named_weights import array_of
from t2t_lite.extras.hugging_face.translation_models import conversion, without_positions
from t2t_lite.layers.dense import Dense
from t2t_lite.models.transformer import Transformer
from t2t_lite.models.transformer_lm import TransformerLM
from t2t_lite.runs.run_config import lora_names
from t2t_lite.runs.weights import named_weights as weights_of

CONFIG, TENSORS, FACTS = "adapter_config.json", "adapter_model.safetensors", "t2t_lite.json"
PREFIX = "base_model.model."
A, B = ".lora_A.weight", ".lora_B.weight"
MOST = 2**12  # the largest lora_rank
ANOTHER = "The adapter may belong to a different base. Expected --base=RUN of the model on which it was trained."
_TASKS = {"class": "SEQ_CLS", "real": "SEQ_CLS", "tag": "TOKEN_CLS", "span": "QUESTION_ANS"}


class KernelPart(NamedTuple):
    """A foreign kernel that may have LoRA.

    Attributes:
        module: str, the foreign layer's name.
        layers: list of our Dense layers, whose outputs the foreign layer concatenates.
        inputs, outputs: int arrays, the index of our feature for each foreign input and output.
        factor: float32, by which our kernel is multiplied to obtain the foreign kernel.
    """

    module: str
    layers: list
    inputs: np.ndarray
    outputs: np.ndarray
    factor: np.float32

    def foreign(self, rank):
        """Returns float32 (A, B) in PEFT's shapes. In B, the outputs of layers without LoRA are 0."""
        ours = [layer for layer in self.layers if layer.lora_enabled]
        a = np.concatenate([array_of(layer.lora_kernel_a) for layer in ours], axis=1)
        b = np.zeros((rank * len(ours), sum(layer.units for layer in self.layers)), "float32")
        column = 0
        for layer in self.layers:
            if layer.lora_enabled:
                row = rank * ours.index(layer)
                b[row : row + rank, column : column + layer.units] = array_of(layer.lora_kernel_b)
            column += layer.units
        return a[self.inputs].T, (b[:, self.outputs] * self.factor).T

    def ours(self, a, b):
        """Returns [(A, B)], one pair per layer, in our shapes. Ranks for which the layer's B is 0 are left out."""
        a, b = a.T[np.argsort(self.inputs)], b.T[:, np.argsort(self.outputs)] / self.factor
        ends = np.cumsum([layer.units for layer in self.layers])[:-1]
        pairs = []
        for layer_b in np.split(b, ends, axis=1):
            there = np.flatnonzero(layer_b.any(axis=1))
            pairs.append((a[:, there], layer_b[there]))
        return pairs

    @property
    def shape(self):
        """(inputs, outputs) of the foreign kernel."""
        return len(self.inputs), len(self.outputs)


def family_with_adapters(model, encoders, where):
    """Returns the Family of a model. Raises `UserError`, which begins with `where`, if PEFT cannot add LoRA to it."""
    family = family_of(model, encoders)
    if family is None or option_obstacles(model, family.supported(model.config)):
        names = ", ".join(one.class_prefix for one in families())
        raise UserError(
            f"{where}: PEFT cannot add LoRA to this model, because Hugging Face Transformers has no equivalent. "
            f"Expected a model that t2t-exporter --format=hugging_face can write: {names}."
        )
    if any(isinstance(entry, named_weights.PerHead) for entry in family.weights.values()):
        raise UserError(
            f"{where}: PEFT cannot add LoRA to the kernels of {family.class_prefix}. Expected another model."
        )
    return family


def kernel_parts(family, model):
    """Yields a KernelPart for each foreign kernel that belongs to the layers in a model's stacks."""
    table, order, factor = family.weights, None, lambda part: 1
    if family.model is Transformer:
        table = without_positions(family)
        order, factor = conversion(family, model)
    inside = {id(part) for stack in model.stacks().values() for part in stack._flatten_layers()}
    for part in named_weights.parts(model, table, family.is_transposed):
        layers = [layer for layer, attribute in part.weights if attribute == "kernel"]
        if layers and all(isinstance(layer, Dense) and id(layer) in inside for layer in layers):
            orders = [np.arange(layers[0]._kernel.shape[0]), np.arange(sum(layer.units for layer in layers))]
            if order is not None and part.feature_axis is not None:
                orders[part.feature_axis] = order
            yield KernelPart(part.name.removesuffix(".weight"), layers, *orders, np.float32(factor(part)))


def head_names(family, model):
    """Returns (PEFT's name for the task or None, names of the foreign layers in the head)."""
    if family.model is TransformerLM:
        return "CAUSAL_LM", []
    if family.model is Transformer:
        return "SEQ_2_SEQ_LM", []
    head = model.config["head"]
    if head not in _TASKS:
        return None, []
    _, table = class_of_head(family, model)
    return _TASKS[head], [*table.values()]


def fingerprint(model):
    """Returns the SHA-256, in hex, of a model's weights, without LoRA matrices and heads."""
    heads = {id(weight) for weight in model.head_weights()}
    digest = hashlib.sha256()
    for name, weight in sorted(weights_of(model).items()):
        if id(weight) not in heads and not lora_names([name]):
            digest.update(array_of(weight).astype("<f4").tobytes())
    return digest.hexdigest()

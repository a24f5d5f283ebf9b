"""Checks the LoRA matrices of an adapter against the base model, and copies them into our models."""

import math
import re

import numpy as np

from t2t_lite.errors import UserError, shown
from t2t_lite.extras.hugging_face.hugging_face_folder import check_tensor
from t2t_lite.extras.hugging_face.named_weights import array_of
from t2t_lite.extras.peft.adapter_parts import ANOTHER, MOST, PREFIX, A, B, kernel_parts
from t2t_lite.layers.dense import merged
from t2t_lite.models.fine_tuning import TARGETS, target_of


class AdapterMatrices:
    """The LoRA matrices of an adapter, which change each kernel W of the base to W + factor · A B.

    Args:
        path: str, path of the file, for error messages.
        config: dict, contents of `adapter_config.json`.
        tensors: {name: array}.
        family: Family of the base.
        run: Run of the base.

    Attributes:
        others: {foreign name without prefixes: array}, the tensors that are not LoRA matrices.
        settings: {name: value}, hyperparameters: lora_rank, lora_alpha and lora_targets.

    Raises:
        UserError: the matrices do not match the base, or are not finite.
    """

    def __init__(self, path, config, tensors, family, run):
        self._path, self._config, self._family, self._base = path, config, family, run.path
        named = {self._short(name.removeprefix(PREFIX)): array for name, array in tensors.items()}
        self.others = {name: array for name, array in named.items() if not name.endswith((A, B))}
        modules = sorted({name.removesuffix(A).removesuffix(B) for name in named.keys() - self.others.keys()})
        if not modules:
            raise UserError(f"{path}: has no LoRA matrices. Expected a PEFT adapter.")
        parts = {self._short(part.module): part for part in kernel_parts(family, run.model)}
        if others := [module for module in modules if module not in parts]:
            raise UserError(f"{path}: {others[0]} has LoRA, but {run.path} has no such kernel. {ANOTHER}")
        pairs = {module: self._pair(named, module, parts[module]) for module in modules}
        factors = {module: self._factor(module, len(a)) for module, (a, _) in pairs.items()}
        self._scale = next(iter(factors.values()))
        # Our kernels share one factor. If a foreign kernel has a different factor, its B is rescaled.
        self._ours = {
            module: [(a, b * np.float32(factors[module] / self._scale)) for a, b in parts[module].ours(*pair)]
            for module, pair in pairs.items()
        }
        layers = [layer for module in modules for layer in parts[module].layers]
        ranks = [len(b) for module in modules for _, b in self._ours[module]]
        # Where layers share a joined kernel, a layer whose slice of B is all zeros has no LoRA. The exception is when
        # every B is zero: that is the state before training.
        targets = {target_of(layer) for layer, rank in zip(layers, ranks, strict=True) if rank or not any(ranks)}
        words = "" if targets == {*TARGETS} else "/".join(word for word in TARGETS if word in targets)
        rank = max(1, *ranks)
        self.settings = {"lora_rank": rank, "lora_alpha": float(self._scale * rank), "lora_targets": words}

    def fill(self, model):
        """Copies the LoRA matrices into a model's layers, or adds A B to the kernels of layers without LoRA."""
        for part in kernel_parts(self._family, model):
            for layer, (a, b) in zip(part.layers, self._ours.get(self._short(part.module), ()), strict=False):
                if not layer.lora_enabled:
                    layer._kernel.assign(merged(layer._kernel, a, b, self._scale))
                    continue
                # If the layer's rank is larger, the additional rows of B are zero, but the additional columns of A stay
                # random, so that they can be trained.
                rest = array_of(layer.lora_kernel_a)[:, len(b) :]
                layer.lora_kernel_a.assign(np.concatenate([a, rest], axis=1))
                layer.lora_kernel_b.assign(np.pad(b, [(0, rest.shape[1]), (0, 0)]))

    def _short(self, name):
        return name.removeprefix(self._family.prefix)

    def _pair(self, named, module, part):
        """Returns (A, B) of a foreign kernel. Raises `UserError` if one of them does not match the base."""
        inputs, outputs = part.shape
        first = named.get(module + A)
        rank = len(first) if first is not None and first.ndim == 2 and 1 <= len(first) <= MOST else "r"
        for name, shape in ((module + A, (rank, inputs)), (module + B, (outputs, rank))):
            check_tensor(self._path, name, named.get(name), shape, f"as in {self._base}. {ANOTHER}")
        return named[module + A], named[module + B]

    def _factor(self, module, rank):
        """Returns the factor by which B A is multiplied.

        As in PEFT, the keys of `alpha_pattern` are regular expressions, and the first one that matches the end of the
        module's name, from its beginning or from a dot, replaces `lora_alpha`.
        """
        names = (module, self._family.prefix + module)
        patterns = (self._config.get("alpha_pattern") or {}).items()
        try:
            alphas = [alpha for key, alpha in patterns if any(re.fullmatch(rf"(.*\.)?({key})", name) for name in names)]
        except re.error as error:
            raise UserError(f"{self._path}: alpha_pattern: {error}. Expected regular expressions.") from None
        alpha = next(iter(alphas), self._config["lora_alpha"])
        if type(alpha) not in (int, float) or alpha <= 0:
            raise UserError(f"{self._path}: lora_alpha={shown(alpha)} for {module}. Expected a number above 0.")
        return alpha / (math.sqrt(rank) if self._config.get("use_rslora") else rank)

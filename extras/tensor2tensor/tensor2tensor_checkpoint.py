"""Reads variables from tensor2tensor's checkpoints."""

import functools
import re

import numpy as np
import tensorflow as tf

from t2t_lite.errors import UserError, first_line
from t2t_lite.runs.locating import find_checkpoint
from t2t_lite.runs.weights import open_checkpoint

_QUERY = "encoder/layer_0/self_attention/multihead_attention/q"
_EMBEDDING = re.compile(r"(?:.*/)?symbol_modality_(\d+)_\d+/(shared|input_emb|target_emb|softmax)/weights_(\d+)")


class Tensor2TensorCheckpoint:
    """Reads a checkpoint's variables by their names in tensor2tensor's source code; the outer scope may have any name.

    Other variables, such as the optimizer's moments, are ignored.

    Args:
        path: str, a checkpoint without suffix, or a run's folder, whose newest checkpoint is read.

    Attributes:
        path: str, path of the checkpoint.
        step: int, the number of training steps, which is read from the checkpoint's name; 0 if the name has no number.

    Raises:
        UserError: the checkpoint is missing or does not contain a Transformer of tensor2tensor.
    """

    def __init__(self, path):
        self.path = find_checkpoint(path)
        try:
            self._reader = open_checkpoint(self.path)
            self._shapes = self._reader.get_variable_to_shape_map()
            self._dtypes = self._reader.get_variable_to_dtype_map()
        except Exception as error:  # the reader can raise any exception for untrusted bytes
            raise UserError(f"{self.path}: not a readable checkpoint: {first_line(error)}") from error
        queries = [name.removesuffix("/kernel") for name in self._shapes]
        scopes = {name.removesuffix(_QUERY) for name in queries if name == _QUERY or name.endswith("/" + _QUERY)}
        if len(scopes) != 1:
            number = f"found {len(scopes)} such variables" if scopes else "found no such variable"
            raise UserError(
                f"{self.path}: not a Transformer of tensor2tensor 1.5 or later, whose weights are under "
                f"…/{_QUERY}: {number}."
            )
        (self._scope,), self._names_read = scopes, set()
        step = re.search(r"-([0-9]{1,12})$", self.path)
        self.step = int(step[1]) if step else 0

    def __contains__(self, name):
        return name in self._shapes or self._scope + name in self._shapes

    def shape(self, name):
        """Returns the shape of a variable. Raises `UserError` if the checkpoint does not have the variable."""
        shape = self._shapes.get(self._scope + name)
        if shape is None:
            raise UserError(
                f"{self.path}: has no variable {self._scope}{name}. Expected a Transformer of tensor2tensor 1.5 or "
                "later with ordinary attention and feed-forward layers."
            )
        return tuple(shape)

    def read(self, name):
        """Returns a variable as float32; kernels of width-1 convolutions become matrices. Raises `UserError`."""
        self.shape(name)
        value = self._tensor(self._scope + name)
        return value.reshape(value.shape[-2:]) if value.ndim > 2 and set(value.shape[:-2]) == {1} else value

    def _tensor(self, name):
        self._names_read.add(name)
        dtype = self._dtypes[name]
        if dtype not in (tf.float32, tf.float16, tf.float64):
            raise UserError(f"{self.path}: {name} is {dtype.name} (weight_dtype). Expected float32.")
        try:
            value = np.asarray(self._reader.get_tensor(name), "float32")
        except Exception as error:
            raise UserError(f"{self.path}: damaged: {name} cannot be read: {first_line(error)}") from error
        if not np.isfinite(value).all():
            raise UserError(f"{self.path}: {name} contains NaN or infinite values. Use an earlier checkpoint.")
        return value

    def check_all_read(self):
        """Raises `UserError` if a variable of the encoder or the decoder has not been read; ignores the optimizer's."""
        stacks = (f"{self._scope}encoder/", f"{self._scope}decoder/")
        for name in sorted(self._shapes):
            is_read = not self._names_read.isdisjoint((name, name.rpartition("/")[0]))  # such as …/kernel/Adam
            if name.startswith(stacks) and not is_read:
                raise UserError(
                    f"{self.path}: has a variable {name}. Expected a Transformer of tensor2tensor with ordinary "
                    "attention and feed-forward layers."
                )

    def projection_shape(self, scope, name):
        """Returns (input size, output size) of the attention projection `name`: "q", "k", "v" or "output_transform"."""
        scope = f"{scope}/multihead_attention"
        if _QUERY not in self:  # trained without `attention_variables_3d`
            return self.shape(f"{scope}/{name}/kernel")[-2:]
        shape = self.shape(f"{scope}/{name[0]}")
        return (shape[0] * shape[1], shape[2]) if name == "output_transform" else (shape[0], shape[1] * shape[2])

    def projection(self, scope, name):
        """Returns the matrix of an attention projection; for the arguments see `projection_shape`."""
        if _QUERY not in self:
            return self.read(f"{scope}/multihead_attention/{name}/kernel")
        value = self.read(f"{scope}/multihead_attention/{name[0]}")
        if name == "q":
            value = value * value.shape[2] ** 0.5  # cancels the scale 1/√d_k, which tensor2tensor omits here
        return value.reshape(self.projection_shape(scope, name))

    def norm(self, scope, part):
        """Returns the scale or bias (`part`) of the only normalization directly under a scope. Raises `UserError`."""
        names = self._norms(scope, part)
        if len(names) != 1:
            raise UserError(
                f"{self.path}: found {len(names)} normalizations under {self._scope}{scope}. Expected one, as in "
                "models whose pre- and postprocess sequences are none and dan, or n and da."
            )
        return self._tensor(names[0])

    def has_norm(self, scope):
        """Returns whether there is a normalization directly under a scope."""
        return bool(self._norms(scope, "scale"))

    def _norms(self, scope, part):
        pattern = re.compile(f"{re.escape(self._scope + scope)}/[^/]+/layer_norm/layer_norm_{part}")
        return [name for name in self._shapes if pattern.fullmatch(name)]

    def layers(self, stack):
        """Counts the layers of "encoder" or "decoder". Raises `UserError` if a layer in between is missing."""
        pattern = re.compile(f"{re.escape(self._scope + stack)}/layer_([0-9]{{1,6}})/")
        numbers = {int(match[1]) for match in map(pattern.match, self._shapes) if match}
        if numbers != set(range(len(numbers))) or not numbers:
            raise UserError(
                f"{self.path}: found layers {sorted(numbers)} under {self._scope}{stack}, expected 0, 1, 2 and so on."
            )
        return len(numbers)

    @functools.cached_property
    def _embedding_names(self):
        """The names of the embedding variables: {rows: {"shared", "input_emb", …: {shard number: name}}}."""
        names = {}
        for name in self._shapes:
            if match := _EMBEDDING.fullmatch(name):
                rows, role, shard = match.groups()
                names.setdefault(int(rows), {}).setdefault(role, {})[int(shard)] = name
        if not 1 <= len(names) <= 2:
            raise UserError(
                f"{self.path}: has embeddings for {len(names)} vocabularies (symbol_modality_…/weights_0). Expected "
                "one or two."
            )
        return names

    @property
    def has_tied_softmax(self):
        """Whether the softmax uses the embedding matrix of the targets."""
        return not any("softmax" in roles for roles in self._embedding_names.values())

    def embeddings(self, sizes):
        """Reads the matrices of the embeddings and the softmax.

        Args:
            sizes: (inputs, targets), the numbers of pieces in the vocabularies; the matrices may have more rows.

        Returns:
            {"inputs", "targets", "softmax"}: float32 [rows, hidden].

        Raises:
            UserError: a matrix is missing, or its shape contradicts its name.
        """
        rows = sorted(self._embedding_names)
        if len(rows) == 2 and sizes[0] == sizes[1]:
            raise UserError(
                f"{self.path}: has embeddings for two vocabularies, with {rows[0]:,} and {rows[1]:,} rows. Expected "
                "--vocab=INPUTS.subwords,TARGETS.subwords."
            )
        smaller_first = sizes[0] <= sizes[1]
        inputs, targets = (rows[0], rows[-1]) if smaller_first else (rows[-1], rows[0])
        return {
            "inputs": self._matrix(inputs, "shared", "input_emb"),
            "targets": self._matrix(targets, "shared", "target_emb"),
            "softmax": self._matrix(targets, "softmax", "shared"),
        }

    def _matrix(self, rows, *roles):
        by_role = self._embedding_names[rows]
        role = next((role for role in roles if role in by_role), None)
        shards = by_role.get(role, {})
        if not shards or set(shards) != set(range(len(shards))):
            raise UserError(
                f"{self.path}: symbol_modality_{rows}_…/{role or roles[-1]}: found shards {sorted(shards)}, expected "
                "0, 1 and so on."
            )
        matrix = np.concatenate([self._tensor(shards[i]) for i in range(len(shards))])
        if matrix.ndim != 2 or len(matrix) != rows:
            raise UserError(
                f"{self.path}: symbol_modality_{rows}_…/{role} has shape {matrix.shape}, expected {rows} rows."
            )
        return matrix

"""The tensors of a Hugging Face folder: `model.safetensors`, whole or in shards, or `pytorch_model.bin`."""

import io
import math
import os
import zipfile

import numpy as np

from t2t_lite import files
from t2t_lite.errors import UserError, shown
from t2t_lite.interchange.marian import NEVER
from t2t_lite.interchange.safetensors_file import read_tensors

_NAMES = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
_WHOLE, _INDEX, _TORCH = _NAMES
# Stored under several names, or computed when the model is loaded.
_NOT_LOOKED_AT = ("embed_tokens.weight", "lm_head.weight", "model.shared.weight")


class HuggingFaceWeights:
    """Tensors of a file, each of which is used once.

    Args:
        path: str, of the file, for errors.
        tensors: {name: array}.
        unused: tuple of str, endings of the names of those that nothing needs.

    Attributes:
        names: set of str, the names of all tensors.
    """

    def __init__(self, path, tensors, unused):
        self.path = path
        self._tensors = tensors
        self.names = set(tensors)
        self._left = {name for name in tensors if not name.endswith(unused)}

    def take(self, name, shape):
        """Returns a tensor. Raises `UserError` if it is missing, not finite, or has another shape or type."""
        tensor = self._tensors.get(name)
        if tensor is None or tensor.shape != shape or tensor.dtype != "float32":
            found = "missing" if tensor is None else f"{tensor.dtype} {' x '.join(map(str, tensor.shape))}"
            expected = " x ".join(map(str, shape))
            raise UserError(f"{self.path}: {name} is {found}. Expected float {expected}, as config.json has it.")
        # There -inf excludes an id, here -100 does.
        checked = np.maximum(tensor, NEVER) if name == "final_logits_bias" else tensor
        if not np.isfinite(checked).all():
            raise UserError(
                f"{self.path}: {name} holds numbers that are not finite. Expected a trained model's weights."
            )
        self._left.discard(name)
        return tensor

    def take_any(self, names, shape):
        """As `take`, with the first name that exists: which of several tied tensors is stored depends on the writer."""
        return self.take(next((name for name in names if name in self._tensors), names[0]), shape)

    def check_all_taken(self):
        """Raises `UserError` for a tensor that has no place in the model."""
        if self._left:
            raise UserError(
                f"{self.path}: {min(self._left)} has no place in the model that config.json describes. Expected the "
                "files of one model."
            )


def read_safetensors(folder, auto_class, rename, unused):
    """Returns the HuggingFaceWeights of a folder's `model.safetensors`.

    Args:
        folder: str.
        auto_class: str, the class of Transformers that saves such a file, for errors.
        rename: function of a name that returns the one by which it is taken.
        unused: see `HuggingFaceWeights`.

    Raises:
        UserError: the file is missing or damaged.
    """
    path = _path_of_tensors(folder) or os.path.join(folder, _WHOLE)
    if path.endswith(_TORCH):
        raise UserError(
            f"{folder}: holds {_TORCH}, which may contain code, but no {_WHOLE}. Save it with Transformers "
            f"again: {auto_class}.from_pretrained(folder).save_pretrained(folder)."
        )
    tensors = _read_shards(path) if path.endswith(_INDEX) else read_tensors(files.read_bytes(path), path)
    return HuggingFaceWeights(path, {rename(name): tensor for name, tensor in tensors.items()}, unused)


class MarianWeights(HuggingFaceWeights):
    """The tensors of a Marian's or a Blenderbot's folder.

    Args:
        folder: str.
        config: dict, see `read_config`. The tensors must have its sizes, which is checked before memory is allocated
            for a model or a vocabulary of these sizes.

    Raises:
        UserError: the file is missing, damaged, or of another model than `config`.
    """

    def __init__(self, folder, config):
        path = _path_of_tensors(folder)
        if path is None:
            raise UserError(f"{folder}: holds neither {_WHOLE} nor {_TORCH}. Expected a model of Hugging Face.")
        if path.endswith(_INDEX):
            tensors = _read_shards(path)
        else:
            data = files.read_bytes(path)
            tensors = read_tensors(data, path) if path.endswith(_WHOLE) else _read_torch(data, path)
        unused = (*_NOT_LOOKED_AT, "embed_positions.weight") if config["model_type"] == "marian" else _NOT_LOOKED_AT
        super().__init__(path, tensors, unused)
        self._check_sizes(config)

    def take_embeddings(self, config):
        """Returns {"inputs", "targets", "softmax": float32 [ids, hidden], "bias": float32 [ids]}."""
        hidden, sizes = config["d_model"], (config["vocab_size"], config["decoder_vocab_size"])
        source, target = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
        if config["share_encoder_decoder_embeddings"]:
            one = self.take_any(("model.shared.weight", source, target, "lm_head.weight"), (sizes[0], hidden))
            found = {"inputs": one, "targets": one}
        else:
            found = {
                "inputs": self.take(source, (sizes[0], hidden)),
                "targets": self.take_any((target, "lm_head.weight"), (sizes[1], hidden)),
            }
        is_tied = config["tie_word_embeddings"]
        found["softmax"] = found["targets"] if is_tied else self.take("lm_head.weight", (sizes[1], hidden))
        found["bias"] = self.take("final_logits_bias", (1, sizes[1]))[0]
        if found["targets"][config["pad_token_id"]].any():
            raise UserError(
                f"{self.path}: the embedding of the padding, from which the model begins to decode, is not zero. "
                "Here decoding begins with the zero vector: this model would translate otherwise."
            )
        return found

    def _check_sizes(self, config):
        hidden = config["d_model"]
        self.take_embeddings(config)
        for side in ("encoder", "decoder"):
            for number in range(config[f"{side}_layers"]):  # stops at the first missing one
                prefix = f"model.{side}.layers.{number}"
                for name, rows in (("self_attn.q_proj", hidden), ("fc1", config["encoder_ffn_dim"])):
                    self.take(f"{prefix}.{name}.weight", (rows, hidden))


def _path_of_tensors(folder):
    """Returns the path of the first file of `_NAMES` in a folder, or None."""
    paths = (os.path.join(folder, name) for name in _NAMES)
    return next(filter(files.exists, paths), None)


def _read_shards(path):
    """Returns {name: array} of the files that an index names. Raises `UserError` if one is missing or damaged."""
    shard_of = files.read_json(path, {"weight_map": {str: str}})["weight_map"]
    tensors = {}
    for shard in sorted(set(shard_of.values())):
        if os.path.basename(shard) != shard or not shard.endswith(".safetensors"):
            raise UserError(f"{path}: the shard {shown(shard)}. Expected the name of a .safetensors file beside it.")
        shard_path = os.path.join(os.path.dirname(path), shard)
        found = read_tensors(files.read_bytes(shard_path), shard_path)
        tensors |= {name: tensor for name, tensor in found.items() if shard_of.get(name) == shard}
    if missing := sorted(shard_of.keys() - tensors.keys()):
        raise UserError(f"{path}: {missing[0]} is not in {shard_of[missing[0]]}. Copy all files of the model again.")
    return tensors


def _read_torch(data, path):
    """Returns {name: float32 array} of a pytorch_model.bin. PyTorch reads only tensors, so no code is run."""
    try:
        import torch
    except ImportError:
        raise UserError(
            f"{path}: is read by PyTorch, which is not installed. Run: pip install 't2t_lite[hugging_face]', or save "
            "the model as model.safetensors."
        ) from None
    try:
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                _check_bytes(sum(member.file_size for member in archive.infolist()), data)
        tensors = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        own = {str(name): tensor for name, tensor in tensors.items()}
        for tensor in own.values():
            _check_bytes(math.prod(tensor.shape) * tensor.element_size(), data)
        # Tied matrices occur under several names, all others once.
        several = [tensor for name, tensor in own.items() if not name.endswith(_NOT_LOOKED_AT)]
        _check_bytes(sum(math.prod(tensor.shape) * tensor.element_size() for tensor in several), data)
        return {name: tensor.float().numpy() for name, tensor in own.items()}
    except Exception as error:  # a damaged file can raise anything
        reason = [*str(error).splitlines(), type(error).__name__][0]
        raise UserError(f"{path}: not a file of tensors alone, or damaged: {reason}") from None


def _check_bytes(count, data):
    if count > len(data):
        raise ValueError(f"{count:,} bytes of tensors in a file of {len(data):,}")

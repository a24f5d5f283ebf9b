"""Reads and writes the files of a Hugging Face Transformers folder, without using that package."""

import io
import json
import os
import zipfile
from typing import NamedTuple

import ml_dtypes  # a dependency of Keras
import numpy as np
import safetensors
import safetensors.numpy

from t2t_lite import files
from t2t_lite.errors import UserError, needs, shown
from t2t_lite.export.by_task import added_files
from t2t_lite.extras.hugging_face import named_weights
from t2t_lite.extras.hugging_face.named_weights import NEVER
from t2t_lite.files import folders

_NAMES = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
_WHOLE, _INDEX, _TORCH = _NAMES
_OLD = {".gamma": ".weight", ".beta": ".bias"}  # {TensorFlow's suffix: PyTorch's}, for files converted from TensorFlow
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": ml_dtypes.bfloat16,
    "I64": "<i8", "I32": "<i4", "U8": "u1", "BOOL": "?",  # of buffers, such as GPT-2's causal mask
}  # fmt: skip


def usage(packages, *code):
    """Returns Markdown for README.md: how to install some packages, then lines of Python."""
    lines = "\n".join(code)
    return f"```bash\npip install {packages}\n```\n\n```python\n{lines}\n```\n"


def usage_of_transformers(auto_class, *code, packages="transformers torch"):
    """Returns Markdown for README.md: how to load a folder with Transformers, then lines of Python."""
    return usage(
        packages,
        f"from transformers import {auto_class}, AutoTokenizer",
        "",
        'tokenizer = AutoTokenizer.from_pretrained(".")',
        f'model = {auto_class}.from_pretrained(".")',
        *code,
    )


class Folder(NamedTuple):
    """The contents of a model's folder for Hugging Face Transformers.

    Attributes:
        title: str, the title of README.md.
        use: str, instructions for use in README.md, in Markdown.
        config, tokenizer: dict, contents of `config.json` and `tokenizer_config.json`.
        tensors: {name: float32 array}.
        contents: {path of another file in the folder: bytes, or a JSON value}.
        rows: {title: text}, additional rows of the table in README.md.
        library: str, the name that the Hub uses for the package that loads the folder.
    """

    title: str
    use: str
    config: dict
    tokenizer: dict
    tensors: dict
    contents: dict
    rows: dict = {}  # noqa: RUF012
    library: str = "transformers"

    def write(self, path, answerer, license, command):
        """Writes the folder, which appears only when everything is written.

        Args:
            path: str, a new or empty folder.
            answerer: Translator, Generator or Predictor, which README.md describes.
            license, command: see `export_hugging_face`.

        Returns:
            `path`.

        Raises:
            Failure: writing failed; nothing is left behind.
        """
        added = added_files(
            answerer,
            title=self.title,
            library=self.library,
            body=self.use,
            license=license,
            command=command,
            rows={"class": self.config["architectures"][0], **self.rows},
        )
        documents = {"config.json": self.config, "tokenizer_config.json": self.tokenizer, **added}

        def write(folder):
            write_tensors(os.path.join(folder, "model.safetensors"), self.tensors)
            for name, content in (self.contents | documents).items():
                if not isinstance(content, bytes):
                    content = (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
                folders.write_file(folder, name, content)

        return folders.write_folder(path, write)


class HuggingFaceWeights:
    """The tensors of a foreign model; `fill` checks that our model uses all tensors.

    Args:
        path: str, path of the file, for error messages.
        tensors: {name: array}; names may lack the family's prefix.
        family: Family.

    Attributes:
        names: set of str, the names of all tensors, without prefix.
    """

    def __init__(self, path, tensors, family):
        self.path = path
        self._family = family
        self._tensors = {self._short(name): tensor for name, tensor in tensors.items()}
        self.names = set(self._tensors)
        self._unread = {name for name in self.names if not name.endswith(family.unused)}

    def _short(self, name):
        old = next(filter(name.endswith, _OLD), "")
        return name.removeprefix(self._family.prefix).removesuffix(old) + _OLD.get(old, "")

    def __contains__(self, name):
        return self._short(name) in self.names

    def take(self, name, shape):
        """Returns a tensor. Raises `UserError` if it is missing, is not finite, or has the wrong shape or type."""
        name = self._short(name)
        tensor = self._tensors.get(name)
        check_tensor(self.path, name, tensor, shape, "according to config.json.")
        self._unread.discard(name)
        return tensor

    def take_any(self, names, shape):
        """Like `take`, but tries several names in turn, because a tied tensor may be stored under any of them."""
        return self.take(next((name for name in names if name in self), names[0]), shape)

    def drop_rows(self, name, count):
        """Drops the first rows of a tensor."""
        self._tensors[self._short(name)] = self._tensors[self._short(name)][count:]

    def fill(self, model, table, published_ids=(), num_ids=None, change=None):
        """Sets a model's weights: see `named_weights.fill`. Raises `UserError` if a tensor is not used."""
        parts = named_weights.parts(model, table, self._family.is_transposed)
        named_weights.fill(parts, self.take, published_ids, num_ids, change)
        if self._unread:
            raise UserError(
                f"{self.path}: {min(self._unread)} does not belong to the model that config.json describes. Expected "
                "the files of a single model."
            )

    def check_sizes(self, arguments):
        """Checks the sizes of the tensors of every layer, before memory is allocated for the model. Raises `UserError`.

        Args:
            arguments: {argument of our model's constructor: value}.
        """
        family = self._family
        width = arguments.get("embedding_size") or arguments["hidden_size"]
        tables = {
            "vocab_size": ("embedding", "target_embedding"), "max_position": ("position", "decoder_position")
        }  # fmt: skip
        for size, paths in tables.items():
            for name in filter(None, map(family.weights.get, paths)):
                self.take(f"{name}.weight", (arguments[size], width))
        shape = (arguments["hidden_size"], arguments["filter_size"])
        for path, name in family.weights.items():
            if path.endswith(".inner"):
                counts = ("num_hidden_groups", "num_layers", f"num_{path.partition('.')[0]}_layers")
                for number in range(next(arguments[count] for count in counts if count in arguments)):
                    # This raises an error at the first missing layer.
                    self.take(f"{name.replace('*', str(number))}.weight", shape[:: -1 if family.is_transposed else 1])


def check_tensor(path, name, tensor, shape, advice):
    """Raises `UserError` unless a tensor has finite numbers, float32, and the expected shape.

    Args:
        path, name: str, the file and the tensor, for the message.
        tensor: array, or None if it is missing.
        shape: tuple of int.
        advice: str, the end of the message.
    """
    if tensor is None or tensor.shape != tuple(shape) or tensor.dtype != "float32":
        actual = "missing" if tensor is None else f"{tensor.dtype} {' x '.join(map(str, tensor.shape))}"
        raise UserError(f"{path}: {name} is {actual}. Expected float {' x '.join(map(str, shape))}, {advice}")
    # Transformers excludes an id with a bias of -inf, so this bias may contain -inf.
    checked = np.maximum(tensor, NEVER) if name == "final_logits_bias" else tensor
    if not np.isfinite(checked).all():
        raise UserError(f"{path}: {name} contains NaN or infinite numbers. Expected the weights of a trained model.")


def read_weights(folder, family, auto_class=None):
    """Returns the HuggingFaceWeights of a folder's `model.safetensors`, which may be split into shards.

    Args:
        folder: str.
        family: Family.
        auto_class: str, the class of Transformers that saves a `model.safetensors`, for error messages. If None, a
            `pytorch_model.bin` is also accepted.

    Raises:
        UserError: the file is missing or damaged.
    """
    path = next(filter(files.exists, (os.path.join(folder, name) for name in _NAMES)), None)
    if path is None and auto_class is None:
        raise UserError(f"{folder}: contains neither {_WHOLE} nor {_TORCH}. Expected a Hugging Face model.")
    path = path or os.path.join(folder, _WHOLE)
    if path.endswith(_TORCH) and auto_class:
        raise UserError(
            f"{folder}: contains {_TORCH}, which may run code, but no {_WHOLE}. Save the model again with "
            f"Transformers: {auto_class}.from_pretrained(folder).save_pretrained(folder)."
        )
    if path.endswith(_INDEX):
        tensors = _read_shards(path)
    else:
        data = files.read_bytes(path)
        tensors = _read_torch(data, path, family.unused) if path.endswith(_TORCH) else read_tensors(data, path)
    return HuggingFaceWeights(path, tensors, family)


def _read_shards(path):
    """Returns {name: array} of all shards in an index. Raises `UserError` if a shard is missing or damaged."""
    shard_of = files.read_json(path, {"weight_map": {str: str}})["weight_map"]
    tensors = {}
    for shard in sorted(set(shard_of.values())):
        if os.path.basename(shard) != shard or not shard.endswith(".safetensors"):
            raise UserError(f"{path}: the shard is {shown(shard)}. Expected the name of a .safetensors file.")
        shard_path = os.path.join(os.path.dirname(path), shard)
        shard_tensors = read_tensors(files.read_bytes(shard_path), shard_path)
        tensors |= {name: tensor for name, tensor in shard_tensors.items() if shard_of.get(name) == shard}
    if missing := sorted(shard_of.keys() - tensors.keys()):
        raise UserError(f"{path}: {missing[0]} is not in {shard_of[missing[0]]}. Copy all files of the model again.")
    return tensors


def _read_torch(data, path, tied):
    """Returns {name: float32 array} of a pytorch_model.bin. PyTorch only loads tensors, so no code is run."""
    with needs("PyTorch", "hugging_face", f"{path}: reading the file", ", or save the model as model.safetensors."):
        import torch
    try:
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                _check_bytes(sum(member.file_size for member in archive.infolist()), data)
        tensors = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        by_name = {str(name): tensor for name, tensor in tensors.items()}
        for tensor in by_name.values():
            _check_bytes(tensor.nbytes, data)
        # Tied matrices occur under several names; every other tensor occurs once.
        untied = [tensor for name, tensor in by_name.items() if not name.endswith(tied)]
        _check_bytes(sum(tensor.nbytes for tensor in untied), data)
        return {name: tensor.float().numpy() for name, tensor in by_name.items()}
    except Exception as error:  # a damaged file can raise anything
        reason = [*str(error).splitlines(), type(error).__name__][0]
        raise UserError(f"{path}: contains more than tensors, or is damaged: {reason}") from None


def _check_bytes(count, data):
    if count > len(data):
        raise ValueError(f"{count:,} bytes of tensors, but the file has only {len(data):,} bytes")


def write_tensors(path, tensors):
    """Writes tensors, {name: float32 array}, to a local safetensors file."""
    contiguous = {name: np.ascontiguousarray(tensor, "<f4") for name, tensor in tensors.items()}
    data = safetensors.numpy.save(contiguous, metadata={"format": "pt"})
    with open(path, "wb") as file:  # the package's save_file would make the file readable only by its owner
        file.write(data)


def read_tensors(data, path):
    """Returns {name: array} from the bytes of a safetensors file; 16-bit and 64-bit floats become float32.

    Args:
        data: bytes.
        path: the file's name, for error messages.

    Raises:
        UserError: the file has another format, or is truncated or inconsistent.
    """
    try:
        entries = safetensors.deserialize(data)  # a list of tensors; safetensors.numpy would refuse bfloat16
        return {name: _array(facts) for name, facts in entries}
    except (safetensors.SafetensorError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path}: not a complete safetensors file: {reason}. Copy the file again.") from None


def _array(facts):
    """Returns a tensor as an array, and releases its bytes if they were converted."""
    if facts["dtype"] not in _DTYPES:
        raise ValueError(f"the type {facts['dtype']} is not supported, expected one of {', '.join(_DTYPES)}")
    array = np.frombuffer(facts.pop("data"), _DTYPES[facts["dtype"]]).reshape(facts["shape"])
    return array if array.dtype.kind in "iub" else array.astype("float32", copy=False)

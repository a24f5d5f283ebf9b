"""Folders of GPT and GPT-2 with random weights and small vocabularies, written without Hugging Face's package."""

import json

from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors
from tests.extras.hugging_face.published_weights import random_tensors
from tests.text.published_samples import write_byte_level

SIZES = {"n_positions": 24, "n_embd": 16, "n_layer": 2, "n_head": 4}


def write_gpt(folder, kind="gpt2", prefix="transformer.", write_vocabulary=write_byte_level, **config):
    """Writes a folder; returns (its path, {name: array})."""
    folder.mkdir(parents=True)
    with open(write_vocabulary(folder), encoding="utf-8") as file:
        vocab_size = len(json.load(file))
    size, positions = SIZES["n_embd"], SIZES["n_positions"]
    sizes = {"V": vocab_size, "P": positions, "H": size, "3H": 3 * size, "F": 4 * size}
    tensors = random_tensors(kind, "LMHeadModel", sizes, SIZES["n_layer"])
    tensors = {prefix + name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    write_tensors(str(folder / "model.safetensors"), tensors)
    (folder / "config.json").write_text(json.dumps({"model_type": kind, "vocab_size": vocab_size, **SIZES, **config}))
    return str(folder), tensors

"""Folders of GPT and GPT-2 with random weights and small vocabularies, written without Hugging Face's package."""

import json

import numpy as np

from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors
from tests.text.published_samples import write_byte_level

SIZES = {"n_positions": 24, "n_embd": 16, "n_layer": 2, "n_head": 4}


def write_gpt(folder, kind="gpt2", prefix="transformer.", write_vocabulary=write_byte_level, **config):
    """Writes a folder; returns (its path, {name: array})."""
    folder.mkdir(parents=True)
    with open(write_vocabulary(folder), encoding="utf-8") as file:
        vocab_size = len(json.load(file))
    size, rng = SIZES["n_embd"], np.random.default_rng(5)
    names = {"gpt2": ("wte", "wpe"), "openai-gpt": ("tokens_embed", "positions_embed")}[kind]
    shapes = {f"{names[0]}.weight": (vocab_size, size), f"{names[1]}.weight": (SIZES["n_positions"], size)}
    for n in range(SIZES["n_layer"]):
        for name, inputs, outputs in (
            ("attn.c_attn", size, 3 * size), ("attn.c_proj", size, size),
            ("mlp.c_fc", size, 4 * size), ("mlp.c_proj", 4 * size, size),
        ):  # fmt: skip
            shapes |= {f"h.{n}.{name}.weight": (inputs, outputs), f"h.{n}.{name}.bias": (outputs,)}
        shapes |= {f"h.{n}.ln_{i}.{name}": (size,) for i in (1, 2) for name in ("weight", "bias")}
    if kind == "gpt2":
        shapes |= {"ln_f.weight": (size,), "ln_f.bias": (size,)}
    tensors = {prefix + name: rng.normal(scale=0.3, size=shape).astype("float32") for name, shape in shapes.items()}
    write_tensors(str(folder / "model.safetensors"), tensors)
    (folder / "config.json").write_text(json.dumps({"model_type": kind, "vocab_size": vocab_size, **SIZES, **config}))
    return str(folder), tensors

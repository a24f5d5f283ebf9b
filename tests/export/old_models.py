"""Models as tensor2tensor left them, written by the names in its source, and what it computes with them, in NumPy.

Sources: models/transformer.py (transformer_encoder, transformer_decoder), layers/transformer_layers.py
(transformer_prepare_encoder), layers/common_attention.py (multihead_attention, get_timing_signal_1d),
layers/common_layers.py (layer_norm_compute, dense_relu_dense) and layers/modalities.py (get_weights, symbol_bottom,
symbol_top).
"""

import dataclasses
import json
import re

import numpy as np
import tensorflow as tf

WORDS = re.findall(r"\w+", "the red house is old and a green tree was new der rote Haus ist alt und ein Baum war neu")
_CHARACTERS = sorted({*"\\_u;0123456789", *"abcdefghilmnorstuvwxyzAEHOS.<>d"})
PIECES = ["<pad>_", "<EOS>_", *dict.fromkeys(f"{word}_" for word in WORDS), "tr", "re", "._", *_CHARACTERS]


@dataclasses.dataclass
class OldModel:
    """A Transformer of tensor2tensor with random weights.

    Attributes:
        weights: {name: float32 array}, by the names of the checkpoint, shards joined and without the scope.
    """

    hidden: int = 16
    filter: int = 32
    heads: int = 4
    layers: int = 2
    pre_norm: bool = True
    shards: int = 16
    rows: int = len(PIECES)
    target_rows: int | None = None  # of a vocabulary of its own
    tied: bool = True
    target_space: bool = True
    positions: int = 0  # rows of learned tables; 0: sinusoids
    key_channels: int | None = None
    value_channels: int | None = None
    is_3d: bool = False
    seed: int = 0

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        d, f, self.weights = self.hidden, self.filter, {}
        keys, values = self.key_channels or d, self.value_channels or d

        def add(name, *shape, mean=0.0, scale=None):
            scale = shape[0] ** -0.5 if scale is None else scale
            self.weights[name] = rng.normal(mean, scale, shape).astype("float32")

        def norm(scope):
            add(f"{scope}/layer_norm/layer_norm_scale", d, mean=1.0, scale=0.2)
            add(f"{scope}/layer_norm/layer_norm_bias", d, scale=0.2)

        inside = "layer_prepostprocess" if self.pre_norm else "layer_postprocess"
        for stack in ("encoder", "decoder"):
            for scope in (f"body/{stack}/layer_{i}" for i in range(self.layers)):
                for kind in ("self_attention", "encdec_attention")[: 1 + (stack == "decoder")]:
                    shapes = {"q": (d, keys), "k": (d, keys), "v": (d, values), "output_transform": (values, d)}
                    for name, shape in shapes.items():
                        at = f"{scope}/{kind}/multihead_attention"
                        if not self.is_3d:
                            add(f"{at}/{name}/kernel", *shape)
                        elif name == "output_transform":
                            add(f"{at}/o", self.heads, values // self.heads, d, scale=0.2)
                        else:
                            add(f"{at}/{name}", d, self.heads, shape[1] // self.heads)
                    norm(f"{scope}/{kind}/{inside}")
                for name, shape in (("conv1", (d, f)), ("conv2", (f, d))):
                    add(f"{scope}/ffn/{name}/kernel", *shape)
                    add(f"{scope}/ffn/{name}/bias", shape[1], scale=0.1)
                norm(f"{scope}/ffn/{inside}")
            if self.pre_norm:
                norm(f"body/{stack}/layer_prepostprocess")
        if self.target_space:
            add("body/target_space_embedding/kernel", 32, d, scale=0.5)
        if self.positions:
            for side in ("inputs", "targets"):
                add(f"body/{side}_positional_embedding", self.positions, d, scale=0.5)
        self.matrices = {}
        target_rows = self.target_rows or self.rows
        roles = {"inputs": ("shared" if self.tied else "input_emb", self.rows)}
        roles["targets"] = ("shared" if self.tied else "target_emb", target_rows)
        roles["softmax"] = ("shared" if self.tied else "softmax", target_rows)
        made = {}
        for role, key in roles.items():
            if key not in made:
                made[key] = rng.normal(0, d**-0.5, (key[1], d)).astype("float32")
            self.matrices[role] = made[key]
        self._embeddings = made

    def variables(self, scope="transformer/"):
        """Returns {name: array} as the checkpoint has them, moments of Adam included."""
        found = {scope + name: value for name, value in self.weights.items()}
        for (role, rows), matrix in self._embeddings.items():
            sizes = [rows // self.shards + (i < rows % self.shards) for i in range(self.shards)]
            for i, shard in enumerate(np.split(matrix, np.cumsum(sizes)[:-1])):
                found[f"{scope}symbol_modality_{rows}_{self.hidden}/{role}/weights_{i}"] = shard
        moments = {f"training/{name}/Adam{end}": value * 0.1 for name, value in found.items() for end in ("", "_1")}
        return {**found, **moments, "global_step": np.int64(250_000), "training/beta1_power": np.float32(0.5)}

    def hparams(self):
        """Returns tensor2tensor's own settings, as far as they matter; some that do not are there too."""
        return {
            "hidden_size": self.hidden, "filter_size": self.filter, "num_heads": self.heads,
            "num_hidden_layers": self.layers, "num_encoder_layers": 0, "num_decoder_layers": 0,
            "attention_key_channels": self.key_channels or 0, "attention_value_channels": self.value_channels or 0,
            "layer_preprocess_sequence": "n" if self.pre_norm else "none",
            "layer_postprocess_sequence": "da" if self.pre_norm else "dan",
            "shared_embedding_and_softmax_weights": self.tied, "norm_epsilon": 1e-6,
            "pos": "emb" if self.positions else "timing", "use_target_space_embedding": self.target_space,
            "symbol_modality_num_shards": self.shards, "ffn_layer": "dense_relu_dense", "norm_type": "layer",
            "self_attention_type": "dot_product", "attention_variables_3d": self.is_3d, "optimizer": "Adam",
            "learning_rate_schedule": "legacy", "learning_rate_minimum": None, "bottom": {}, "data_dir": "/gone",
            "layer_prepostprocess_dropout": 0.3, "label_smoothing": 0.1, "batch_size": 2048, "max_length": 128,
        }  # fmt: skip

    def write(self, folder, with_hparams=True, changes=(), **hparams):
        """Writes checkpoint, settings and vocabulary; returns the checkpoint's path. `changes`: of the variables."""
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {**self.variables(), **dict(changes)}
        tensors = {name: value for name, value in tensors.items() if value is not None}
        path = str(folder / "model.ckpt-250000")
        tf.raw_ops.SaveV2(
            prefix=path,
            tensor_names=list(tensors),
            shape_and_slices=[""] * len(tensors),
            tensors=[tf.constant(value) for value in tensors.values()],
        )
        if with_hparams:
            (folder / "hparams.json").write_text(json.dumps({**self.hparams(), **hparams}, indent=0, sort_keys=True))
        write_vocabulary(folder / "vocab.subwords", PIECES)
        return path

    # What it computes.

    def logits(self, inputs, targets):
        """ids [B, S], [B, T] -> float64 [B, T, rows of the targets]."""
        visible = inputs != 0
        x = self._embed("inputs", inputs)
        if self.target_space:
            x = x + self.weights["body/target_space_embedding/kernel"][0]
        x = x + self._positions("inputs", inputs.shape[1])
        mask = visible[:, None, None, :]
        for i in range(self.layers):
            scope = f"encoder/layer_{i}"
            x = self._sub_layer(
                f"{scope}/self_attention", x, lambda y, s=scope: self._attend(f"{s}/self_attention", y, y, mask)
            )
            x = self._sub_layer(f"{scope}/ffn", x, lambda y, s=scope: self._feed_forward(s, y))
        memory = self._final_norm("encoder", x)
        shifted = np.pad(self._embed("targets", targets), ((0, 0), (1, 0), (0, 0)))[:, :-1]
        x = shifted + self._positions("targets", targets.shape[1])
        causal = np.tril(np.ones((targets.shape[1],) * 2, bool))[None, None]
        for i in range(self.layers):
            scope = f"decoder/layer_{i}"
            x = self._sub_layer(
                f"{scope}/self_attention", x, lambda y, s=scope: self._attend(f"{s}/self_attention", y, y, causal)
            )
            x = self._sub_layer(
                f"{scope}/encdec_attention",
                x,
                lambda y, s=scope: self._attend(f"{s}/encdec_attention", y, memory, mask),
            )
            x = self._sub_layer(f"{scope}/ffn", x, lambda y, s=scope: self._feed_forward(s, y))
        return self._final_norm("decoder", x) @ self.matrices["softmax"].T.astype("float64")

    def _embed(self, role, ids):
        return self.matrices[role].astype("float64")[ids] * self.hidden**0.5 * (ids != 0)[..., None]

    def _positions(self, side, length):
        if self.positions:
            return self.weights[f"body/{side}_positional_embedding"][:length]
        count = self.hidden // 2
        scales = np.exp(np.arange(count) * -(np.log(1e4) / max(count - 1, 1)))
        angles = np.arange(length)[:, None] * scales[None]
        return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)

    def _sub_layer(self, scope, x, function):
        if self.pre_norm:
            return x + function(self._norm(f"{scope}/layer_prepostprocess", x))
        return self._norm(f"{scope}/layer_postprocess", x + function(x))

    def _final_norm(self, stack, x):
        return self._norm(f"{stack}/layer_prepostprocess", x) if self.pre_norm else x

    def _norm(self, scope, x):
        centred = x - x.mean(-1, keepdims=True)
        scale, bias = (self.weights[f"body/{scope}/layer_norm/layer_norm_{part}"] for part in ("scale", "bias"))
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-6) * scale + bias

    def _attend(self, scope, x, memory, mask):
        at = f"body/{scope}/multihead_attention"
        flat = {n: self.weights[f"{at}/{n[0]}" if self.is_3d else f"{at}/{n}/kernel"] for n in ("q", "k", "v")}
        output = self.weights[f"{at}/o" if self.is_3d else f"{at}/output_transform/kernel"].reshape(-1, self.hidden)

        def heads(y, name):
            y = y @ flat[name].reshape(self.hidden, -1)
            return y.reshape(*y.shape[:2], self.heads, -1).transpose(0, 2, 1, 3)

        q, k, v = heads(x, "q"), heads(memory, "k"), heads(memory, "v")
        if not self.is_3d:
            q = q * q.shape[-1] ** -0.5
        scores = np.where(mask, q @ k.swapaxes(-1, -2), -1e9)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (weights / weights.sum(-1, keepdims=True)) @ v
        return mixed.transpose(0, 2, 1, 3).reshape(*x.shape[:2], -1) @ output

    def _feed_forward(self, scope, x):
        w = {
            n: self.weights[f"body/{scope}/ffn/{n}"]
            for n in ("conv1/kernel", "conv1/bias", "conv2/kernel", "conv2/bias")
        }
        return np.maximum(x @ w["conv1/kernel"] + w["conv1/bias"], 0) @ w["conv2/kernel"] + w["conv2/bias"]


def write_vocabulary(path, pieces):
    """Writes pieces as tensor2tensor's `store_to_file` does; returns the path."""
    path.write_text("".join(f"'{piece}'\n" for piece in pieces), encoding="utf-8")
    return path

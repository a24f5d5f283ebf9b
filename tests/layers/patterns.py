"""Patterns of attention as predicates written as loops, layers that have them, and steps of decoding with a cache."""

import numpy as np
from keras import ops

from t2t_lite import layers
from tests.layers.equations import array
from tests.layers.kinds import registered

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 31, 8)).astype("float32")  # two rows for layers of four heads whose sizes are 3 and 5


def sees(i, j, kind, *sizes):
    """Whether position i sees position j, an earlier one or itself."""
    if kind == "full":
        return True
    if kind == "window":
        return i - j < sizes[0]
    if kind == "local_1d":
        return i // sizes[0] - j // sizes[0] <= 1
    if kind == "strided":
        return i - j < sizes[0] or (i - j) % sizes[0] == 0
    if kind == "fixed":
        return i // sizes[0] == j // sizes[0] or j % sizes[0] >= sizes[0] - sizes[1]
    height, width, image_width, above, beside = sizes
    blocks = image_width // width
    (row, column), (other_row, other_column) = (divmod(p // (height * width), blocks) for p in (i, j))
    return row - other_row <= above and abs(column - other_column) <= beside


def visible(length, case):
    """The pattern of a case, (kind, sizes), with a causal mask: bool [length, length].

    Of a case of several patterns, each of which two heads have, it is [1, heads, length, length].
    """
    if isinstance(case[0], tuple):
        return np.stack([visible(length, each) for each in case for _ in range(2)])[None]
    kind, sizes = case
    rows = [[j <= i and sees(i, j, kind, *sizes) for j in range(length)] for i in range(length)]
    return np.array(rows, bool).reshape(length, length)


OPTIONS = {
    "full": [],
    "window": ["neighborhood"],
    "local_1d": ["block_length"],
    "strided": ["stride"],
    "fixed": ["stride", "summary"],
    "local_2d": ["block_height", "block_width", "image_width", "blocks_above", "blocks_beside"],
}
PATTERNS = [("window", (3,)), ("local_1d", (3,)), ("strided", (3,)), ("fixed", (3, 1)), ("fixed", (4, 2))]
PATTERNS = registered([*PATTERNS, ("local_2d", (2, 2, 4, 1, 1))])
HEADS = registered([  # of one layer
    (("full", ()), ("window", (3,))),
    (("strided", (3,)), ("fixed", (4, 2))),
    (("full", ()), ("local_1d", (3,))),
    (("local_2d", (2, 2, 4, 1, 1)), ("window", (3,)), ("local_1d", (2,))),
])  # fmt: skip
SCORES = registered(
    {
        "relative": {"type": "relative", "max_relative_position": 4, "add_relative_to_values": True},
        "relative_v2": {"type": "relative_v2", "max_relative_position": 5, "add_relative_to_values": True},
        "one table": {"type": "relative_v2", "max_relative_position": 9, "heads_share_relative_embedding": True},
        "memory": {"type": "memory", "clamp_length": 7},
    }
)


def named(case):
    """The name of a case."""
    return ":".join(map(named, case)) if isinstance(case[0], tuple) else f"{case[0]}{case[1]}"


def pattern(case):
    """The pattern of a case as layers take it."""
    if isinstance(case[0], tuple):
        return [pattern(each) for each in case]
    kind, sizes = case
    return {"type": kind, **dict(zip(OPTIONS[kind], sizes, strict=True))}


def made(case, score="dot_product", **options):
    """A layer with weights of the size of the inputs, so that a wrong row shows."""
    heads = 2 * len(case) if isinstance(case[0], tuple) else 4
    layer = layers.MultiHeadAttention(heads, 3, 5, score=score, pattern=pattern(case), **options)
    layer.build((None, None, 8))
    layer.set_weights([RNG.normal(size=w.shape) / 2 for w in layer.weights])
    return layer


def dense(layer):
    """A layer of the same weights and the same score that sees all that a mask does not hide."""
    full = layers.MultiHeadAttention.from_config({**layer.get_config(), "pattern": "full"})
    full.build((None, None, 8))
    full.set_weights(layer.get_weights())
    return full


def steps(layer, x, prompt=None, lengths=None, slots=8, count=4):
    """Cached steps of one beam after prompts of several lengths: outputs [B, count, hidden]."""
    past = layer.empty_past(len(x), slots)
    seen = np.zeros((len(x), 0), bool)
    if prompt is not None:
        past = past._replace(prompt=layer.prefill(prompt)[1], lengths=ops.convert_to_tensor(lengths))
        seen = np.arange(prompt.shape[1]) < lengths[:, None]
    outputs = []
    for i in range(count):
        mask = np.concatenate([seen, np.tile(np.arange(slots) <= i, (len(x), 1))], axis=1)[:, None]
        output, past = layer.step(x[:, i : i + 1], past, ops.convert_to_tensor(i, "int32"), mask)
        outputs.append(array(output))
    return np.concatenate(outputs, axis=1)


def check_steps_of_beams(layer, x, in_place=True):
    """Asserts that steps of beams, the rows of x, are one causal call: each reads its own slots."""
    full, (beams, length, hidden) = array(layer(x, use_causal_mask=True)), x.shape
    past = layer.empty_past(1, beams * length if in_place else 0)
    for i in range(length):
        slot = np.arange(beams * (length if in_place else i + 1))
        mask = (slot // beams <= i) & (slot % beams == np.arange(beams)[:, None])
        position = ops.convert_to_tensor(i, "int32") if in_place else None
        output, past = layer.step(x[:, i].reshape(1, beams, hidden), past, position, mask[None])
        np.testing.assert_allclose(array(output)[0], full[:, i], atol=1e-5)

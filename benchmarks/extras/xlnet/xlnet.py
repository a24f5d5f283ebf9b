"""Compares training steps of XLNet with Hugging Face's XLNetLMHeadModel of the same size (tokens per second).

python -m benchmarks.extras.xlnet.xlnet
python -m benchmarks.extras.xlnet.xlnet --layers=12 --hidden=768

Both sides have random weights, heads of size 64, 8,000 ids, dropout 0.1 and Adam. Both read the same rows of 128 ids in
the same orders, and predict the same ids, about a sixth of all ids. Each side runs in a separate process and is warmed
up.
"""

import argparse
import sys

from benchmarks.encoder import add_flags  # noqa: F401  (the same sizes)
from benchmarks.harness.command import compare, main, sizes_of
from benchmarks.harness.steps import new_step
from benchmarks.harness.turns import answer_turns

TITLE = "XLNet against Hugging Face's"
SIDES = {"ours": "t2t_lite", "hf": "XLNetLMHeadModel"}
NEEDS = {"hf": ["torch", "transformers"]}
VOCAB, HEAD_SIZE, CLS = 8_000, 64, 4


def our_step(flags, ids, targets, order):
    """Returns a function that trains on a batch of ids, targets (0 where nothing is predicted) and their order."""
    from t2t_lite import registry
    from t2t_lite.runs.run_config import build_model
    from t2t_lite.training.training_data import StepBatches

    sizes = {"hidden_size": flags.hidden, "filter_size": 4 * flags.hidden, "num_heads": flags.hidden // HEAD_SIZE}
    hparams = registry.hparams("xlnet_base").override_from_dict(
        {**sizes, "num_hidden_layers": flags.layers, "clip_grad_norm": 0.0}
    )
    config = {"model": "xlnet", "vocab_size": VOCAB, "target_vocab_size": None}
    features = {"inputs": 2, "targets": 2, "order": 2}
    step = new_step(lambda: build_model({**config, "hparams": hparams.values()}), hparams, features=features)
    batch = {"inputs": ids, "targets": targets, "order": order}
    return lambda: float(step(step.place(StepBatches([batch], 0)))["objective"]["targets"])


def their_step(flags, ids, targets, order):
    """Does the same as `our_step`, but with Hugging Face's XLNet.

    Each row gets a final [CLS], which our model adds by itself.
    """
    import numpy as np
    import torch
    from transformers import XLNetConfig, XLNetLMHeadModel

    torch.manual_seed(0)
    heads = flags.hidden // HEAD_SIZE
    sizes = {"d_model": flags.hidden, "n_layer": flags.layers, "n_head": heads, "d_inner": 4 * flags.hidden}
    model = XLNetLMHeadModel(XLNetConfig(vocab_size=VOCAB, mem_len=None, **sizes)).train()
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)
    rows, length = ids.shape
    row = np.pad(ids, ((0, 0), (0, 1)), constant_values=CLS)
    order = np.pad(order, ((0, 0), (0, 1)))
    hidden = (order[:, None] > 0) & (order[:, None] >= order[:, :, None])
    places = [np.flatnonzero(one) for one in order]
    mapping = np.zeros((rows, max(map(len, places)), length + 1), "float32")
    labels = np.full(mapping.shape[:2], -100)
    for at, place in enumerate(places):
        mapping[at, np.arange(len(place)), place] = 1
        labels[at, : len(place)] = row[at, place]
    segments = np.zeros(row.shape, int)
    segments[:, -1] = 2
    arguments = {
        "input_ids": torch.tensor(row).long(), "token_type_ids": torch.tensor(segments),
        "perm_mask": torch.tensor(hidden.astype("float32")), "target_mapping": torch.tensor(mapping),
        "labels": torch.tensor(labels),
    }  # fmt: skip

    def train():
        optimizer.zero_grad(set_to_none=True)
        loss = model(**arguments).loss
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return train


def measure(result, flags):
    """Compares the training steps of both sides."""
    sizes = sizes_of(flags, layers=1, hidden=64, batch=2, length=16, steps=1)
    case = f"training step, {sizes['layers']} x {sizes['hidden']}, {sizes['batch']} x {sizes['length']} ids"
    compare(sys.modules[__name__], result, flags, case, rounds=5, **sizes)


def side(name, steps, **sizes):
    """Takes several training steps in each turn."""
    import numpy as np
    import tensorflow as tf

    from t2t_lite.extras.xlnet.permutation import Permutation

    flags, rng = argparse.Namespace(**sizes), np.random.default_rng(0)
    ids = rng.integers(CLS + 1, VOCAB, (flags.batch, flags.length - 1)).astype("int32")
    ids[:, -1] = 1
    seeds = rng.integers(0, 2**31 - 1, (flags.batch, 2)).astype("int32")
    drawn = Permutation(np.arange(VOCAB) > CLS)(tf.constant(ids), tf.constant(seeds))
    targets, order = (part.numpy() for part in drawn)
    work = (our_step if name == "ours" else their_step)(flags, ids, targets, order)
    for _ in range(2):
        work()

    def turn():
        for _ in range(steps):
            work()
        return steps * flags.batch * flags.length

    answer_turns(turn)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))

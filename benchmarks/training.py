"""A training step against PyTorch's nn.Transformer and Hugging Face's Marian: target tokens a second.

python benchmarks/training.py make BATCHES.npz --records 'DATA/problem-train-*'
python benchmarks/training.py measure BATCHES.npz --peers_python .venv-peers/bin/python > result.jsonl
python benchmarks/training.py endure 'DATA/problem-train-*' > endure.jsonl
python benchmarks/training.py save 'DATA/problem-train-*'

All sides train the same model (the paper's base, 37,000 ids, one matrix for both embeddings and the softmax) on the
same real batches, padding included and hidden by masks: dropout 0.1, label smoothing 0.1, Adam, float32; the update
is included. Every side is a process of its own, warmed up on all batches, and the sides take turns: a turn is
every batch once. Ratios are medians over neighbouring turns. `--sides` adds variants: `mixed` is ours under
mixed_bfloat16, `recompute` ours with recompute_grad, `compiled` ours with --xla_compile, `torch_unmasked` PyTorch
without its padding masks; `accumulated` takes all batches in one step, one after the other, and `replicas` in one step,
each on a logical CPU of its own.

`endure` takes 10,000 steps of a tiny model over a stream whose batches have ever new shapes, and prints for each 500 of
them the median CPU time of a step a token, the process' memory, what of it is in use, and how often it is traced.
`save` saves a checkpoint of the base model, its optimizer and the position in the data five times, and says what that
costs every ten minutes.
"""

import argparse
import ctypes
import glob
import json
import math
import os
import resource
import statistics
import sys
import tempfile
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.turns import machine, resident_bytes, summary, take_turns

SIDES = {
    "ours": "",
    "mixed": "dtype_policy=mixed_bfloat16",
    "recompute": "recompute_grad=True",
    "compiled": "",
    "accumulated": "",
    "replicas": "",
}
PEERS = "torch", "torch_unmasked", "marian"
SIZES = {
    "base": {"hidden_size": 512, "filter_size": 2048, "num_heads": 8, "num_hidden_layers": 6},
    "small": {"hidden_size": 256, "filter_size": 1024, "num_heads": 4, "num_hidden_layers": 3},
}
VOCAB_SIZE, DROPOUT, SMOOTHING = 37_000, 0.1, 0.1


def _stream(pattern, batch_size, max_length=256):
    """Returns the trainer's stream over records."""
    from t2t_lite.config import HParams
    from t2t_lite.data import batching
    from t2t_lite.data.problem import Problem

    hparams = HParams(batch_size=batch_size, max_length=max_length, random_seed=1)
    return batching.training_batches(Problem(), hparams, sorted(glob.glob(pattern)))


def make(path, pattern, batch_size, count):
    """Writes `count` batches of the trainer's stream over records."""
    import numpy as np

    stream = _stream(pattern, batch_size)
    arrays = {}
    for i, batch in enumerate(stream.take(count).as_numpy_iterator()):
        for side, ids in batch.items():
            assert ids.max() < VOCAB_SIZE
            arrays[f"{side}_{i}"] = ids
    np.savez(path, **arrays)
    tokens = [int((arrays[f"targets_{i}"] != 0).sum()) for i in range(count)]
    print(json.dumps({"batches": count, "target_tokens": tokens, "shapes": [a.shape for a in arrays.values()]}))


def load(path):
    """Returns [(inputs, targets)] as int32 arrays."""
    import numpy as np

    arrays = np.load(path)
    return [(arrays[f"inputs_{i}"], arrays[f"targets_{i}"]) for i in range(len(arrays) // 2)]


def new_step(hparams, logical_cpus=0, xla_compile=False):
    """Returns the TrainStep of a new model on the CPU."""
    from t2t_lite.runs.config import build_model
    from t2t_lite.training.distribution import choose_replicas
    from t2t_lite.training.optimizers import make_optimizer
    from t2t_lite.training.train_step import TrainStep

    replicas = choose_replicas(0, logical_cpus)
    config = {"model": "transformer", "vocab_size": VOCAB_SIZE, "target_vocab_size": None, "hparams": hparams.values()}
    with replicas.scope():
        model = build_model(config)
        optimizer = make_optimizer(hparams, 100_000)
        optimizer.build(model.trainable_variables)
    return TrainStep(model, optimizer, replicas, hparams, xla_compile)


def our_steps(side, size, batches):
    """Returns functions without arguments that train on all batches together, and return the last loss."""
    from t2t_lite import registry

    a_step = len(batches) if side in ("accumulated", "replicas") else 1
    settings = {**SIZES[size], "layer_prepostprocess_dropout": DROPOUT, "label_smoothing": SMOOTHING}
    hparams = registry.hparams("transformer_base_v1").override_from_dict(settings).parse(SIDES[side])
    hparams.gradient_accumulation_steps = a_step if side == "accumulated" else 1
    step = new_step(hparams, a_step if side == "replicas" else 0, side == "compiled")
    from t2t_lite.training.feed import StepBatches

    named = [{"inputs": inputs, "targets": targets} for inputs, targets in batches]
    placed = [step.place(StepBatches(named[i : i + a_step], i)) for i in range(0, len(batches), a_step)]
    return [lambda one=one: float(step(one)["objective"]["targets"]) for one in placed]


def peer_steps(side, size, batches):
    """As `our_steps`, of a PyTorch model."""
    import torch
    import torch.nn.functional as F

    torch.manual_seed(1)
    model = (marian if side == "marian" else plain_torch)(SIZES[size], masked=side != "torch_unmasked")
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    tensors = [(torch.from_numpy(inputs).long(), torch.from_numpy(targets).long()) for inputs, targets in batches]

    def step(inputs, targets):
        optimizer.zero_grad(set_to_none=True)
        logits = model(inputs, F.pad(targets, (1, 0))[:, :-1])
        loss = F.cross_entropy(
            logits.reshape(-1, VOCAB_SIZE), targets.reshape(-1), ignore_index=0, label_smoothing=SMOOTHING
        )
        loss.backward()
        optimizer.step()
        return loss.item()

    return [lambda pair=pair: step(*pair) for pair in tensors]


def plain_torch(sizes, masked):
    """Returns torch.nn.Transformer with tied embeddings and sinusoids, post-norm as the paper."""
    import torch
    from torch import nn

    hidden = sizes["hidden_size"]
    rates = torch.pow(10000.0, torch.arange(0, hidden, 2) / hidden)
    angles = torch.arange(512.0)[:, None] / rates
    positions = torch.stack([angles.sin(), angles.cos()], -1).reshape(512, hidden)

    class Model(nn.Module):
        """Ids to logits."""

        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCAB_SIZE, hidden, padding_idx=0)
            nn.init.normal_(self.embedding.weight, std=hidden**-0.5)
            self.layers = nn.Transformer(
                hidden, sizes["num_heads"], sizes["num_hidden_layers"], sizes["num_hidden_layers"],
                sizes["filter_size"], DROPOUT, batch_first=True,
            )  # fmt: skip
            self.layers.encoder.norm = self.layers.decoder.norm = None  # the paper has none after a post-norm stack
            self.dropout = nn.Dropout(DROPOUT)

        def embed(self, ids):
            return self.dropout(self.embedding(ids) * math.sqrt(hidden) + positions[: ids.shape[1]])

        def forward(self, inputs, shifted):
            causal = nn.Transformer.generate_square_subsequent_mask(shifted.shape[1])
            # Of the dtype of the causal mask: two kinds are converted, with a warning, at every call.
            padding = torch.zeros(inputs.shape).masked_fill(inputs == 0, -math.inf) if masked else None
            return (
                self.layers(
                    self.embed(inputs), self.embed(shifted), tgt_mask=causal, tgt_is_causal=True,
                    src_key_padding_mask=padding, memory_key_padding_mask=padding,
                )
                @ self.embedding.weight.T
            )  # fmt: skip

    return Model()


def marian(sizes, masked):
    """Returns a MarianMTModel of random weights."""
    from torch import nn
    from transformers import MarianConfig, MarianMTModel

    layers, heads, filter_size = sizes["num_hidden_layers"], sizes["num_heads"], sizes["filter_size"]
    config = MarianConfig(
        vocab_size=VOCAB_SIZE, d_model=sizes["hidden_size"], encoder_layers=layers, decoder_layers=layers,
        encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_ffn_dim=filter_size,
        decoder_ffn_dim=filter_size, dropout=DROPOUT, attention_dropout=0.0, activation_dropout=0.0,
        activation_function="relu", scale_embedding=True, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0,
        max_position_embeddings=512, use_cache=False,
    )  # fmt: skip

    class Model(nn.Module):
        """Ids to logits."""

        def __init__(self):
            super().__init__()
            self.marian = MarianMTModel(config)

        def forward(self, inputs, shifted):
            mask = (inputs != 0).long() if masked else None
            return self.marian(input_ids=inputs, attention_mask=mask, decoder_input_ids=shifted).logits

    return Model()


def serve(side, size, path):
    """Warms up, then trains on every batch once for each line of stdin, and prints how fast."""
    batches = load(path)
    started = time.perf_counter()
    steps = (peer_steps if side in PEERS else our_steps)(side, size, batches)
    first = steps[0]()
    seconds = time.perf_counter() - started
    for step in steps:
        step()
    print(json.dumps({"side": side, "first_step_seconds": round(seconds, 1), "first_loss": first}), flush=True)
    tokens = sum(int((targets != 0).sum()) for _, targets in batches)
    for _ in sys.stdin:
        cpu, started = time.process_time(), time.perf_counter()
        for step in steps:
            loss = step()
        seconds = time.perf_counter() - started
        result = {
            "tokens_per_second": tokens / seconds,
            "tokens_per_cpu_second": tokens / (time.process_time() - cpu),
            "loss": loss,
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
        print(json.dumps(result), flush=True)


def endure(pattern, steps=10_000, window=500):
    """Trains a tiny model for long; prints a line a window."""
    from t2t_lite import registry
    from t2t_lite.training.feed import StepBatches

    settings = "num_hidden_layers=1,hidden_size=32,filter_size=64"
    step = new_step(registry.hparams("transformer_tiny").parse(settings))
    stream = _stream(pattern, 256, max_length=64)
    shapes, times = set(), []
    print(json.dumps(machine()), flush=True)
    for number, batch in enumerate(stream.take(steps), start=1):
        started = time.process_time()
        taken = StepBatches([batch], number)
        float(step(step.place(taken))["objective"]["targets"])
        times.append(1000 * (time.process_time() - started) / taken.counts["targets"])
        shapes.add((*batch["inputs"].shape, *batch["targets"].shape))
        if number % window == 0:
            median, times = statistics.median(times), []
            result = {"step": number, "cpu_ms_per_token": round(median, 4)}
            result |= {"rss_mb": round(resident_bytes() / 2**20, 1), "in_use_mb": round(in_use() / 2**20, 1)}
            print(json.dumps({**result, "shapes": len(shapes), "traces": step.traces}), flush=True)


def in_use():
    """Bytes that the program has allocated: the rest of what it holds is free memory that glibc's malloc keeps."""
    function = ctypes.CDLL(None).mallinfo2
    function.restype = type("mallinfo2", (ctypes.Structure,), {"_fields_": [("all", ctypes.c_size_t * 10)]})
    found = function().all
    return found[7] + found[4]  # uordblks and hblkhd: on the heap, and mapped


def measure(path, sides, size, rounds, peers_python):
    """Lets the sides take turns, and prints every turn and the medians."""
    print(json.dumps({"size": size, **machine()}), flush=True)
    commands = {
        side: [
            *(peers_python if side in PEERS else sys.executable, os.path.abspath(__file__), "serve", path),
            *("--side", side, "--size", size),
        ]
        for side in sides
    }
    turns = take_turns(commands, rounds)
    for key in ("tokens_per_second", "tokens_per_cpu_second"):
        print(json.dumps(summary(turns, key)), flush=True)


def save(pattern):
    """Times checkpoints of the base model."""
    from t2t_lite import registry
    from t2t_lite.runs.checkpoints import RunCheckpoints

    step = new_step(registry.hparams("transformer_base_v1"))
    iterator = iter(_stream(pattern, 4096))
    next(iterator)
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = RunCheckpoints(folder, step.model, step.optimizer, iterator=iterator)
        seconds = []
        for number in range(5):
            started = time.perf_counter()
            path = checkpoints.save(number)
            seconds.append(round(time.perf_counter() - started, 2))
        size = sum(os.path.getsize(file) for file in glob.glob(f"{path}.*"))
    share = statistics.median(seconds) / 600
    print(json.dumps({"seconds": seconds, "mb": size >> 20, "share_every_10_minutes": round(share, 5), **machine()}))


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("make", "measure", "serve", "endure", "save"))
    parser.add_argument("batches")
    parser.add_argument("--records")
    parser.add_argument("--batch_size", type=int, default=2400, help="cells of the longer side")
    parser.add_argument("--count", type=int, default=6, help="batches")
    parser.add_argument("--sides", default="ours,torch,marian")
    parser.add_argument("--side")
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers_python", default=sys.executable)
    flags = parser.parse_args()
    if flags.action == "make":
        make(flags.batches, flags.records, flags.batch_size, flags.count)
    elif flags.action == "measure":
        measure(flags.batches, flags.sides.split(","), flags.size, flags.rounds, flags.peers_python)
    elif flags.action == "endure":
        endure(flags.batches)
    elif flags.action == "save":
        save(flags.batches)
    else:
        serve(flags.side, flags.size, flags.batches)


if __name__ == "__main__":
    main()

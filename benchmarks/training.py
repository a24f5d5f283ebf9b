"""Compares training steps with PyTorch's nn.Transformer and Hugging Face's Marian: speed and memory.

python -m benchmarks.training
python -m benchmarks.training --sides=mixed,torch_bf16,marian_bf16,ours
python -m benchmarks.training --sides=ours,mixed,recompute,compiled,torch_unmasked --rounds=5
python -m benchmarks.training --sides=accumulated,replicas --size=small --batches=8

All sides train the same model (the paper's base, 37,000 ids, one matrix for both embeddings and the softmax) on the
same batches, whose padding is masked. They use dropout 0.1, label smoothing 0.1, Adam and float32. A step includes the
update of the weights.
Every side runs in a separate process and is warmed up on all batches; a turn runs every batch once. `mixed` is `ours`
under mixed_bfloat16, `recompute` is `ours` with recompute_grad, `compiled` is `ours` with --xla_compile, and
`torch_unmasked` is PyTorch without padding masks. `accumulated` computes all batches in one step, one after another;
`replicas` also computes them in one step, each on a separate logical CPU. Unless --quick is set, a checkpoint
that contains the base model, its optimizer and the position in the data is also saved five times.
"""

import glob
import json
import math
import os
import sys
import tempfile
import time

from benchmarks.harness import steps, work
from benchmarks.harness.command import alone, compare, main
from benchmarks.harness.turns import answer_turns

TITLE = "A training step against PyTorch and Hugging Face"
SIDES = {
    "ours": "t2t_lite",
    "torch": "PyTorch nn.Transformer",
    "marian": "Hugging Face Marian",
    "mixed": "t2t_lite, mixed_bfloat16",
    "recompute": "t2t_lite, recompute_grad",
    "compiled": "t2t_lite, xla_compile",
    "accumulated": "t2t_lite, batches accumulated",
    "replicas": "t2t_lite, a replica per batch",
    "torch_unmasked": "PyTorch without padding masks",
    "torch_bf16": "PyTorch nn.Transformer, autocast bfloat16",
    "marian_bf16": "Hugging Face Marian, autocast bfloat16",
}
DEFAULT_SIDES = "ours", "torch", "marian", "mixed"
NEEDS = {side: ["torch"] for side in SIDES if side.startswith("torch")}
NEEDS |= {side: ["torch", "transformers"] for side in SIDES if side.startswith("marian")}
HPARAMS = {"mixed": "dtype_policy=mixed_bfloat16", "recompute": "recompute_grad=True"}
SIZES = {
    "base": {"hidden_size": 512, "filter_size": 2048, "num_heads": 8, "num_hidden_layers": 6},
    "small": {"hidden_size": 256, "filter_size": 1024, "num_heads": 4, "num_hidden_layers": 3},
}
VOCAB_SIZE, DROPOUT, SMOOTHING = 37_000, 0.1, 0.1


def stream(pattern, batch_size, max_length=256):
    """Returns the trainer's stream over records."""
    from t2t_lite.data import batching
    from t2t_lite.data.problem import Problem
    from t2t_lite.settings.config import HParams

    hparams = HParams(batch_size=batch_size, max_length=max_length, random_seed=1)
    return batching.training_batches(Problem(), hparams, sorted(glob.glob(pattern)))


def add_flags(parser):
    """Adds this benchmark's flags."""
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--batches", type=int, default=1)
    parser.add_argument("--batch_size", type=int, default=2400, help="cells (rows x length) of the longer side")
    parser.add_argument("--records", help="glob pattern of records to train on instead of the phrasebook")


def measure(result, flags):
    """Compares the sides' training steps, then times checkpoints."""
    size, batch_size = ("small", 240) if flags.quick else (flags.size, flags.batch_size)
    pattern = flags.records or os.path.join(work.data_dir(flags.bench_dir), "*-train-*")
    path = os.path.join(flags.bench_dir, f"batches_{batch_size}.npz")
    shapes, tokens = make(path, pattern, batch_size, flags.batches)
    result.notes.append(f"Batches of {shapes} source and target ids, {tokens} target tokens without padding.")
    dtype = "bfloat16; t2t_lite also in float32" if flags.sides[0] == "mixed" else "float32"
    compare(sys.modules[__name__], result, flags, f"{size}, {dtype}", path=path, size=size)
    if "ours" in flags.sides and not flags.quick:
        seconds = alone(sys.modules[__name__], "ours", path=pattern, size=None)["seconds"]
        result.add(
            "a checkpoint of the base model, its optimizer and position in the data", "seconds", {"ours": seconds}
        )


def make(path, pattern, batch_size, count, max_length=256):
    """Writes `count` batches of the trainer's stream; returns their shapes and numbers of target tokens, as texts."""
    import numpy as np

    arrays = {}
    for i, batch in enumerate(stream(pattern, batch_size, max_length).take(count).as_numpy_iterator()):
        for side, ids in batch.items():
            assert ids.max() < VOCAB_SIZE
            arrays[f"{side}_{i}"] = ids
    np.savez(path, **arrays)
    shape = {name: " x ".join(map(str, ids.shape)) for name, ids in arrays.items()}
    shapes = "; ".join(f"{shape[f'inputs_{i}']} and {shape[f'targets_{i}']}" for i in range(count))
    return shapes, ", ".join(f"{(arrays[f'targets_{i}'] != 0).sum():,}" for i in range(count))


def load(path):
    """Reads batches that `make` wrote, as a list of (inputs, targets), int32 arrays."""
    import numpy as np

    arrays = np.load(path)
    return [(arrays[f"inputs_{i}"], arrays[f"targets_{i}"]) for i in range(len(arrays) // 2)]


def new_step(hparams, logical_cpus=0, xla_compile=False):
    """Returns the TrainStep of a new model on the CPU."""
    from t2t_lite.runs.run_config import build_model
    from t2t_lite.training.distribution import choose_replicas

    config = {"model": "transformer", "vocab_size": VOCAB_SIZE, "target_vocab_size": None, "hparams": hparams.values()}
    replicas = choose_replicas(0, logical_cpus)
    return steps.new_step(lambda: build_model(config), hparams, replicas, xla_compile=xla_compile)


def our_steps(side, size, batches):
    """Returns functions without arguments. Together they train on all batches; each returns the loss on its batches."""
    from t2t_lite import registry

    a_step = len(batches) if side in ("accumulated", "replicas") else 1
    settings = {**SIZES[size], "layer_prepostprocess_dropout": DROPOUT, "label_smoothing": SMOOTHING}
    hparams = registry.hparams("transformer_base_v1").override_from_dict(settings).parse(HPARAMS.get(side, ""))
    hparams.gradient_accumulation_steps = a_step if side == "accumulated" else 1
    step = new_step(hparams, a_step if side == "replicas" else 0, side == "compiled")
    from t2t_lite.training.training_data import StepBatches

    features = [{"inputs": inputs, "targets": targets} for inputs, targets in batches]
    placed = [step.place(StepBatches(features[i : i + a_step], i)) for i in range(0, len(batches), a_step)]
    return [lambda batch=batch: float(step(batch)["objective"]["targets"]) for batch in placed]


def peer_steps(side, size, batches):
    """Does the same as `our_steps`, but with a PyTorch model."""
    step = peer_step(side, SIZES[size])
    return [lambda pair=pair: step(*pair) for pair in batches]


def peer_step(side, sizes):
    """Creates a PyTorch model; returns a function that trains it on inputs and targets and returns the loss."""
    import torch
    import torch.nn.functional as F

    torch.manual_seed(1)
    make = marian if side.startswith("marian") else plain_torch
    model = make(sizes, masked=side != "torch_unmasked")
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def step(inputs, targets):
        inputs, targets = (torch.from_numpy(ids).long() for ids in (inputs, targets))
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=side.endswith("_bf16")):
            logits = model(inputs, F.pad(targets, (1, 0))[:, :-1])
            loss = F.cross_entropy(
                logits.reshape(-1, VOCAB_SIZE), targets.reshape(-1), ignore_index=0, label_smoothing=SMOOTHING
            )
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def plain_torch(sizes, masked):
    """Returns torch.nn.Transformer with tied embeddings and sinusoids, post-norm as in the paper."""
    import torch
    from torch import nn

    hidden = sizes["hidden_size"]
    rates = torch.pow(10000.0, torch.arange(0, hidden, 2) / hidden)
    angles = torch.arange(512.0)[:, None] / rates
    positions = torch.stack([angles.sin(), angles.cos()], -1).reshape(512, hidden)

    class Model(nn.Module):
        """Maps ids to logits."""

        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(VOCAB_SIZE, hidden, padding_idx=0)
            nn.init.normal_(self.embedding.weight, std=hidden**-0.5)
            self.layers = nn.Transformer(
                hidden, sizes["num_heads"], sizes["num_hidden_layers"], sizes["num_hidden_layers"],
                sizes["filter_size"], DROPOUT, batch_first=True,
            )  # fmt: skip
            self.layers.encoder.norm = self.layers.decoder.norm = None  # the paper has no norm after a post-norm stack
            self.dropout = nn.Dropout(DROPOUT)

        def embed(self, ids):
            return self.dropout(self.embedding(ids) * math.sqrt(hidden) + positions[: ids.shape[1]])

        def forward(self, inputs, shifted):
            causal = nn.Transformer.generate_square_subsequent_mask(shifted.shape[1])
            # The padding mask has the dtype of the causal mask, because masks of different dtypes would be converted,
            # with a warning, at every call.
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
    """Returns a MarianMTModel with random weights."""
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
        """Maps ids to logits."""

        def __init__(self):
            super().__init__()
            self.marian = MarianMTModel(config)

        def forward(self, inputs, shifted):
            mask = (inputs != 0).long() if masked else None
            return self.marian(input_ids=inputs, attention_mask=mask, decoder_input_ids=shifted).logits

    return Model()


def side(name, path, size):
    """Trains on every batch once per turn, or (without a size) times checkpoints."""
    if size is None:
        save(path)
        return
    batches = load(path)
    steps = (peer_steps if name in NEEDS else our_steps)(name, size, batches)
    for step in [steps[0], *steps]:
        step()
    tokens = sum(int((targets != 0).sum()) for _, targets in batches)

    def train():
        for step in steps:
            step()
        return tokens

    answer_turns(train)


def save(pattern):
    """Prints the seconds that saving checkpoints of the base model takes."""
    from t2t_lite import registry
    from t2t_lite.runs.checkpoints import RunCheckpoints

    step = new_step(registry.hparams("transformer_base_v1"))
    iterator = iter(stream(pattern, 4096))
    next(iterator)
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = RunCheckpoints(folder, step.model, step.optimizer, iterator=iterator)
        seconds = []
        for number in range(5):
            started = time.perf_counter()
            checkpoints.save(number)
            seconds.append(round(time.perf_counter() - started, 2))
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))

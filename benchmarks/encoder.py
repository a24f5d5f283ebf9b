"""An encoder against Hugging Face's BERT of the same size: training with masked words, and features, ids a second.

python benchmarks/encoder.py train --peers_python .venv-peers/bin/python > train_4x256.jsonl
python benchmarks/encoder.py train --layers 12 --hidden 768 --peers_python .venv-peers/bin/python > train_12x768.jsonl
python benchmarks/encoder.py features --layers 12 --hidden 768 --peers_python .venv-peers/bin/python > features.jsonl

Both have random weights, heads of 64 and BERT's 30,522 ids. A row has 128 random ids, of which 15 % are masked. A step
of training has AdamW and dropout 0.1. `ours` computes logits at the masked positions alone; `hf` is BertForMaskedLM as
it is, which computes them at all positions, and `hf_masked` its layers and its head with the logits of masked positions
alone. Features are the last four layers, concatenated. Every side is a process of its own, warmed up; sides take turns.
"""

import argparse
import json
import os
import resource
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.turns import machine, summary, take_turns

VOCAB, HEAD_SIZE, MASK_RATE, MASK, POSITIONS = 30_522, 64, 0.15, 3, 512


def our_model(flags):
    """Returns (hparams, model) in the scope of one replica."""
    from t2t_lite import registry
    from t2t_lite.runs.config import build_model

    sizes = {"hidden_size": flags.hidden, "filter_size": 4 * flags.hidden, "num_heads": flags.hidden // HEAD_SIZE}
    hparams = registry.hparams("bert_base").override_from_dict(
        {**sizes, "num_hidden_layers": flags.layers, "max_position": POSITIONS, "clip_grad_norm": 0.0}
    )
    config = {"model": "transformer_encoder", "vocab_size": VOCAB, "target_vocab_size": None}
    return hparams, build_model({**config, "hparams": hparams.values()})


def our_step(flags):
    """Returns a function of ids and targets [batch, length], 0 where nothing is masked, that trains on them."""
    from t2t_lite.training.distribution import choose_replicas
    from t2t_lite.training.feed import StepBatches
    from t2t_lite.training.optimizers import make_optimizer
    from t2t_lite.training.train_step import TrainStep

    replicas = choose_replicas(0, 0)
    with replicas.scope():
        hparams, model = our_model(flags)
        optimizer = make_optimizer(hparams, 100_000)
        optimizer.build(model.trainable_variables)
    step = TrainStep(model, optimizer, replicas, hparams, False, {"inputs": 2, "targets": 2})

    def train(ids, targets):
        placed = step.place(StepBatches([{"inputs": ids, "targets": targets}], 0))
        return float(step(placed)["objective"]["targets"])

    return train


def our_features(flags):
    """Returns a function of ids and targets that computes features of the ids."""
    import tensorflow as tf

    from t2t_lite.decoding.hidden_states import features_of

    _, model = our_model(flags)
    model.build()
    features = tf.function(
        features_of(model, "last_four", "concat"), input_signature=[tf.TensorSpec([None, None], tf.int32)]
    )
    return lambda ids, targets: features(tf.constant(ids)).numpy()


def their_config(flags):
    """Returns a BertConfig of the same sizes."""
    import torch
    from transformers import BertConfig

    torch.manual_seed(0)
    return BertConfig(
        vocab_size=VOCAB, hidden_size=flags.hidden, num_hidden_layers=flags.layers, intermediate_size=4 * flags.hidden,
        num_attention_heads=flags.hidden // HEAD_SIZE, max_position_embeddings=POSITIONS,
    )  # fmt: skip


def their_step(flags):
    """As `our_step`, of Hugging Face."""
    import torch
    from transformers import BertForMaskedLM

    model = BertForMaskedLM(their_config(flags)).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)

    def loss(ids, targets):
        if flags.side == "hf":
            return model(input_ids=ids, labels=targets.masked_fill(targets == 0, -100)).loss
        hidden = model.bert(input_ids=ids).last_hidden_state
        return torch.nn.functional.cross_entropy(model.cls(hidden[targets != 0]), targets[targets != 0])

    def train(ids, targets):
        optimizer.zero_grad(set_to_none=True)
        found = loss(torch.tensor(ids).long(), torch.tensor(targets).long())
        found.backward()
        optimizer.step()
        return float(found)

    return train


def their_features(flags):
    """As `our_features`, of Hugging Face."""
    import torch
    from transformers import BertModel

    model = BertModel(their_config(flags), add_pooling_layer=False).eval()

    def features(ids, targets):
        with torch.inference_mode():
            states = model(input_ids=torch.tensor(ids).long(), output_hidden_states=True).hidden_states
            return torch.cat(states[-4:], -1).numpy()

    return features


def serve(flags):
    """Warms up, then works once for each line of stdin, and prints how fast."""
    import numpy as np

    sides = {"train": (our_step, their_step), "features": (our_features, their_features)}[flags.work]
    work = sides[flags.side != "ours"](flags)
    rng = np.random.default_rng(0)
    ids = rng.integers(MASK + 1, VOCAB, (flags.batch, flags.length)).astype("int32")
    masked = rng.random(ids.shape).argsort(1) < round(MASK_RATE * flags.length)
    batch = np.where(masked, MASK, ids).astype("int32"), np.where(masked, ids, 0).astype("int32")
    for _ in range(2):
        work(*batch)
    print(json.dumps({"side": flags.side}), flush=True)
    for _ in sys.stdin:
        cpu, started = time.process_time(), time.perf_counter()
        for _ in range(flags.steps):
            work(*batch)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        count = flags.steps * ids.size
        result = {"ids_per_second": round(count / seconds, 1), "ids_per_cpu_second": round(count / cpu, 1)}
        print(json.dumps({**result, "peak_mebibytes": round(peak)}), flush=True)


def measure(flags):
    """Prints the medians, and the ratios of neighbouring turns to the first side."""
    print(json.dumps(machine()), flush=True)
    sides = flags.sides or ("ours,hf,hf_masked" if flags.action == "train" else "ours,hf")
    sizes = [f"--{name}={getattr(flags, name)}" for name in ("layers", "hidden", "batch", "length", "steps")]
    commands = {
        side: [
            sys.executable if side == "ours" else flags.peers_python, os.path.abspath(__file__), "serve",
            f"--work={flags.action}", f"--side={side}", *sizes,
        ]
        for side in sides.split(",")
    }  # fmt: skip
    turns = take_turns(commands, flags.rounds)
    for key in next(iter(turns.values()))[0]:
        print(json.dumps(summary(turns, key)), flush=True)


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("train", "features", "serve"))
    parser.add_argument("--work")
    parser.add_argument("--sides", help="default: ours,hf,hf_masked of training, ours,hf of features")
    parser.add_argument("--side")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8, help="rows")
    parser.add_argument("--length", type=int, default=128, help="ids of a row")
    parser.add_argument("--steps", type=int, default=5, help="of a turn")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peers_python", default=sys.executable)
    flags = parser.parse_args()
    (serve if flags.action == "serve" else measure)(flags)


if __name__ == "__main__":
    main()

"""A language model against Hugging Face's GPT-2 of the same size: training, evaluation and generation, tokens a second.

python benchmarks/language_model.py train --batches 8 --peers_python .venv-peers/bin/python > train.jsonl
python benchmarks/language_model.py evaluate --batches 8 --peers_python .venv-peers/bin/python > evaluate.jsonl
python benchmarks/language_model.py generate --peers_python .venv-peers/bin/python > result.jsonl
python benchmarks/language_model.py generate --batches 1 --prompt 512 --samples 16 --peers_python … > samples.jsonl

Both have random weights, 6 layers of 384 and 8,000 ids unless told otherwise. Prompts are random ids, and texts never
end by themselves, so that the work is the same: greedy search, or samples of each prompt. Every side is a process of
its own, warmed up; sides take turns. `ours` is what Generator does by default when it is warm, `graph` is never
compiled, which is what serving runs, `xla` always; `hf` uses its cache. Training is a whole step with AdamW and dropout
0.1 on rows of `--length` random ids; evaluation is the loss alone.
"""

import argparse
import json
import os
import resource
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.turns import machine, summary, take_turns

HIDDEN, LAYERS, HEADS, POSITIONS = 384, 6, 6, 1024
WARM = 40  # calls: what is compiled by default is compiled then


def our_generation(flags):
    """Returns a function of prompts, an array of ids [batch, prompt]."""
    import tensorflow as tf

    from t2t_lite.decoding.search.searcher import Searcher
    from t2t_lite.models.transformer_lm import TransformerLM
    from t2t_lite.search_options import SearchOptions

    model = TransformerLM(
        flags.vocab_size, hidden_size=HIDDEN, filter_size=4 * HIDDEN, num_heads=HEADS, num_layers=LAYERS, norm="pre",
        position="learned", max_position=POSITIONS, attention_bias=True, activation="gelu_tanh", scale_embeddings=False,
        begin="end",
    )  # fmt: skip
    model({"targets": tf.ones((1, 2), tf.int32)})
    searcher = Searcher(model, lambda length, options: options.extra_length, end_id=None, continues_inputs=True)
    options = SearchOptions(
        beam_size=1, extra_length=flags.new, batch_size=4096, sampling=flags.samples > 1, n_best=flags.samples,
        compile={"ours": None, "graph": False, "xla": True}[flags.side],
    )  # fmt: skip

    def generate(prompts):
        found = searcher.search(prompts.tolist(), options)
        return sum(len(result.ids) for results in found for result in results)

    return generate


def their_generation(flags):
    """As `our_generation`, of Hugging Face."""
    import torch
    from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=flags.vocab_size, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, n_positions=POSITIONS,
            bos_token_id=None, eos_token_id=None,
        )
    ).eval()  # fmt: skip
    several = {"do_sample": True, "num_return_sequences": flags.samples, "top_k": 0} if flags.samples > 1 else {}
    settings = GenerationConfig(max_new_tokens=flags.new, use_cache=True, pad_token_id=0, **several)

    def generate(prompts):
        ids = torch.tensor(prompts)
        with torch.inference_mode():
            rows = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), generation_config=settings)
        return (rows.shape[1] - ids.shape[1]) * rows.shape[0]

    return generate


def our_step(flags):
    """Returns a function of rows of ids [batch, length] that trains or evaluates on them, and returns their number."""
    import tensorflow as tf

    from t2t_lite import registry
    from t2t_lite.runs.config import build_model
    from t2t_lite.training.distribution import choose_replicas
    from t2t_lite.training.feed import StepBatches
    from t2t_lite.training.objectives import objective_sums
    from t2t_lite.training.optimizers import make_optimizer
    from t2t_lite.training.train_step import TrainStep

    sizes = {"hidden_size": HIDDEN, "filter_size": 4 * HIDDEN, "num_heads": HEADS, "num_hidden_layers": LAYERS}
    hparams = registry.hparams("gpt2_small").override_from_dict({**sizes, "clip_grad_norm": 0.0})
    replicas = choose_replicas(0, 0)
    config = {"model": "transformer_lm", "vocab_size": flags.vocab_size, "target_vocab_size": None}
    with replicas.scope():
        model = build_model({**config, "hparams": hparams.values()})
        optimizer = make_optimizer(hparams, 100_000)
        optimizer.build(model.trainable_variables)
    if flags.work == "evaluate":
        batch = {"targets": tf.TensorSpec([None, None], tf.int32)}
        loss = tf.function(lambda ids: objective_sums(model(ids, training=False), ids).nats, input_signature=[batch])
        return lambda rows: float(loss({"targets": tf.constant(rows, tf.int32)})["targets"]) and rows.size
    step = TrainStep(model, optimizer, replicas, hparams, False, {"targets": 2})

    def train(rows):
        placed = step.place(StepBatches([{"targets": rows.astype("int32")}], 0))
        return float(step(placed)["objective"]["targets"]) and rows.size

    return train


def their_step(flags):
    """As `our_step`, of Hugging Face."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=flags.vocab_size, n_embd=HIDDEN, n_layer=LAYERS, n_head=HEADS, n_positions=POSITIONS)
    ).train(flags.work == "train")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2.5e-4, weight_decay=0.01)

    def loss(rows):
        ids = torch.tensor(rows)
        return model(input_ids=ids, labels=ids).loss

    def train(rows):
        optimizer.zero_grad(set_to_none=True)
        found = loss(rows)
        found.backward()
        optimizer.step()
        return float(found) and rows.size

    def evaluate(rows):
        with torch.inference_mode():
            return float(loss(rows)) and rows.size

    return train if flags.work == "train" else evaluate


def serve(flags):
    """Warms up, then works once for each line of stdin, and prints how fast."""
    import numpy as np

    generates = flags.work == "generate"
    ours, theirs = (our_generation, their_generation) if generates else (our_step, their_step)
    generate = (theirs if flags.side == "hf" else ours)(flags)
    shape = flags.batch, flags.prompt if generates else flags.length
    prompts = np.random.default_rng(0).integers(3, flags.vocab_size, shape)
    for _ in range(WARM if generates and flags.side == "ours" and flags.batch == 1 else 2):
        generate(prompts)
    print(json.dumps({"side": flags.side}), flush=True)
    for _ in sys.stdin:
        cpu, started = time.process_time(), time.perf_counter()
        tokens = generate(prompts)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        result = {"tokens_per_second": round(tokens / seconds, 1), "tokens_per_cpu_second": round(tokens / cpu, 1)}
        print(json.dumps({**result, "peak_mebibytes": round(peak)}), flush=True)


def measure(flags):
    """Prints for each batch size the medians, and the ratios of neighbouring turns to the first side."""
    print(json.dumps(machine()), flush=True)
    sizes = [f"--{name}={getattr(flags, name)}" for name in ("vocab_size", "prompt", "new", "samples", "length")]
    for batch in map(int, flags.batches.split(",")):
        commands = {
            side: [
                flags.peers_python if side == "hf" else sys.executable, os.path.abspath(__file__), "serve",
                f"--work={flags.action}", f"--side={side}", f"--batch={batch}", *sizes,
            ]
            for side in flags.sides.split(",")
        }  # fmt: skip
        turns = take_turns(commands, flags.rounds)
        for key in next(iter(turns.values()))[0]:
            print(json.dumps({"batch": batch, **summary(turns, key)}), flush=True)


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("train", "evaluate", "generate", "serve"))
    parser.add_argument("--work")
    parser.add_argument("--sides", default="ours,hf")
    parser.add_argument("--side")
    parser.add_argument("--batches", default="1,8,32")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--vocab_size", type=int, default=8000)
    parser.add_argument("--prompt", type=int, default=128, help="ids of a prompt")
    parser.add_argument("--length", type=int, default=256, help="ids of a row of training or evaluation")
    parser.add_argument("--new", type=int, default=128, help="ids of a continuation")
    parser.add_argument("--samples", type=int, default=1, help="of each prompt; 1: greedy search")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers_python", default=sys.executable)
    flags = parser.parse_args()
    (serve if flags.action == "serve" else measure)(flags)


if __name__ == "__main__":
    main()

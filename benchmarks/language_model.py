"""Generation by a language model against Hugging Face's GPT-2 of the same size: new tokens a second.

python benchmarks/language_model.py generate --peers_python .venv-peers/bin/python > result.jsonl
python benchmarks/language_model.py generate --batches 1 --prompt 512 --samples 16 --peers_python … > samples.jsonl

Both have random weights, 6 layers of 384 and 8,000 ids unless told otherwise. Prompts are random ids, and texts never
end by themselves, so that the work is the same: greedy search, or samples of each prompt. Every side is a process of
its own, warmed up; sides take turns. `ours` is what Generator does by default when it is warm, `graph` is never
compiled, which is what serving runs, `xla` always; `hf` uses its cache.
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

    from t2t_lite.decoding.searcher import Searcher
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


def serve(flags):
    """Warms up, then generates once for each line of stdin, and prints how fast."""
    import numpy as np

    generate = (their_generation if flags.side == "hf" else our_generation)(flags)
    prompts = np.random.default_rng(0).integers(3, flags.vocab_size, (flags.batch, flags.prompt))
    for _ in range(WARM if flags.side == "ours" and flags.batch == 1 else 2):
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
    sizes = [f"--{name}={getattr(flags, name)}" for name in ("vocab_size", "prompt", "new", "samples")]
    for batch in map(int, flags.batches.split(",")):
        commands = {
            side: [
                flags.peers_python if side == "hf" else sys.executable, os.path.abspath(__file__), "serve",
                f"--side={side}", f"--batch={batch}", *sizes,
            ]
            for side in flags.sides.split(",")
        }  # fmt: skip
        turns = take_turns(commands, flags.rounds)
        for key in next(iter(turns.values()))[0]:
            print(json.dumps({"batch": batch, **summary(turns, key)}), flush=True)


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("generate", "serve"))
    parser.add_argument("--sides", default="ours,hf")
    parser.add_argument("--side")
    parser.add_argument("--batches", default="1,8,32")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--vocab_size", type=int, default=8000)
    parser.add_argument("--prompt", type=int, default=128, help="ids of a prompt")
    parser.add_argument("--new", type=int, default=128, help="ids of a continuation")
    parser.add_argument("--samples", type=int, default=1, help="of each prompt; 1: greedy search")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers_python", default=sys.executable)
    flags = parser.parse_args()
    {"generate": measure, "serve": serve}[flags.action](flags)


if __name__ == "__main__":
    main()

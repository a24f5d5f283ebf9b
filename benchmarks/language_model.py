"""Compares a language model with Hugging Face's GPT-2 of the same size (tokens per second).

python -m benchmarks.language_model
python -m benchmarks.language_model --batches=1,8,32 --work=generate --sides=ours,graph,xla,hf
python -m benchmarks.language_model --batches=1 --work=generate --prompt=512 --samples=16

Training, evaluation and generation are measured. All sides have random weights, 6 layers of hidden size 384 and, by
default, 8,000 ids. Generation is greedy search, or several samples per prompt. Prompts are random ids, and outputs
always reach the length limit, so that all sides do the same work. Every side runs in a separate process and is warmed
up. `ours` is Generator's default once warm, `graph` is never compiled, as in serving, and `xla` is always compiled;
`hf` uses its cache. Training is a complete step with AdamW and dropout 0.1 on rows of `--length` random ids; evaluation
computes only the loss.
"""

import argparse
import sys

from benchmarks.harness.command import chosen, compare, main, sizes_of
from benchmarks.harness.steps import new_step
from benchmarks.harness.turns import answer_turns

TITLE = "A language model against Hugging Face's GPT-2"
SIDES = {"ours": "t2t_lite", "hf": "Hugging Face GPT-2", "graph": "t2t_lite, not compiled", "xla": "t2t_lite, compiled"}
DEFAULT_SIDES = "ours", "hf"
NEEDS = {"hf": ["torch", "transformers"]}
HIDDEN, LAYERS, HEADS, POSITIONS = 384, 6, 6, 1024
WARM = 40  # number of calls after which everything that is compiled by default has been compiled


def our_generation(flags):
    """Returns a function that continues prompts, an array of ids [batch, prompt], and returns the number of new ids."""
    import tensorflow as tf

    from t2t_lite.decoding.search.searcher import Searcher
    from t2t_lite.models.transformer_lm import TransformerLM
    from t2t_lite.settings.search_options import SearchOptions

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
        outputs = searcher.search(prompts.tolist(), options)
        return sum(len(result.ids) for hypotheses in outputs for result in hypotheses)

    return generate


def their_generation(flags):
    """Does the same as `our_generation`, but with Hugging Face's GPT-2."""
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
    """Returns a function that trains or evaluates on rows of ids [batch, length], and returns the number of ids."""
    import tensorflow as tf

    from t2t_lite import registry
    from t2t_lite.runs.run_config import build_model
    from t2t_lite.training.objectives import objective_sums
    from t2t_lite.training.training_data import StepBatches

    sizes = {"hidden_size": HIDDEN, "filter_size": 4 * HIDDEN, "num_heads": HEADS, "num_hidden_layers": LAYERS}
    hparams = registry.hparams("gpt2_small").override_from_dict({**sizes, "clip_grad_norm": 0.0})
    config = {"model": "transformer_lm", "vocab_size": flags.vocab_size, "target_vocab_size": None}
    step = new_step(lambda: build_model({**config, "hparams": hparams.values()}), hparams, features={"targets": 2})
    if flags.work == "evaluate":
        batch = {"targets": tf.TensorSpec([None, None], tf.int32)}
        loss = tf.function(
            lambda ids: objective_sums(step.model(ids, training=False), ids).nats, input_signature=[batch]
        )
        return lambda rows: float(loss({"targets": tf.constant(rows, tf.int32)})["targets"]) and rows.size

    def train(rows):
        placed = step.place(StepBatches([{"targets": rows.astype("int32")}], 0))
        return float(step(placed)["objective"]["targets"]) and rows.size

    return train


def their_step(flags):
    """Does the same as `our_step`, but with Hugging Face's GPT-2."""
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
        value = loss(rows)
        value.backward()
        optimizer.step()
        return float(value) and rows.size

    def evaluate(rows):
        with torch.inference_mode():
            return float(loss(rows)) and rows.size

    return train if flags.work == "train" else evaluate


def add_flags(parser):
    """Adds this benchmark's flags."""
    parser.add_argument("--work", default="train,evaluate,generate")
    parser.add_argument("--batches", default="8", help="numbers of rows or prompts per batch, separated by commas")
    parser.add_argument("--vocab_size", type=int, default=8000)
    parser.add_argument("--prompt", type=int, default=128, help="ids per prompt")
    parser.add_argument("--length", type=int, default=256, help="number of ids per row in training and evaluation")
    parser.add_argument("--new", type=int, default=128, help="ids per continuation")
    parser.add_argument("--samples", type=int, default=1, help="number of samples per prompt; 1: greedy search")


def measure(result, flags):
    """Compares the sides in each kind of work, for each batch size."""
    sizes = sizes_of(flags, vocab_size=100, prompt=4, length=16, new=4, samples=1)
    for work in chosen("--work", flags.work, ("train", "evaluate", "generate")):
        for batch in map(int, flags.batches.split(",")):
            if work == "generate":
                samples = f", {sizes['samples']} samples each" if sizes["samples"] > 1 else ""
                case = f"generate {sizes['new']} ids after {sizes['prompt']}, batch {batch}{samples}"
            else:
                case = f"{work}, {batch} x {sizes['length']} ids"
            compare(sys.modules[__name__], result, flags, case, rounds=3, work=work, batch=batch, **sizes)


def side(name, **settings):
    """Trains, evaluates or generates once per turn."""
    import numpy as np

    flags = argparse.Namespace(side=name, **settings)
    generates = flags.work == "generate"
    ours, theirs = (our_generation, their_generation) if generates else (our_step, their_step)
    work = (theirs if name == "hf" else ours)(flags)
    shape = flags.batch, flags.prompt if generates else flags.length
    prompts = np.random.default_rng(0).integers(3, flags.vocab_size, shape)
    for _ in range(WARM if generates and name == "ours" and flags.batch == 1 else 2):
        work(prompts)
    answer_turns(lambda: work(prompts))


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))

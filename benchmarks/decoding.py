"""Beam search against Hugging Face's generate and CTranslate2 on the same weights: target tokens a second.

python benchmarks/decoding.py make FOLDER --run RUN --text test.en --size base
python benchmarks/decoding.py measure FOLDER --sides ours,graph,hf,ct2,ct2_int8 --batches 1,8,32 > result.jsonl
python benchmarks/decoding.py latency FOLDER --sides ours,ct2 --count 100 > latency.jsonl
python benchmarks/decoding.py compare FOLDER --sides graph,hf,ct2
python benchmarks/decoding.py cold FOLDER --run RUN --text test.en --peers_python .venv-peers/bin/python > cold.jsonl

`make` takes a trained run (pre-norm, sinusoids, no attention biases, 128 wide, 3 layers), widens its model
(`wide_models.py`: the same outputs, real sizes), and writes it for all sides, with the sentences of `--text` as ids. It
and the peers need the environment of `make test-peers`, and ctranslate2.

Every side is a process of its own, warmed up on all sentences, and gets the same batches: sorted by length, longest
first. Sides take turns: a turn is all sentences once. All search with beam 4, no length penalty (alpha 0: the only one
that all define alike) and at most 50 ids more than a sentence's own (the peers: than their batch's longest). Tokens are
counted without EOS. `ours` is what Translator does by default when it is warm, `graph` is never compiled, which is what
serving runs, `xla` always, `bf16` is `ours` in bfloat16. Ours search two batches of a call at once;
`ours_async` and `bf16_async` with a thread each, as t2t-decoder does for a file. `ct2_async` is CTranslate2 with as
many batches at once as there are cores, a thread each (`ct2`: one batch at a time, on all cores). `latency` gives one
sentence after the other, and prints milliseconds. `compare` writes each side's outputs and says how many sentences are
the same, and where not, what the model itself thinks of both. `cold` times whole processes on a folder of size
"trained": `t2t-decoder` on the text, and Hugging Face's side, which gets the sentences as ids.
"""

import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.turns import machine, summary, take_turns

BEAM, EXTRA = 4, 50
# From a run of hidden size 128, filter size 512 and 4 heads.
SIZES = {
    "base": {"factor": 4, "num_heads": 8, "num_layers": 6, "vocab_size": 32_000},
    "small": {"factor": 2, "num_heads": 4, "num_layers": 3, "vocab_size": 32_000},
    "trained": {"factor": 1, "num_heads": 4, "num_layers": 3, "vocab_size": 8_000},
}
PEERS = "hf", "ct2", "ct2_async", "ct2_int8"


def make(folder, run, text, size, lines):
    """Writes the widened model for all sides, and the sentences."""
    import numpy as np

    from benchmarks.wide_models import widened
    from t2t_lite.decoding.translator import Translator
    from t2t_lite.export.ctranslate2 import model_spec
    from tests.peers.weights import marian_peer

    translator = Translator.load(run)
    with open(text, encoding="utf-8", newline="\n") as file:
        sentences = file.read().split("\n")[:-1][:lines]
    encode = translator.encoders["inputs"].encode
    os.makedirs(folder)
    with open(os.path.join(folder, "sources.ids"), "w") as file:
        file.writelines(" ".join(map(str, [*encode(sentence), 1])) + "\n" for sentence in sentences)
    model = widened(translator.model, **SIZES[size])
    model.save(os.path.join(folder, "ours.keras"))
    tokens = [f"<{i}>" for i in range(model.vocab_size)]
    tokens[:3] = "<pad>", "</s>", "<unk>"
    spec = model_spec(model, {"inputs": tokens, "targets": tokens})
    spec.validate()
    spec.optimize(quantization=None)
    os.makedirs(os.path.join(folder, "ct2"))
    spec.save(os.path.join(folder, "ct2"))
    peer = marian_peer(model)
    peer.final_logits_bias[0, 0] = -1e9  # its row is zero there, since it is the embedding's as well
    peer.save_pretrained(os.path.join(folder, "hf"))
    positions = np.array(model.encoder_position.table)
    np.save(os.path.join(folder, "positions.npy"), positions)


def load_sources(folder):
    """Returns the sentences, lists of ids."""
    with open(os.path.join(folder, "sources.ids")) as file:
        return [[int(i) for i in line.split()] for line in file]


def batches_of(sources, size):
    """Lists of indices, longest first."""
    order = sorted(range(len(sources)), key=lambda at: -len(sources[at]))
    return [order[at : at + size] for at in range(0, len(order), size)]


def our_search(folder, side):
    """Returns a function of sources and batch size that gives outputs without EOS."""
    import keras

    import t2t_lite.models  # noqa: F401  (registers the class for Keras)
    from t2t_lite.decoding.search.searcher import Searcher, use_a_thread_per_search
    from t2t_lite.search_options import SearchOptions

    if side.endswith("_async"):
        use_a_thread_per_search()
    model = keras.saving.load_model(os.path.join(folder, "ours.keras"))
    if side.startswith("bf16"):
        exact, model = model, type(model).from_config({**model.get_config(), "dtype": "bfloat16"})
        model.build()
        for weight, value in zip(model.weights, exact.weights, strict=True):
            weight.assign(keras.ops.cast(value, weight.dtype))
    searcher, default = Searcher(model), side in ("ours", "ours_async", "bf16", "bf16_async")

    def search(sources, batch_size):
        compiled = batch_size == 1 if default else side == "xla"
        options = SearchOptions(
            beam_size=BEAM, alpha=0.0, extra_length=EXTRA, batch_size=batch_size, ends="top", compile=compiled
        )
        return [found[0].ids for found in searcher.search(sources, options)]

    return search


def hf_search(folder, side):
    """As `our_search`, of Hugging Face's Pegasus, which is Marian with the normalisation before each sub-layer."""
    import numpy as np
    import torch
    from transformers import GenerationConfig, PegasusForConditionalGeneration

    model = PegasusForConditionalGeneration.from_pretrained(os.path.join(folder, "hf")).eval()
    table = np.load(os.path.join(folder, "positions.npy"))
    for stack in (model.model.encoder, model.model.decoder):
        stack.embed_positions.weight.data = torch.from_numpy(table)[: len(stack.embed_positions.weight)].clone()

    def search(sources, batch_size):
        found = [None] * len(sources)
        for batch in batches_of(sources, batch_size):
            width = len(sources[batch[0]])
            ids = torch.zeros((len(batch), width), dtype=torch.long)
            for row, at in enumerate(batch):
                ids[row, : len(sources[at])] = torch.tensor(sources[at])
            settings = GenerationConfig(
                num_beams=BEAM, do_sample=False, length_penalty=0.0, max_new_tokens=width + EXTRA, pad_token_id=0,
                eos_token_id=1, decoder_start_token_id=0, forced_eos_token_id=None, use_cache=True,
            )  # fmt: skip
            with torch.inference_mode():
                rows = model.generate(input_ids=ids, attention_mask=(ids != 0).long(), generation_config=settings)
            for at, row in zip(batch, rows.tolist(), strict=True):
                found[at] = row[1 : row.index(1)] if 1 in row else row[1:]
        return found

    return search


def ct2_search(folder, side):
    """As `our_search`, of CTranslate2."""
    import ctranslate2

    kind = "int8" if side == "ct2_int8" else "float32"
    at_once = os.cpu_count() if side == "ct2_async" else 1
    translator = ctranslate2.Translator(
        os.path.join(folder, "ct2"), device="cpu", compute_type=kind, inter_threads=at_once,
        intra_threads=os.cpu_count() // at_once,
    )  # fmt: skip
    with open(os.path.join(folder, "ct2", "shared_vocabulary.json")) as file:
        names = json.load(file)
    ids = {name: i for i, name in enumerate(names)}

    def search(sources, batch_size):
        found, pending = [None] * len(sources), []
        for batch in batches_of(sources, batch_size):
            # without EOS, which the folder's configuration says to add
            results = translator.translate_batch(
                [[names[i] for i in sources[at][:-1]] for at in batch], beam_size=BEAM, length_penalty=0.0,
                max_decoding_length=len(sources[batch[0]]) + EXTRA, max_batch_size=0, end_token="</s>",
                asynchronous=at_once > 1,
            )  # fmt: skip
            pending.extend(zip(batch, results, strict=True))
        for at, result in pending:
            result = result.result() if at_once > 1 else result
            found[at] = [ids[name] for name in result.hypotheses[0]]
        return found

    return search


def search_of(folder, side):
    """Returns the side's search."""
    return {"hf": hf_search, "ct2": ct2_search, "ct2_async": ct2_search, "ct2_int8": ct2_search}.get(side, our_search)(
        folder, side
    )


def serve(folder, side, batch_size, count):
    """Warms up, then translates everything once for each line of stdin, and prints how fast."""
    sources = load_sources(folder)[:count]
    search = search_of(folder, side)
    started = time.perf_counter()
    found = search(sources, batch_size)
    seconds = time.perf_counter() - started
    tokens = sum(map(len, found))
    print(json.dumps({"side": side, "first_seconds": round(seconds, 1), "tokens": tokens}), flush=True)
    for _ in sys.stdin:
        cpu, started = time.process_time(), time.perf_counter()
        search(sources, batch_size)
        seconds = time.perf_counter() - started
        result = {
            "tokens_per_second": round(tokens / seconds, 1),
            "tokens_per_cpu_second": round(tokens / (time.process_time() - cpu), 1),
        }
        print(json.dumps(result), flush=True)


def serve_one(folder, side, count):
    """Warms up, then one sentence after the other for each line of stdin; prints milliseconds a sentence."""
    sources = load_sources(folder)[:count]
    search = search_of(folder, side)
    for _ in range(2):
        for source in sources:
            search([source], 1)
    print(json.dumps({"side": side}), flush=True)
    for _ in sys.stdin:
        times = []
        for source in sources:
            started = time.perf_counter()
            search([source], 1)
            times.append(1000 * (time.perf_counter() - started))
        times.sort()
        result = {"median_ms": round(statistics.median(times), 1), "p95_ms": round(times[int(0.95 * len(times))], 1)}
        print(json.dumps(result), flush=True)


def compare(folder, sides, count, peers_python):
    """Prints how many outputs are those of the first side, and what the model thinks of those that are not."""
    sources, outputs = load_sources(folder)[:count], {}
    for side in sides:
        path = os.path.join(folder, f"{side}.out")
        command = [peers_python, os.path.abspath(__file__), "write", folder, "--sides", side, "--count", str(count)]
        subprocess.run([*command, "--out", path], check=True)
        with open(path) as file:
            outputs[side] = [[int(i) for i in line.split()] for line in file.read().split("\n")[:-1]]
    score = scorer(folder)
    first = outputs[sides[0]]
    for side in sides[1:]:
        others = [at for at in range(len(sources)) if first[at] != outputs[side][at]]
        pairs = [(score(sources[at], first[at]), score(sources[at], outputs[side][at])) for at in others]
        result = {"side": side, "same": len(sources) - len(others), "of": len(sources), "others": []}
        for at, (ours, theirs) in zip(others, pairs, strict=True):
            result["others"].append({"sentence": at + 1, "ours_minus_theirs": round(ours - theirs, 6)})
        print(json.dumps({**result, "tokens": {s: sum(map(len, outputs[s])) for s in (sides[0], side)}}), flush=True)


def scorer(folder):
    """Returns a function of source and output ids that gives the log-probability of our model."""
    import keras

    import t2t_lite.models  # noqa: F401  (registers the class for Keras)
    from t2t_lite.decoding.scoring import GivenTargets, token_log_probs

    given = GivenTargets(token_log_probs(keras.saving.load_model(os.path.join(folder, "ours.keras"))))
    return lambda source, output: float(sum(given([source], [[*output, 1]])[0]))


def write(folder, side, batch_size, count, path):
    """Writes a side's outputs."""
    with open(path, "w") as file:
        for ids in search_of(folder, side)(load_sources(folder)[:count], batch_size):
            file.write(" ".join(map(str, ids)) + "\n")


def measure(folder, sides, batch_sizes, rounds, counts, peers_python, action):
    """Prints for each batch size the medians, and the ratios of neighbouring turns to the first side."""
    print(json.dumps(machine()), flush=True)
    for size, count in zip(batch_sizes, counts, strict=True):
        commands = {
            side: [
                *(peers_python if side in PEERS else sys.executable, os.path.abspath(__file__), action, folder),
                *("--sides", side, "--batches", str(size), "--count", str(count)),
            ]
            for side in sides
        }
        turns = take_turns(commands, rounds)
        for key in turns[sides[0]][0]:
            print(json.dumps({"batch": size, **summary(turns, key)}), flush=True)


def cold(folder, run, text, rounds, peers_python):
    """Prints the seconds that whole processes take."""
    translation, decode = os.path.join(folder, "cold.out"), "batch_size=32,alpha=0.0,beam_size=4"
    command = [os.path.join(os.path.dirname(sys.executable), "t2t-decoder"), f"--output_dir={run}"]
    sides = {
        "t2t-decoder": [*command, f"--decode_from_file={text}", f"--decode_to_file={translation}",
                        f"--decode_hparams={decode}"],
        "hf": [peers_python, os.path.abspath(__file__), "write", folder, "--sides", "hf", "--out", translation],
    }  # fmt: skip
    print(json.dumps(machine()), flush=True)
    for _ in range(rounds):
        result = {}
        for side, words in sides.items():
            for path in glob.glob(f"{translation}*"):
                os.remove(path)
            started = time.perf_counter()
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            result[side] = round(time.perf_counter() - started, 1)
        print(json.dumps(result), flush=True)


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "action", choices=("make", "measure", "latency", "compare", "cold", "serve", "serve_one", "write")
    )
    parser.add_argument("folder")
    parser.add_argument("--run")
    parser.add_argument("--text")
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--count", default="1000", help="sentences, for each batch size")
    parser.add_argument("--sides", default="ours,hf,ct2")
    parser.add_argument("--batches", default="32")
    parser.add_argument("--out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers_python", default=sys.executable)
    flags = parser.parse_args()
    sides, sizes = flags.sides.split(","), [int(size) for size in flags.batches.split(",")]
    count = [int(n) for n in flags.count.split(",")]
    count = count * len(sizes) if len(count) == 1 else count
    if flags.action == "make":
        make(flags.folder, flags.run, flags.text, flags.size, count[0])
    elif flags.action == "serve":
        serve(flags.folder, sides[0], sizes[0], count[0])
    elif flags.action == "serve_one":
        serve_one(flags.folder, sides[0], count[0])
    elif flags.action == "write":
        write(flags.folder, sides[0], sizes[0], count[0], flags.out)
    elif flags.action == "cold":
        cold(flags.folder, flags.run, flags.text, flags.rounds, flags.peers_python)
    elif flags.action == "compare":
        compare(flags.folder, sides, count[0], flags.peers_python)
    else:
        action = "serve" if flags.action == "measure" else "serve_one"
        measure(flags.folder, sides, sizes, flags.rounds, count, flags.peers_python, action)


if __name__ == "__main__":
    main()

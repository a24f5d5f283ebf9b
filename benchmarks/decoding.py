"""Compares beam search with Hugging Face's generate and CTranslate2 on the same weights (tokens per second).

python -m benchmarks.decoding
python -m benchmarks.decoding --sides=ours,ours_async,bf16,bf16_async,ct2_async --batches=8,32 --count=64,128
python -m benchmarks.decoding --sides=bf16_async,ct2_bf16_async,ct2_int8_async,hf_bf16 --batches=32 --count=128
python -m benchmarks.decoding --run=RUN --text=test.en --size=base

The trained model is that of `work.py`, unless --run names another model. Such a model must be pre-norm with sinusoids
and without attention biases, and must have hidden size 128 and 3 layers. The model is widened to --size, which gives it
realistic sizes but the same outputs (`wide_models.py`), and written in the formats of all sides.

Every side runs in a separate process, is warmed up on all sentences, and gets the same batches, sorted by length with
the longest first. A turn translates all sentences once. All sides search with beam 4 and without a length penalty
(alpha 0), because all sides define only this value in the same way. An output may have at most 50 ids more than its
sentence or, for the peers, than the longest sentence in the batch. Tokens are counted without EOS.

`ours` is Translator's default once warm, `graph` is never compiled, as in serving, `xla` is always compiled, and `bf16`
is `ours` in bfloat16. Our sides search two batches of a call concurrently; `ours_async` and `bf16_async` use one thread
per batch, as t2t-decoder does for a file. `ct2` is CTranslate2 with one batch at a time on all cores; `ct2_async`
translates one batch per core at the same time, each with one thread. Afterwards, sentences are translated one by one to
measure latencies, and the outputs of the sides are compared. Memory is also measured after the imports and after the
model is loaded.
"""

import importlib
import json
import os
import statistics
import sys
import time

from benchmarks.harness import work
from benchmarks.harness.command import alone, compare, main
from benchmarks.harness.turns import answer_turns, resident_mb
from t2t_lite.corpora.plain_text import read_lines

TITLE = "Beam search against Hugging Face and CTranslate2"
SIDES = {
    "ours": "t2t_lite",
    "hf": "Hugging Face generate",
    "ct2": "CTranslate2",
    "graph": "t2t_lite, not compiled",
    "xla": "t2t_lite, compiled",
    "ours_async": "t2t_lite, a thread per batch",
    "bf16": "t2t_lite, bfloat16",
    "bf16_async": "t2t_lite, bfloat16, a thread per batch",
    "ct2_async": "CTranslate2, batches at once",
    "ct2_int8": "CTranslate2, int8",
    "ct2_int8_async": "CTranslate2, int8, batches at once",
    "ct2_bf16": "CTranslate2, bfloat16",
    "ct2_bf16_async": "CTranslate2, bfloat16, batches at once",
    "hf_bf16": "Hugging Face generate, bfloat16",
}
DEFAULT_SIDES = "ours", "hf", "ct2", "ct2_async"
NEEDS = {side: ["torch", "transformers"] for side in SIDES if side.startswith("hf")}
NEEDS |= {side: ["ctranslate2"] for side in SIDES if side.startswith("ct2")}
LIBRARIES = {"hf": ("torch", "transformers"), "ct2": ("ctranslate2",)}  # imported before the model is loaded
BEAM, EXTRA = 4, 50
# How a model of hidden size 128, filter size 512 and 4 heads is widened.
SIZES = {
    "base": {"factor": 4, "num_heads": 8, "num_layers": 6, "vocab_size": 32_000},
    "small": {"factor": 2, "num_heads": 4, "num_layers": 3, "vocab_size": 32_000},
    "trained": {"factor": 1, "num_heads": 4, "num_layers": 3, "vocab_size": 8_000},
}


def make(folder, run, text, size, lines, sides):
    """Writes the widened model in the formats of all sides, and the sentences."""
    if "hf" in sides:
        import torch  # noqa: F401  (before TensorFlow: loading fails in the other order)
        import transformers  # noqa: F401

    from benchmarks.harness.wide_models import widened
    from t2t_lite.decoding.translator import Translator

    translator = Translator.load(run)
    encode = translator.encoders["inputs"].encode
    os.makedirs(folder, exist_ok=True)
    sources = ([*encode(sentence), 1] for sentence in [*read_lines(text)][:lines])
    work.write_lines(os.path.join(folder, "sources.ids"), (" ".join(map(str, ids)) for ids in sources))
    model = widened(translator.model, **SIZES[size])
    make_checkpoint(folder, model)
    if any(side.startswith("ct2") for side in sides):
        make_ctranslate2(folder, model)
    if any(side.startswith("hf") for side in sides):
        make_hugging_face(folder, model)


def make_checkpoint(folder, model):
    """Writes the model's arguments and a checkpoint with its weights, from which our sides load the model."""
    import tensorflow as tf

    from t2t_lite.runs.weights import trackable_weights

    with open(os.path.join(folder, "ours.json"), "w") as file:
        json.dump(model.config, file)
    tf.train.Checkpoint(model=trackable_weights(model)).write(os.path.join(folder, "ours.ckpt"))


def make_ctranslate2(folder, model):
    """Writes the model for CTranslate2, with ids as words."""
    from t2t_lite.extras.ctranslate2.ctranslate2 import model_spec

    tokens = [f"<{i}>" for i in range(model.vocab_size)]
    tokens[:3] = "<pad>", "</s>", "<unk>"
    spec = model_spec(model, {"inputs": tokens, "targets": tokens})
    spec.validate()
    spec.optimize(quantization=None)
    os.makedirs(os.path.join(folder, "ct2"), exist_ok=True)
    spec.save(os.path.join(folder, "ct2"))


def make_hugging_face(folder, model):
    """Writes the model for Hugging Face, and the position table, which Hugging Face's format does not store."""
    import numpy as np

    from tests.peers.weights import marian_peer

    peer = marian_peer(model)
    peer.final_logits_bias[0, 0] = -1e9  # excludes the padding id, whose row in the tied embedding is zero
    peer.save_pretrained(os.path.join(folder, "hf"))
    np.save(os.path.join(folder, "positions.npy"), np.array(model.encoder_position.table))


def load_sources(folder):
    """Returns the sentences, lists of ids."""
    return [[int(i) for i in line.split()] for line in read_lines(os.path.join(folder, "sources.ids"))]


def batches_of(sources, size):
    """Splits sources into batches, lists of indices with the longest source first."""
    order = sorted(range(len(sources)), key=lambda at: -len(sources[at]))
    return [order[at : at + size] for at in range(0, len(order), size)]


def our_search(folder, side):
    """Returns a function (sources, batch size) that returns outputs without EOS."""
    from t2t_lite.decoding.search.loops import use_a_thread_per_search
    from t2t_lite.decoding.search.searcher import Searcher
    from t2t_lite.models import Transformer
    from t2t_lite.runs.opening import restore_weights
    from t2t_lite.settings.search_options import SearchOptions

    if side.endswith("_async"):
        use_a_thread_per_search()
    with open(os.path.join(folder, "ours.json")) as file:
        config = json.load(file)
    model = Transformer(**config, dtype="bfloat16" if side.startswith("bf16") else None)
    model.build()
    restore_weights(os.path.join(folder, "ours.ckpt"), model)
    searcher, default = Searcher(model), side in ("ours", "ours_async", "bf16", "bf16_async")

    def search(sources, batch_size):
        compiled = batch_size == 1 if default else side == "xla"
        options = SearchOptions(
            beam_size=BEAM, alpha=0.0, extra_length=EXTRA, batch_size=batch_size, ends="top", compile=compiled
        )
        return [hypotheses[0].ids for hypotheses in searcher.search(sources, options)]

    return search


def hf_search(folder, side):
    """Does the same as `our_search`, but with Hugging Face's Pegasus, which is Marian with pre-norm layers."""
    import numpy as np
    import torch
    from transformers import GenerationConfig, PegasusForConditionalGeneration

    model = PegasusForConditionalGeneration.from_pretrained(os.path.join(folder, "hf")).eval()
    if side == "hf_bf16":
        model = model.to(torch.bfloat16)
    table = np.load(os.path.join(folder, "positions.npy"))
    for stack in (model.model.encoder, model.model.decoder):
        stack.embed_positions.weight.data = torch.from_numpy(table)[: len(stack.embed_positions.weight)].to(model.dtype)

    def search(sources, batch_size):
        outputs = [None] * len(sources)
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
                outputs[at] = row[1 : row.index(1)] if 1 in row else row[1:]
        return outputs

    return search


def ct2_search(folder, side):
    """Does the same as `our_search`, but with CTranslate2."""
    import ctranslate2

    kind = {"int8": "int8", "bf16": "bfloat16"}.get(side.removesuffix("_async").removeprefix("ct2_"), "float32")
    at_once = os.cpu_count() if side.endswith("_async") else 1
    translator = ctranslate2.Translator(
        os.path.join(folder, "ct2"), device="cpu", compute_type=kind, inter_threads=at_once,
        intra_threads=os.cpu_count() // at_once,
    )  # fmt: skip
    with open(os.path.join(folder, "ct2", "shared_vocabulary.json")) as file:
        names = json.load(file)
    ids = {name: i for i, name in enumerate(names)}

    def search(sources, batch_size):
        outputs, pending = [None] * len(sources), []
        for batch in batches_of(sources, batch_size):
            # EOS is left out, because the folder's configuration makes CTranslate2 add it
            results = translator.translate_batch(
                [[names[i] for i in sources[at][:-1]] for at in batch], beam_size=BEAM, length_penalty=0.0,
                max_decoding_length=len(sources[batch[0]]) + EXTRA, max_batch_size=0, end_token="</s>",
                asynchronous=at_once > 1,
            )  # fmt: skip
            pending.extend(zip(batch, results, strict=True))
        for at, result in pending:
            result = result.result() if at_once > 1 else result
            outputs[at] = [ids[name] for name in result.hypotheses[0]]
        return outputs

    return search


def search_of(folder, side):
    """Returns the search function of a side."""
    return {"hf": hf_search, "ct2": ct2_search}.get(side.partition("_")[0], our_search)(folder, side)


def add_flags(parser):
    """Adds this benchmark's flags."""
    work.add_flags(parser)
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--batches", default="8,32", help="batch sizes")
    parser.add_argument("--count", default="16,32", help="number of sentences, for each batch size")


def measure(result, flags):
    """Compares the speed with batches and single sentences, and the outputs."""
    this = sys.modules[__name__]
    size, counts = ("trained", "8,8") if flags.quick else (flags.size, flags.count)
    run, text, _ = work.model_and_texts(flags)
    folder = os.path.join(flags.bench_dir, f"decoding_{size}")
    alone(this, "make", folder=folder, run=run, text=text, size=size, sides=flags.sides)
    pairs = [*zip(map(int, flags.batches.split(",")), map(int, counts.split(",")), strict=True)]
    for batch_size, count in pairs:
        compare(this, result, flags, f"{size}, batch {batch_size}", folder=folder, batch_size=batch_size, count=count)
    latency = [side for side in flags.sides if side in ("ours", "hf", "ct2")]
    count = pairs[0][1] // 2
    if latency:
        compare(
            this, result, flags, f"{size}, one sentence after the other", latency, rounds=2, folder=folder, count=count
        )
    outputs = {name: [*read_lines(os.path.join(folder, f"{name}.out"))] for name in flags.sides}
    result.add_same_outputs(f"{size}, batch {pairs[-1][0]}, {pairs[-1][1]} sentences", outputs)


def side(name, folder, batch_size=None, count=None, **making):
    """Searches all sentences to warm up and writes the outputs; then searches all sentences once per turn.

    Without a batch size, it measures latencies instead.
    """
    if name == "make":
        make(folder, **making, lines=1000)
        print(json.dumps({}))
        return
    for library in LIBRARIES.get(name.partition("_")[0], ("t2t_lite.models",)):
        importlib.import_module(library)
    memory = {"imported_mb": round(resident_mb(), 1)}
    sources, search = load_sources(folder)[:count], search_of(folder, name)
    memory["loaded_mb"] = round(resident_mb(), 1)
    if batch_size is None:
        for source in sources * 2:
            search([source], 1)
        answer_turns(lambda: latencies(search, sources))
        return
    outputs = search(sources, batch_size)
    work.write_lines(os.path.join(folder, f"{name}.out"), (" ".join(map(str, ids)) for ids in outputs))
    tokens = sum(map(len, outputs))
    answer_turns(lambda: search(sources, batch_size) and tokens, facts=memory)


def latencies(search, sources):
    """Searches sentences one by one; returns milliseconds per sentence."""
    times = []
    for source in sources:
        started = time.perf_counter()
        search([source], 1)
        times.append(1000 * (time.perf_counter() - started))
    times.sort()
    return {"median_ms": round(statistics.median(times), 1), "p95_ms": round(times[int(0.95 * len(times))], 1)}


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))

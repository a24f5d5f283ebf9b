"""A SavedModel against Translator on the same batches; how long exporting, loading and a first answer take.

python benchmarks/export.py make FOLDER --run RUN --text test.en --size base
python benchmarks/export.py write FOLDER --weights_dtype float32
python benchmarks/export.py measure FOLDER --sides saved,graph,xla --batches 1,8,32 --count 100,1000,1000
python benchmarks/export.py once FOLDER --rounds 5

`make` takes a trained run (as `decoding.py` does), widens its model (`wide_models.py`: same outputs, real sizes) and
writes that as a run, with the sentences of `--text`. `write` times `t2t-exporter` on it, the whole command, and says
how large the export is. `measure` lets processes take turns, each warm: `saved` is the export through the loader of
version 1 and a session, as a server runs it; `graph` is Translator with compile=False, `xla` with compile=True. All get
the same batches, sorted by length, two at a time; a turn is all sentences once, text to text. `once` starts a process
anew each time: it loads the export, runs its warm-up requests, and times the first answer and later ones.
`--weights_dtype` says which export.
"""

import argparse
import concurrent.futures
import functools
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.decoding import SIZES
from benchmarks.turns import machine, summary, take_turns


def make(folder, run, text, size, lines):
    """Writes the widened model as a run, and the sentences."""
    import tensorflow as tf

    from benchmarks.wide_models import widened
    from t2t_lite.files import copy_files
    from t2t_lite.runs.config import build_model, write_run_config
    from t2t_lite.runs.opening import open_run
    from t2t_lite.runs.weights import named_weights, trackable_weights

    opened = open_run(run)
    wide = widened(opened.model, **SIZES[size])
    sizes = {name: wide.config[name] for name in ("hidden_size", "filter_size", "num_heads")}
    depth = {"num_hidden_layers": wide.config["num_encoder_layers"], "pos": "emb", "norm_epsilon": 1e-5}
    config = {**opened.config, "vocab_size": wide.vocab_size, "hparams": {**opened.config["hparams"], **sizes, **depth}}
    model = build_model(config)
    values = {name: weight.numpy() for name, weight in named_weights(wide).items()}
    for name, weight in named_weights(model).items():
        weight.assign(values.pop(name))
    assert not values
    os.makedirs(os.path.join(folder, "run"))
    write_run_config(os.path.join(folder, "run"), config)
    copy_files(opened.vocabulary_files, os.path.join(folder, "run"))
    tf.train.Checkpoint(model=trackable_weights(model)).write(os.path.join(folder, "run", "model.ckpt-1"))
    with open(text, encoding="utf-8", newline="\n") as file:
        sentences = file.read().split("\n")[:-1][:lines]
    with open(os.path.join(folder, "sentences.txt"), "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{sentence}\n" for sentence in sentences)


def write(folder, weights_dtype):
    """Times the command, and prints what it took and what came of it."""
    command = [sys.executable, "-m", "t2t_lite.bin.t2t_exporter", f"--output_dir={folder}/run"]
    command += [f"--export_dir={folder}/{weights_dtype}", f"--weights_dtype={weights_dtype}"]
    started = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    export = done.stdout.strip()
    files = [os.path.join(path, name) for path, _, names in os.walk(export) for name in names]
    size = sum(map(os.path.getsize, files))
    print(json.dumps({"export": export, "seconds": round(seconds, 1), "MB": round(size / 1e6, 1)}), flush=True)


def load_sentences(folder):
    """Returns the sentences, a list of str."""
    with open(os.path.join(folder, "sentences.txt"), encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1]


def load_export(folder, weights_dtype):
    """Returns the newest export as a server opens it: a function of (signature, {name: value}) -> {name: array}."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (its operations)

    path = os.path.join(folder, weights_dtype)
    path = os.path.join(path, max(os.listdir(path), key=int))
    session = tf.compat.v1.Session(graph=tf.Graph())
    with session.graph.as_default():
        signatures = tf.compat.v1.saved_model.load(session, ["serve"], path).signature_def

    def call(name, values):
        signature = signatures[name]
        feed = {signature.inputs[key].name: value for key, value in values.items()}
        return session.run({key: tensor.name for key, tensor in signature.outputs.items()}, feed)

    return call, path


def translation_of(folder, side, weights_dtype):
    """Returns a function of sentences and batch size that gives translations."""
    from t2t_lite.decoding.search.searcher import plan_batches
    from t2t_lite.decoding.translator import Translator

    translator = Translator.load(os.path.join(folder, "run"))
    if side != "saved":
        compiled = side == "xla"
        return lambda texts, size: [t.text for t in translator.translate(texts, batch_size=size, compile=compiled)]
    encode = translator.encoders["inputs"].encode
    call, _ = load_export(folder, weights_dtype)

    def translate(texts, size):
        found = [None] * len(texts)
        batches = plan_batches([len(encode(text)) + 1 for text in texts], size)
        inputs = [{"inputs": [texts[at].encode() for at in batch]} for batch in batches]
        with concurrent.futures.ThreadPoolExecutor(2) as callers:
            answers = list(callers.map(functools.partial(call, "serving_default"), inputs))
        for batch, answer in zip(batches, answers, strict=True):
            for at, output in zip(batch, answer["outputs"], strict=True):
                found[at] = output.decode()
        return found

    return translate


def serve(folder, side, batch_size, count, weights_dtype):
    """One side: see `take_turns`."""
    translate, sentences = translation_of(folder, side, weights_dtype), load_sentences(folder)[:count]
    outputs = translate(sentences, batch_size)
    with open(os.path.join(folder, f"{side}.{batch_size}.out"), "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{output}\n" for output in outputs)
    print(json.dumps({"warm": side, "sentences": len(sentences)}), flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        translate(sentences, batch_size)
        seconds = time.perf_counter() - started
        print(json.dumps({"sentences_per_second": round(len(sentences) / seconds, 3)}), flush=True)


def measure(folder, sides, batch_sizes, rounds, counts, weights_dtype):
    """Prints for each batch size the medians, the ratios of neighbouring turns, and how many outputs are the same."""
    print(json.dumps(machine()), flush=True)
    for size, count in zip(batch_sizes, counts, strict=True):
        command = [sys.executable, os.path.abspath(__file__), "serve", folder, "--weights_dtype", weights_dtype]
        command += ["--batches", str(size), "--count", str(count), "--sides"]
        turns = take_turns({side: [*command, side] for side in sides}, rounds)
        outputs = []
        for side in sides:
            with open(os.path.join(folder, f"{side}.{size}.out"), encoding="utf-8", newline="\n") as file:
                outputs.append(file.read().split("\n")[:-1])
        same = {side: sum(map(str.__eq__, outputs[0], other)) for side, other in zip(sides, outputs, strict=True)}
        print(json.dumps({"batch": size, **summary(turns, "sentences_per_second"), "same": same}), flush=True)


def once(folder, rounds, weights_dtype):
    """Prints what each of several new processes says, and the medians."""
    print(json.dumps(machine()), flush=True)
    command = [sys.executable, os.path.abspath(__file__), "first", folder, "--weights_dtype", weights_dtype]
    found = []
    for _ in range(rounds):
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
        print(json.dumps(found[-1]), flush=True)
    print(json.dumps({"medians": {key: round(statistics.median(f[key] for f in found), 3) for key in found[0]}}))


def first(folder, weights_dtype):
    """Loads, warms up, and prints how long the first answers and later ones take, in seconds."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401
    from tensorflow_serving.apis import prediction_log_pb2

    sentences = sorted(load_sentences(folder), key=len)
    one, several = (
        [sentences[len(sentences) // 2].encode()],
        [text.encode() for text in sentences[:: len(sentences) // 8]],
    )
    started = time.perf_counter()
    call, path = load_export(folder, weights_dtype)
    figures = {"load": time.perf_counter() - started}
    requests = os.path.join(path, "assets.extra", "tf_serving_warmup_requests")
    records = [prediction_log_pb2.PredictionLog.FromString(r) for r in tf.compat.v1.io.tf_record_iterator(requests)]
    started = time.perf_counter()
    for request in (record.predict_log.request for record in records):
        values = {name: tf.make_ndarray(proto) for name, proto in request.inputs.items()}
        call(request.model_spec.signature_name, values)
    figures["warm_up"] = time.perf_counter() - started
    for name, texts in (("one", one), ("several", several)):
        times = []
        for _ in range(12):
            started = time.perf_counter()
            call("serving_default", {"inputs": texts})
            times.append(time.perf_counter() - started)
        figures[f"{name}_first"], figures[f"{name}_later"] = times[0], statistics.median(times[2:])
        figures[f"{name}_ratio"] = times[0] / figures[f"{name}_later"]
    print(json.dumps({key: round(value, 4) for key, value in figures.items()}), flush=True)


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("make", "write", "measure", "once", "serve", "first"))
    parser.add_argument("folder")
    parser.add_argument("--run")
    parser.add_argument("--text")
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--count", default="1000", help="sentences, for each batch size")
    parser.add_argument("--sides", default="saved,graph,xla")
    parser.add_argument("--batches", default="32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--weights_dtype", default="float32")
    flags = parser.parse_args()
    sides, sizes = flags.sides.split(","), [int(size) for size in flags.batches.split(",")]
    count = [int(n) for n in flags.count.split(",")]
    count = count * len(sizes) if len(count) == 1 else count
    if flags.action == "make":
        make(flags.folder, flags.run, flags.text, flags.size, count[0])
    elif flags.action == "write":
        write(flags.folder, flags.weights_dtype)
    elif flags.action == "serve":
        serve(flags.folder, sides[0], sizes[0], count[0], flags.weights_dtype)
    elif flags.action == "first":
        first(flags.folder, flags.weights_dtype)
    elif flags.action == "once":
        once(flags.folder, flags.rounds, flags.weights_dtype)
    else:
        measure(flags.folder, sides, sizes, flags.rounds, count, flags.weights_dtype)


if __name__ == "__main__":
    main()

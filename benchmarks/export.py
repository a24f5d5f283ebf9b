"""Compares a SavedModel with Translator, and times exporting, loading and the first answer.

python -m benchmarks.export
python -m benchmarks.export --weights_dtype=bfloat16 --batches=1,8,32 --count=100,1000,1000
python -m benchmarks.export --run=RUN --text=test.en --size=base

A trained model (by default that of `work.py`) is widened, which gives it realistic sizes but the same outputs
(`wide_models.py`), and written as a run. First, the command `t2t-exporter` is timed as a whole. Then warm processes
take turns: `saved` is the export, which TensorFlow 1's loader loads into a session, as a server does; `graph` is
Translator with compile=False, and `xla` is Translator with compile=True. All sides get the same batches, sorted by
length, two at a time. A turn translates all sentences once, from text to text. Finally, a process loads the export,
runs its warm-up requests, and times the first and later answers.
"""

import concurrent.futures
import functools
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

from benchmarks.decoding import SIZES
from benchmarks.harness import work
from benchmarks.harness.command import alone, compare, main, rounds_of
from benchmarks.harness.turns import answer_turns
from t2t_lite.corpora.plain_text import read_lines

TITLE = "A SavedModel against Translator"
SIDES = {"saved": "SavedModel", "graph": "Translator, not compiled", "xla": "Translator, compiled"}
DEFAULT_SIDES = "saved", "graph"
NEEDS = {}


def add_flags(parser):
    """Adds this benchmark's flags."""
    work.add_flags(parser)
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--batches", default="1,32", help="batch sizes")
    parser.add_argument("--count", default="8,32", help="number of sentences, for each batch size")
    parser.add_argument("--weights_dtype", default="float32")


def measure(result, flags):
    """Times t2t-exporter, the sides in turns, and the first answer."""
    this = sys.modules[__name__]
    size, counts = ("trained", "4,8") if flags.quick else (flags.size, flags.count)
    run, text, _ = work.model_and_texts(flags)
    folder, dtype = os.path.join(flags.bench_dir, f"export_{size}"), flags.weights_dtype
    shutil.rmtree(folder, ignore_errors=True)
    alone(this, "make", folder=folder, run=run, text=text, size=size, lines=1000)
    result.add_turns(f"t2t-exporter, {size}, {dtype}", {"saved": [write(folder, dtype)]})
    for batch_size, count in zip(map(int, flags.batches.split(",")), map(int, counts.split(",")), strict=True):
        case, settings = f"{size}, batch {batch_size}", {"folder": folder, "count": count, "weights_dtype": dtype}
        compare(this, result, flags, case, rounds=2, batch_size=batch_size, **settings)
    if "saved" in flags.sides:
        answers = [alone(this, "first", folder=folder, weights_dtype=dtype) for _ in range(rounds_of(flags, 1))]
        for name in answers[0]:
            result.add(name.replace("_", " "), "seconds", {"saved": [answer[name] for answer in answers]})


def side(name, folder, weights_dtype=None, batch_size=None, count=None, **making):
    """Translates all sentences once per turn, or makes the run, or times the first answer."""
    if name == "make":
        make(folder, **making)
        print(json.dumps({}))
    elif name == "first":
        first(folder, weights_dtype)
    else:
        translate = translation_of(folder, name, weights_dtype)
        sentences = [*read_lines(os.path.join(folder, "sentences.txt"))][:count]
        translate(sentences, batch_size)
        answer_turns(lambda: translate(sentences, batch_size) and len(sentences), "sentences")


def make(folder, run, text, size, lines):
    """Writes the widened model as a run, and the sentences."""
    import tensorflow as tf

    from benchmarks.harness.wide_models import widened
    from t2t_lite.files import copy_files
    from t2t_lite.runs.opening import open_run
    from t2t_lite.runs.run_config import build_model, write_run_config
    from t2t_lite.runs.weights import named_weights, trackable_weights

    trained = open_run(run)
    wide = widened(trained.model, **SIZES[size])
    sizes = {name: wide.config[name] for name in ("hidden_size", "filter_size", "num_heads")}
    depth = {"num_hidden_layers": wide.config["num_encoder_layers"], "pos": "emb", "norm_epsilon": 1e-5}
    config = {
        **trained.config,
        "vocab_size": wide.vocab_size,
        "hparams": {**trained.config["hparams"], **sizes, **depth},
    }
    model = build_model(config)
    values = {name: weight.numpy() for name, weight in named_weights(wide).items()}
    for name, weight in named_weights(model).items():
        weight.assign(values.pop(name))
    assert not values
    os.makedirs(os.path.join(folder, "run"))
    write_run_config(os.path.join(folder, "run"), config)
    copy_files(trained.encoder_files, os.path.join(folder, "run"))
    tf.train.Checkpoint(model=trackable_weights(model)).write(os.path.join(folder, "run", "model.ckpt-1"))
    work.write_lines(os.path.join(folder, "sentences.txt"), [*read_lines(text)][:lines])


def write(folder, weights_dtype):
    """Times t2t-exporter; returns its seconds and the size of its files."""
    command = [sys.executable, "-m", "t2t_lite.bin.t2t_exporter", f"--output_dir={folder}/run"]
    command += [f"--export_dir={folder}/{weights_dtype}", f"--weights_dtype={weights_dtype}"]
    started = time.perf_counter()
    process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - started
    files = [os.path.join(path, name) for path, _, names in os.walk(process.stdout.strip()) for name in names]
    return {"seconds": round(seconds, 1), "disk_mb": sum(map(os.path.getsize, files)) / 1e6}


def load_export(folder, weights_dtype):
    """Opens the newest export as a server does; returns a function (signature, {name: value}) -> {name: array}."""
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
    """Returns a function (sentences, batch size) that returns translations."""
    from t2t_lite.decoding.search.searcher import plan_batches
    from t2t_lite.decoding.translator import Translator

    translator = Translator.load(os.path.join(folder, "run"))
    if side != "saved":
        compiled = side == "xla"
        options = {"compile": compiled, "split_sentences": "never"}
        return lambda texts, size: [t.text for t in translator.translate(texts, batch_size=size, **options)]
    encode = translator.encoders["inputs"].encode
    call, _ = load_export(folder, weights_dtype)

    def translate(texts, size):
        translations = [None] * len(texts)
        batches = plan_batches([len(encode(text)) + 1 for text in texts], size)
        inputs = [{"inputs": [texts[at].encode() for at in batch]} for batch in batches]
        with concurrent.futures.ThreadPoolExecutor(2) as callers:
            answers = list(callers.map(functools.partial(call, "serving_default"), inputs))
        for batch, answer in zip(batches, answers, strict=True):
            for at, output in zip(batch, answer["outputs"], strict=True):
                translations[at] = output.decode()
        return translations

    return translate


def first(folder, weights_dtype):
    """Loads an export, warms it up, and prints the seconds that the first and later answers take."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401
    from tensorflow_serving.apis import prediction_log_pb2

    sentences = sorted(read_lines(os.path.join(folder, "sentences.txt")), key=len)
    single = [sentences[len(sentences) // 2].encode()]
    several = [text.encode() for text in sentences[:: len(sentences) // 8]]
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
    for name, texts in (("one sentence", single), ("eight sentences", several)):
        times = []
        for _ in range(12):
            started = time.perf_counter()
            call("serving_default", {"inputs": texts})
            times.append(time.perf_counter() - started)
        figures[f"{name}, first answer"], figures[f"{name}, later"] = times[0], statistics.median(times[2:])
    print(json.dumps({key: round(value, 4) for key, value in figures.items()}), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))

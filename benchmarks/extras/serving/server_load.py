"""Tests t2t-server under load: wrong answers, throughput, latency and memory, compared with direct calls.

python -m benchmarks.extras.serving.server_load
python -m benchmarks.extras.serving.server_load --run=RUN --text=test.en --clients=32 --sizes=1,32 --count=2000

The run is exported, and texts are translated offline; one text in twenty is hostile (`serving_load.py`). One side is
t2t-server, together with a process of clients, each of which sends its next request as soon as it has the answer to the
previous one. The other side is a process that loads the same SavedModel and calls its signature from one thread per
core, which is faster than calling it from a single thread. For each number of texts per request in `--sizes`, the sides
take turns, each with all texts; a direct call always has 32 texts. Every answer is compared with the offline
translation. CPU time and memory are those of the process that has the model. If other programs are running, sentences
per second of CPU time are the more reliable figure.
"""

import base64
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

from benchmarks import serving_load
from benchmarks.harness import work
from benchmarks.harness.command import compare, main
from benchmarks.harness.turns import resident_mb

TITLE = "t2t-server against direct calls of its SavedModel"
SIDES = {"server": "t2t-server", "direct": "SavedModel, direct calls"}
NEEDS = {"server": ["flask", "prometheus_client", "waitress"]}
DIRECT_SIZE = 32


def add_flags(parser):
    """Adds this benchmark's flags."""
    work.add_flags(parser)
    parser.add_argument("--count", type=int, default=200, help="number of texts")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--sizes", default="1,32", help="numbers of texts per request, separated by commas")


def measure(result, flags):
    """Starts the server, and compares the sides for each number of texts per request."""
    count, clients = (8, 2) if flags.quick else (flags.count, flags.clients)
    folder = serving_load.prepare(flags, count)
    export = pathlib.Path(folder, "version").resolve().parent
    words = [
        "-m",
        "t2t_lite.extras.serving.t2t_server",
        f"--export_dir={export}",
        "--port=0",
        "--split_sentences=never",
    ]
    with subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True) as server:
        try:
            matches = (re.search(r"http://([^/]+)/v1", line) for line in server.stderr)
            address = next((match[1] for match in matches if match), None)
            if address is None:
                raise RuntimeError("t2t-server did not start")
            settings = {"folder": folder, "count": count, "address": address, "pid": server.pid, "clients": clients}
            for size in map(int, flags.sizes.split(",")):
                case = f"{size} {'text' if size == 1 else 'texts'} a request, {clients} clients"
                turns = compare(sys.modules[__name__], result, flags, case, rounds=3, size=size, **settings)
                points = [(number + 1, turn["resident_mb"]) for number, turn in enumerate(turns.get("server", []))]
                if len(points) >= 4:
                    result.add_growth(case, "resident_mb", "turns", {"server": points})
        finally:
            server.terminate()


def side(name, folder, count, address, pid, clients, size):
    """Translates all texts once per turn."""
    ask, size, threads, pid = (
        (signature_of(folder), DIRECT_SIZE, os.cpu_count(), os.getpid())
        if name == "direct"
        else (client_of(address), size, clients, pid)
    )
    rows = serving_load.load_rows(folder)[:count]
    serving_load.run(ask, rows, size, threads)
    print(json.dumps({"warm": True}), flush=True)
    for _ in sys.stdin:
        cpu_before = cpu_seconds(pid)
        figures = serving_load.run(ask, rows, size, threads)
        figures["sentences_per_cpu_second"] = round(len(rows) / (cpu_seconds(pid) - cpu_before), 1)
        print(json.dumps(figures | {"resident_mb": round(resident_mb(pid), 1)}), flush=True)


def signature_of(folder):
    """Returns a function that translates a list of bytes with the SavedModel's signature."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (SentencePiece's operations)

    model = tf.saved_model.load(os.path.realpath(os.path.join(folder, "version")))
    serve = model.signatures["serving_default"]

    def ask(texts):
        outputs = serve(inputs=tf.constant(texts))
        return list(zip(*(outputs[name].numpy() for name in ("outputs", "scores", "truncated")), strict=True))

    return ask


def client_of(address):
    """Returns a function that translates a list of bytes with a server, over one connection per thread."""
    local = threading.local()

    def ask(texts):
        if not hasattr(local, "connection"):
            local.connection = http.client.HTTPConnection(address, timeout=600)
        inputs = [{"b64": base64.b64encode(text).decode()} for text in texts]
        local.connection.request("POST", "/v1/models/translate:predict", json.dumps({"inputs": inputs}))
        answer = local.connection.getresponse()
        body = json.loads(answer.read())
        assert answer.status == 200, body
        columns = body["outputs"]
        outputs = [text.encode() for text in columns["outputs"]]
        return list(zip(outputs, columns["scores"], columns["truncated"], strict=True))

    return ask


def cpu_seconds(pid):
    """Returns how much CPU time a process has used so far, in seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))

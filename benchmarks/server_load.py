"""t2t-server under load, beside direct calls of the same SavedModel. Wrong answers, throughput, latency, memory.

python benchmarks/serving_load.py make FOLDER --run RUN --text test.en --count 2000
python benchmarks/server_load.py measure FOLDER --clients 32 --sizes 1,32 --rounds 5 > result.jsonl

`serving_load.py make` exports the run and translates texts offline, one in twenty of them hostile. `measure` starts
t2t-server on the export and a process of clients, each of which sends its next request when it has the answer to the
last one; and a process that loads the SavedModel and calls its signature from as many threads as the machine has cores,
which is faster than from one. They take turns with the texts, once for each of `--sizes` texts a request; direct calls
have 32 texts in any case. Every answer is compared. `sentences_cpu_s` are sentences for each second of CPU time of the
process that has the model, which says more where other programs run. `direct` and `clients` are those processes.
"""

import argparse
import base64
import http.client
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.serving_load import numbers, run
from benchmarks.turns import machine, summary, take_turns

DIRECT_SIZE = 32


def texts_of(folder):
    """Returns the texts that `serving_load.py make` has written, with what they are offline."""
    rows = [json.loads(line) for line in pathlib.Path(folder, "texts.jsonl").read_text().splitlines()]
    return [row | {"bytes": base64.b64decode(row["b64"])} for row in rows]


def direct(folder, texts):
    """Calls the SavedModel for each line of standard input; prints figures."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  (SentencePiece's operations)

    model = tf.saved_model.load(os.path.realpath(os.path.join(folder, "version")))
    serve = model.signatures["serving_default"]

    def ask(texts):
        found = serve(inputs=tf.constant(texts))
        return list(zip(*(found[name].numpy() for name in ("outputs", "scores", "truncated")), strict=True))

    answer_turns(ask, texts_of(folder)[:texts], DIRECT_SIZE, os.cpu_count(), os.getpid())


def clients(folder, texts, address, pid, size, count):
    """Asks a server for each line of standard input; prints figures."""
    own = threading.local()

    def ask(texts):
        if not hasattr(own, "connection"):
            own.connection = http.client.HTTPConnection(address, timeout=600)
        inputs = [{"b64": base64.b64encode(text).decode()} for text in texts]
        own.connection.request("POST", "/v1/models/translate:predict", json.dumps({"inputs": inputs}))
        answer = own.connection.getresponse()
        found = json.loads(answer.read())
        assert answer.status == 200, found
        columns = found["outputs"]
        outputs = [text.encode() for text in columns["outputs"]]
        return list(zip(outputs, columns["scores"], columns["truncated"], strict=True))

    answer_turns(ask, texts_of(folder)[:texts], size, count, pid)


def answer_turns(ask, rows, size, threads, pid):
    """Runs once to be warm, then for each line of standard input, as `take_turns` expects.

    `pid` is of the process that has the model.
    """
    run(ask, rows, size, threads)
    print("warm", flush=True)
    for _ in sys.stdin:
        before = cpu_seconds(pid)
        figures = run(ask, rows, size, threads)
        figures["sentences_cpu_s"] = round(len(rows) / (cpu_seconds(pid) - before), 1)
        print(json.dumps(figures | {"resident_mb": resident_mb(pid)}), flush=True)


def measure(folder, texts, count, sizes, rounds):
    """Prints a line for each size: the turns, then what follows from them."""
    export = pathlib.Path(folder, "version").resolve().parent
    words = ["-m", "t2t_lite.bin.t2t_server", f"--export_dir={export}", "--port=0"]
    with subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True) as server:
        try:
            address = next(found[1] for line in server.stderr if (found := re.search(r"http://([^/]+)/v1", line)))
            print(json.dumps({"clients": count, **machine()}), flush=True)
            given = [folder, f"--texts={texts}"]
            asking = [*given, f"--address={address}", f"--pid={server.pid}", f"--clients={count}"]
            this = [sys.executable, __file__]
            for size in sizes:
                sides = {"direct": [*this, "direct", *given], "server": [*this, "clients", *asking, f"--size={size}"]}
                turns = take_turns(sides, rounds)
                wrong = {side: sum(turn["wrong"] for turn in some) for side, some in turns.items()}
                sent = {side: sum(turn["sentences"] for turn in some) for side, some in turns.items()}
                print(json.dumps({"size": size, "sent": sent, "wrong": wrong}))
                for key in ("sentences_s", "sentences_cpu_s", "p50_ms", "p95_ms", "p99_ms"):
                    print(json.dumps(summary({side: turns[side] for side in ("server", "direct")}, key)), flush=True)
        finally:
            server.terminate()
    print(json.dumps({"status": server.returncode}))


def resident_mb(pid):
    """Returns how much memory a process holds now, in MB."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return round(int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024 / 1e6)


def cpu_seconds(pid):
    """Returns the CPU time that a process has used so far, in seconds."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("measure", "direct", "clients"):
        one = commands.add_parser(name)
        one.add_argument("folder")
        one.add_argument("--texts", type=int, default=2000)
        if name != "direct":
            one.add_argument("--clients", dest="count", type=int, default=32)
        if name == "measure":
            one.add_argument("--sizes", type=numbers, default=[1, 32])
            one.add_argument("--rounds", type=int, default=5)
        if name == "clients":
            one.add_argument("--address", required=True)
            one.add_argument("--pid", type=int, required=True)
            one.add_argument("--size", type=int, required=True)
    arguments = vars(parser.parse_args())
    {"measure": measure, "direct": direct, "clients": clients}[arguments.pop("command")](**arguments)


if __name__ == "__main__":
    main()

"""What t2t-server hands on: to the application, to the batches, and to what listens."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys

import pytest

from t2t_lite.errors import UserError
from t2t_lite.extras.serving import http_server, model_versions, request_batching, rest_server, t2t_server
from tests.decoding.runs import make_run
from tests.extras.serving.doubles import MODEL, Versions, asker


@pytest.fixture
def served(monkeypatch):
    """Calls the command with a model of Python functions; returns a function that asks it.

    Its attribute `handed` has what others were called with: {name: their arguments}.
    """
    handed = {"serve": []}

    def noting(name, real):
        return lambda *arguments, **options: (
            handed.setdefault(name, (arguments, options)) and real(*arguments, **options)
        )

    def serve(server, listener, longest_body, *options):
        handed["serve"].append((server, longest_body, options))

    stand_in = noting("ModelVersions", lambda *arguments: Versions())
    monkeypatch.setattr(Versions, "refresh", lambda self: None, raising=False)
    monkeypatch.setattr(model_versions, "ModelVersions", stand_in)
    monkeypatch.setattr(model_versions, "watching", noting("watching", lambda *arguments: contextlib.nullcontext()))
    monkeypatch.setattr(http_server, "serve", serve)
    monkeypatch.setattr(rest_server, "RestServer", noting("RestServer", rest_server.RestServer))
    for name in ("Batcher", "SentenceBatcher"):
        monkeypatch.setattr(request_batching, name, noting(name, getattr(request_batching, name)))

    def served(*flags):
        assert t2t_server.main(["--export_dir=x", "--port=0", f"--servable_name={Versions.name}", *flags]) == 0
        return asker(handed["serve"][0][0])

    served.handed = handed
    return served


def test_each_part_gets_its_flags(served):
    """Odd values, each of another flag."""
    ask = served(
        "--max_enqueued_batches=3", "--max_execution_batch_size=5", "--num_batch_threads=7", "--split_sentences=never",
        "--max_batch_size=11", "--poll_secs=0.75", "--max_body_bytes=2000", "--allow_origin=*",
    )  # fmt: skip
    (rows, threads), options = served.handed["Batcher"]
    assert (rows, threads, options["most_waiting"]) == (5, 7, 15)
    assert served.handed["SentenceBatcher"][0][1:] == ("never", 11) and served.handed["watching"][0][1] == 0.75
    assert served.handed["ModelVersions"][0][:2] == (Versions.name, "x")
    limits = served.handed["RestServer"][1]
    assert (limits["most_rows"], limits["longest_body"]) == (11, 2000) and served.handed["serve"][0][1] == 2000
    assert ask("POST", f"{MODEL}:predict", b'{"inputs": ["a", "b"]}', HTTP_ORIGIN="null")[0] == "200 OK"
    assert ask.headers["Access-Control-Allow-Origin"] == "*"
    _, page = ask("GET", "/monitoring/prometheus/metrics")
    assert ':processed_batch_size_sum{model_name="my model"} 2.0\n' in page


def test_defaults(served, capsys):
    ask = served()
    (rows, threads), options = served.handed["Batcher"]
    assert (rows, threads, options["most_waiting"]) == (32, os.cpu_count(), 64 * 32)
    assert served.handed["SentenceBatcher"][0][1:] == (None, 1024) and served.handed["watching"][0][1] == 1
    ((_, longest_body, (drain_seconds, *_)),) = served.handed["serve"]
    assert (longest_body, drain_seconds) == (2**24, 0)
    assert ask("POST", "/v1/completions", b"{}")[0].startswith("404")
    assert re.search(
        rf"http://127\.0\.0\.1:\d+{MODEL}; in a browser: http://127\.0\.0\.1:\d+/\n$", capsys.readouterr().err
    )


def test_a_damaged_newest_version_does_not_prevent_the_start(served, monkeypatch, capsys):
    def refuse(self):
        raise UserError("x/2: damaged.")

    monkeypatch.setattr(Versions, "refresh", refuse)
    ask = served()
    assert re.search(r"warning: x/2: damaged\. .*, is served\.\n", capsys.readouterr().err)
    assert ask("GET", "/health")[0] == "200 OK"
    monkeypatch.setattr(Versions, "is_available", lambda self: False)
    assert t2t_server.main(["--export_dir=x", "--port=0"]) == 2


@pytest.mark.parametrize(
    ("flag", "load"),
    [("--max_streams=3", model_versions.load_with_generator), ("--max_streams=0", model_versions.load_export)],
)
def test_streams_need_the_model_itself(served, flag, load):
    ask = served(flag)
    assert served.handed["ModelVersions"][0][2] is load
    assert ask("POST", "/v1/completions", b"{}")[0].startswith("404" if "0" in flag else "500")


def test_a_drain_and_origins(served):
    ask = served("--drain_secs=2.5", "--allow_origin=https://Example.org,http://localhost:3000")
    drain_seconds, on_stop, on_last = served.handed["serve"][0][2]
    assert drain_seconds == 2.5
    ask("GET", "/health", HTTP_ORIGIN="https://example.org")
    assert ask.headers["Access-Control-Allow-Origin"] == "https://example.org"
    on_stop()
    assert ask("GET", "/health")[0].startswith("503") and on_last.__name__ == "end_streams"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["t2t-server", "t2t-server --max_streams=2", "t2t-insights-server"])
def test_loading_is_announced_before_tensorflow_is_imported(tmp_path, command):
    command, *others = command.split()
    if command == "t2t-server":
        (tmp_path / "export" / "1").mkdir(parents=True)
        (tmp_path / "export" / "1" / "saved_model.pb").touch()
        flag, what = f"--export_dir={tmp_path}/export", tmp_path / "export" / "1"
    else:
        what = make_run(tmp_path / "trained")
        flag = f"--output_dir={what}"
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("raise SystemExit('imported')\n")
    program = pathlib.Path(sys.executable).with_name(command)
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    words = [program, flag, *others, "--port=0"]
    found = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=100)
    assert found.stderr.splitlines()[0] == f"Loading {what}; this may take half a minute." and found.returncode != 0

"""What t2t-server hands on: to the application, to the batches, and to what listens."""

import contextlib
import os
import pathlib
import subprocess
import sys

import pytest

from t2t_lite.extras.serving import http_server, model_versions, request_batching, t2t_server
from tests.decoding.runs import make_run
from tests.extras.serving.test_rest_server import MODEL, Versions, asker


@pytest.fixture
def served(monkeypatch):
    """Calls the command with a model of Python functions; returns a function that asks it, and the longest body."""
    calls = []
    monkeypatch.setattr(Versions, "refresh", lambda self: None, raising=False)
    monkeypatch.setattr(model_versions, "ModelVersions", lambda *arguments: Versions())
    monkeypatch.setattr(model_versions, "watching", lambda *arguments: contextlib.nullcontext())
    monkeypatch.setattr(
        http_server, "serve", lambda server, _, longest_body, **others: calls.append((server, longest_body, others))
    )

    def served(*flags):
        assert t2t_server.main(["--export_dir=x", "--port=0", f"--servable_name={Versions.name}", *flags]) == 0
        ((server, longest_body, others),) = calls
        served.others = others
        return asker(server), longest_body

    return served


def test_each_limit_is_that_of_its_flag(served):
    ask, longest_body = served("--max_batch_size=5", "--max_execution_batch_size=2", "--max_body_bytes=2000")

    def answer(rows, more=b""):
        body = b'{"inputs": [%s]%s}' % (b", ".join([b'"a"'] * rows), more)
        return ask("POST", f"{MODEL}:predict", body)

    assert answer(5)[0] == "200 OK"
    _, page = ask("GET", "/monitoring/prometheus/metrics")
    assert ':processed_batch_size_sum{model_name="my model"} 5.0\n' in page
    assert ':processed_batch_size_count{model_name="my model"} 3.0\n' in page  # 2 + 2 + 1
    assert "Task size 6 is larger than maximum input batch size 5" in answer(6)[1]
    assert answer(1, b" " * 2000)[0].startswith("413") and longest_body == 2000


def test_the_queue_is_as_long_as_its_flag_says(served, monkeypatch):
    made = []
    monkeypatch.setattr(request_batching, "Batcher", lambda *arguments, **options: made.append(options))
    served("--max_enqueued_batches=3", "--max_execution_batch_size=5")
    assert made[0]["most_waiting"] == 15


def test_a_drain_and_origins(served):
    ask, _ = served("--drain_secs=2.5", "--allow_origin=https://Example.org,http://localhost:3000")
    assert served.others["drain_seconds"] == 2.5
    ask("GET", "/health", HTTP_ORIGIN="https://example.org")
    assert ask.headers["Access-Control-Allow-Origin"] == "https://example.org"
    served.others["on_stop"]()
    assert ask("GET", "/health")[0].startswith("503")


def test_all_pages_may_ask(served):
    ask, _ = served("--allow_origin=*")
    ask("GET", "/health", HTTP_ORIGIN="null")
    assert ask.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("origin", ["example.org", "https://example.org/app", "ftp://example.org", "*.example.org"])
def test_what_is_no_origin(origin, capsys):
    assert t2t_server.main(["--export_dir=x", f"--allow_origin={origin}"]) == 2
    assert f"--allow_origin={origin}: expected an origin" in capsys.readouterr().err


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

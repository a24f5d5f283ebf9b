"""What t2t-server hands on: to the application, to the batches, and to what listens."""

import contextlib

import pytest

from t2t_lite.bin import t2t_server
from t2t_lite.serving import http_server, model_versions
from tests.serving.test_rest_server import MODEL, Versions, asker


@pytest.fixture
def served(monkeypatch):
    """Calls the command with a model of Python functions; returns a function that asks it, and the longest body."""
    calls = []
    monkeypatch.setattr(Versions, "refresh", lambda self: None, raising=False)
    monkeypatch.setattr(model_versions, "ModelVersions", lambda *arguments: Versions())
    monkeypatch.setattr(model_versions, "watching", lambda *arguments: contextlib.nullcontext())
    monkeypatch.setattr(http_server, "serve", lambda server, _, longest_body: calls.append((server, longest_body)))

    def served(*flags):
        assert t2t_server.main(["--export_dir=x", "--port=0", f"--servable_name={Versions.name}", *flags]) == 0
        ((server, longest_body),) = calls
        return asker(server), longest_body

    return served


def test_each_limit_is_that_of_its_flag(served):
    ask, longest_body = served("--max_batch_size=5", "--max_execution_batch_size=2", "--max_body_bytes=2000")

    def answer(rows, more=b""):
        body = b'{"inputs": [%s]%s}' % (b", ".join([b'"a"'] * rows), more)
        return ask("POST", f"{MODEL}:predict", body)

    assert answer(5)[0] == "200 OK"
    _, page = ask("GET", "/monitoring/prometheus/metrics")
    assert ':processed_batch_size_sum{model_name="my model"} 5\n' in page
    assert ':processed_batch_size_count{model_name="my model"} 3\n' in page  # 2 + 2 + 1
    assert "Task size 6 is larger than maximum input batch size 5" in answer(6)[1]
    assert answer(1, b" " * 2000)[0].startswith("413") and longest_body == 2000

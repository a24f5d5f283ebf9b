"""Stand-ins for the models of t2t-server: functions of Python behind its application."""

import dataclasses
import io
import json
import math
import threading

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.generator import GenerationStream, Generator
from t2t_lite.decoding.hypothesis import Prompt
from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.extras.serving.request_batching import Batcher
from t2t_lite.extras.serving.rest_server import RestServer
from t2t_lite.extras.serving.served_generator import ServedGenerator
from t2t_lite.extras.serving.server_metrics import ServerMetrics
from t2t_lite.extras.serving.token_scores import RowScores, TokenTexts
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.text.vocabulary import ByteTextEncoder

LONGEST_BODY, MOST_ROWS = 2000, 4
MODEL = "/v1/models/my%20model"


class Upper:
    """A signature: texts in capitals, with the version as the score."""

    rows_are_independent = True

    def __init__(self, version):
        self._version, self.inputs = version, {"inputs": tf.TensorSpec([None], tf.string)}

    def __call__(self, inputs):
        if b"full" in inputs["inputs"]:
            raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")
        if b"refused" in inputs["inputs"]:
            message = "Graph execution error:\n\nDetected at x\nwrong shape\n\t[["
            raise tf.errors.InvalidArgumentError(None, None, message)
        if b"bug" in inputs["inputs"]:
            raise RuntimeError("secret")
        scores = np.full(len(inputs["inputs"]), self._version, np.float32)
        return {"outputs": np.array([text.upper() for text in inputs["inputs"]], object), "scores": scores}


class Versions:
    """Versions 1 and 2, as if both were the newest."""

    name, signature = "my model", Upper

    def __init__(self, generator=None):
        self.generator = generator

    def find(self, version=None):
        version = version or 2
        if version > 2:
            raise Refusal(f"Servable not found for request: Specific(my model, {version})", "NOT_FOUND")
        signatures = {"serving_default": self.signature(version)}
        attributes = {"signatures": signatures, "signature_def": {"a": {}}, "generator": self.generator}
        attributes["created"] = 1_700_000_000 + version
        return version, type("Export", (), attributes)

    def states(self, version=None):
        return [(number, "AVAILABLE", "OK", "") for number in (2, 1) if version in (None, number)]

    def is_available(self):
        return True


class Echo(ServedGenerator):
    """Continues a prompt by itself. Each id waits for `permits`; some end in an error, "cut" is truncated.

    After an id, the same id + 1 is the most probable one, with log-probability -0.25; any other one has
    -(1 + its distance from it).

    Attributes:
        asked: what has been asked for, a list.
        computed: int, the number of ids of all streams.
        generator: a Generator that has this object as its search.
    """

    options, most_tokens = SearchOptions(beam_size=1, extra_length=400), 500

    def __init__(self):
        self.permits, self.computed, self.lock, self.asked = None, 0, threading.Lock(), []
        self.generator = object.__new__(Generator)
        self.generator.encoders, self.generator.problem = {"targets": ByteTextEncoder()}, None
        self.generator.searcher, self.generator.max_length = EchoSearch(self), None
        self._generator, self._encoder, self.longest_prompt = self.generator, ByteTextEncoder(), 100
        self.token_texts = TokenTexts(self._encoder)

    def stream(self, prompt, max_tokens, options):
        self.asked.append((prompt, max_tokens, options))
        ids = ByteTextEncoder().encode(prompt) if isinstance(prompt, str) else prompt
        prompt = ByteTextEncoder().decode(ids)
        options = dataclasses.replace(options, extra_length=max_tokens)
        return GenerationStream(self.generator, Prompt(prompt, ids, prompt == "cut"), options)

    def scores(self, rows, count, on_progress=None):
        assert all(rows)
        on_progress(len(rows))
        self.asked.append(("scores", rows, count))
        return [self._row_scores(row, count) for row in rows]

    def _row_scores(self, row, count):
        most_probable = np.array([1, *row[:-1]]) + 1
        own, top = np.float32(row), most_probable[:, None] + np.arange(count)

        def log_probs(ids):
            distances = np.abs(ids - (most_probable if ids.ndim == 1 else most_probable[:, None]))
            return np.where(distances == 0, -0.25, -1.0 - distances).astype(np.float32)

        return RowScores(log_probs(own), log_probs(top), top)

    def search(self, ids, options):
        for i in ids:
            if self.permits:
                assert self.permits.acquire(timeout=20)
            with self.lock:
                self.computed += 1
            yield i
        if ids == ByteTextEncoder().encode("fails"):
            raise RuntimeError("secret")
        if ids == ByteTextEncoder().encode("full"):
            raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")


class EchoSearch:
    def __init__(self, echo):
        self.stream = echo.search

    def longest_output(self, length, options):
        return options.extra_length


def rest_server(generator=None, most_streams=2, most_waiting=math.inf, origins=(), versions=None, apis=()):
    """Returns the application; `metrics` is its ServerMetrics."""
    metrics, batcher = ServerMetrics(), Batcher(MOST_ROWS, 1, most_waiting=most_waiting)
    limits = MOST_ROWS, LONGEST_BODY
    server = RestServer(versions or Versions(generator), batcher, metrics, *limits, origins, most_streams, apis)
    server.metrics, server.batcher = metrics, batcher
    return server


def asker(server):
    """Returns a function of (method, path, body) -> (status line, text of the answer); it has its `headers`."""

    def ask(method, path, body=b"", **others):
        heads = []
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        environ = {"REQUEST_METHOD": method, "REQUEST_URI": path, "wsgi.input": io.BytesIO(body), **others}
        environ["CONTENT_LENGTH"] = str(len(body))
        answer = b"".join(server(environ, lambda status, headers: heads.append((status, dict(headers)))))
        ((status, ask.headers),) = heads
        assert method in ("OPTIONS", "HEAD") or ask.headers["Content-Length"] == str(len(answer))
        return status, answer.decode()

    return ask


def events_of(body):
    """Returns the JSON of the events in a body, bytes."""
    assert body.endswith(b"\n\n") and b"\r" not in body
    lines = body.decode().removesuffix("\n\n").split("\n\n")
    assert all(line.startswith("data: ") and len(line.splitlines()) == 1 for line in lines)
    assert lines.pop() == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines]

"""A server of completions whose model continues a prompt by itself."""

import dataclasses
import json
import threading

import tensorflow as tf

from t2t_lite.decoding.generator import GenerationStream
from t2t_lite.decoding.hypothesis import Prompt
from t2t_lite.extras.serving.request_batching import Batcher
from t2t_lite.extras.serving.rest_server import RestServer
from t2t_lite.extras.serving.server_metrics import ServerMetrics
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.decoding.test_streaming import Replay
from tests.extras.serving.test_rest_server import Versions


class Echo:
    """Continues a prompt by itself, and is its own search. Each id waits for `permits`; some prompts end in an error.

    Attributes:
        asked: what has been asked for, a list.
        computed: int, the number of ids of all streams.
    """

    options, most_tokens = SearchOptions(beam_size=1, extra_length=400), 500

    def __init__(self):
        self.permits, self.computed, self.lock, self.asked = None, 0, threading.Lock(), []
        self.generator = Replay(ByteTextEncoder())
        self.generator.searcher = EchoSearch(self)

    def stream(self, prompt, max_tokens, options):
        self.asked.append((prompt, max_tokens, options))
        ids = ByteTextEncoder().encode(prompt)
        options = dataclasses.replace(options, extra_length=max_tokens)
        return GenerationStream(self.generator, Prompt(prompt, ids, False), options)

    def longest_output(self, length, options):
        return options.extra_length

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
        self.longest_output, self.stream = echo.longest_output, echo.search


def rest_server(most=2):
    metrics = ServerMetrics()
    server = RestServer(Versions(), Batcher(4, 1), metrics, 4, 2000, most_streams=most)
    server.page = metrics.page
    return server


def events_of(body):
    """Returns the JSON of the events in a body, bytes."""
    assert body.endswith(b"\n\n") and b"\r" not in body
    lines = body.decode().removesuffix("\n\n").split("\n\n")
    assert all(line.startswith("data: ") and len(line.splitlines()) == 1 for line in lines)
    assert lines.pop() == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines]

"""The client of servers: its options, waits, batches and sentences, and that it needs no TensorFlow."""
# Nearest tests of: extras/query_client/served_answers.py

import functools
import http.client
import random
import re
import subprocess
import sys
import time

import numpy as np
import pytest

from t2t_lite.errors import Failure, UserError
from t2t_lite.extras.query_client import client as query
from t2t_lite.extras.query_client.addresses import ServerError
from t2t_lite.extras.query_client.client import ServedAnswer
from tests.extras.query_client.servers import Model, answering, client, http_answer

NUMBERS = {  # argument: values that cannot be
    "version": (-1, 2**63, 1.5, True, "many"),
    "timeout": (0, -1.0, float("nan"), float("inf"), 1e300, True, "many", 2**40, None),
    "retries": (-1, 1.5, True, "many", 2**40, None),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in NUMBERS.items() for value in values])
def test_numbers_that_cannot_be(name, value):
    with pytest.raises(UserError, match=f"^{name}={re.escape(str(value))}: expected "):
        servable = query.Servable("translate", value if name == "version" else None)
        query.open_client("localhost:1", servable, **{} if name == "version" else {name: value})


def test_defaults_and_the_time_limit(monkeypatch):
    limits = []

    def connection(host, port, timeout):
        limits.append((host, port, timeout))
        raise OSError("no network")

    monkeypatch.setattr(http.client, "HTTPConnection", connection)
    for options, expected in (({}, 10), ({"timeout": 2.5}, 2.5)):
        asked = query.open_client("http://host:77", query.Servable("m"), **options)
        assert (asked.retries, asked.first_wait) == (3, 0.5)
        with pytest.raises(OSError):
            asked.status()
        assert limits.pop() == ("host", 77, expected)


def test_several_sentences_are_sent_one_by_one_if_the_model_wants_that():
    texts, told = ["Ab. Cd cut. Ef", "", "Gh."], []
    split = [ServedAnswer("AB CD CUT EF", -3.0, True), ServedAnswer("", -1.0, False), ServedAnswer("GH", -1.0, False)]
    asked = query.Client(Model(True, reads_one=True), retries=0)
    assert asked.translate(texts, on_progress=told.append) == split and sum(told) == 3
    asked.translate(texts)
    assert [signature for signature, _ in asked.transport.asked].count("sentences") == 1
    for choice, has_sentences, expected in (("always", False, split[0]), (None, False, None), ("never", True, None)):
        transport = Model(has_sentences, reads_one=True)
        found = query.Client(transport, retries=0).translate(texts, split_sentences=choice)[0]
        assert found == (expected or ServedAnswer("AB", -1.0, True))
    with pytest.raises(UserError, match="split_sentences=yes: expected one of auto, always, never"):
        asked.translate(texts, split_sentences="yes")


@pytest.mark.parametrize("code", ["INTERNAL", "NOT_FOUND"])  # the latter while the model is not loaded
def test_a_server_that_fails_does_not_decide_about_sentences(code):
    class Failing(Model):
        code = None

        def predict(self, signature, inputs):
            if signature == "sentences" and self.code:
                raise ServerError(self.code, "out of luck")
            return super().predict(signature, inputs)

    asked = query.Client(Failing(True, reads_one=True), retries=0)
    asked.transport.code = code
    with pytest.raises(ServerError):
        asked.translate(["Ab. Cd"])
    assert asked.translate(["Ab."], split_sentences="never")[0].text == "AB"
    asked.transport.code = None
    assert asked.translate(["Ab. Cd"])[0].text == "AB CD"


def test_an_answer_that_is_far_too_short_says_so():
    for has_sentences in (False, True):
        (found,) = query.Client(Model(has_sentences, reads_one=True), retries=0).translate(["Ab. " * 60])
        assert found.is_short != has_sentences


@pytest.mark.parametrize("count", [0, -1, "many"])
def test_a_number_of_outputs_is_positive(count):
    with pytest.raises(UserError, match=f"n_best={count}: expected a whole number from 1 "):
        query.Client(Model(), retries=0).n_best(["Ab cd"], count=count)


def test_answers_of_encoders():
    found = {"outputs": {"labels": ["A", "B"], "probabilities": [[0.9, 0.1], [0.2, 0.8]]}}
    with answering(http_answer(found)) as server:
        assert client(server).predict({"first": ["aa", "b"], "second": ["", "c"]}) == [
            {"labels": "A", "probabilities": [0.9, 0.1]},
            {"labels": "B", "probabilities": [0.2, 0.8]},
        ]
    for wrong in ({"outputs": {"labels": ["A"]}}, {"outputs": {"labels": "AB"}}, {"outputs": None}):
        with answering(http_answer(wrong)) as server, pytest.raises(Failure, match="not a list of 2 answers"):
            client(server).predict({"inputs": ["aa", "b"]})


class Flaky:
    """A transport whose first calls fail with these errors."""

    address = servable = "stub"

    def __init__(self, *errors):
        self.errors, self.calls = [*errors], 0

    def status(self):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "an answer"


def test_waits_before_a_request_is_repeated(monkeypatch, clock):
    """They double up to ten seconds, and are shortened by a half at most."""
    monkeypatch.setattr(random, "uniform", lambda least, most: least + (most - least) / 2)
    transport = Flaky(*(ServerError("UNAVAILABLE", "") for _ in range(7)))
    assert query.Client(transport, retries=7).status() == "an answer"
    assert clock.sleeps == [0.375, 0.75, 1.5, 3.0, 6.0, 7.5, 7.5] and transport.calls == 8
    transport = Flaky(*(ServerError("DEADLINE_EXCEEDED", "") for _ in range(3)))
    with pytest.raises(ServerError):
        query.Client(transport, retries=2, first_wait=8).status()
    assert clock.sleeps[7:] == [6.0, 7.5] and transport.calls == 3


@pytest.mark.parametrize("code", ["INVALID_ARGUMENT", "NOT_FOUND", "INTERNAL", "CERTIFICATE", "RESOURCE_EXHAUSTED"])
def test_what_would_fail_again_is_not_repeated(clock, code):
    transport = Flaky(ServerError(code, ""))
    with pytest.raises(ServerError):
        query.Client(transport).status()
    assert transport.calls == 1 and clock.sleeps == []


@pytest.mark.parametrize(
    ("header", "least"), [("7", 7), ("999999", 10), ("Wed, 21 Oct 2026 07:28:00 GMT", 0), ("-1", 0)]
)
def test_a_server_says_when_to_ask_again(monkeypatch, header, least):
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)
    busy = http_answer({"error": "the queue is full"}, "503 Service Unavailable", f"Retry-After: {header}\r\n")
    with answering(busy) as server:
        asked = query.open_client(f"http://{server}", query.Servable("translate"), retries=1)
        with pytest.raises(query.ServerError):  # the second time nobody listens
            asked.translate(["a"])
    assert least + 0.25 <= waits[0] <= least + 0.5


DOORS = {  # a method, its options, what they are in each request
    "alpha": ("translate", {"alpha": 0.75, "extra_length": 3}, {"alpha": 0.75, "extra_length": 3}),
    "seed": ("translate", {"seed": 7, "extra_length": 5}, {"seed": 7, "extra_length": 5}),
    "batches": ("translate", {"batch_size": 1}, {}),
    "count": ("n_best", {"count": 2}, {}),
    "all of them": ("n_best", {}, {}),
    "all by their number": ("n_best", {"count": 3}, {}),
    "batches of the best": ("n_best", {"batch_size": 1}, {}),
}


@pytest.mark.parametrize("split", ["never", "always", None])
@pytest.mark.parametrize(("method", "options", "sent"), DOORS.values(), ids=DOORS)
def test_options_reach_every_request_whether_or_not_texts_are_split(method, options, sent, split):
    transport, done, texts = Model(has_sentences=True), [], ["Ab. Cd ef", "g"]
    ask = functools.partial(getattr(query.Client(transport, retries=0), method), split_sentences=split)
    answers = ask(texts, on_progress=done.append, **options)
    parts = ["Ab. Cd ef", "g"] if split == "never" else ["Ab.", "Cd ef", "g"]
    asked = [(signature, inputs) for signature, inputs in transport.asked if signature != "sentences"]
    assert sorted(text for _, inputs in asked for text in inputs["inputs"]) == sorted(parts)
    signature = "n_best" if method == "n_best" else "with_options" if sent else "serving_default"
    for found, inputs in asked:
        count = len(inputs.pop("inputs"))
        assert found == signature and count <= options.get("batch_size", 3)
        assert inputs == {name: [value] * count for name, value in sent.items()}
    assert len(asked) == (len(parts) if "batch_size" in options else 1) and sum(done) == len(texts)
    assert [one.parts for one in answers] == [1 if split == "never" else 2, 1]
    if method == "n_best":
        scores = [one.score for one in answers[0].hypotheses]
        assert scores == ([0, -1, -2] if split == "never" else [0, -2, -3])[: options.get("count")]


def test_what_is_no_list_of_texts():
    """Before anything is sent: there is no server."""
    asked = client("127.0.0.1:1")
    with pytest.raises(TypeError, match=r"must be a list of str, received one str. For one sentence: \[text\]"):
        asked.translate("text")
    with pytest.raises(TypeError, match="item 1: must be str, received bytes"):
        asked.translate(["a", b"b"])
    assert asked.translate([]) == []
    for wrong, message in (({}, "inputs: none"), ({"a": ["x"], "b": []}, "inputs: 1 a, 0 b")):
        with pytest.raises(UserError, match=message):
            asked.predict(wrong)
    with pytest.raises(TypeError, match="`first`, item 0: must be str"):
        asked.predict({"first": [1]})
    assert asked.predict({"first": [], "second": []}) == []


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("seed", wrong) for wrong in (1.9, 2**31, True)), ("extra_length", 2**40), ("alpha", float("nan")),
        *(("batch_size", wrong) for wrong in (0, 1.5, True, "many", 2**40, None)),
    ],
)  # fmt: skip
def test_a_number_that_cannot_be_is_refused(name, wrong):
    """Nothing is rounded, cut or wrapped."""
    options = {"extra_length": 3, "seed" if name == "seed" else "alpha": 1} | {name: wrong}
    with pytest.raises(UserError, match=rf"^{name}="):
        query.Client(Model()).translate(["a"], **options)


def test_numpys_numbers_and_texts_are_those_of_python():
    transport = Model()
    texts = np.array(["a", "bc"])
    options = {"seed": np.int64(2**31 - 1), "extra_length": "1e2", "batch_size": np.int32(8)}
    found = query.Client(transport).translate(texts, **options)
    assert [type(one.text) for one in found] == [str, str]
    expected = {"inputs": ["a", "bc"], "seed": [2**31 - 1] * 2, "extra_length": [100] * 2}
    assert transport.asked == [("with_options", expected)]
    query.Client(transport).predict({"inputs": texts})


WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(["tensorflow", "tensorflow_text", "keras", "numpy"]))
from t2t_lite.extras.query_client import t2t_query_server
sys.exit(t2t_query_server.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("given", ["--inputs_once=aa", "--inputs_file=in", "standard input"])
def test_the_client_needs_no_tensorflow(tmp_path, given):
    (tmp_path / "in").write_text("aa\n")
    content = {"outputs": {"outputs": ["\u00dc\u2028b\x1b"], "scores": [-1], "truncated": [False]}}
    with answering(http_answer(content)) as server:
        flags = [f"--server=http://{server}", "--servable_name=x", *([given] if given.startswith("--") else [])]
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT, *flags], cwd=tmp_path, input=b"aa\n", capture_output=True, timeout=60
        )
    assert done.returncode == 0, done.stderr
    last = done.stdout.decode().split("\n")[-2]
    assert last.endswith("\u00dc b "), "control characters and line separators are spaces"

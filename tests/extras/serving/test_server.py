"""t2t-server as installed, with two exports: answers, versions, load, signals, and mistakes."""

import contextlib
import json
import random
import shutil
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import json_format
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2

from tests.decoding.runs import SENTENCES
from tests.extras.serving.running_server import RunningServer
from tests.integration.conftest import EXPORTED
from tests.processes import wait_for

pytestmark = pytest.mark.slow  # processes of their own serve

COMMAND = "t2t-server"
HOSTILE = [
    "", " \u2003\t", "a\x00b\x1b[1m\r\n",
    "שני \u202eكلبان\u202c 二匹の犬 👩\u200d👩\u200d👧", "<s></s><unk><0x0A> ${HOME} '; --",
    "\ufeff\ufffe\U0010ffff", "e\u0301\u0327" * 30, "red " * 25_000, "x" * 100_000,
]  # fmt: skip


def started(export_dir, folder, *flags):
    return RunningServer(folder, COMMAND, f"--export_dir={export_dir}", "--poll_secs=0.1", *flags)


@pytest.fixture(scope="module")
def server(exports, tmp_path_factory):
    with started(exports, tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="module")
def expected(translators):
    """{version: {text: (translation, score)}}."""
    texts = [*HOSTILE, *SENTENCES]
    found = {version: translator.translate(texts, **EXPORTED) for version, translator in translators.items()}
    return {v: {text: (t.text, t.score) for text, t in zip(texts, many, strict=True)} for v, many in found.items()}


def is_right(text, output, score, expected):
    """Whether an answer is the translation; the order of additions may differ with the batch."""
    return output == expected[text][0] and score == pytest.approx(expected[text][1], abs=1e-4)


def test_every_signature_answers_as_the_export_does(server, exports):
    texts = SENTENCES[:3]
    requests = {
        "serving_default": {"inputs": texts},
        "with_options": {"inputs": texts, "alpha": [1.0] * 3, "extra_length": [2] * 3},
        "n_best": {"inputs": texts},
        "sentences": {"inputs": texts},
        "tokens": {"inputs": texts},
        "score": {"inputs": texts, "targets": texts[::-1]},
    }
    signatures = tf.saved_model.load(str(exports / "2")).signatures
    assert requests.keys() == signatures.keys()
    for name, inputs in requests.items():
        found = server.predict(inputs, signature_name=name)
        tensors = signatures[name](**{key: tf.constant(value) for key, value in inputs.items()})
        assert found.keys() == tensors.keys()
        for output, tensor in tensors.items():
            if tensor.dtype == tf.string:
                assert np.array(found[output]).tolist() == np.char.decode(tensor.numpy().astype("S"), "utf-8").tolist()
            else:
                np.testing.assert_allclose(found[output], tensor.numpy(), rtol=1e-4)
    alone = server.predict({"inputs": texts[:1], "alpha": 1, "extra_length": 2}, signature_name="with_options")
    assert alone["outputs"] == server.predict(requests["with_options"], signature_name="with_options")["outputs"][:1]
    assert "as many targets as inputs" in server.predict({"inputs": texts, "targets": []}, signature_name="score")


def test_several_sentences_are_translated_one_by_one(server, translators):
    """As Translator does; the signature `sentences` is for what is one sentence already."""
    texts = ["The red house. A tree was new!", "old"]
    split, whole = (translators[2].translate(texts, split_sentences=choice, **EXPORTED) for choice in ("auto", "never"))
    assert [one.parts for one in split] == [2, 1] and split[0].text != whole[0].text
    for name, expected in ((None, split), ("sentences", whole)):
        found = server.predict({"inputs": texts}, **({"signature_name": name} if name else {}))
        assert found["outputs"] == [one.text for one in expected]
        assert found["scores"] == pytest.approx([one.score for one in expected], abs=1e-3)


def test_status_and_metadata_are_those_of_tensorflow_servings_protos(server, exports):
    status = json_format.Parse(server.get("/v1/models/translate")[1], get_model_status_pb2.GetModelStatusResponse())
    assert [(one.version, one.state) for one in status.model_version_status] == [(2, 30)]  # 30: AVAILABLE
    found = json.loads(server.get("/v1/models/translate/versions/2/metadata")[1])
    assert found["model_spec"] == {"name": "translate", "signature_name": "", "version": "2"}
    metadata = get_model_metadata_pb2.SignatureDefMap()
    json_format.ParseDict(found["metadata"]["signature_def"], metadata)
    expected = tf.compat.v1.saved_model.load(
        tf.compat.v1.Session(graph=tf.Graph()), ["serve"], str(exports / "2")
    ).signature_def
    assert dict(metadata.signature_def) == dict(expected)


def test_load(server, expected):
    """16 callers with texts of all kinds get their own answers, and memory is bounded."""

    def ask(seed):
        draw, wrong = random.Random(seed), []
        for _ in range(3):
            texts = draw.choices(SENTENCES, k=draw.choice((1, 1, 3, 8))) + draw.choices(HOSTILE, k=draw.choice((0, 1)))
            found = server.predict(texts)
            for text, output, score in zip(texts, found["outputs"], found["scores"], strict=True):
                if not is_right(text, output, score, expected[2]):
                    wrong.append((text[:80], output))
        return wrong

    with ThreadPoolExecutor(16) as pool:
        assert [one for wrong in pool.map(ask, range(16)) for one in wrong] == []
        before = server.resident_bytes()
        assert [one for wrong in pool.map(ask, range(16, 32)) for one in wrong] == []
    assert server.resident_bytes() < 1.1 * before
    _, page = server.get("/monitoring/prometheus/metrics")
    lines = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    batch = ':tensorflow:serving:batching_session:processed_batch_size_count{model_name="translate"}'
    assert float(lines[batch]) < float(lines[':tensorflow:serving:request_count{model_name="translate",status="OK"}'])


BROKEN = {
    "no HTTP": (b"\x16\x03\x01 hello\r\n\r\n", b"400"),
    "a huge length": (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
    "a path of other bytes": (b"GET /v1/models/\xff%ff%zz HTTP/1.0\r\n\r\n", b"400"),
}


@pytest.mark.parametrize(("sent", "status"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_request(server, sent, status):
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), 20) as connection:
        connection.sendall(sent)
        with contextlib.suppress(OSError):  # the server may have refused it and closed before
            connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(2**16)
    assert answer.split(b" ")[1] == status
    assert server.get("/health") == (200, '{"status": "SERVING"}')


def test_a_chunked_body(server):
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), 60) as connection:
        head = b"POST /v1/models/translate:predict HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head + b'8\r\n{"inputs\r\n8\r\n": ["a"]\r\n1\r\n}\r\n0\r\n\r\n')
        answer = b"".join(iter(lambda: connection.recv(2**16), b""))
    assert answer.startswith(b"HTTP/1.1 200 OK") and b'"outputs"' in answer


@pytest.mark.long
def test_a_new_version_comes_and_the_old_one_goes_while_callers_ask(exports, expected, tmp_path):
    folder, ended, wrong, seen = tmp_path / "export", threading.Event(), [], set()
    shutil.copytree(exports / "1", folder / "1")

    def ask(seed):
        draw = random.Random(seed)
        while not ended.is_set():
            text = draw.choice(SENTENCES)
            found = server.predict([text])
            row = found["outputs"][0], found["scores"][0]
            versions = [version for version in (1, 2) if is_right(text, *row, expected[version])]
            seen.update(versions)
            wrong.extend([] if versions else [(text, found)])

    def states():
        found = json.loads(server.get("/v1/models/translate")[1])["model_version_status"]
        return {one["version"]: one["state"] for one in found}

    def await_while_all_ask(condition):
        def is_so():
            assert not any(future.done() for future in futures), futures
            return condition()

        wait_for(is_so, why=lambda: f"{states()}, answers of {seen}")

    def answers_alone():
        found = seen == {2}
        seen.discard(1)
        return found

    with started(folder, tmp_path) as server, ThreadPoolExecutor(8) as pool:
        try:
            futures = [pool.submit(ask, seed) for seed in range(8)]
            await_while_all_ask(lambda: 1 in seen)
            (folder / "3").mkdir()
            (folder / "3" / "saved_model.pb").write_bytes(b"damaged")
            await_while_all_ask(lambda: states().get("3") == "END")
            assert states() == {"1": "AVAILABLE", "3": "END"} and "3: cannot be loaded" in server.log
            shutil.rmtree(folder / "3")
            shutil.copytree(exports / "2", folder / "2")
            await_while_all_ask(lambda: states() == {"1": "END", "2": "AVAILABLE", "3": "END"})
            shutil.rmtree(folder / "1")
            seen.clear()
            await_while_all_ask(answers_alone)
        finally:
            ended.set()
        assert [future.result() for future in futures] == [None] * 8 and wrong == []
        assert server.stop() == 0


@pytest.mark.long
def test_sigterm_answers_what_has_come(exports, tmp_path):
    """Long requests are under way; the server answers them, takes no others, and ends with status 0."""
    texts = [" ".join(sentence.rstrip(".") for sentence in SENTENCES)] * 24  # one sentence each

    def metrics():
        return server.get("/monitoring/prometheus/metrics")[1]

    with started(exports, tmp_path) as server, ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(server.predict, texts) for _ in range(4)]
        with socket.create_connection(server.address.split(":")):  # a client that sends nothing holds nothing up
            count = 'request_count{model_name="translate",status="OK"} '
            wait_for(lambda: count in metrics(), why=metrics)
            assert server.stop() == 0
            answers = [future.result()["outputs"] for future in futures]
        assert all(answer == answers[0] and len(answer) == 24 for answer in answers)
        assert "Stopping; requests in progress: " in server.log and "Traceback" not in server.log
        with pytest.raises(OSError):
            server.get("/health")


LIGHT = """
import sys
import numpy as np
from t2t_lite.extras.serving import request_batching
from t2t_lite.extras.serving import http_server
from t2t_lite.extras.serving import server_metrics
from t2t_lite.extras.serving import model_versions
from t2t_lite.extras.serving import rest_server
versions = model_versions.ModelVersions("translate", sys.argv[1], model_versions.load_export)
versions.refresh()
_, export = versions.find()
assert len(export.signatures["serving_default"]({"inputs": np.array([b"a"])})["outputs"]) == 1
rooms = ("models", "layers", "decoding", "runs", "training", "data")
print([name for name in sys.modules if name.startswith(tuple(f"t2t_lite.{room}" for room in rooms))])
"""


@pytest.mark.long
def test_the_server_builds_no_keras_model(exports):
    done = subprocess.run([sys.executable, "-c", LIGHT, exports], capture_output=True, text=True, timeout=300)
    assert done.stdout == "[]\n", done.stderr


def test_mistakes(call_command, assert_user_error, tmp_path):
    (tmp_path / "damaged" / "1").mkdir(parents=True)
    (tmp_path / "damaged" / "1" / "saved_model.pb").write_bytes(b"damaged")
    assert_user_error(call_command(COMMAND, "--export_dir=", "--port=0"), "--export_dir")
    loading, error = call_command(COMMAND, "--export_dir=damaged", "--port=0").stderr.splitlines()
    assert loading.startswith("Loading damaged/1; ") and "error: damaged/1: cannot be loaded" in error


@pytest.mark.parametrize("package, module", [("waitress", "http_server"), ("prometheus_client", "server_metrics")])
def test_without_a_package(call_command, assert_user_error, exports, monkeypatch, package, module):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"t2t_lite.extras.serving.{module}", raising=False)
    assert_user_error(call_command(COMMAND, f"--export_dir={exports}", "--port=0"), "t2t_lite[web]")

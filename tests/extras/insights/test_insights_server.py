"""t2t-insights-server as installed. tests/visualization/insights checks its answers."""

import json
import shutil
import socket

import pytest

from tests.decoding.runs import make_run
from tests.extras.serving.running_server import RunningServer

COMMAND = "t2t-insights-server"
REQUEST = b'{"text": "the red house.", "beam_size": 2}'
BAD = {  # body: what the answer says
    b'{"text": "%s"}' % (100_000 * b"a"): "text: 100,000 characters. Expected at most 10,000: split the text.",
    b'{"text": "\xff"}': "The request is not JSON: 'utf-8' codec can't decode byte 0xff",
    b"no JSON": "The request is not JSON: Expecting value",
    b"[]": "request: expected an object, found []",
    b'{"text": "%s"}' % (2**19 * b"a"): "exceeds the capacity limit",
}


@pytest.mark.long
def test_it_stays_up_whatever_comes_and_stops(tmp_path):
    run = make_run(tmp_path, steps=(100, 200))
    with RunningServer(tmp_path, COMMAND, f"--output_dir={run},{run}/model.ckpt-100") as server:
        status, answer = server.get("/api/translate", REQUEST)
        assert status == 200 and (translation := json.loads(answer)["translation"])
        assert [model["step"] for model in json.loads(server.get("/api/models")[1])] == [200, 100]
        for body, words in BAD.items():
            status, answer = server.get("/api/translate", body)
            assert status in (400, 413) and words in json.loads(answer)["error"]
        with socket.create_connection(server.address.split(":"), 20) as line:
            line.sendall(b"\xff\x00 no HTTP\r\n\r\n")
            assert line.recv(100).startswith(b"HTTP/1.0 400 ")
        shutil.rmtree(run)
        status, answer = server.get("/api/translate", REQUEST)
        assert status == 200 and json.loads(answer)["translation"] == translation
        assert all("no such folder" in model["notice"] for model in json.loads(server.get("/api/models")[1]))
        before = server.process.poll()
        assert server.stop() == 0 and before is None and "Traceback" not in server.log


def test_mistakes(call_command, assert_user_error, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_user_error(call_command(COMMAND, "--output_dir=.", f"--port={port}"), f"--port={port}", "in use")
    assert_user_error(call_command(COMMAND, "--port=0"), "--output_dir")
    empty = call_command(COMMAND, "--port=0", f"--output_dir={tmp_path}")
    assert_user_error(empty, f"{tmp_path}: holds no checkpoint (model.ckpt-N). Train there first")

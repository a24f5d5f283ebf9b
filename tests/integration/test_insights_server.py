"""t2t-insights-server as installed. tests/visualization/insights checks its answers."""

import json
import socket

from t2t_lite.decoding.translator import Translator
from tests.decoding.runs import make_run
from tests.serving.running_server import RunningServer

COMMAND = "t2t-insights-server"


def test_it_translates_and_stops(tmp_path):
    run = make_run(tmp_path, steps=(100, 200))
    expected = Translator.load(str(run)).translate(["the red house."], beam_size=2)[0]
    with RunningServer(tmp_path, COMMAND, f"--output_dir={run},{run}/model.ckpt-100") as server:
        status, answer = server.get("/api/translate", b'{"text": "the red house.", "beam_size": 2}')
        assert status == 200 and json.loads(answer)["translation"] == expected.text
        assert [model["step"] for model in json.loads(server.get("/api/models")[1])] == [200, 100]
        before = server.process.poll()
        assert server.stop() == 0 and before is None and "Traceback" not in server.log


def test_mistakes(call_command, assert_user_error, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_user_error(call_command(COMMAND, "--output_dir=.", f"--port={port}"), f"--port={port}", "in use")
    assert_user_error(call_command(COMMAND, "--port=0"), "--output_dir")
    assert_user_error(call_command(COMMAND, "--port=0", f"--output_dir={tmp_path}"), str(tmp_path))

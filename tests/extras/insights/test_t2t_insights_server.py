"""t2t-insights-server: what it hands on, and as installed."""

import contextlib
import json
import shutil
import socket
import types

import pytest

from t2t_lite.extras.insights import app, t2t_insights_server
from t2t_lite.extras.insights.models import Models
from t2t_lite.extras.serving import http_server
from tests.decoding.runs import make_run
from tests.extras.serving.running_server import RunningServer

COMMAND = "t2t-insights-server"
REQUEST = b'{"text": "the red house.", "beam_size": 2}'


@pytest.mark.long
def test_it_stays_up_whatever_comes_and_stops(tmp_path):
    run = make_run(tmp_path, steps=(100, 200))
    with RunningServer(tmp_path, COMMAND, f"--output_dir={run},{run}/model.ckpt-100") as server:
        status, answer = server.get("/api/translate", REQUEST)
        assert status == 200 and (translation := json.loads(answer)["translation"])
        assert [model["step"] for model in json.loads(server.get("/api/models")[1])] == [200, 100]
        status, answer = server.get("/api/translate", b'{"text": "%s"}' % (2**19 * b"a"))
        assert status == 413 and "exceeds the capacity limit" in json.loads(answer)["error"]
        with socket.create_connection(server.address.split(":"), 20) as line:
            line.sendall(b"\xff\x00 no HTTP\r\n\r\n")
            assert line.recv(100).startswith(b"HTTP/1.0 400 ")
        shutil.rmtree(run)
        status, answer = server.get("/api/translate", REQUEST)
        assert status == 200 and json.loads(answer)["translation"] == translation
        assert all("no such folder" in model["notice"] for model in json.loads(server.get("/api/models")[1]))
        before = server.process.poll()
        assert server.stop() == 0 and before is None and "Traceback" not in server.log


@pytest.mark.parametrize(
    ("flags", "where", "paths", "data_dir"),
    [
        (["--host=::1", "--port=77", "--checkpoint_path=a,b", "--data_dir=c"], ("::1", 77), ["a", "b"], "c"),
        (["--output_dir=a"], ("127.0.0.1", 8010), ["a"], None),
    ],
)
def test_each_flag_reaches_its_part(monkeypatch, capsys, flags, where, paths, data_dir):
    handed, about = {}, {"name": "a", "model": "m", "problem": "p", "step": 300}
    models = types.SimpleNamespace(list=lambda: [about])
    listener = types.SimpleNamespace(getsockname=lambda: where)

    def listen(*arguments):
        handed["listen"] = arguments
        return contextlib.nullcontext(listener)

    monkeypatch.setattr(http_server, "open_listener", listen)
    monkeypatch.setattr(http_server, "serve", lambda *arguments: handed.update(serve=arguments))
    monkeypatch.setattr(t2t_insights_server._trained, "find", lambda flags: handed.update(found=flags.checkpoint_path))
    monkeypatch.setattr(app, "create_app", lambda models: [models])
    monkeypatch.setattr(Models, "load", lambda *arguments: handed.update(load=arguments) or models)
    assert t2t_insights_server.main(flags) == 0
    assert handed["listen"] == where and handed["load"] == (paths, data_dir)
    assert handed["serve"] == ([models], listener, 2**18) and "found" in handed
    host = f"[{where[0]}]" if ":" in where[0] else where[0]
    told = f"Loaded a: m of p, step 300\nServing at http://{host}:{where[1]}/\n"
    assert capsys.readouterr().err == f"Loading {', '.join(paths)}; this may take half a minute.\n{told}"

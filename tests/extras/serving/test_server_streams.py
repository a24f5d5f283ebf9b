"""t2t-server as installed, with a language model: several streams at once, and some whose clients go."""

import contextlib
import http.client
import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

import t2t_lite
from t2t_lite.corpora.plain_text import as_field
from t2t_lite.export import export_saved_model
from tests.decoding.runs import SENTENCES, make_language_model_run
from tests.extras.serving.doubles import events_of
from tests.extras.serving.running_server import RunningServer
from tests.processes import wait_for

pytestmark = pytest.mark.long

PATH = "/v1/completions"
LONGEST = 400


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    run = make_language_model_run(folder, pos="timing", initializer_gain=3.0)
    export_saved_model(t2t_lite.load(str(run)), str(folder / "export"), beam_size=1, extra_length=LONGEST)
    flags = [f"--export_dir={folder / 'export'}", "--servable_name=translate", "--max_streams=3"]
    with RunningServer(folder, "t2t-server", *flags) as server:
        yield server


def opened(server, **request):
    """Returns the answer to a request, a file of events."""
    connection = http.client.HTTPConnection(server.address, timeout=200)
    connection.request("POST", PATH, json.dumps({"stream": True, **request}))
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    return answer


def streamed(server, **request):
    """Returns the text of the parts, after checking the last event."""
    with contextlib.closing(opened(server, **request)) as answer:
        found = events_of(answer.read())
    text = "".join(event["choices"][0]["text"] for event in found)
    assert text == found[-1]["generated_text"] and len(found) > 2
    return text


def num_cancelled(server):
    _, page = server.get("/monitoring/prometheus/metrics")
    count = re.search(r'request_count{model_name="translate",status="CANCELLED"} (\d+)', page)
    return int(count[1]) if count else 0


def test_clients_at_once_get_their_own_answers_and_one_that_goes_frees_its_place(server):
    prompts = SENTENCES[:6]
    expected = server.predict(prompts)["outputs"]
    with ThreadPoolExecutor(3) as pool:
        assert [*pool.map(lambda prompt: streamed(server, prompt=prompt), prompts)] == expected
    held = [opened(server, prompt="the red house") for _ in range(3)]
    for answer in held:
        assert answer.readline().startswith(b"data: {")
        answer.close()  # the connection with it
    wait_for(lambda: num_cancelled(server) == 3, 60)
    with ThreadPoolExecutor(3) as pool:
        assert [*pool.map(lambda prompt: streamed(server, prompt=prompt), prompts[:3])] == expected[:3]
    before = server.resident_bytes()
    for _ in range(30):
        with contextlib.closing(opened(server, prompt="the red house")) as answer:
            answer.readline()
    wait_for(lambda: num_cancelled(server) == 33, 60)
    assert server.resident_bytes() < 1.05 * before


def test_the_command_prints_a_stream(server, call_command, standard_input):
    flags = [f"--server=http://{server.address}", "--servable_name=translate", "--stream"]
    expected = server.predict(["the red"])["outputs"][0]
    assert call_command("t2t-query-server", *flags, "--inputs_once=the red").stdout == f"{expected}\n"
    standard_input(b"the red\n\n")
    lines = call_command("t2t-query-server", *flags, "--decode_hparams=extra_length=6").stdout.split("\n")
    assert len(lines) == 3 and lines[0] != "" and as_field(expected).startswith(lines[0].rstrip("\ufffd"))

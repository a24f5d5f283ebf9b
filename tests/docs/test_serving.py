"""The page's commands and programs, against a stand-in for the server."""

import importlib
import json
import pathlib
import re
import urllib.request

import numpy as np
import pytest

from tests.export.serving_double import ServingDouble

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "serving.md"


def shout(signature, inputs):
    texts = [text if isinstance(text, str) else text.decode() for text in np.array(inputs["inputs"], object).tolist()]
    if signature == "with_options":
        assert np.shape(inputs["alpha"]) == np.shape(inputs["extra_length"]) == (len(texts),)
    answers = np.array([text.upper().encode() for text in texts], object)
    return {
        "outputs": answers,
        "scores": np.full(len(texts), -0.5, np.float32),
        "truncated": np.zeros(len(texts), bool),
    }


@pytest.fixture(scope="module")
def double():
    with ServingDouble({"translate": {1: shout}}, {"translate": {"stable": 1, "canary": 1}}) as double:
        yield double


def blocks(language, word):
    """The code blocks of the page in a language that have a word."""
    found = [block for block in re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL) if word in block]
    assert found
    return found


def test_the_programs(double, capsys):
    (client,) = blocks("python", "open_client")
    names = {}
    exec(client.replace("localhost:8500", double.grpc), names)
    assert names["answer"].text == "" and names["answer"].score == -0.5
    (program,) = blocks("python", "PredictionServiceStub")
    exec(program.replace("localhost:8500", double.grpc), {})
    assert capsys.readouterr().out == "THE RED HOUSE. -0.5\n"


def test_the_addresses(double):
    (block,) = blocks("bash", "curl")
    calls = re.findall(r"curl -d '(.*?)'[\s\\]+http://localhost:8501(\S+)", block)
    assert len(calls) == 2
    for body, path in calls:
        with urllib.request.urlopen(f"http://{double.rest}{path}", body.encode()) as answer:
            found = json.load(answer)["outputs"]
        assert found == {"outputs": ["THE RED HOUSE."], "scores": [-0.5], "truncated": [False]}


@pytest.mark.parametrize(
    ("command", "first", "others"), [("t2t_query_server", "server", {"protocol"}), ("t2t_server", "export_dir", set())]
)
def test_the_commands_flags(command, first, others):
    """Every flag of the command's table is one of its own, and none is left out; `others` stand in the text."""
    from t2t_lite.bin import _app

    flags = _app.Flags()
    importlib.import_module(f"t2t_lite.bin.{command}").define_flags(flags)
    page = PAGE.read_text()
    start = [found.start() for found in re.finditer(rf"\| `--{first}` \|", page)][-1 if command == "t2t_server" else 0]
    table = page[start : page.index("\n\n", start)]
    named = [name for line in table.splitlines() for name in re.findall(r"`--(\w+)`", line.split("|")[1])]
    assert sorted(named) == sorted({flag.name for flag in flags.shown()} - others)
    assert all(f"--{name}=" in page for name in others)

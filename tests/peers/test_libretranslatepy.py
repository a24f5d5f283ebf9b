"""libretranslatepy, a client of LibreTranslate, asks t2t-server: its translations are those of Translator."""

import json
import urllib.error
import urllib.request

import pytest

import t2t_lite
from t2t_lite import registry
from t2t_lite.export import export_saved_model
from tests.decoding.runs import SENTENCES, make_problem_run
from tests.extras.serving.running_server import RunningServer

libretranslatepy = pytest.importorskip("libretranslatepy")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A model with protected tags and random weights."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "data").mkdir()
    paths = [folder / "a.en", folder / "a.de"]
    for path in paths:
        path.write_text("".join(f"{sentence} <b>x</b>\n" for sentence in SENTENCES), encoding="utf-8")
    problem, files = registry.problem("translate_own"), [str(path) for path in paths]
    problem.configure(train_files=files, dev_files=files, vocab_size=350, protect=["tags"])
    return make_problem_run(problem, "transformer", folder, initializer_gain=2.0)


@pytest.fixture(scope="module")
def server(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    export_saved_model(t2t_lite.load(str(run)), str(folder / "export"), beam_size=2)
    with RunningServer(folder, "t2t-server", f"--export_dir={folder / 'export'}", "--libretranslate=en,de") as server:
        yield server


def test_translations_are_those_of_translator(run, server):
    client = libretranslatepy.LibreTranslateAPI(f"http://{server.address}/", api_key="anything")
    assert client.languages()[0] == {"code": "en", "name": "English", "targets": ["de"]}
    texts = ["the red house is old", "a green tree & \u20ac", "der <b>rote</b> Haus", "x" * 60]
    for text, expected in zip(texts, t2t_lite.load(str(run)).translate(texts, beam_size=2), strict=True):
        assert client.translate(text, "en", "de") == expected.text
    for call in (lambda: client.detect("a"), lambda: client.translate("a", "en", "fr")):
        with pytest.raises(urllib.error.HTTPError) as raised:
            call()
        assert raised.value.code in (400, 501) and list(json.loads(raised.value.read())) == ["error"]


def test_html_comes_through(run, server):
    page = "<p>the <b>red</b> house is <i>old</i><br>and a green tree</p>"
    body = {"q": page, "source": "en", "target": "de", "format": "html"}
    status, answer = server.get("/translate", json.dumps(body).encode())
    found = json.loads(answer)["translatedText"]
    assert status == 200 and found.startswith("<p>") and found.endswith("</p>")
    tags = [found.count(tag) for tag in ("<b>", "</b>", "<i>", "</i>", "<br>")]
    assert tags == [1] * 5
    (expected,) = t2t_lite.load(str(run)).translate(["and a green tree"], beam_size=2)
    assert found.partition("<br>")[2] == f"{expected.text}</p>".replace("&", "&amp;").replace("<", "&lt;").replace(
        "&lt;/p>", "</p>"
    )

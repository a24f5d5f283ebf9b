"""What GET / answers: JSON to clients, and in a browser a page by which a model is tried."""

import contextlib
import json
import subprocess

import numpy as np
import pytest
import tensorflow as tf
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.browser import accessibility, served, set_window
from tests.extras.serving.doubles import Versions, asker, rest_server

HOSTILE = "a'b \"c\" <img src=x onerror='document.title=1'> $(touch x) \\ \u00fc"
SIGNATURES = {  # inputs, outputs of serving_default, and the names of other signatures
    "Translate": (["inputs"], {"outputs": str, "scores": float}, ["score"]),
    "Continue": (["inputs"], {"outputs": str, "scores": float}, ["generate"]),
    "Classify": (["second", "first"], {"labels": str, "probabilities": list}, ["predict"]),
    "Answer": (["context", "question"], {"answers": str}, []),
    "Ask": (["inputs"], {"other": str}, []),
}


class Joined:
    """A signature that joins its inputs by +."""

    rows_are_independent = True

    def __init__(self, inputs, outputs):
        self.inputs = {name: tf.TensorSpec([None], tf.string) for name in inputs}
        self._outputs = outputs

    def __call__(self, inputs):
        if b"wrong" in next(iter(inputs.values())):
            raise tf.errors.InvalidArgumentError(None, None, "<b>wrong</b>")
        text = np.array([b"+".join(row) for row in zip(*map(inputs.get, sorted(inputs)), strict=True)], object)
        values = {str: text, float: np.full(len(text), 0.5, np.float32), list: np.full([len(text), 2], 0.25)}
        return {name: values[kind] for name, kind in self._outputs.items()}


class Hostile(Versions):
    """Version 7 of a model whose name is hostile, too."""

    name, created = "<b>m</b> '", 1_700_000_000

    def __init__(self, inputs, outputs, others, dtype="DT_STRING"):
        default = {"inputs": {name: {"dtype": dtype} for name in inputs}, "outputs": dict.fromkeys(outputs)}
        self.signature_def = {"serving_default": default, **{key: {} for key in others}}
        self.signatures = {"serving_default": Joined(inputs, outputs)}

    def find(self, version=None):
        return 7, self

    def states(self, version=None):
        return [(7, "AVAILABLE", "OK", ""), (6, "END", "OK", "")]


def server_of(*arguments, **options):
    return rest_server(versions=Hostile(*arguments), **{"most_streams": 0, **options})


@pytest.fixture
def ask():
    return asker(server_of(*SIGNATURES["Translate"]))


def test_clients_get_the_paths_and_each_of_them_is_there(ask):
    for accept in ({}, {"HTTP_ACCEPT": "*/*"}, {"HTTP_ACCEPT": "application/json"}):
        status, answer = ask("GET", "/", **accept)
        assert status == "200 OK" and ask.headers["Vary"] == "Accept"
    found = json.loads(answer)
    assert found["models"] == [Hostile.name] and len(found["paths"]) == 7
    for line in found["paths"]:
        method, path = line.split(" ")
        assert ask(method, path, b'{"inputs": ["a"]}' * (method == "POST"))[0] == "200 OK"
        assert ask("OPTIONS", path)[0] == "204 No Content"
    streaming = asker(server_of(*SIGNATURES["Continue"], most_streams=1))
    assert "POST /v1/completions" in json.loads(streaming("GET", "http://host:8501")[1])["paths"]


@pytest.mark.parametrize("path", ["/index.html", "/v1", "/v1/models/x", "/v1/models/x/metadata", "/v1/completions"])
def test_what_is_not_found_names_the_paths_that_are(ask, path):
    status, answer = ask("POST" if "completions" in path else "GET", path, b"{}")
    assert status == "404 Not Found"
    assert "POST /v1/models/%3Cb%3Em%3C%2Fb%3E%20%27:predict, GET /, GET /v1/models/%3Cb%3E" in answer
    assert "Paths of this server: POST /v1/models/%3C" in ask("GET", "/v1/nothing")[1]


def test_browsers_get_a_page_that_loads_nothing_from_elsewhere():
    heads = []
    server = server_of(*SIGNATURES["Translate"])
    environ = {"REQUEST_METHOD": "GET", "REQUEST_URI": "/", "HTTP_ACCEPT": "text/html,application/xhtml+xml,*/*;q=0.8"}
    page = b"".join(server(environ, lambda *head: heads.append(head))).decode()
    headers = dict(heads[0][1])
    assert heads[0][0] == "200 OK" and headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'; ")
    expected = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
    assert (expected | {"Vary": "Accept"}).items() <= headers.items()
    assert '<html lang="en">' in page and "://" not in page


class Page:
    """The page at an address."""

    def __init__(self, chromium, address):
        self.chromium = chromium
        chromium.get_log("browser")
        chromium.get(address)
        self.wait()

    def one(self, name):
        return self.chromium.find_element("id", name)

    def text(self, name):
        return self.chromium.execute_script("return arguments[0].textContent", self.one(name))

    def wait(self):
        WebDriverWait(self.chromium, 20, 0.02).until(lambda _: not self.text("status"))

    def ask(self, *texts):
        fields = self.chromium.find_elements("css selector", "label textarea")
        for field, text in zip(fields, texts, strict=True):
            field.send_keys(Keys.CONTROL, "a")
            field.send_keys(Keys.DELETE, text)
        fields[-1].send_keys(Keys.CONTROL, Keys.ENTER)
        self.wait()


@pytest.fixture
def open_page(chromium):
    """Returns a function of the arguments of `Hostile` that serves a model and opens the page."""
    with contextlib.ExitStack() as servers:
        yield lambda *arguments: Page(chromium, servers.enter_context(served(server_of(*arguments))))


@pytest.mark.slow
@pytest.mark.parametrize("verb", SIGNATURES)
def test_a_model_is_asked_as_its_task_is(open_page, verb):
    inputs, outputs, _ = SIGNATURES[verb]
    page = open_page(*SIGNATURES[verb])
    labels = [label.text for label in page.chromium.find_elements("css selector", "label")]
    assert labels == {"Classify": ["First", "Second"], "Answer": ["Question", "Context"]}.get(verb, ["Text"])
    assert page.text("submit") == verb and page.text("versions") == f"{Hostile.name}7AVAILABLE{Hostile.name}6END"
    texts = [HOSTILE, "x"][: len(inputs)]
    page.ask(*texts)
    expected = "+".join(sorted(texts) if verb != "Answer" else texts[::-1])
    others = {float: "0.5", list: "[0.25,0.25]"}
    rest = "".join(f"{name}{others[kind]}" for name, kind in outputs.items() if kind is not str)
    assert [page.text("main-output"), page.text("outputs")] == (
        [expected, rest] if verb != "Ask" else ["", f"output{expected}"]
    )
    found = subprocess.run(["bash", "-c", page.text("curl")], capture_output=True, timeout=20, check=True).stdout
    assert json.dumps(expected, ensure_ascii=False) in found.decode() and page.chromium.title == "t2t-server"
    assert not page.chromium.find_elements("css selector", "img, b") and not page.chromium.get_log("browser")


@pytest.mark.slow
def test_errors_are_shown_as_text(open_page):
    page = open_page(*SIGNATURES["Translate"])
    page.ask("wrong")
    assert page.text("error") == "<b>wrong</b>" and not page.one("answer").is_displayed()
    page.ask("right")
    assert not page.one("error").is_displayed() and page.text("main-output") == "right"
    page = open_page(["inputs"], {"outputs": str}, [], "DT_FLOAT")
    assert "Not all inputs of the model are texts" in page.text("error") and not page.one("form").is_displayed()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1000, "light"), (360, "dark")])
def test_the_page_is_accessible_and_fits_its_window(open_page, chromium, width, scheme):
    set_window(chromium, width, scheme)
    page = open_page(*SIGNATURES["Classify"])
    page.ask(HOSTILE, "x" * 300)
    accessibility(chromium, width)

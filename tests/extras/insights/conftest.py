"""A small model behind t2t-insights-server's application, and a browser for its page."""

import importlib

import pytest

from t2t_lite.decoding.predictor import Predictor
from t2t_lite.extras.insights.app import create_app
from t2t_lite.extras.insights.models import Models
from t2t_lite.process.lazy import extras
from t2t_lite.text.vocabulary import TextEncoder
from tests.browser import chromium, downloads, served
from tests.decoding.letter_generator import generator_of
from tests.decoding.parity import Labels
from tests.export.models import translator_of
from tests.extras.insights.doubles import Classes, Classifier, Letters, Shown, spans

__all__ = ("chromium", "downloads")


@pytest.fixture(scope="session")
def translator():
    return translator_of()


@pytest.fixture(scope="session")
def app(translator):
    generator = generator_of(norm="pre", position="learned", max_position=24)
    generator.problem = Letters()
    classifier = Predictor(Classifier(), {"inputs": TextEncoder(50), "targets": Labels()}, Classes())
    questions = Predictor(spans, {"inputs": TextEncoder(50), "targets": Labels()}, Shown("spans"))
    models = {"lm": generator, "classifier": classifier, "questions": questions}
    if {"images", "music"} <= {*extras()}:
        models["images"] = importlib.import_module("tests.extras.insights.media_models").image_generator()
    return create_app(Models({"small": translator, "other": translator_of(seed=5), **models}))


@pytest.fixture(scope="session")
def client(app):
    return app.test_client()


@pytest.fixture
def ask(client):
    """Returns a function of (call, request) -> (status, answer), of the application of a module's `client`."""

    def ask(call, **request):
        answer = client.post(f"/api/{call}", json=request)
        assert answer.mimetype == "application/json"
        return answer.status_code, answer.json

    return ask


@pytest.fixture(scope="session")
def address(app):
    """Where the application is served."""
    with served(app) as address:
        yield address

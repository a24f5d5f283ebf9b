"""LibreTranslate's paths, with functions in place of the model."""
# Nearest tests of: extras/libretranslate/in_t2t_server.py

import functools
import json
import pathlib
import re
import urllib.parse
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("t2t_lite.extras.serving")
from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.extras.libretranslate import in_t2t_server, libretranslate_api
from t2t_lite.extras.libretranslate.libretranslate_api import LibreTranslateApi, TextLines, problem_of
from tests.decoding.runs import SENTENCES, make_problem_run
from tests.extras.serving.doubles import Versions, asker, rest_server

FORM = "application/x-www-form-urlencoded"


class Capitals:
    """A signature: texts in capitals; those of more than 30 characters are truncated; "tags" loses its tags."""

    rows_are_independent = is_of_texts = True
    wants_sentences = False

    def __init__(self, asked):
        self._asked, self.inputs = asked, {"inputs": tf.TensorSpec([None], tf.string)}

    def __call__(self, inputs):
        texts = [text.decode() for text in inputs["inputs"]]
        self._asked += texts
        outputs = [text.upper().replace("<B>", "<b>").replace("</B>", "</b>") for text in texts]
        outputs = [text.replace("<b>", "") if "TAGS" in text else text for text in outputs]
        truncated = np.array([len(text) > 30 for text in texts])
        return {"outputs": np.array([text.encode() for text in outputs], object), "truncated": truncated}


def versions_of(**signatures):
    """Versions of exports, the newest of which has some signatures."""
    versions, export = Versions(), SimpleNamespace(signatures=signatures, path="exports/0002")
    versions.find = lambda version=None: (2, export)
    return versions


def api_of(versions, codes, batcher=None):
    return in_t2t_server.api(SimpleNamespace(libretranslate=codes, max_batch_size=4), versions, batcher)


@pytest.fixture
def asked():
    return []


@pytest.fixture
def ask(asked, monkeypatch):
    """Asks a server whose model protects tags."""
    monkeypatch.setattr(LibreTranslateApi, "_protects_tags", lambda self, version: True)
    versions = versions_of(serving_default=Capitals(asked))
    api = api_of(versions, ["en", "pt_BR"], rest_server().batcher)
    ask = asker(rest_server(versions=versions, apis=[api]))

    def answer(path, method="POST", form=False, **fields):
        body = urllib.parse.urlencode(fields, doseq=True).encode() if form else json.dumps(fields).encode()
        kind = FORM if form else "application/json; charset=utf-8"
        status, text = ask(method, path, body, CONTENT_TYPE=kind)
        return int(status.split()[0]), json.loads(text)

    return answer


@pytest.fixture
def translate(ask):
    return functools.partial(ask, "/translate", source="en", target="pt-BR")


@pytest.mark.parametrize("form", [True, False])
def test_a_text_and_several_texts(translate, form):
    assert translate(q="Grün & gut", form=form) == (200, {"translatedText": "GRÜN & GUT"})
    assert translate(q=["a", "b"], format="text", alternatives=0, form=form) == (200, {"translatedText": ["A", "B"]})
    assert translate(q="", api_key="x", form=form) == (200, {"translatedText": ""})
    assert translate(q="a", target="pt_br", form=form)[0] == 200
    assert translate(q=[])[1] == {"translatedText": []}


def test_lines_and_the_spaces_around_them_stay(translate, asked):
    text = "  one\r\n\r\n\ttwo \n three\n"
    assert translate(q=text)[1]["translatedText"] == text.upper() and asked == ["one", "two", "three"]
    assert TextLines(" \n").pieces == []


def test_html(translate, asked):
    pages = ["<p>the <b>red</b> house</p>", "<p>its <b>tags</b></p>a &lt; b"]
    expected = ["<p>THE <b>RED</b> HOUSE</p>", "<p>ITS <b>TAGS</b></p>A &lt; B"]
    assert translate(q=pages, format="html") == (200, {"translatedText": expected})
    assert asked[:2] == ["the <b>red</b> house", "its <b>tags</b>"] and asked[3:] == ["its", "tags", "a < b"]


def test_the_model_itself_says_whether_it_protects_tags(monkeypatch):
    """Its folder may be named 0002, as TensorFlow Serving allows."""
    problems = {"exports/0002": SimpleNamespace(languages=("en", "de"), substitution=SimpleNamespace(kinds=("tags",)))}
    monkeypatch.setattr(libretranslate_api, "problem_of", problems.get)
    asked, server = [], rest_server()
    api = api_of(versions_of(serving_default=Capitals(asked)), ["en", "de"], server.batcher)
    request = {"q": "<p>a <b>b</b></p>", "source": "en", "target": "de", "format": "html"}
    api.answer("/translate", request, lambda: False)
    assert asked == ["a <b>b</b>"]


def test_languages(ask):
    languages = [
        {"code": "en", "name": "English", "targets": ["pt-BR"]},
        {"code": "pt-BR", "name": "Portuguese (Brazil)", "targets": []},
    ]
    assert ask("/languages", "GET") == (200, languages)


REFUSED = {
    "no text": ({"q": None}, 400, "missing q parameter"), "no target": ({"target": None}, 400, "missing target"),
    "automatic": ({"source": "auto"}, 400, "auto: .* source en"), "another": ({"source": "fr"}, 400, "fr is not supp"),
    "backwards": ({"source": "pt-BR"}, 400, "pt-BR is not supported as source language. Expected en"),
    "another target": ({"target": "de"}, 400, "de is not supported as target language. Expected pt-BR"),
    "a number": ({"target": 3}, 400, "3 is not supported"), "a format": ({"format": "md"}, 400, "md format is not"),
    "alternatives": ({"alternatives": 3}, 400, "alternatives"), "a name": ({"quelle": "en"}, 400, "parameter quelle"),
    "a text that is none": ({"q": 3}, 400, "q parameter"), "one of several": ({"q": ["a", None]}, 400, "q parameter"),
    "a long text": ({"q": "a " * 20}, 400, "a a a .* is longer than the model can read"),
    "many lines": ({"q": "a\nb\nc\nd\ne"}, 400, "5 lines"), "no HTML": ({"q": "<b>a", "format": "html"}, 400, "<b>"),
}  # fmt: skip


@pytest.mark.parametrize(("fields", "status", "message"), REFUSED.values(), ids=REFUSED)
def test_errors_have_the_form_of_libretranslate(translate, fields, status, message):
    found, answer = translate(**({"q": "a"} | fields))
    assert found == status and list(answer) == ["error"]
    assert re.search(message, answer["error"])


def test_detection_is_refused_by_name_and_bad_forms_too(ask):
    status, answer = ask("/detect", q="a")
    assert status == 501 and answer["error"].startswith("/detect: not served") and "en" in answer["error"]
    status, answer = ask("/translate", form=True, q="a", source=["en", "de"], target="pt-BR")
    assert status == 400 and "several values of source" in answer["error"]
    for body in (b"q=%ff", b"q=\xff"):
        with pytest.raises(libretranslate_api.Refusal, match="UTF-8"):
            libretranslate_api._fields(SimpleNamespace(kind=FORM, data=body))
    body = SimpleNamespace(kind="multipart/form-data", data=b"--a")
    with pytest.raises(libretranslate_api.Refusal, match="multipart/form-data is not supported"):
        libretranslate_api._fields(body)


def test_other_models_are_refused(translate, monkeypatch):
    """At the start, and if a later version replaces the model that translated."""
    monkeypatch.setattr(Capitals, "is_of_texts", False)
    assert translate(q="a")[0] == 501
    codes, signature = ["en", "de"], Capitals([])
    with pytest.raises(UserError, match=r"^--libretranslate=en,de: exports/0002 does not translate texts\. Export a"):
        api_of(versions_of(serving_default=signature), codes)
    monkeypatch.setattr(Capitals, "is_of_texts", True)
    assert api_of(versions_of(serving_default=signature), codes)
    with pytest.raises(UserError, match="does not translate texts"):  # as exports of language models
        api_of(versions_of(serving_default=signature, generate=signature), codes)


@pytest.mark.slow  # generates a vocabulary and builds a model
def test_the_problem_of_an_export_has_its_settings(tmp_path):
    pytest.importorskip("t2t_lite.extras.protect")
    (tmp_path / "data").mkdir()
    files = [str(tmp_path / f"a.{language}") for language in ("en", "de")]
    for path in files:
        pathlib.Path(path).write_text("".join(f"{sentence} <b>x</b>\n" for sentence in SENTENCES))
    problem = registry.problem("translate_own")
    problem.configure(train_files=files, dev_files=files, vocab_size=350, protect=["tags"])
    found = problem_of(make_problem_run(problem, "transformer", tmp_path))
    assert found.languages == ("en", "de") and found.substitution.kinds == ("tags",)
    assert problem_of(str(tmp_path / "none")) is None


@pytest.mark.parametrize("languages", [("de-AT", "en"), ("de", "fr"), ("zh-Hant", "zh-Hans"), None])
def test_the_languages_in_the_wrong_order_are_refused(monkeypatch, languages):
    codes = ["zh-Hans", "zh-Hant"] if languages and "zh-Hans" in languages else ["en", "de"]
    versions = versions_of(serving_default=Capitals([]))
    problems = {"exports/0002": SimpleNamespace(languages=languages)}
    monkeypatch.setattr(libretranslate_api, "problem_of", problems.get)
    if languages == ("de-AT", "en"):
        with pytest.raises(
            UserError, match=r"exports/0002 translates from de-AT to en\. .*: --libretranslate=de-AT,en\."
        ):
            api_of(versions, codes)
    else:
        assert api_of(versions, codes)


@pytest.mark.parametrize(
    ("codes", "message"),
    [(["en"], "two languages"), (["en", "EN"], "two languages"), (["en", "de", "fr"], "two languages"),
     (["en", "xx"], "'xx' is not a language code"), (["en", "../de"], "'../de'")],
)  # fmt: skip
def test_codes_of_the_flag_are_checked(codes, message):
    in_t2t_server.check(SimpleNamespace(libretranslate=["en", "zh_Hant"]))
    with pytest.raises(UserError, match=message):
        in_t2t_server.check(SimpleNamespace(libretranslate=codes))


def test_without_the_flag_there_is_no_api():
    in_t2t_server.check(SimpleNamespace(libretranslate=[]))
    assert api_of(None, []) is None

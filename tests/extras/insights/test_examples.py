"""The text with which the page begins: of the run's own dev set, in the language of its inputs."""
# Nearest tests of: extras/insights/models.py

import json
import shutil

import pytest

import t2t_lite
from t2t_lite import registry
from t2t_lite.extras.insights import models
from t2t_lite.extras.insights.app import create_app
from t2t_lite.extras.insights.models import example_text
from tests.browser import served
from tests.decoding.runs import SENTENCES, make_encoder_run, make_language_model_run, make_problem_run, make_run
from tests.extras.insights.page import Page

DEV = {"dev.en": ["the tree", "the red house was new", "a tree"], "dev.de": ["rot", "das Haus war alt", "ein Baum"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of a run that translates dev.en to dev.de, and its data."""
    folder = tmp_path_factory.mktemp("translation")
    (folder / "data").mkdir()
    for name, lines in DEV.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
        (folder / name.replace("dev", "train")).write_text("".join(f"{line}\n" for line in SENTENCES + lines))
    files = {f"{split}_files": [str(folder / f"{split}.{side}") for side in ("en", "de")] for split in ("train", "dev")}
    problem = registry.problem("translate_own")
    problem.configure(**files, vocab_size=330)
    make_problem_run(problem, "transformer", folder)
    return folder


@pytest.mark.slow
def test_the_example_is_one_of_the_dev_set_in_the_language_of_the_inputs(folder, tmp_path):
    assert example_text(t2t_lite.load(str(folder / "run"))) in DEV["dev.en"]
    for place in ("run/reversed", "elsewhere"):
        shutil.copytree(folder / "run", folder / place)
        config = folder / place / "hparams.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | {"problem": "translate_own_rev"}))
        assert example_text(t2t_lite.load(str(folder / place))) in DEV["dev.de"]
    shutil.copytree(folder / "run", tmp_path / "run")
    moved = t2t_lite.load(str(tmp_path / "run"))
    assert (example_text(moved), example_text(moved, str(tmp_path))) == ("", "")
    assert example_text(moved, str(folder / "data")) in DEV["dev.en"]


@pytest.mark.slow
def test_data_that_are_damaged_or_of_another_vocabulary_give_none(folder, tmp_path):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    answerer = t2t_lite.load(str(tmp_path / "run"))
    other = make_run(tmp_path / "other", vocab_size=300).with_name("data")
    settings = dict(answerer.problem.config)
    assert example_text(answerer, str(other)) == ""
    assert answerer.problem.config == settings, "the model keeps its own settings"
    (record,) = (tmp_path / "data").glob("translate_own-dev-*")
    record.write_bytes(record.read_bytes()[:-5])
    for name in ("manifest.json", "dev-00000-of-00001"):
        assert example_text(answerer) in ("", *DEV["dev.en"])
        (tmp_path / "data" / f"translate_own-{name}").unlink()
    assert example_text(answerer) == ""


@pytest.mark.slow
def test_examples_of_other_tasks(tmp_path):
    """A prompt is some words in a row; a classifier's example is a text of the file."""
    language_model = example_text(t2t_lite.load(str(make_language_model_run(tmp_path / "lm"))))
    assert language_model in " ".join(SENTENCES) and 1 < len(language_model.split()) <= 5
    text = "".join(f"{label}\t{sentence}\n" for label, sentence in zip("ab" * 30, SENTENCES, strict=True))
    classifier = t2t_lite.load(str(make_encoder_run(tmp_path / "classes", "classify_own", text)))
    assert example_text(classifier) in SENTENCES


@pytest.mark.slow
def test_the_page_begins_with_it_and_a_blank_text_stays_blank(chromium, translator, monkeypatch):
    monkeypatch.setattr(models, "example_text", lambda answerer, data_dir: "the red house")
    app = create_app(models.Models({"small": translator}))
    assert app.test_client().get("/api/models").json[0]["example"] == "the red house"
    with served(app) as address:
        page = Page(chromium, address)
        page.wait_for_answer()
        expected = translator.translate(["the red house"])[0].text
        assert page.one("#text").get_attribute("value") == "the red house" and page.one(".translation").text == expected
        page = Page(chromium, address, text="a tree")
        assert page.one("#text").get_attribute("value") == "a tree"
        page.run("location.hash = 'text='")
        page.wait(lambda: not page.one("#text").get_attribute("value"))
        assert not page.all(".translation")

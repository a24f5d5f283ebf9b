"""The JSON API of t2t-insights-server, with a small model, against the Python that it stands for."""
# Nearest tests of: extras/insights/text_answers.py, extras/insights/answers.py

import json
import re
import types

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.data.problem import Text2TextProblem
from t2t_lite.decoding.hypothesis import Hypothesis, Translation
from t2t_lite.extras.insights.answers import shown_attention
from t2t_lite.extras.insights.app import create_app
from t2t_lite.extras.insights.models import Models
from t2t_lite.extras.insights.text_answers import Translations
from t2t_lite.text.vocabulary import EOS_ID
from t2t_lite.visualization.attention_pictures import attend
from t2t_lite.visualization.drawing import color
from tests.export.models import translator_of

TEXT = "a red house"
HOSTILE = "<script>alert(1)</script>\x00\u202e\ud800 {{7*7}}"


@pytest.mark.few("options1", instead="test_seconds_and_a_text_that_is_cut_off")
@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"beam_size": 2, "alpha": 1, "extra_length": 3}, {"beam_size": 1}])
def test_translate(ask, translator, options):
    status, found = ask("translate", text=TEXT, **options)
    n_best = options.get("beam_size", 4)
    (expected,) = translator.translate([TEXT], n_best=n_best, return_token_scores=True, **options)
    assert status == 200 and found["translation"] == expected.text and found["source_tokens"] == expected.source_tokens
    assert len(found["hypotheses"]) == n_best
    for one, hypothesis in zip(found["hypotheses"], expected.hypotheses, strict=True):
        assert (one["text"], one["ended"]) == (hypothesis.text, hypothesis.ended)
        assert one["score"] == pytest.approx(hypothesis.score, abs=1e-5)
        assert [token["log_prob"] for token in one["tokens"]] == pytest.approx(hypothesis.token_scores, abs=1e-5)
        assert [token["token"] for token in one["tokens"]] == [*hypothesis.tokens, *["<EOS>"] * hypothesis.ended]


@pytest.mark.slow
def test_a_prefix_is_forced(ask):
    hypotheses = ask("translate", text=TEXT, prefix="das ", beam_size=2)[1]["hypotheses"]
    assert all(one["text"].startswith("das ") for one in hypotheses)


@pytest.mark.slow
def test_an_output_can_be_given_back_by_its_ids(ask):
    """The way of the page: a step's alternative is forced, and the attention of a hypothesis is shown."""
    best = ask("translate", text=TEXT, beam_size=2)[1]["hypotheses"][0]["tokens"]
    ids = [token["id"] for token in best]
    steps = ask("steps", text=TEXT, target=ids)[1]["steps"]
    assert [step["token"] for step in steps] == [token["token"] for token in best]
    assert [step["log_prob"] for step in steps] == pytest.approx([token["log_prob"] for token in best], abs=1e-4)
    prefix = [*ids[:3], next(one["id"] for one in steps[3]["alternatives"] if one["id"] not in (0, 1, ids[3]))]
    forced = ask("translate", text=TEXT, prefix=prefix, beam_size=2)[1]["hypotheses"]
    assert all([token["id"] for token in one["tokens"]][:4] == prefix for one in forced)
    queries = ask("attention", text=TEXT, target=ids)[1]["memory"]["queries"]
    assert queries == [token["token"] for token in best]


@pytest.mark.few("options2")
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{}, {"beam_size": 1}, {"beam_size": 2, "alpha": 2, "extra_length": 3, "prefix": "das "}, {"prefix": [70, 71]}],
)
def test_the_beam_s_tree_ends_in_the_translations(ask, options):
    status, found = ask("beam", text=TEXT, **options)
    nodes, expected = found["nodes"], ask("translate", text=TEXT, **options)[1]["hypotheses"]
    assert status == 200 and [node["id"] for node in nodes] == list(range(len(nodes)))
    assert nodes[0] | {"parent": None, "step": 0, "token": "<begin>", "kept": True} == nodes[0]
    for at, hypothesis in zip(found["hypotheses"], expected, strict=True):
        assert nodes[at]["kept"] and nodes[at]["finished"] == hypothesis["ended"]
        assert nodes[at]["score"] == pytest.approx(hypothesis["score"], abs=1e-5)
        path = []
        while nodes[at]["parent"] is not None:
            assert nodes[at]["parent"] < at and nodes[at]["step"] == nodes[nodes[at]["parent"]]["step"] + 1
            path, at = [nodes[at], *path], nodes[at]["parent"]
        tokens = hypothesis["tokens"]
        assert [(one["token"], one["token_id"]) for one in path] == [(one["token"], one["id"]) for one in tokens]
        log_probs = [token["log_prob"] for token in tokens]
        assert [node["log_prob"] for node in path] == pytest.approx(log_probs, abs=1e-4)
    assert any(not node["kept"] for node in nodes)


@pytest.mark.slow
def test_steps_are_the_model_s_probabilities(ask, translator):
    target = "ein Haus"
    status, found = ask("steps", text=TEXT, target=target, top=3)
    ids = {
        name: [*translator.encoders[name].encode(text), EOS_ID]
        for name, text in zip(("inputs", "targets"), (TEXT, target), strict=True)
    }
    logits = translator.model({name: np.array([row], "int32") for name, row in ids.items()}, training=False)
    expected = tf.nn.log_softmax(logits)[0].numpy()
    assert status == 200 and [step["log_prob"] for step in found["steps"]] == pytest.approx(
        [row[i] for row, i in zip(expected, ids["targets"], strict=True)], abs=1e-4
    )
    assert found["log_prob"] == pytest.approx(translator.score([TEXT], [target])[0].log_prob, abs=1e-3)
    assert found["steps"][-1]["token"] == "<EOS>"
    for step, row in zip(found["steps"], expected, strict=True):
        best = [one["log_prob"] for one in step["alternatives"]]
        assert best == pytest.approx(np.sort(row)[::-1][:3], abs=1e-4)


def test_seconds_and_a_text_that_is_cut_off(translator, monkeypatch, clock):
    answers, translate = Translations(translator), translator.translate

    def slow(*arguments, **options):
        clock.advance(1.23456)
        return translate(*arguments, **options)

    monkeypatch.setattr(translator, "translate", slow)
    whole = answers.translate({"text": TEXT, "beam_size": 1, "extra_length": 2})
    assert (whole["seconds"], whole["truncated"]) == (1.2346, False)
    monkeypatch.setattr(translator, "max_input_length", 5)
    cut = answers.translate({"text": TEXT, "beam_size": 1, "extra_length": 2})
    assert cut["truncated"] and cut["source_tokens"] == whole["source_tokens"][:4]
    assert answers.searched({"text": TEXT}) == [*translator.encoders["inputs"].encode(TEXT)[:4], EOS_ID]
    asked, nothing = [], Translation((Hypothesis(token_scores=[]),))
    monkeypatch.setattr(translator, "translate", lambda texts, **options: asked.append(options) or [nothing])
    answers.translate({"text": TEXT})
    assert (asked[0]["beam_size"], asked[0]["n_best"], asked[0]["compile"]) == (4, 4, False)


def test_a_text_of_several_sentences_is_one_search(translator):
    """As the tree and the steps show it."""
    text = "Ab cd. Ef gh."
    (expected,) = translator.translate([text], split_sentences="never", beam_size=1, extra_length=3)
    found = Translations(translator).translate({"text": text, "beam_size": 1, "extra_length": 3})
    assert found["translation"] == expected.text and found["source_tokens"] == expected.source_tokens
    assert Translations(translator).searched({"text": text}) == [*translator.encoders["inputs"].encode(text), EOS_ID]


@pytest.mark.slow
def test_a_problem_that_samples_by_default():
    """The page sends a seed to models that sample."""
    problem, translator = Text2TextProblem(), translator_of()
    problem.decode_defaults = {"sampling": True, "extra_length": 3}
    translator.problem = problem
    models = Models({"translator": translator})
    assert models.list()[0]["samples"]
    first, again, other = (
        models.answer("translate", {"text": TEXT, "beam_size": 2, "seed": seed}) for seed in (1, 1, 2)
    )
    assert first["hypotheses"] == again["hypotheses"] != other["hypotheses"]


def test_weights_have_the_digits_that_a_picture_shows():
    weights = [np.float32([[[0.123456789, 1 / 3]]]), np.float32([[[2e-6, 1 - 2e-6]]])]
    attention = types.SimpleNamespace(queries=["a"], keys=["b", "c"], weights=weights)
    found = shown_attention({"memory": attention})["memory"]
    assert found == {"queries": ["a"], "keys": ["b", "c"], "weights": [[[[0.12346, 0.33333]]], [[[0.0, 1.0]]]]}


STEPS = {
    "no alternative": ({"target": "b", "top": 0}, "top=0: expected a whole number from 1 to 100"),
    "many": ({"target": "b", "top": 101}, "top=101: "),
    "an empty target": ({"target": []}, "target is empty"),
    "201 ids": ({"target": [5] * 201}, "target: 201 ids. Expected at most 200"),
    "EOS inside": ({"target": [5, 1, 5]}, "target: id 1 is EOS"),
    "no ids": ({"target": [True]}, "target: "),
    "no id at the end": ({"target": [5, 1.0]}, "target: "),
    "no target": ({}, "'target' is missing"),
    "a number": ({"target": 3}, "target"),
}


@pytest.mark.parametrize(("request_", "message"), STEPS.values(), ids=STEPS)
def test_wrong_targets(ask, request_, message):
    status, answer = ask("steps", text="a", **request_)
    assert status == 400 and message in answer["error"]


def test_alternatives(ask):
    for options, count in (({}, 5), ({"top": 100}, 100)):
        steps = ask("steps", text="a", target="b", **options)[1]["steps"]
        assert {len(step["alternatives"]) for step in steps} == {count}


def test_the_longest_text(ask):
    assert ask("translate", text=" " * 10_000)[0] == 200
    status, answer = ask("translate", text=" " * 10_001)
    assert status == 400 and answer["error"].startswith("text: 10,001 characters. Expected at most 10,000")


def test_constants_that_the_page_shares(client):
    answer = client.get("/static/facts.js")
    lines = [re.fullmatch(r"export const (\w+) = (.*);", line) for line in answer.text.splitlines()]
    facts = {line[1]: json.loads(line[2]) for line in lines}
    assert answer.mimetype == "text/javascript" and facts["LONGEST_FILE"] == 150_000
    assert (facts["SMALLEST"], facts["MOST_TOKENS"], len(facts["COLORS"])) == (0.01, 200, 100)
    assert facts["COLORS"][7] == color(7) and {*facts["TITLES"]} == {*facts["SIDES"]} == {*facts["AXES"]}
    for kind, (query, key) in facts["SIDES"].items():
        assert facts["AXES"][kind].index(query) < facts["AXES"][kind].rindex(key)


def test_a_target_may_be_ids_and_its_end(ask, translator):
    ids = [*translator.encoders["targets"].encode("ein Haus"), EOS_ID]
    assert ask("steps", text=TEXT, target=ids) == ask("steps", text=TEXT, target="ein Haus")


@pytest.mark.slow
@pytest.mark.parametrize("target", [None, "ein Haus"])
def test_attention_is_the_model_s(ask, translator, target):
    status, found = ask("attention", text=TEXT, **({"target": target} if target else {}))
    expected = attend(translator, TEXT, target)
    assert status == 200 and found.keys() == expected.keys() == {"encoder", "decoder", "memory"}
    for kind, one in expected.items():
        assert (found[kind]["queries"], found[kind]["keys"]) == (one.queries, one.keys)
        np.testing.assert_allclose(found[kind]["weights"], np.stack(one.weights), atol=1e-5)


@pytest.mark.slow
def test_hostile_text_is_text(ask, client):
    status, found = ask("translate", text=HOSTILE, beam_size=2)
    assert status == 200 and isinstance(found["translation"], str)
    assert ask("translate", text="")[1]["translation"] == ""
    for call in ("beam", "steps", "attention"):
        assert ask(call, text=HOSTILE, **({"beam_size": 2} if call == "beam" else {"target": HOSTILE}))[0] == 200


WRONG = {
    "no text": ({}, "'text' is missing"),
    "a number": ({"text": 3}, "expected a text"),
    "a list": ({"text": ["a"]}, "expected a text"),
    "an unknown name": ({"text": "a", "beam": 4}, "'beam': unknown field. Nearest: beam_size"),
    "a large beam": ({"text": "a", "beam_size": 1000}, "beam_size=1000: expected a whole number from 1 to 32"),
    "a negative alpha": ({"text": "a", "alpha": -1}, "alpha=-1: expected a number from 0 to 5"),
    "a long text": ({"text": "a" * 100_000}, "text: 100,000 characters. Expected at most 10,000"),
    "a long prefix": ({"text": "a", "prefix": "b" * 500}, "prefix has 500 ids"),
    "a long prefix of ids": ({"text": "a", "prefix": [5] * 150}, "prefix has 150 ids"),
    "an id outside the vocabulary": ({"text": "a", "prefix": [5, 10**6]}, "prefix: id 1000000 is outside"),
    "a prefix with EOS": ({"text": "a", "prefix": [5, 1]}, "prefix: id 1 is EOS"),
    "a prefix of texts": ({"text": "a", "prefix": ["b"]}, "prefix: ['b']: expected a text or a list of ids"),
}  # fmt: skip


@pytest.mark.parametrize("call", ["translate", "beam"])
@pytest.mark.parametrize(("request_", "message"), WRONG.values(), ids=WRONG)
def test_wrong_requests(ask, request_, message, call):
    status, answer = ask(call, **request_)
    assert status == 400 and message in answer["error"] and "\n" not in answer["error"]


@pytest.mark.parametrize(("call", "target"), [("beam", {}), ("steps", {"target": "b"}), ("attention", {"target": "b"})])
def test_blank_texts_are_refused_in_the_same_words_everywhere(ask, call, target):
    for text in (" ", ""):
        assert ask(call, text=text, **target) == (400, {"error": "text is blank. Expected a sentence."})


@pytest.mark.parametrize("call", ["steps", "attention"])
def test_texts_that_cannot_be_shown(ask, call):
    status, answer = ask(call, text="a" * 500, target="b")
    assert status == 400 and answer["error"] == "text: 501 tokens, EOS included. A picture shows at most 200."


def test_other_requests(client):
    def post(data, kind="application/json", path="/api/translate"):
        answer = client.post(path, data=data, content_type=kind)
        return answer.status_code, answer.json["error"]

    good = json.dumps({"text": "a"})
    assert post(b"\xff")[0] == post(b"{")[0] == post(b"[]")[0] == post(b'{"text": NaN}')[0] == 400
    assert post(good, "text/plain") == (415, "Expected Content-Type: application/json.")
    assert post("x" * 2**19)[0] == 413
    for path in ("/api/other", "/other"):
        status, message = post(good, path=path)
        assert status == 404 and f"Not found: {path}. Expected / or /api/models, or POST /api/attention, " in message
    assert client.get("/api/translate").status_code == 405


@pytest.mark.slow
def test_numbers_that_are_not_finite_are_no_json():
    broken = translator_of()
    broken.model.trainable_weights[0].assign_add(np.full(broken.model.trainable_weights[0].shape, np.nan))
    client = create_app(Models({"broken": broken})).test_client()
    search, target = {"beam_size": 2, "extra_length": 1}, {"target": "a"}
    for call, request in {"translate": search, "beam": search, "steps": target, "attention": target}.items():
        answer = client.post(f"/api/{call}", json={"text": "a", **request})
        assert (answer.status_code, "has diverged" in answer.json["error"]) == (400, True)


def test_headers(client):
    for answer in (client.get("/api/models"), client.get("/nothing")):
        policy = "default-src 'self'; img-src 'self' blob:; media-src 'self' blob:"
        expected = {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff"}
        expected |= {"Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
        assert expected.items() <= dict(answer.headers).items() and "Set-Cookie" not in answer.headers


def test_a_bug_is_told_in_the_log_alone(client, monkeypatch, caplog):
    def fail(*arguments):
        raise RuntimeError("secret")

    monkeypatch.setattr(Models, "answer", fail)
    answer = client.post("/api/translate", json={"text": "a"})
    assert (answer.status_code, "secret" in answer.text) == (500, False) and answer.json["error"]
    assert "/api/translate failed" in caplog.text and "secret" in caplog.text

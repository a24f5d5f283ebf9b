"""The answers about a language model, against its Generator and its own full passes."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.extras.insights.app import create_app
from t2t_lite.extras.insights.generations import Generations
from t2t_lite.extras.insights.models import Models
from tests.decoding.letter_generator import generator_of
from tests.extras.insights.doubles import Letters

pytestmark = pytest.mark.usefixtures("eager")

PROMPT = "abbac"


@pytest.fixture(scope="module", params=["zero", "end"])
def generator(request):
    generator = generator_of(request.param, norm="pre", position="learned", max_position=24)
    generator.problem = Letters()
    return generator


@pytest.fixture(scope="module")
def client(generator):
    return create_app(Models({"lm": generator})).test_client()


def test_what_is_said_of_it(client):
    (model,) = client.get("/api/models").json
    assert model["task"] == "language_model"
    assert model["calls"] == ["generate", "beam", "steps", "attention", "attention_map"]
    assert (model["reads"], model["writes"], model["samples"]) == ([], {}, False)
    assert model["attention"] == {"decoder": [2]}


@pytest.mark.few("zero-beam-", "zero-samples-abbac", "end-greedy-abbac")
@pytest.mark.slow
@pytest.mark.parametrize("text", [PROMPT, ""])
@pytest.mark.parametrize(
    "options",
    [{"beam_size": 1}, {"beam_size": 3, "alpha": 1}, {"sampling": True, "beam_size": 2, "top_k": 3, "seed": 5}],
    ids=["greedy", "beam", "samples"],
)
def test_continuations_are_the_generator_s(ask, generator, text, options):
    status, found = ask("generate", text=text, max_new_tokens=6, **options)
    options = {**options, "n_best": options["beam_size"]}
    (expected,) = generator.generate([text], max_new_tokens=6, return_token_scores=True, **options)
    assert status == 200 and found["continuation"] == expected.text
    assert found["prompt_tokens"] == expected.prompt_tokens
    for one, hypothesis in zip(found["hypotheses"], expected.hypotheses, strict=True):
        assert (one["text"], one["ended"]) == (hypothesis.text, hypothesis.ended)
        assert one["score"] == pytest.approx(hypothesis.score, abs=1e-5)
        assert [token["log_prob"] for token in one["tokens"]] == pytest.approx(hypothesis.token_scores, abs=1e-4)
        assert [token["id"] for token in one["tokens"] if token["token"] != "<EOS>"] == hypothesis.ids


@pytest.mark.slow
@pytest.mark.few("end-abbac", "zero-")
@pytest.mark.parametrize("text", [PROMPT, ""])
def test_the_beam_and_the_steps_agree_with_the_continuations(ask, text):
    request = {"text": text, "max_new_tokens": 6, "beam_size": 3}
    hypotheses = ask("generate", **request)[1]["hypotheses"]
    tree = ask("beam", **request)[1]
    assert [tree["nodes"][at]["score"] for at in tree["hypotheses"]] == pytest.approx(
        [one["score"] for one in hypotheses], abs=1e-5
    )
    tokens = hypotheses[0]["tokens"]
    steps = ask("steps", text=text, target=[token["id"] for token in tokens])[1]["steps"]
    assert [step["token"] for step in steps] == [token["token"] for token in tokens]
    assert [step["log_prob"] for step in steps] == pytest.approx([token["log_prob"] for token in tokens], abs=1e-4)


@pytest.mark.few("zero")
@pytest.mark.slow
def test_an_alternative_can_be_forced(ask):
    steps = ask("steps", text=PROMPT, target="ab")[1]["steps"]
    prefix = [steps[0]["id"], next(one["id"] for one in steps[1]["alternatives"] if one["id"] not in (0, 1))]
    hypotheses = ask("generate", text=PROMPT, prefix=prefix)[1]["hypotheses"]
    assert all([token["id"] for token in one["tokens"]][:2] == prefix for one in hypotheses)


@pytest.mark.parametrize("target", [None, "ba"])
def test_attention_is_the_model_s(ask, generator, target):
    status, found = ask("attention", text=PROMPT, **({"target": target} if target else {}))
    ids = generator.encoders["targets"].encode(PROMPT + (target or ""))
    expected = generator.model.attention_weights({"targets": np.array([ids], "int32")})["decoder"]
    assert status == 200 and list(found) == ["decoder"]
    assert found["decoder"]["queries"] == generator.encoders["targets"].pieces(ids)
    assert found["decoder"]["keys"] == ["<begin>", *found["decoder"]["queries"][:-1]]
    np.testing.assert_allclose(
        found["decoder"]["weights"], tf.concat([tf.cast(layer, tf.float32) for layer in expected], 0), atol=1e-5
    )


def test_the_longest_prompt_leaves_room_for_one_id(ask, generator):
    longest = "a" * (generator.max_length - 1)
    status, found = ask("generate", text=longest, beam_size=1)
    assert status == 200 and len(found["hypotheses"][0]["tokens"]) == 1
    status, answer = ask("generate", text=longest + "a")
    assert status == 400 and "text: 24 ids. The model reads at most 24, including the continuation" in answer["error"]
    for call, name in (("steps", "text and target"), ("attention", "text"), ("attention_map", "text")):
        assert ask(call, text=longest, target="b")[0] == 200
        status, answer = ask(call, text=longest, target="bb")
        assert status == 400 and answer["error"] == f"{name}: 25 tokens. The model reads at most 24."


MISTAKES = {
    "no new token": ("generate", {"text": "a", "max_new_tokens": 0}, "max_new_tokens=0: expected"),
    "another's length": ("generate", {"text": "a", "extra_length": 3}, "'extra_length': unknown field"),
    "a tree of samples": ("beam", {"text": "a", "sampling": True}, "'sampling': unknown field"),
    "no target": ("steps", {"text": "a", "target": ""}, "target: 0 tokens"),
    "a blank picture": ("attention", {"text": ""}, "text is blank"),
    "another task": ("translate", {"text": "a"}, "lm: does not support translate. Expected one of gen"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "request_", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(ask, call, request_, words):
    status, answer = ask(call, **request_)
    assert status == 400 and words in answer["error"]


def test_a_row_has_at_most_so_many_ids(generator):
    answers = Generations(generator)
    assert answers._row([3] * 5, [4] * 2, 7) == [3] * 5 + [4] * 2
    assert answers._row([], "a" * 200, 200) == generator.encoders["targets"].encode("a" * 200)
    for prompt, target, words in (
        ([3] * 5, [4] * 3, "text: 8 tokens.* 7"),
        ([], "a" * 201, "target: 201 tokens.* 200"),
    ):
        with pytest.raises(UserError, match=words):
            answers._row(prompt, target, 7)


def test_seconds_and_the_usual_beam(generator, monkeypatch, clock):
    asked, search = [], generator.searcher.search

    def slow(prompts, options, prefixes):
        asked.append(options)
        clock.advance(1.23456)
        return search(prompts, options, prefixes)

    monkeypatch.setattr(generator.searcher, "search", slow)
    found = Generations(generator).generate({"text": PROMPT, "max_new_tokens": 3})
    assert found["seconds"] == 1.2346 and (asked[0].beam_size, asked[0].n_best, asked[0].extra_length) == (4, 4, 3)

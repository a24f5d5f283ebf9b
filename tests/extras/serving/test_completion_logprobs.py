"""Several prompts, ids as prompts, `n`, `echo` and `logprobs`, with the double's known log-probabilities."""
# Nearest tests of: extras/serving/completion_requests.py, extras/serving/token_scores.py

import contextlib
import types

import numpy as np
import pytest

from t2t_lite.extras.serving.served_generator import ServedPrompt
from t2t_lite.extras.serving.token_scores import RowScores, TokenTexts
from t2t_lite.text.vocabulary import EOS_ID, ByteTextEncoder, TextEncoder, TokenTextEncoder
from tests.extras.serving.doubles import events_of, rest_server
from tests.extras.serving.test_completions import complete, opened

IDS = ByteTextEncoder().encode


def choices(server, **request):
    status, answer = complete(server, **request)
    assert status == 200, answer
    assert [choice["index"] for choice in answer["choices"]] == list(range(len(answer["choices"])))
    return answer["choices"], answer["usage"]


def test_each_prompt_has_its_continuations_in_order(generator):
    server = rest_server(generator)
    found, usage = choices(server, prompt=["ab", "x"], max_tokens=9, n=2)
    assert [choice["text"] for choice in found] == ["ab", "ab", "x", "x"]
    assert usage == {"prompt_tokens": 3, "completion_tokens": 6, "total_tokens": 9}
    alone = [choices(server, prompt=prompt, max_tokens=9)[0][0]["text"] for prompt in ("ab", "x")]
    assert alone == ["ab", "x"]


def test_samples_of_a_prompt_have_their_own_seeds(generator):
    choices(rest_server(generator), prompt=["a", "b"], temperature=1, seed=2**31 - 1, n=2, best_of=2)
    seeds = [options.seed for _, _, options in generator.asked]
    assert seeds[0] == 2**31 - 1 and seeds[:2] == seeds[2:] and len({*seeds}) == 2 and min(seeds) >= 0


def test_a_stream_of_several_texts_names_each_by_its_index(generator):
    server = rest_server(generator)
    with contextlib.closing(opened(server, prompt=["ab", "xyz"], n=1)) as stream:
        events = events_of(b"".join(stream))
    texts = {}
    for event in events:
        (choice,) = event["choices"]
        texts[choice["index"]] = texts.get(choice["index"], "") + choice["text"]
    assert texts == {0: "ab", 1: "xyz"}
    assert [event["generated_text"] for event in events if "generated_text" in event] == ["ab", "xyz"]
    assert ["usage" in event for event in events].index(True) == len(events) - 1
    assert events[-1]["usage"] == {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}


@pytest.mark.parametrize("prompt", [IDS("ab"), [IDS("ab")], "ab"], ids=["a list of ids", "a list of lists", "a text"])
def test_ids_are_what_their_text_is(generator, prompt):
    ((choice,), usage) = choices(rest_server(generator), prompt=prompt, echo=True, max_tokens=5, logprobs=0)
    assert choice["text"] == "abab" and usage["prompt_tokens"] == 2
    assert choice["logprobs"]["tokens"] == [*"abab", "</s>"] and choice["finish_reason"] == "stop"
    assert choice["logprobs"]["text_offset"] == [0, 1, 2, 3, 4]


def test_log_probabilities_are_of_each_id_after_the_first(generator):
    """After "a" the double expects "b": -0.25; "c" is one further, -2."""
    server = rest_server(generator)
    ((choice,), _) = choices(server, prompt="abd", echo=True, max_tokens=0, logprobs=2)
    assert choice["text"] == "abd" and choice["finish_reason"] == "length"
    assert choice["logprobs"] == {
        "tokens": ["a", "b", "d"],
        "token_logprobs": [None, -0.25, -2.0],
        "top_logprobs": [None, {"b": -0.25, "c": -2.0}, {"c": -0.25, "d": -2.0}],
        "text_offset": [0, 1, 2],
    }
    assert choices(server, prompt="abd", max_tokens=1, logprobs=0)[0][0]["logprobs"] == {
        "tokens": ["e"], "token_logprobs": [-0.25], "top_logprobs": [{"e": -0.25}], "text_offset": [0],
    }  # fmt: skip
    assert choices(server, prompt="", echo=True, max_tokens=0, logprobs=1)[0][0]["logprobs"]["tokens"] == []


def test_one_pass_over_all_prompts_finds_the_next_ids(generator):
    """As lm-evaluation-harness asks: the last id of `tokens` is the continuation, also where it is the end."""
    request = {"max_tokens": 1, "temperature": 0, "logprobs": 1, "seed": 1234, "echo": True}
    found, usage = choices(rest_server(generator), prompt=[IDS("ab"), IDS("x"), [EOS_ID, 9]], **request)
    assert [len(rows) for name, rows, _ in generator.asked if name == "scores"] == [3], "and no stream"
    assert [choice["text"] for choice in found[:2]] == ["abc", "xy"]
    for choice in found:
        scores = choice["logprobs"]
        assert {len(values) for values in scores.values()} == {len(scores["tokens"])}
        assert scores["token_logprobs"][0] is None and scores["token_logprobs"][-1] == -0.25
    assert usage["completion_tokens"] == 3
    generator.asked.clear()
    choices(rest_server(generator), prompt="a", **(request | {"repetition_penalty": 1.5}))
    assert generator.asked[0][0] == "a", "a penalty may change what comes next"


def test_an_end_of_text_at_the_beginning_of_ids_stands_for_the_beginning_of_a_text(generator):
    """Clients put it before the first id that they ask for; then this id has a log-probability, too."""
    request = {"echo": True, "max_tokens": 0, "logprobs": 0}
    ((choice,), usage) = choices(rest_server(generator), prompt=[EOS_ID, *IDS("b")], **request)
    assert generator.asked[-1][1] == [IDS("b")] and usage["prompt_tokens"] == 2
    assert choice["text"] == "</s>b" and choice["logprobs"]["tokens"] == ["</s>", "b"]
    first, second = choice["logprobs"]["token_logprobs"]
    assert first is None and second < 0 and choice["logprobs"]["text_offset"] == [0, 4]


def test_texts_of_ids_of_vocabularies_without_bytes_and_with_equal_texts(tmp_path):
    """Half characters are written as OpenAI does; of two ids with one text the more probable one is shown."""
    texts = TokenTexts(ByteTextEncoder())
    ids = IDS("é\u20ac!")
    assert [texts.text(i) for i in ids[:2]] == [r"bytes:\xc3", r"bytes:\xa9"] and texts.name == "ByteTextEncoder"
    assert texts.offsets(ids, False, 0) == [0, 0, 1, 1, 1, 2]
    assert texts.offsets(IDS("a") + [0x80 + 2] * 2 + IDS("b"), True, 7) == [7, 8, 9, 10]
    assert texts.joined([EOS_ID, *IDS("a"), EOS_ID, EOS_ID, *IDS("b")]) == "</s>a</s></s>b"
    numbers = TokenTexts(TextEncoder(9))
    assert (numbers.text(4), numbers.end) == ("2", "</s>")
    (tmp_path / "words").write_text("<pad>\n<EOS>\nthe\nred\n")
    words = TokenTexts(TokenTextEncoder(str(tmp_path / "words")))
    assert words.offsets([2, 3, EOS_ID, 2], False, 0) == [0, 3, 7, 11], "decoding drops the first space"
    assert words.offsets([3, 2], True, 0) == [0, 4]
    scores = RowScores(np.float32([-1]), np.float32([[-0.5, -1]]), np.array([[4, 4]]))
    found = types.SimpleNamespace(prompt=ServedPrompt("", "", []), ids=[4], scores=scores)
    assert numbers.logprobs(found, 2, False)["top_logprobs"] == [{"2": -0.5}]

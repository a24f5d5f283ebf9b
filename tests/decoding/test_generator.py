"""Generator against searches over full passes of the same model, one prompt at a time."""
# Nearest tests of: t2t_lite/decoding/answering.py, t2t_lite/decoding/loading.py, t2t_lite/decoding/hypothesis.py

import types

import numpy as np
import pytest

import t2t_lite
from t2t_lite.data.problem import Problem
from t2t_lite.decoding.generator import Generator
from t2t_lite.decoding.hypothesis import Hypothesis
from t2t_lite.errors import UserError
from t2t_lite.settings.search_options import SearchOptions
from tests.decoding.letter_generator import FullPasses, generator_of, log_probs
from tests.decoding.overlapping_pieces import Letters
from tests.decoding.scripted import assert_found, numpy_search

PROMPTS = ["abbac", "", "a", "cabbabdd"]
NEW = 6


@pytest.fixture(scope="module")
def letters():
    """A generator that no test changes."""
    return generator_of()


@pytest.mark.few("3-end", "1-zero")
@pytest.mark.slow
@pytest.mark.parametrize("begin", ["zero", "end"])
@pytest.mark.parametrize("beam_size", [1, 3])
def test_continuations_are_those_of_full_passes(eager, begin, beam_size):
    generator, rules = generator_of(begin, norm="pre", position="learned", max_position=16), {}
    options = {"beam_size": beam_size, "n_best": beam_size, **rules}
    found = generator.generate(PROMPTS, max_new_tokens=NEW, return_token_scores=True, **options)
    for prompt, generation in zip(PROMPTS, found, strict=True):
        ids = Letters().encode(prompt)
        expected = numpy_search(FullPasses(generator.model), ids, NEW, beam_size, 0.6, n_best=beam_size)
        assert generation.prompt_tokens == Letters().pieces(ids) and not generation.truncated
        assert_found(generation.hypotheses, expected)
        for one, (_, outputs, _) in zip(generation.hypotheses, expected, strict=True):
            assert one.text == Letters().decode(one.ids)
            assert one.token_scores == pytest.approx(log_probs(generator.model, ids, outputs), abs=1e-4)


@pytest.mark.slow
def test_the_end_of_the_table_of_positions_ends_a_continuation(eager):
    generator = generator_of(position="learned", max_position=8, softmax_bias=True)
    generator.model.target_embedding.bias.assign(-99.0 * (np.arange(11) == 1))  # no text ends by itself
    prompts = ["ab" * 3, "", "a" * 7]
    found = generator.generate(prompts, max_new_tokens=20, beam_size=1, return_token_scores=True)
    assert [(len(one.ids), one.hypotheses[0].ended) for one in found] == [(2, False), (8, False), (1, False)]
    for prompt, one in zip(prompts, found, strict=True):  # together they are wider than the table: 7 + 8
        expected = log_probs(generator.model, Letters().encode(prompt), one.ids)
        assert one.hypotheses[0].token_scores == pytest.approx(expected, abs=1e-4)
    with pytest.raises(UserError, match=r"prompt 2: 8 pieces, more than 7\..* max_prompt_length .*long_input=truncate"):
        generator.generate(["a", "a" * 8])
    cut, whole = generator.generate(["c" * 5 + "aab", "aab"], max_prompt_length=1, max_new_tokens=2, beam_size=1)
    assert (cut.text, cut.prompt_tokens, cut.truncated, whole.truncated) == (whole.text, ["b"], True, True)
    with pytest.raises(UserError, match="max_prompt_length=8: expected a whole number from 1 to 7"):
        generator.generate(["a"], max_prompt_length=8)


@pytest.mark.slow
def test_a_text_s_score_is_that_of_its_ids_from_the_beginning():
    for begin in ("zero", "end"):
        generator = generator_of(begin, position="learned", max_position=8)
        texts = ["abbac", "a", "", "dd"]
        for text, score in zip(texts, generator.score(texts), strict=True):
            ids = Letters().encode(text)
            expected = log_probs(generator.model, [], ids)
            assert score.token_log_probs == pytest.approx(expected, abs=1e-4)
            assert score.log_prob == pytest.approx(sum(expected), abs=1e-4)
        assert len(generator.score([[2] * 8])[0].token_log_probs) == 8
        with pytest.raises(UserError, match=r"text 2: 9 ids, .* at most 8"):
            generator.score(["a", [2] * 9])


@pytest.mark.slow
def test_prompts_may_be_ids_which_are_in_the_vocabulary(eager, letters):
    generator = letters
    by_text, by_ids = generator.generate(["abba", Letters().encode("abba")], max_new_tokens=3)
    assert (by_text.text, by_text.ids) == (by_ids.text, by_ids.ids)
    assert by_text.score == pytest.approx(by_ids.score, abs=1e-4)  # rows of a batch may round differently
    for wrong in (0, 11, -1):
        with pytest.raises(UserError, match=f"prompt 1: id {wrong} is outside the vocabulary. Expected from 1 to 10"):
            generator.generate([[2, wrong]])
    with pytest.raises(UserError, match=r"text 2: .* expected a text or a list of ids"):
        generator.score(["a", [1.7]])
    with pytest.raises(TypeError, match="must be a list of str, received one str"):
        generator.generate("abba")
    given = [np.array([2, 3]), [], "abba"]
    assert [len(one.token_log_probs) for one in generator.score(given)] == [2, 0, 4]
    assert generator.score(iter(given)) == generator.score(given)
    assert len(generator.generate((text for text in given), max_new_tokens=1)) == 3


@pytest.mark.few("stop")
@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 1, "no_repeat_ngram_size": 2, "repetition_penalty": 1.3},
        {"beam_size": 1, "stop": ["ab", "c"]},
        {"sampling": True, "seed": 5, "temperature": 0.7, "top_k": 6, "top_p": 0.9},
    ],
    ids=["greedy", "rules", "stop", "sampling"],
)
def test_a_stream_is_what_generate_returns_part_by_part(letters, options):
    for prompt in ("abba", ""):
        (whole,) = letters.generate([prompt], max_new_tokens=25, **options)
        assert "".join(letters.stream(prompt, max_new_tokens=25, **options)) == whole.text


@pytest.mark.slow
def test_a_prompt_with_the_end_of_a_text_has_a_continuation(eager, letters):
    """It is the way to say that a new text begins."""
    options = {"max_new_tokens": 5, "beam_size": 1}
    prompts = [[1], [5, 6, 1], [1, 5, 6]]
    texts = [one.text for one in letters.generate(prompts, **options)]
    for prompt, text in zip(prompts, texts, strict=True):
        assert text == Letters().decode(letters.generate([prompt], **options)[0].ids) and len(text) > 2
        assert "".join(letters.stream(prompt, **options)) == text
    (stopped,) = letters.generate(prompts[2:], **options, stop=texts[2][1])
    assert stopped.text == texts[2][: texts[2].index(texts[2][1])]


def test_what_cannot_be_streamed_or_is_out_of_range_is_named(eager, letters):
    generator = letters
    for options in ({}, {"sampling": True, "n_best": 2}):
        with pytest.raises(UserError, match="expected sampling or beam_size=1, and n_best=1"):
            generator.stream("a", **options)
    with pytest.raises(UserError, match="max_new_tokens=0: expected a whole number from 1"):
        generator.generate(["a"], max_new_tokens=0)
    with pytest.raises(TypeError, match=r"no argument `extra_length`. Expected max_new_tokens"):
        generator.generate(["a"], extra_length=3)
    with pytest.raises(
        TypeError, match=r"no argument `foo`. Expected one or more of max_new_tokens, max_prompt_length, "
    ) as at:
        generator.generate(["a"], foo=3)
    assert "extra_length" not in str(at.value)
    with pytest.raises(UserError, match=r"temperature, seed: .*sampling=True"):
        generator.generate(["a"], temperature=0.5, seed=3)
    generator.generate(["a"], max_new_tokens=1, temperature=0.5, sampling=False)  # as settings that are passed on


@pytest.mark.slow
def test_rules_against_repetition_count_the_prompt_and_stop_does_not(eager):
    generator = generator_of(softmax_bias=True)
    likely = Letters().encode("ab")
    generator.model.target_embedding.bias.assign(np.where(np.isin(np.arange(11), likely), 30.0, 0.0))
    options = {"beam_size": 1, "max_new_tokens": 4}
    free, ruled = (generator.generate(["ab"], **options, no_repeat_ngram_size=size)[0] for size in (0, 1))
    assert set(free.ids) <= set(likely) and not set(ruled.ids) & set(likely)
    (stopped,) = generator.generate(["ab"], **options, stop="ab")
    assert stopped.text == free.text.partition("ab")[0] and len(stopped.ids) >= 1
    (stopped,) = generator.generate(["ab"], **options, stop=free.text[1:3], return_token_scores=True)
    (one,) = stopped.hypotheses
    assert one.ids == free.ids[: len(one.ids)] and len(one.ids) < len(free.ids)
    expected = log_probs(generator.model, likely, one.ids)  # without an end, which the model did not write
    assert one.stopped and one.token_scores == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "how, ids",
    [
        ({"ended": True}, [5, 6, 1]),
        ({"ended": False}, [5, 6]),  # at the longest length
        ({"ended": True, "stopped": True}, [5, 6]),  # by a stop string
    ],
)
def test_only_what_the_model_ended_has_an_end(how, ids):
    hypothesis = Hypothesis(ids=[5, 6], **how)
    assert hypothesis.all_ids == ids and hypothesis.ids == [5, 6]
    assert Hypothesis(ids=[], **how).all_ids == ids[2:]


@pytest.mark.slow
def test_a_run_is_loaded_by_its_task(eager, lm_run_dir):
    generator = t2t_lite.load(str(lm_run_dir))
    assert isinstance(generator, t2t_lite.Generator)
    (found,) = generator.generate(["the red"], max_new_tokens=4, beam_size=1)
    assert 1 <= len(found.ids) <= 4
    several = t2t_lite.Generator.load([str(lm_run_dir)] * 2)
    assert several.generate(["the red"], max_new_tokens=4, beam_size=1)[0].ids == found.ids


class Sized(Problem):
    """All of its examples have nine ids, as images of one size have."""

    def example_length(self, encoders):
        return 9


def test_a_continuation_completes_an_example_of_one_length():
    options, lengths = SearchOptions(extra_length=3), (0, 4, 7, 9, 12)
    for problem, most, expected in (
        (None, None, [3, 3, 3, 3, 3]), (Sized(), None, [9, 5, 2, 0, 0]), (None, 8, [3, 3, 1, 0, 0]),
        (Sized(), 8, [8, 4, 1, 0, 0]),
    ):  # fmt: skip
        made = Generator(types.SimpleNamespace(search=print, max_length=most), {"targets": Letters()}, None, problem)
        assert [made._longest_output(length, options) for length in lengths] == expected


def test_no_prompt_has_no_continuation():
    generator, told = generator_of(), []
    for options in ({}, {"sampling": True, "n_best": 2}):
        for asked in (False, True):
            assert generator.generate([], return_token_scores=asked, on_progress=told.append, **options) == []
    assert generator.score([]) == [] and told == []


def test_long_prompts_are_read_from_their_end_or_refused():
    made = generator_of(position="learned", max_position=8)
    options = {"beam_size": 1, "max_new_tokens": 2}
    (found,) = made.generate(["abbacabbacabbac"], long_input="truncate", **options)
    (end,) = made.generate(["abbacabbacabbac"[-7:]], **options)
    assert (found.text, found.truncated, end.truncated) == (end.text, True, False)
    with pytest.raises(UserError, match=r"^prompt 2: 4 pieces, more than 3\. .* with long_input=truncate\.$"):
        made.generate(["abb", "abba"], long_input="refuse", max_prompt_length=3, **options)
    with pytest.raises(UserError, match="long_input=split: "):
        made.generate(["a"], long_input="split")
    assert made.answer(made.reader().read_all(["abb", ""]), **options) == made.generate(["abb", ""], **options)

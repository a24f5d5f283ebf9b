"""No output contains a banned text, whatever the pieces, and everything else is as without them."""
# Nearest tests of: t2t_lite/decoding/search/rules.py

import numpy as np
import pytest

from t2t_lite.decoding.answering import continuation
from t2t_lite.decoding.search.rules import CONTINUES, text_table, text_tables
from t2t_lite.decoding.search.searcher import Searcher
from t2t_lite.decoding.texts import prefix_ids
from t2t_lite.errors import UserError
from t2t_lite.settings.search_options import SearchOptions
from t2t_lite.text.vocabulary import TextEncoder
from tests.decoding.overlapping_pieces import Letters, encoders
from tests.decoding.scripted import ScriptedModel, assert_found, numpy_search

SOURCES = [[4, 7, 3], [5, 6, 2], [3, 3, 9, 10], [8, 2, 8], [10]]
BANNED = [["abab", "c"], ["b", "bc", "xabx"]]


def contains(text, banned, at_beginning=True):
    return any(one in text or (at_beginning and one != " " and f" {text}".startswith(one)) for one in banned)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("space_begins", "lists"),
    [
        (True, [("abab",), ("ba b", "ö"), (" a", "ab"), ("abcab", "bca", "ba"), (" ", "bb"), (" ba", " b ")]),
        (False, [("abab",), ("ba b",), ("abab", "ö"), (" a", "ba b"), ("a\n", "bab"), ("abab", "ba")]),
    ],
    ids=["banned texts", "stop strings"],
)
def test_the_table_knows_exactly_the_texts_that_contain_one(tmp_path, space_begins, lists):
    draw, letters = np.random.default_rng(0), set("abc \nö".encode())
    for name, encoder in encoders(tmp_path).items():
        likely = [i for i, piece in enumerate(encoder.piece_bytes) if set(piece) <= letters and i > 1]
        letter = [next(i for i in likely if encoder.piece_bytes[i].strip() == b"a")]
        completed = 0
        for texts in lists:
            table = text_table(encoder, texts, space_begins)
            for turn in range(100):
                before = letter if turn % 2 else []  # every other text is continued
                ids, state = [], CONTINUES if before else 0
                for i in draw.choice(likely, 12).tolist():
                    text = continuation(encoder, before, [*ids, i])
                    completes = table[state, i] == len(table) - 1
                    assert completes == contains(text, texts, space_begins and not before), (name, texts, text)
                    completed += completes
                    if not completes:  # as a search does
                        ids, state = [*ids, i], table[state, i]
        assert 50 < completed < 6000, f"{name}: not a test otherwise"


@pytest.mark.few("3-graph")
@pytest.mark.slow
@pytest.mark.parametrize("compile", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["graph", "xla"])
@pytest.mark.parametrize("beam", [1, 3])
def test_a_search_finds_the_best_outputs_without_them(beam, compile):
    """By the definition: pieces that complete one are left out, and scores are the model's own."""
    model, encoder, changed = ScriptedModel(spread=1.0, end_bias=-2.0), Letters(), 0
    searcher = Searcher(model, lambda length, options: 9, encoder=encoder)
    free = searcher.search(SOURCES, SearchOptions(beam_size=beam, n_best=beam, compile=compile))
    for banned in BANNED:
        options = SearchOptions(beam_size=beam, n_best=beam, compile=compile, banned_texts=banned)

        def without(scores, ids, banned=banned):
            excluded = [i > 1 and contains(encoder.decode([*ids, i]), banned) for i in range(encoder.vocab_size)]
            return np.where(excluded, -np.inf, scores)

        for source, results, before in zip(SOURCES, searcher.search(SOURCES, options), free, strict=True):
            expected = numpy_search(model, source, 9, beam, 0.6, n_best=beam, change=without)
            assert_found(results, expected[: len(results)])
            assert not any(contains(encoder.decode(result.ids), banned) for result in results)
            changed += results[0].ids != before[0].ids
    assert 2 < changed < len(BANNED) * len(SOURCES), "not a test otherwise"


@pytest.mark.slow
@pytest.mark.parametrize("compile", [False, True], ids=["graph", "xla"])
def test_no_sample_contains_one(compile):
    model, encoder = ScriptedModel(spread=0.3, end_bias=-3.0), Letters()
    searcher = Searcher(model, lambda length, options: 12, encoder=encoder)
    options = {"sampling": True, "n_best": 12, "seed": 3}
    (free,) = searcher.search([[4, 7]], SearchOptions(**options, compile=False))
    (found,) = searcher.search([[4, 7]], SearchOptions(**options, compile=compile, banned_texts="dd"))
    texts = [[encoder.decode(result.ids) for result in results] for results in (free, found)]
    assert 2 < sum("dd" in text for text in texts[0]) < 12 and not any("dd" in text for text in texts[1])
    for before, after in zip(*texts, strict=True):  # the same random numbers
        assert after.startswith(before.partition("d")[0]) and (after == before or "d" in before)


@pytest.mark.slow
def test_a_prompt_may_contain_one_and_its_continuation_does_not():
    model, encoder = ScriptedModel(spread=0.3, end_bias=-3.0), Letters()
    searcher = Searcher(model, lambda length, options: 9, continues_inputs=True, encoder=encoder)
    options = {"sampling": True, "n_best": 8, "seed": 1, "compile": False, "banned_texts": [" a", "d"]}
    prompts = [[4], [2, 3], [10, 10]]
    for prompt, found in zip(prompts, searcher.search(prompts, SearchOptions(**options)), strict=True):
        texts = [encoder.decode(one.ids) for one in found]
        assert not any("d" in text for text in texts) and any(text.startswith("a") for text in texts)
        streamed = searcher.stream(prompt, SearchOptions(**options | {"n_best": 1}))
        assert encoder.decode([*streamed]) == texts[0]
    (found,) = searcher.search([[]], SearchOptions(**options))  # the beginning of a text
    assert not any(contains(encoder.decode(one.ids), options["banned_texts"]) for one in found)


@pytest.mark.slow
def test_a_prefix_may_begin_one_that_the_output_does_not_complete():
    encoder = Letters()
    searcher = Searcher(ScriptedModel(spread=1.0), lambda length, options: 9, encoder=encoder)
    options = SearchOptions(beam_size=1, banned_texts=["aba"], compile=False)
    (found,) = searcher.search([[4]], options, [[4]])
    assert not contains(encoder.decode(found[0].ids), ["aba"]) and found[0].ids[0] == 4


@pytest.mark.parametrize(
    ("prefix", "banned", "refused"),
    [
        ("ab", " ab", True),  # a space also stands for the beginning of an output
        ("aab", " ab", False),
        ("ab", " ", False),
        ("aabb", "ab", True),
        ("ab", "abc", False),
        ("", "a", False),
    ],
)
def test_the_beginning_of_a_prefix_follows_a_space(prefix, banned, refused):
    encoder = Letters()
    if refused:
        with pytest.raises(UserError, match=f"^the prefix '{prefix}' contains '{banned}', a banned text"):
            prefix_ids(encoder, prefix, 9, ["c", banned])
    else:
        assert prefix_ids(encoder, prefix, 9, ["c", banned]) == encoder.encode(prefix)


class OfNeighbors(TextEncoder):
    """Its pieces are spelled by those around them."""


def test_a_vocabulary_whose_pieces_depend_on_their_neighbors_is_refused():
    with pytest.raises(UserError, match="banned_texts: the vocabulary is a OfNeighbors"):
        text_tables(OfNeighbors(9), SearchOptions(banned_texts="a"))

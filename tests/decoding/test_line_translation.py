"""Lines around a stand-in for the model that reverses words: every character is an id."""

import json
import types

import pytest

from t2t_lite.decoding import text_files
from t2t_lite.decoding.decode_hparams import DecodeHParams
from t2t_lite.decoding.line_translation import LineTranslator
from t2t_lite.decoding.translator import Hypothesis, Translation
from t2t_lite.errors import UserError


class Characters:
    def encode(self, text):
        if "%" in text:
            raise UserError("'%' is not in the vocabulary.")
        return [ord(character) for character in text]


class Reversing:
    """Notes the prefixes that it was given."""

    encoders = types.MappingProxyType({"inputs": Characters(), "targets": Characters()})
    problem = None
    max_input_length = 12
    hparams = types.SimpleNamespace(max_length=11)

    def checked_length(self, length):
        return length or self.max_input_length

    def translate(self, texts, max_input_length, on_progress=None, prefixes=None, n_best=1, **options):
        self.prefixes = prefixes
        longest = max_input_length - 1  # beside EOS
        return [
            Translation(
                tuple(Hypothesis(text[:longest][::-1] + "!" * n, -1.0 * n, ids=[n]) for n in range(n_best)),
                truncated=len(text) > longest,
            )
            for text in texts
        ]


def make(settings="", **options):
    return LineTranslator(Reversing(), DecodeHParams.parse(settings), "in", **options)


def texts(lines, settings="", **options):
    return [found.text for found in make(settings, **options).translate(lines)]


def test_as_many_lines_come_out_in_order():
    assert texts(["abc", "", "de", " ", "x\u2028y"]) == ["cba", "", "ed", " ", "y\u2028x"]


def test_long_lines_are_split_at_sentences_up_to_the_length_of_training():
    lines_of = make()
    found = lines_of.translate(["short", "Ab cd. Efg. Hi", "x" * 10, "y" * 11])
    assert [(line.text, line.parts) for line in found] == [
        ("trohs", 1), (".dc bA .gfE iH", 3), ("x" * 10, 1), ("y" * 5 + " " + "y" * 6, 2)
    ]  # fmt: skip
    assert lines_of.limit == 11 and not any(line.truncated for line in found)


def test_long_lines_are_cut_off_where_that_is_asked():
    for options in ({"settings": "max_input_size=5"}, {"settings": "max_input_size=5", "long_input": "truncate"}):
        (found,) = make(**options).translate(["abcdefgh"])
        assert (found.text, found.truncated, found.parts) == ("dcba", True, 1)
    assert texts(["ab cd efgh"], "max_input_size=5", long_input="split") == ["ba dc hgfe"]


def test_long_lines_are_refused_or_skipped():
    with pytest.raises(UserError, match=r"^in, line 8: 13 pieces, more than 12"):
        make(long_input="refuse").translate(["ab", "a" * 12], first=7)
    messages = []
    found = make(long_input="refuse", on_error=messages.append).translate(["ab", "a" * 12, "%", "cd"])
    assert [line.text for line in found] == ["ba", "", "", "dc"] and [line.parts for line in found] == [1, 0, 0, 1]
    assert ["in, line 2: 13" in messages[0], "in, line 3: '%'" in messages[1], len(messages)] == [True, True, 2]


def test_refused_lines_are_found_before_any_is_translated():
    with pytest.raises(UserError, match="in, line 3"):
        make(long_input="refuse").check_lengths(["ab", "", "a" * 12])
    assert make().check_lengths(["a" * 12]) == ["a" * 12]


def test_progress_is_told_in_lines():
    told = []
    lines_of = make()
    lines_of.translator.translate = lambda texts, on_progress, **options: [
        on_progress(1) or Translation((Hypothesis(text),)) for text in texts
    ]
    lines_of.translate(["y" * 40, "ab"], on_progress=told.append)
    assert sum(told) == 2 and len(told) == 5 and min(told) == 0


def test_the_outputs_of_a_split_line_are_joined_rank_by_rank():
    (found,) = make("beam_size=2,return_beams=true").translate(["Ab cd ef. Gh"])
    assert [(h.text, h.score, h.ids) for h in found.hypotheses] == [
        (".fe dc bA hG", 0.0, [0, 0]), (".fe dc bA! hG!", -2.0, [1, 1])
    ]  # fmt: skip


def test_a_prefix_is_that_of_the_first_part():
    lines_of = make()
    lines_of.translate(["abc", "", "Ab cd. Efg. Hi"], prefixes=["x", "y", "z"])
    assert lines_of.translator.prefixes == ["x", "", "z", "", ""]
    with pytest.raises(UserError, match="in, line 5: its prefix has 60 pieces, and its output at most 52"):
        lines_of.translate(["ab"], first=5, prefixes=["p" * 60])


def written(lines, settings):
    parsed = DecodeHParams.parse(settings)
    return [text_files.output_line(found, parsed) for found in make(settings).translate(lines)]


def test_a_translation_never_breaks_a_line_or_a_column():
    assert written(["a\nb", "c\td\r"], "") == ["b a", " d c"]


def test_all_beams_and_their_scores():
    assert written(["ab"], "beam_size=2,return_beams=true") == ["ba\tba!"]
    assert written(["ab"], "beam_size=4,n_best=2,write_beam_scores=true") == ["ba\t-0.00\tba!\t-1.00"]
    assert written(["ab"], "identity_output=true") == ["0"]


def test_lines_of_json():
    first, second = make("max_input_size=4").translate(["ab", "abcdef"])
    assert json.loads(text_files.json_line(7, "ab", first)) == {
        "line": 7,
        "input": "ab",
        "hypotheses": [{"text": "ba", "score": 0.0, "ended": True, "tokens": [], "token_scores": []}],
    }
    assert json.loads(text_files.json_line(8, "ü", second))["truncated"]

"""Lines around a stand-in for the model that reverses words: every character is an id."""

import json
import re
import types

import numpy as np
import pytest

from t2t_lite.data.problem import Problem, TranslateProblem
from t2t_lite.decoding.command import text_files
from t2t_lite.decoding.command.decode_hparams import DecodeHParams
from t2t_lite.decoding.command.lines import LineAnswer, LineTranslator
from t2t_lite.decoding.hypothesis import Hypothesis, Translation
from t2t_lite.errors import UserError
from tests.decoding.reversing import Characters, Reversing


def make(settings="", **options):
    return LineTranslator(Reversing(), DecodeHParams.parse(settings), "in", **options)


def texts(lines, settings="", **options):
    return [found.text for found in make(settings, **options).answer(lines)]


def test_as_many_lines_come_out_in_order():
    assert texts(["abc", "", "de", " ", "x\u2028y"]) == ["cba", "", "ed", " ", "y\u2028x"]


def test_ids_and_ends_are_counted():
    """Of the first output; a part that is split has as many ids as its parts."""
    found = make("beam_size=3,n_best=3").answer(["abc", "", "Ab. Cd. Ef."])
    assert [line.tokens for line in found] == [1 + 1, 0, 3 + 1]


def test_what_is_long_or_of_several_sentences_is_told_by_numbers(caplog):
    caplog.set_level("INFO", "t2t_lite")
    lines = ["y" * 11 if n % 2 else "ab" for n in range(24)] + ["Ab. Cd.", "Ef. Gh. I.", "Ab cd ef. Gh ij kl."]
    make().outputs(lines, first=101)
    numbers = ", ".join(f"{n} (2 parts)" for n in range(102, 121, 2))
    assert f"in: split, because it is longer than 11 pieces: line {numbers}, … (13 lines)" in caplog.text
    assert "in: 2 lines had several sentences" in caplog.text
    caplog.clear()
    make("max_input_size=5,log_results=true").outputs(["ab", "abcdefg", "a\tb"], first=7)
    assert "in: cut off after 5 pieces: line 8" in caplog.text and "sentences" not in caplog.text
    assert "INPUT: a b\nOUTPUT: b a" in caplog.text


def test_short_outputs_and_lost_texts_are_told_by_numbers(caplog):
    answers = [
        LineAnswer(Translation((Hypothesis("x", lost=lost),), is_short=bool(lost))) for lost in ([], ["<b>", "c"])
    ]
    lines_of = make()
    lines_of.answer = lambda *_: answers
    assert lines_of.outputs(["a", "b"], first=5) == (["x", "x"], answers)
    assert "output: line 6 (<b>, c)" in caplog.text and "omit some of the line: line 6" in caplog.text


def test_long_lines_are_split_at_sentences_up_to_the_length_of_training():
    lines_of = make()
    found = lines_of.answer(["short", "Ab cd. Efg. Hi", "x" * 10, "y" * 11])
    assert [(line.text, line.parts) for line in found] == [
        ("trohs", 1), (".dc bA .gfE iH", 3), ("x" * 10, 1), ("y" * 5 + " " + "y" * 6, 2)
    ]  # fmt: skip
    assert lines_of.limit == 11 and not any(line.truncated for line in found)


@pytest.mark.parametrize("max_length, limit", [(11, 11), (0, 12), (99, 12)])  # 0: there was none in training
def test_no_line_is_left_whole_beyond_training_or_the_model(max_length, limit):
    translator = Reversing()
    translator.hparams = types.SimpleNamespace(max_length=max_length)
    assert LineTranslator(translator, DecodeHParams(), "in").limit == limit


def test_long_lines_are_cut_off_where_that_is_asked():
    for options in ({"settings": "max_input_size=5"}, {"settings": "max_input_size=5", "long_input": "truncate"}):
        (found,) = make(**options).answer(["abcdefgh"])
        assert (found.text, found.truncated, found.parts) == ("dcba", True, 1)
    assert texts(["ab cd efgh"], "max_input_size=5", long_input="split") == ["ba dc hgfe"]


def test_long_lines_are_refused_or_skipped():
    with pytest.raises(UserError, match=r"^in, line 8: 13 pieces, more than 12"):
        make(long_input="refuse").answer(["ab", "a" * 12], first=7)
    messages = []
    found = make(long_input="refuse", on_error=messages.append).answer(["ab", "a" * 12, "%", "cd"])
    assert [line.text for line in found] == ["ba", "", "", "dc"] and [line.parts for line in found] == [1, 0, 0, 1]
    assert ["in, line 2: 13" in messages[0], "in, line 3: '%'" in messages[1], len(messages)] == [True, True, 2]


def test_refused_lines_are_found_before_any_is_translated():
    with pytest.raises(UserError, match="in, line 3"):
        make(long_input="refuse").check_lengths(["ab", "", "a" * 12])
    assert make().check_lengths(["a" * 12]) == ["a" * 12]


def test_progress_is_told_in_lines():
    told = []
    lines_of = make()
    lines_of.answerer.translate = lambda sources, on_progress, **options: [
        on_progress(1) or Translation((Hypothesis(source.text),)) for source in sources
    ]
    lines_of.answer(["y" * 40, "ab"], on_progress=told.append)
    assert sum(told) == 2 and len(told) == 5 and min(told) == 0


def test_a_prefix_is_that_of_the_first_part():
    lines_of = make()
    lines_of.answer(["abc", "", "Ab cd. Efg. Hi"], prefixes=["x", "y", "z"])
    assert lines_of.answerer.prefixes == [[ord("x")], [], [ord("z")], None, None]


class Noting(Reversing):
    """Notes the options that it was given, and translates each text as it is, word by word."""

    def translate(self, sources, **options):
        self.given.append(options)
        return [self._one(source.text) for source in sources]

    translate_by_risk = translate

    def _one(self, text):
        pieces = [f"▁{word}" for word in text.split()]
        spans = [word.span() for word in re.finditer(r"\S+", text)]
        words = Hypothesis(text, -1.0, pieces, [5] * len(pieces), not text.startswith("Open"),
                           attention=np.eye(len(pieces) + 1), spans=spans)  # fmt: skip
        return Translation((words, *[Hypothesis("other")] * 5), text.startswith("Cut"), pieces, spans)


def noted(settings="", problem=None, **options):
    """The options that a line is translated with."""
    lines_of = LineTranslator(Noting(problem), DecodeHParams.parse(settings), "in", **options)
    lines_of.answer(["ab"])
    (given,) = lines_of.answerer.given
    return given


def test_the_settings_of_the_search_are_handed_on():
    settings = "beam_size=7,alpha=0.3,extra_length=9,batch_size=5,length_penalty=power,ends=top,n_best=3"
    given = noted(settings)
    wanted = vars(DecodeHParams.parse(settings).search_options())
    assert {name: given[name] for name in wanted} == wanted
    assert given["max_input_length"] == 11 and "prefixes" not in given
    assert "return_token_scores" not in given and "return_attention" not in given
    assert noted(as_json=True)["return_token_scores"] is True
    assert noted(alignments=True)["return_attention"] is True
    assert noted("replace_unknown=true")["replace_unknown"] is True
    lines_of = LineTranslator(Noting(), DecodeHParams(), "in")
    lines_of.compile = False
    lines_of.answer(["ab"])
    assert lines_of.answerer.given[0]["compile"] is False


def test_the_output_of_least_risk_is_chosen_among_so_many_samples():
    draws = "sampling_temp=0.5,sampling_keep_top_k=6,sampling_keep_top_p=0.7,sampling_seed=8"
    given = noted(f"{draws},num_samples=9", utility="bleu")
    assert (given["utility"], given["num_samples"]) == ("bleu", 9)
    assert (given["temperature"], given["top_k"], given["top_p"], given["seed"]) == (0.5, 6, 0.7, 8)
    assert noted(utility="chrf")["num_samples"] == 32
    for settings, count in (("", 1), ("n_best=3", 3)):
        lines_of = LineTranslator(Noting(), DecodeHParams.parse(settings), "in", utility="chrf")
        assert len(lines_of.answer(["ab"])[0].hypotheses) == count


class Chinese(TranslateProblem):
    language_pair = ("en", "zh")


def test_what_is_no_text_of_a_language_is_cut_off_and_not_split():
    for problem, long_input in ((None, "split"), (Chinese(), "split"), (Problem(), "truncate")):
        lines_of = LineTranslator(Noting(problem), DecodeHParams(), "in")
        assert lines_of.long_input == long_input
        assert lines_of.limit == (11 if long_input == "split" else 12)


def test_parts_are_joined_as_their_language_is_written():
    for problem, text in ((Chinese(), "Ab cd ef.Gh ij kl."), (Chinese(was_reversed=True), "Ab cd ef. Gh ij kl.")):
        (found,) = LineTranslator(Noting(problem), DecodeHParams(), "in").answer(["Ab cd ef. Gh ij kl."])
        assert found.text == text


def test_words_are_counted_through_the_parts_of_a_line():
    lines_of = LineTranslator(Noting(), DecodeHParams(), "in", alignments=True)
    (found, blank) = lines_of.answer(["Ab cd ef. Gh ij.", ""])
    assert (found.beside["alignment"], blank.beside["alignment"]) == ("0-0 1-1 2-2 3-3 4-4", "")
    assert LineTranslator(Noting(), DecodeHParams(), "in").answer(["Ab"])[0].beside == {}


def test_alignments_count_the_words_of_the_line_and_of_the_output():
    """A word that is split in two is one, and so are words that are joined without a space."""
    (found,) = LineTranslator(Noting(), DecodeHParams(), "in", alignments=True).answer(["x" * 20 + " y"])
    assert (found.parts, found.text, found.beside["alignment"]) == (3, "x" * 10 + " " + "x" * 10 + " y", "0-0 0-1 1-2")
    (found,) = LineTranslator(Noting(Chinese()), DecodeHParams(), "in", alignments=True).answer(["Ab cd ef. Gh ij."])
    assert (found.text, found.beside["alignment"]) == ("Ab cd ef.Gh ij.", "0-0 1-1 2-2 4-3")


def test_several_sentences_are_translated_one_by_one():
    line = "Ab. Cd ef?"
    for options, parts in (({}, 2), ({"split_sentences": "never"}, 1), ({"long_input": "truncate"}, 1),
                           ({"long_input": "truncate", "split_sentences": "always"}, 2)):  # fmt: skip
        (found,) = make(**options).answer([line])
        assert (found.parts, found.is_long) == (parts, False)


def test_a_prefix_may_be_one_shorter_than_the_longest_output():
    """Whose EOS counts."""
    lines_of = make("extra_length=4")
    lines_of.answer(["ab"], prefixes=["p" * 6])
    with pytest.raises(UserError, match=r"in, line 5: the prefix has 7 ids.* at most 6"):
        lines_of.answer(["ab"], first=5, prefixes=["p" * 7])


def test_a_prefix_with_a_banned_text_concerns_its_line_only():
    skipped = []
    lines_of = make("banned_texts=p", on_error=skipped.append)
    first, second = lines_of.answer(["ab", "cd"], prefixes=["up", "u"])
    assert skipped == ["in, line 1: the prefix 'up' contains 'p', a banned text. Remove one of them."]
    assert first.text == "" and second.text == "dc" and lines_of.answerer.prefixes == [[ord("u")]]


def written(lines, settings):
    parsed = DecodeHParams.parse(settings)
    return [text_files.output_line(found, parsed) for found in make(settings).answer(lines)]


def test_a_translation_never_breaks_a_line_or_a_column():
    assert written(["a\nb", "c\td\r"], "") == ["b a", "d c"]
    assert written(["a;b"], "delimiter=;") == ["b a"]


def test_all_beams_and_their_scores():
    assert written(["ab"], "beam_size=2,return_beams=true") == ["ba\tba!"]
    assert written(["ab"], "beam_size=4,n_best=2,write_beam_scores=true") == ["ba\t-0.00\tba!\t-1.00"]
    assert written(["ab"], "identity_output=true") == ["0"]
    (line,), _ = make("identity_output=true,beam_size=2,n_best=2", as_json=True).outputs(["ab"])
    assert [(one["text"], one["ids"]) for one in json.loads(line)["hypotheses"]] == [("ba", [0]), ("ba!", [1])]


def test_few_lines_are_scored_at_a_time():
    for settings, size in (("", 16), ("batch_size=100", 16), ("batch_size=3", 3)):
        lines_of = make(settings)
        assert [found.log_prob for found in lines_of.score(["ab\tc", "d\te"])] == [-0.5, -0.25]
        assert lines_of.answerer.given == [{"batch_size": size}]


def test_a_skipped_line_has_no_output_in_json():
    (skipped,) = make(long_input="refuse", on_error=str).answer(["a" * 12])
    blank = {"text": "", "score": 0.0, "ended": True, "tokens": [], "token_scores": []}
    expected = {"line": 9, "input": "a", "skipped": True, "hypotheses": [blank]}
    assert json.loads(text_files.json_line(9, "a", skipped)) == expected
    assert json.loads(text_files.json_line(9, None, skipped)) == expected | {"input": None}  # it is not UTF-8


@pytest.mark.parametrize("long_input", ["split", "truncate"])
def test_a_text_is_encoded_once(monkeypatch, long_input):
    """Its ids go to the translator, and its prefix's: encoding is a large part of the work before the search."""
    encoded, encode = [], Characters.encode
    monkeypatch.setattr(Characters, "encode", lambda self, text: encoded.append(text) or encode(self, text))
    lines_of, given = make("max_input_size=5", long_input=long_input), []
    translate = lines_of.answerer.translate
    monkeypatch.setattr(lines_of.answerer, "translate", lambda some, **o: given.extend(some) or translate(some, **o))
    lines_of.answer(["abc", "", "ab cd"], prefixes=["q", "", "r"])
    assert "".join(map(chr, given[0].ids)) == "abc" and given[1].ids == []
    assert len(encoded) == len(set(encoded))

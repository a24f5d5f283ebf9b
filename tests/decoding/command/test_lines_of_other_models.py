"""Lines that a language model continues or an encoder answers, around stand-ins for both."""
# Nearest tests of: t2t_lite/decoding/command/lines.py

import json
import types

import pytest

from t2t_lite.decoding.command.decode_hparams import DecodeHParams
from t2t_lite.decoding.command.lines import LineAnswer, LineGenerator, LinePredictor
from t2t_lite.decoding.generator import Generation
from t2t_lite.decoding.hypothesis import Hypothesis, Prompt
from t2t_lite.errors import UserError
from t2t_lite.tasks.encoder_task import Reading
from tests.decoding.reversing import Reversing


class Continuing:
    """A Generator that notes what it is asked."""

    max_length, encoders = 9, Reversing.encoders

    def reader(self, longest, **options):
        read = lambda line: Prompt(line, self.ids_of(line), False)  # noqa: E731
        return types.SimpleNamespace(limit=longest, long_input="refuse", read=read)

    def ids_of(self, line):
        return self.encoders["targets"].encode(line)

    def stream(self, prompt, **options):
        self.asked = options
        return iter([prompt.text, "!"])

    def score(self, readings, batch_size):
        return [len(ids) for ids in readings]

    def answer(self, readings, on_progress, **options):
        self.asked = options
        return [Generation((Hypothesis("x", ids=[7, 8]),), truncated=prompt.text == "long") for prompt in readings]


def continuing(settings, **options):
    return LineGenerator(Continuing(), DecodeHParams.parse(settings), "in", **options)


def test_a_language_model_gets_the_settings():
    settings = "beam_size=3,alpha=0.2,extra_length=7,n_best=2,stop=END,batch_size=5"
    lines_of = continuing(settings, as_json=True)
    lines_of.compile = False
    found = lines_of.answer(["a", "long", ""])
    assert [(line.text, line.truncated, line.tokens) for line in found] == [("x", n == 1, 3) for n in range(3)]
    wanted = vars(DecodeHParams.parse(settings).search_options())
    wanted = {name: value for name, value in wanted.items() if name != "extra_length"}
    assert lines_of.answerer.asked == wanted | {"max_new_tokens": 7, "compile": False, "return_token_scores": True}


def test_a_wrong_length_has_the_name_that_was_typed():
    with pytest.raises(UserError, match=r"^extra_length=0: expected a whole number from 1 to 10,000\.$"):
        continuing("extra_length=0")


@pytest.mark.parametrize(
    ("settings", "streams"),
    [("beam_size=1", True), ("sampling_method=random", True), ("", False), ("beam_size=3,n_best=3", False),
     ("sampling_method=random,num_samples=2", False)],
)  # fmt: skip
def test_one_output_of_no_beam_is_streamed(settings, streams):
    lines_of = continuing(settings)
    assert (list(lines_of.stream("ab")) if streams else lines_of.stream("ab")) == (["ab", "!"] if streams else None)
    assert not streams or lines_of.answerer.asked["max_new_tokens"] == 50


def test_texts_of_the_model_s_length_are_scored_and_longer_ones_refused():
    assert continuing("").score(["a" * 9, "", "ab"]) == [9, 0, 2]
    with pytest.raises(UserError, match=r"in, line 5: 10 ids, but the model can score at most 9"):
        continuing("").score(["ab", "a" * 10], first=4)


class Labelling:
    """A Predictor of pairs, of questions or of words: the answer to a text is its letters in order."""

    def __init__(self, num_texts=1, inputs=("inputs",)):
        self.num_texts = num_texts
        self.task = types.SimpleNamespace(
            count="n_best", inputs=inputs, as_line=lambda answer: answer.text, as_json=lambda answer: vars(answer),
            is_labelled=lambda line: line.startswith("label\t"),
        )  # fmt: skip

    def reader(self, longest, **options):
        return types.SimpleNamespace(limit=longest or 99, long_input="truncate", whole=False, read=self.read)

    def read(self, texts):
        texts = (texts,) if isinstance(texts, str) else texts
        return Reading([[5] * len(text) for text in texts], texts[0].startswith("long"), texts)

    def answer(self, readings, on_progress, **options):
        self.asked = options
        return [types.SimpleNamespace(text="".join(sorted("".join(one.source))), parts=len(one)) for one in readings]


def labelled(answerer, settings="", **options):
    return LinePredictor(answerer, DecodeHParams.parse(settings, mbr=True), "in", **options)


def test_an_encoder_gets_the_settings_and_blank_lines_no_answer():
    answerer = Labelling()
    found = labelled(answerer, "n_best=9,batch_size=7,max_input_size=20").answer(["cab", " ", "long"])
    assert answerer.asked == {"n_best": 9, "batch_size": 7, "max_length": 20}
    assert [(line.parts, line.tokens, line.truncated, line.is_long) for line in found] == [
        (3, 3, False, True), (0, 0, False, False), (4, 4, True, True),
    ]  # fmt: skip
    labelled(answerer).answer(["a"])
    assert answerer.asked == {"n_best": 5, "batch_size": 32, "max_length": 99}


def test_texts_of_a_row_are_columns():
    lines_of = labelled(Labelling(2))
    assert lines_of.outputs(["b\ta", "", "d\tc"])[0] == ["ab", "", "cd"]
    with pytest.raises(UserError, match=r"in, line 4: 3 columns\. Expected 2"):
        lines_of.answer(["a\tb\tc"], first=4)


def test_a_labelled_file_is_noticed_once(caplog):
    lines_of = labelled(Labelling())
    lines_of.answer(["a\tb", "label"])
    assert not caplog.text
    lines_of.answer(["label\tb", "label\tc"])
    assert "in: the label in 'label\\tb' is read as text" in caplog.text and "tc" not in caplog.text


def test_answers_to_questions_are_one_object():
    """Also of a part, whose first line has another number, and where one is skipped."""
    lines = [{"id": f'"{n}"', "question": "b", "context": "ac"[: n % 3]} for n in range(4)]
    lines_of = labelled(Labelling(2, ("question", "context")))
    written = []
    for start in (0, 2):
        lines_of.check_lengths(lines, 7)
        written += lines_of.outputs(lines[start : start + 2], 7 + start)[0]
    assert json.loads("\n".join(written)) == {'"0"': "b", '"1"': "ab", '"2"': "abc", '"3"': "b"}
    assert [line[0] for line in written] == ["{", " ", " ", " "]
    lines_of.check_lengths(lines[:1], 7)
    assert lines_of.output(7, lines[0], LineAnswer()) == r"""{"\"0\"": ""}"""


def test_the_json_of_an_answer_names_its_input():
    lines_of = labelled(Labelling(2, ("question", "context")), as_json=True)
    lines = ["b\ta", ["d", "c"], {"id": 3, "question": "f", "context": "e"}, None, ""]
    lines_of._on_error = str  # of pairs a blank line is none
    rows = [json.loads(row) for row in lines_of.outputs(lines, first=5)[0]]
    assert rows == [
        {"line": 5, "input": "b\ta", "text": "ab", "parts": 2},
        {"line": 6, "text": "cd", "parts": 2},
        {"line": 7, "id": 3, "text": "ef", "parts": 2},
        {"line": 8, "input": None, "skipped": True},
        {"line": 9, "input": "", "skipped": True},
    ]

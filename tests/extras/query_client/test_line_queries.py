"""What t2t-query-server writes of the answers of encoders, of the best outputs, and of signatures."""
# Nearest tests of: extras/query_client/served_answers.py

import json

import pytest

from t2t_lite.errors import Failure, UserError
from t2t_lite.extras.query_client import client as query
from t2t_lite.extras.query_client.line_queries import LineQueries, interact
from tests import faults
from tests.extras.query_client.servers import Model

ENCODERS = {
    "classes": (
        {"labels": ["A", "B"], "probabilities": [[0.9, 0.1], [0.2, 0.8]]},
        [{"labels": "A", "probabilities": [0.9, 0.1]}, {"labels": "B", "probabilities": [0.2, 0.8]}],
    ),
    "numbers": ({"values": [1.5, 2]}, [{"values": 1.5}, {"values": 2}]),
    "tags": (
        {"words": [["a", "b"], ["", ""]], "tags": [["X", "Y"], ["", ""]], "probabilities": [[0.5, 1], [0, 0]]},
        [{"words": ["a", "b"], "tags": ["X", "Y"], "probabilities": [0.5, 1]},
         {"words": [], "tags": [], "probabilities": []}],
    ),
    "masks": (
        {"candidates": [[["a", "b"], ["c", ""]], [["d", "e"], ["", ""]]],
         "probabilities": [[[0.5, 0.4], [1, 0]], [[0.5, 0.1], [0, 0]]]},
        [{"candidates": [["a", "b"], ["c", ""]], "probabilities": [[0.5, 0.4], [1, 0]]},
         {"candidates": [["d", "e"]], "probabilities": [[0.5, 0.1]]}],
    ),
}  # fmt: skip


class Encoder:
    address, servable = "localhost:1", query.Servable("model")

    def __init__(self, outputs):
        self.outputs, self.asked = outputs, []

    def predict(self, signature, inputs):
        self.asked.append(signature)
        self.inputs = inputs
        return self.outputs


@pytest.mark.parametrize(("outputs", "expected"), ENCODERS.values(), ids=ENCODERS)
def test_the_lines_of_an_encoder_are_json(outputs, expected, tmp_path, capsys, caplog):
    (tmp_path / "in").write_text("aa\nbb\n")
    transport = Encoder(outputs | {"truncated": [False, True]})
    queries = LineQueries(query.Client(transport))
    for _ in range(2):
        queries.translate_file(str(tmp_path / "in"), str(tmp_path / "out"))
    lines = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert lines == [expected[0] | {"truncated": False}, expected[1] | {"truncated": True}]
    assert "line 2: longer than the export" in caplog.text
    assert len(transport.asked) == 3, "what it is is known after the first answer"
    first = {name: values[:1] for name, values in outputs.items()} | {"truncated": [False]}
    LineQueries(query.Client(Encoder(first))).show("aa")
    assert capsys.readouterr().out.startswith("Input: aa\nOutput: {")


class Pairs:
    """Answers with the lengths of two texts."""

    address, servable = "localhost:1", query.Servable("model")

    def __init__(self, names):
        self.names, self.asked = names, 0

    def predict(self, signature, inputs):
        self.asked += 1
        if inputs.keys() != {*self.names}:
            raise query.ServerError("INVALID_ARGUMENT", f"Missing named input: {self.names[0]}")
        return {"values": [[*map(len, row)] for row in zip(*(inputs[name] for name in self.names), strict=True)]}


@pytest.mark.parametrize("names", [("first", "second"), ("question", "context")], ids=str)
def test_the_lines_of_an_encoder_of_two_texts_have_two_columns(names, tmp_path):
    (tmp_path / "in").write_text("a\tbb\nccc\t\n")
    transport = Pairs(names)
    queries = LineQueries(query.Client(transport))
    for count in range(2):
        queries.translate_file(str(tmp_path / "in"), str(tmp_path / "out"))
        assert (tmp_path / "out").read_text() == '{"values": [1, 2]}\n{"values": [3, 0]}\n'
        asked, transport.asked = transport.asked, 0
        assert asked == (1 if count else 3 + (names[0] == "question"))
    (tmp_path / "in").write_text("a\tbb\nc\n")
    with pytest.raises(UserError, match=r"line 2: 1 column\b.* and .*tab"):
        queries.translate_file(str(tmp_path / "in"), str(tmp_path / "out"))
    (tmp_path / "in").write_text("a\n")
    with pytest.raises(query.ServerError, match="Missing named input"):
        LineQueries(query.Client(transport)).translate_file(str(tmp_path / "in"), str(tmp_path / "out"))


def test_a_typed_line_without_its_columns_does_not_end_the_prompt(monkeypatch, capsys):
    monkeypatch.setattr("t2t_lite.cli.console.typed_lines", lambda *_: ["a\tbb", "a", "ccc\t"])
    interact(LineQueries(query.Client(Pairs(("first", "second")))).show)
    shown = capsys.readouterr()
    assert shown.out.count("Output: ") == 2 and shown.err.startswith("line 1: 1 column. Expected first and second")


@pytest.fixture
def n_best(tmp_path):
    """Returns what a command writes of some lines."""

    def written(text, *arguments, transport=None, **options):
        (tmp_path / "in").write_text(text)
        queries = LineQueries(query.Client(transport or Model(), retries=0), *arguments, **options)
        queries.translate_file(str(tmp_path / "in"), str(tmp_path / "out"))
        return (tmp_path / "out").read_text()

    return written


def test_the_best_outputs_of_a_line(n_best, caplog):
    lines = "a b\nc\n\ncut it\n"
    assert n_best(lines, "return_beams=true") == "A B0\tA B1\tA B2\nC0\tC1\n\nCUT IT0\tCUT IT1\tCUT IT2\n"
    assert "line 4: longer than the export" in caplog.text
    found = n_best(lines, "n_best=2,write_beam_scores=true")
    assert found == "A B0\t0.00\tA B1\t-1.00\nC0\t0.00\tC1\t-1.00\n\t0.00\nCUT IT0\t0.00\tCUT IT1\t-1.00\n"
    with pytest.raises(UserError, match=r"n_best=5: .*at most 3"):  # more than the default beam_size
        n_best(lines, "n_best=5")


def test_what_is_shown_of_a_typed_text(capsys):
    """The best outputs with their scores, or JSON. What is typed is shown so: see test_query_server.test_prompt."""
    queries = LineQueries(query.Client(Model(), retries=0), "n_best=2")
    queries.show("a\tb")
    assert capsys.readouterr().out == "Input: a b\nOutput (score 0.000): A B0\nOutput (score -1.000): A B1\n"
    LineQueries(query.Client(Model()), as_json=True).show("a")
    expected = '{"line": 1, "input": "a", "hypotheses": [{"text": "A", "score": -1.0}]}'
    assert capsys.readouterr().out == f"Input: a\nOutput: {expected}\n"


def test_lines_of_standard_input_have_their_numbers(standard_input, capsys, caplog):
    """They are read in blocks of 256."""
    standard_input("".join(f"a{number}{' cut' if number == 290 else ''}\n" for number in range(1, 301)).encode())
    LineQueries(query.Client(Model()), "n_best=1", as_json=True).translate_stdin("-")
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["line"] for one in found] == [*range(1, 301)] and found[289]["truncated"]
    assert all(one["input"].split()[0] == f"a{one['line']}" for one in found)
    assert [message.partition(":")[0] for message in caplog.messages] == ["line 290"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, query.ServerError("INTERNAL", "out of luck")])
@pytest.mark.parametrize("call", [1, 2])
def test_what_is_not_finished_does_not_appear(tmp_path, call, error):
    (tmp_path / "in").write_text("a\nbb\nccc\n")
    (tmp_path / "out").write_text("of yesterday")
    transport = Model()
    queries = LineQueries(query.Client(transport, retries=0), batch_size=1)
    with faults.failing(transport, "predict", call, error), pytest.raises((KeyboardInterrupt, query.ServerError)):
        queries.translate_file(str(tmp_path / "in"), str(tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "of yesterday" and len([*tmp_path.iterdir()]) == 2
    queries.translate_file(str(tmp_path / "in"), str(tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "A\nBB\nCCC\n"


def test_a_short_answer_and_a_truncated_text_are_told(n_best, caplog):
    short = Model()
    short.predict = lambda signature, inputs: {
        "outputs": [text[:9] for text in inputs["inputs"]], "scores": [0.5] * 3,
        "truncated": [text == "c" for text in inputs["inputs"]],
    }  # fmt: skip
    n_best(f"{'a' * 199}\n{'b' * 200}\nc\n", transport=short, split_sentences="never")
    assert [message.partition(":")[0] for message in caplog.messages] == ["line 2", "line 3"]
    assert "--split_sentences=always" in caplog.messages[0] and "longer than the export" in caplog.messages[1]


def test_json_is_that_of_t2t_decoder(n_best):
    """What a server does not tell, such as the pieces of an output, is left out."""

    def one(text, score):
        return {"text": text, "score": score}

    found = [json.loads(line) for line in n_best("a\u2028b\n\n", "return_beams=true", as_json=True).splitlines()]
    hypotheses = [one(f"A\u2028B{n}", 0.0 - n) for n in range(3)]
    assert found == [
        {"line": 1, "input": "a\u2028b", "hypotheses": hypotheses},
        {"line": 2, "input": "", "skipped": True, "hypotheses": [one("", 0.0)]},
    ]
    assert json.loads(n_best("a\n", as_json=True)) == {"line": 1, "input": "a", "hypotheses": [one("A", -1.0)]}
    split = json.loads(n_best("Ab cd. De", "n_best=3", as_json=True, transport=Model(has_sentences=True)))
    texts = [("AB CD.0 DE0", 0.0), ("AB CD.1 DE1", -2.0), ("AB CD.2 DE1", -3.0)]
    assert split["parts"] == 2 and split["hypotheses"] == [one(*pair) for pair in texts]
    encoder = Encoder({"labels": ["A"], "probabilities": [[0.9, 0.1]], "truncated": [False]})
    found = json.loads(n_best("aa\n", as_json=True, transport=encoder))
    assert found == {"line": 1, "input": "aa", "labels": "A", "probabilities": [0.9, 0.1], "truncated": False}


def test_options_of_a_search_and_of_samples_go_with_each_request(n_best):
    for name, key, value in (("alpha", "alpha", 0.75), ("sampling_seed", "seed", 7)):
        transport = Model()
        n_best("a\n", f"{name}={value},extra_length=3", transport=transport)
        assert transport.asked == [("with_options", {"inputs": ["a"], key: [value], "extra_length": [3]})]


def test_what_does_not_go_together(n_best):
    for settings in ("n_best=2,alpha=0.1,extra_length=3", "return_beams=true,sampling_seed=1,extra_length=3"):
        with pytest.raises(UserError, match="n_best and return_beams"):
            LineQueries(None, settings)
    message = r"--signature_name=x .*JSON.*--decode_hparams, --n_best_format and --split_sentences"
    for options in ({"as_json": True}, {"decode_hparams": "n_best=2"}, {"split_sentences": "always"}):
        with pytest.raises(UserError, match=message):
            LineQueries(None, **options, signature="x")


def test_an_export_that_lacks_what_is_asked_for_says_what_it_has(n_best):
    expected = r"model 'model': no signature %s. The export has n_best, serving_default, with_options\.$"
    for name in ("features", "__saved_model_init_op"):
        with pytest.raises(Failure, match=expected % name):
            n_best("a\n", signature=name)
    with pytest.raises(UserError, match=r"signature_name=with_options: .*: alpha, extra_length"):
        n_best("a\n", signature="with_options")
    older = Model()
    older.signatures = lambda: {"serving_default": {"inputs": "string"}}
    with pytest.raises(Failure, match=r"no signature n_best. The export has serving_default\.$"):
        n_best("a\n", "n_best=2", transport=older)


SIGNATURES = {
    "features": (
        {"features": [[[1.5, 2], [0, 0]], [[3, 4], [5, 6]]], "lengths": [1, 2]},
        [{"features": [[1.5, 2]], "lengths": 1}, {"features": [[3, 4], [5, 6]], "lengths": 2}],
    ),
    "pooled": ({"features": [[0, 1], [2, 0]]}, [{"features": [0, 1]}, {"features": [2, 0]}]),
    "tokens": (
        {"outputs": ["x y", ""], "tokens": [["x", "y"], ["", ""]], "ids": [[5, 6], [0, 0]],
         "input_tokens": [["a", ""], ["a", "b"]], "input_ids": [[3, 0], [3, 4]]},
        [{"outputs": "x y", "tokens": ["x", "y"], "ids": [5, 6], "input_tokens": ["a"], "input_ids": [3]},
         {"outputs": "", "tokens": [], "ids": [], "input_tokens": ["a", "b"], "input_ids": [3, 4]}],
    ),
    "score": (
        {"scores": [-1.5, -2], "lengths": [1, 2], "token_scores": [[-1.5, 0], [-1, -1]]},
        [{"scores": -1.5, "lengths": 1, "token_scores": [-1.5]},
         {"scores": -2, "lengths": 2, "token_scores": [-1, -1]}],
    ),
    "of another program": (
        {"tokens": [["a", ""], ["b", "c"]], "classes": [[1, 2], [3, 0]], "lengths": [[1], [2]]},
        [{"tokens": ["a"], "classes": [1, 2], "lengths": [1]},
         {"tokens": ["b", "c"], "classes": [3, 0], "lengths": [2]}],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("outputs", "expected"), SIGNATURES.values(), ids=SIGNATURES)
def test_outputs_of_a_signature_are_json_without_padding(outputs, expected, n_best):
    transport = Encoder(outputs)
    columns = ["inputs", "targets"] if "scores" in outputs else ["inputs"]
    transport.signatures = lambda: {"mine": dict.fromkeys(reversed(columns), "string")}
    lines = "".join("\t".join(f"{n} {name}" for name in columns) + "\n" for n in range(2))
    assert [*map(json.loads, n_best(lines, transport=transport, signature="mine").splitlines())] == expected
    assert transport.asked == ["mine"]
    assert transport.inputs == {name: [f"{n} {name}" for n in range(2)] for name in columns}

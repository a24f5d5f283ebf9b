"""What t2t-query-server writes of an encoder's answers."""

import json

import pytest

from t2t_lite.errors import UserError
from t2t_lite.serving import client as query
from t2t_lite.serving.line_queries import LineQueries

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
    assert "line 2: longer than the export takes" in caplog.text
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
    with pytest.raises(UserError, match=r"line 2: 1 column. Expected .* and .* with a tab between them"):
        queries.translate_file(str(tmp_path / "in"), str(tmp_path / "out"))
    (tmp_path / "in").write_text("a\n")
    with pytest.raises(query.ServerError, match="Missing named input"):
        LineQueries(query.Client(transport)).translate_file(str(tmp_path / "in"), str(tmp_path / "out"))

"""A small translator whose attention is drawn, and readers of what a drawing shows."""

import xml.etree.ElementTree as ElementTree

import keras
import numpy as np
import pytest

from t2t_lite.decoding.translator import Translator
from t2t_lite.models import Transformer
from t2t_lite.settings.config import HParams
from t2t_lite.text.vocabulary import ByteTextEncoder

SVG = "{http://www.w3.org/2000/svg}"
SIZES = {"hidden_size": 16, "filter_size": 16, "num_heads": 4, "num_encoder_layers": 3, "num_decoder_layers": 2}


def make_translator(**options):
    """Returns a Translator of bytes with random weights large enough for sharp attention."""
    keras.utils.set_random_seed(1)
    model = Transformer(258, **SIZES, **options)
    model.build()
    for weight in model.trainable_weights:
        weight.assign(weight * 3)
    return Translator(model, {"inputs": ByteTextEncoder(), "targets": ByteTextEncoder()}, HParams())


def expected_weights(translator, text, target, kind):
    """Returns the model's own weights of a text and its target, float32 [layers, heads, queries, keys]."""
    encoder = translator.encoders["inputs"]
    ids = {"inputs": np.array([[*encoder.encode(text), 1]]), "targets": np.array([[*encoder.encode(target), 1]])}
    return np.array([keras.ops.convert_to_numpy(layer)[0] for layer in translator.model.attention_weights(ids)[kind]])


def read_svg(drawing):
    """Returns (rectangles, lines, texts) of the SVG file, lists of dicts of attributes; texts with "text"."""
    root = ElementTree.fromstring(drawing.svg())
    found = []
    for tag in ("rect", "line", "text"):
        elements = root.iterfind(f"{SVG}g/{SVG}{tag}")
        found.append([{k: _value(v) for k, v in e.attrib.items()} | {"text": e.text} for e in elements])
    return found


def _value(text):
    try:
        return float(text)
    except ValueError:
        return text


def head_colors(rectangles, texts):
    """Returns {colour: head} as the legend over lines says."""
    boxes = [box for box in rectangles if box["width"] == box["height"] == 12]
    numbers = {(text["x"], text["y"]): int(text["text"]) for text in texts if text["text"].isdigit()}
    return {box["fill"]: numbers[box["x"] + 16, box["y"] + 6] for box in boxes}


def columns_of(texts):
    """Returns [{y: token}, {y: token}]: the tokens to the left and to the right, from above."""
    tokens = [text for text in texts if text["font-size"] == 13]
    sides = sorted({text["x"] for text in tokens})
    return [{t["y"]: t["text"] for t in sorted(tokens, key=lambda t: t["y"]) if t["x"] == side} for side in sides]


def drawn_weights(drawing):
    """Returns (queries, keys, {head: float [queries, keys]}) of lines, found by their places and colours."""
    rectangles, lines, texts = read_svg(drawing)
    queries, keys = columns_of(texts)
    colors = head_colors(rectangles, texts)
    weights = {head: np.zeros((len(queries), len(keys))) for head in colors.values()}
    for line in lines:
        row, key = [*queries].index(line["y1"]), [*keys].index(line["y2"])
        weights[colors[line["stroke"]]][row, key] += line["stroke-opacity"]
    return [*queries.values()], [*keys.values()], weights


def drawn_matrices(drawing, rows, columns):
    """Returns a list of {"weights" [rows, columns], "rows", "columns": labels from above and from the left}.

    Each is found by its grey background, in the order in which they were drawn.
    """
    rectangles, _, texts = read_svg(drawing)
    found = []
    for paper in [box for box in rectangles if box["fill"] == "#f4f4f4"]:
        width, height = paper["width"] / columns, paper["height"] / rows
        weights = np.zeros((rows, columns))
        for cell in rectangles:
            column, row = (cell["x"] - paper["x"]) / width, (cell["y"] - paper["y"]) / height
            if cell is not paper and -0.1 < column < columns - 0.5 and -0.1 < row < rows - 0.5:
                assert (cell["width"], cell["height"]) == pytest.approx((width, height), abs=0.02)
                weights[round(row), round(column)] = cell["fill-opacity"]
        beside = [t for t in texts if t["x"] == paper["x"] - 5 and 0 < t["y"] - paper["y"] < paper["height"]]
        above = [t for t in texts if t["y"] == paper["y"] - 6 and 0 < t["x"] - paper["x"] < paper["width"]]
        labels = [t["text"] for t in sorted(beside, key=lambda t: t["y"])]
        found.append({"weights": weights, "rows": labels})
        found[-1]["columns"] = [t["text"] for t in sorted(above, key=lambda t: t["x"])]
    return found

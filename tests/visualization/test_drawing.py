"""Drawings as SVG and PNG: their text, their files and their size."""

import io
import logging
import struct
import xml.etree.ElementTree as ElementTree

import matplotlib.image
import numpy as np
import pytest

from t2t_lite.errors import UserError
from t2t_lite.visualization.drawing import Drawing, drawable, is_right_to_left
from tests.visualization.attention_cases import SVG, read_svg

HOSTILE = {
    "markup": "</text><script>alert(1)</script>",
    "entities": "&amp;]]>\"'&#0;",
    "NUL and controls": "a\0b\x1b[31m\x7f\x9f",
    "turned text": "a\u202egnp.exe\u2066",
    "no characters": "\ufffe\uffff\udc80",
    "line ends": "a\nb\u2028c\r",
    "mathematics": "$x^2$ \\frac",
    "marks": "a" + "\u0301" * 1000,
}


def some_drawing(text="text"):
    drawing = Drawing(120, 80, text)
    drawing.rectangle(0, 0, 60, 80, "#ff0000", 1.0, note=text)
    drawing.line(60, 10, 120, 70, "#0000ff", 0.5, note=text)
    drawing.text(5, 40, text, angle=30, bold=True)
    return drawing


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_text_is_text(text):
    """Whatever a sentence holds, the file is XML of the five elements that are drawn, and PNG and PDF are made."""
    drawing = some_drawing(text)
    root = ElementTree.fromstring(drawing.svg().encode())
    assert {element.tag for element in root.iter()} == {
        SVG + name for name in ("svg", "g", "rect", "line", "text", "title")
    }
    (shown,) = (element.text for element in root.iter(f"{SVG}text"))
    assert shown == drawable(text) and len(shown) <= 24
    assert not {*shown} & {*"\0\x1b\u202e\u2066\u2028\n\r\udc80\ufffe"}
    for format in ("png", "pdf"):
        assert len(drawing.content(format)) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("format", ["svg", "png", "pdf"])
def test_equal_drawings_are_equal_files(format):
    assert some_drawing().content(format) == some_drawing().content(format)
    assert b"Date" not in some_drawing().content(format)
    assert some_drawing().content(format) != some_drawing("other").content(format)


def test_png_shows_what_svg_says():
    picture = matplotlib.image.imread(io.BytesIO(some_drawing("").content("png")))[..., :3]
    assert picture.shape[:2] == (160, 240)  # 144 dots per inch, 72 units
    np.testing.assert_allclose(picture[10, 60], [1, 0, 0], atol=0.01)
    np.testing.assert_allclose(picture[80, 180], [0.5, 0.5, 1], atol=0.01)  # on the line, half through
    np.testing.assert_allclose(picture[150, 130], [1, 1, 1], atol=0.01)


def test_a_text_with_a_halo_can_be_read_on_a_dark_color():
    def pale(halo):
        """Says how many points of a blue picture have become pale, and whether the SVG paints an edge first."""
        drawing = Drawing(60, 20)
        drawing.rectangle(0, 0, 60, 20, "#0000ff")
        drawing.text(5, 10, "sehen", halo=halo)
        (text,) = read_svg(drawing)[2]
        picture = matplotlib.image.imread(io.BytesIO(drawing.content("png")))[..., :3]
        return (picture.min(-1) > 0.7).sum(), text.get("paint-order")

    assert pale(False) == (0, None)
    points, order = pale(True)
    assert points > 300 and order == "stroke"  # of 4,800


@pytest.mark.slow
def test_a_huge_png_has_fewer_dots(tmp_path):
    width, height = struct.unpack(">II", Drawing(20_000, 4000).content("png")[16:24])  # of the header
    assert 1e6 < width * height <= 41e6


@pytest.mark.parametrize(
    ("text", "anchor", "attributes"),
    [
        ("word", "left", {"text-anchor": "start"}),
        ("▁שלום", "left", {"text-anchor": "end", "direction": "rtl"}),
        ("▁سلام", "right", {"text-anchor": "start", "direction": "rtl"}),
        ("12 שלום", "middle", {"text-anchor": "middle", "direction": "rtl"}),
    ],
)
def test_text_stays_on_its_side_whatever_way_it_is_written(text, anchor, attributes):
    drawing = Drawing(100, 20)
    drawing.text(50, 10, text, anchor=anchor)
    (found,) = read_svg(drawing)[2]
    assert {name: found[name] for name in ("text-anchor", "direction") if name in found} == attributes
    assert is_right_to_left(text) == ("direction" in attributes)


def test_letters_without_a_font_are_one_warning(caplog):
    with caplog.at_level(logging.WARNING, "t2t_lite"):
        some_drawing("\U00013000\U00013001").content("png")
    assert [record.getMessage()[:12] for record in caplog.records] == ["2 characters"]


def test_files_by_their_endings(tmp_path):
    for name in ("a.svg", "a.PNG", "a.pdf"):
        some_drawing().save(str(tmp_path / name))
    starts = {path.name: path.read_bytes()[:5] for path in tmp_path.iterdir()}
    assert starts == {"a.svg": b"<svg ", "a.PNG": b"\x89PNG\r", "a.pdf": b"%PDF-"}
    for name in ("a.jpg", "a"):
        with pytest.raises(UserError, match=r"\.svg, \.png or \.pdf"):
            some_drawing().save(str(tmp_path / name))

"""Drawings of rectangles, lines and texts, written as SVG, PNG or PDF, and the common style of all pictures."""

import colorsys
import dataclasses
import io
import os
import unicodedata
import warnings
import xml.etree.ElementTree as ElementTree

from t2t_lite import files
from t2t_lite.errors import LOGGER, UserError

# Colours for runs, heads and sides that colour-blind readers can distinguish (Okabe and Ito 2008, without yellow,
# followed by darker colours).
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7b3294", "#666666")
INK = "#222222"
FAINT = "#bbbbbb"
FORMATS = ("svg", "png", "pdf")

# Keeps dates and program names out of files, so that equal pictures give equal files.
_METADATA = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None}, "svg": {"Date": None}}
_MOST_CHARACTERS = 24  # longer labels are truncated
_LINE_WIDTH = 2
_HALO = {"color": "#ffffff", "width": 4, "opacity": 0.8}
_SIDES = {"left": "start", "middle": "middle", "right": "end"}  # SVG's names for left-to-right text
_MOST_PIXELS = 40e6  # the largest size of a PNG file
_FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
# Fonts of common systems with characters that DejaVu lacks, which are used if they are installed.
_MORE_FONTS = ("Noto Sans CJK JP", "Noto Sans CJK SC", "WenQuanYi Zen Hei", "Noto Sans Devanagari", "Noto Sans Thai")
# Bidirectional control characters would reorder the text around them. Characters of the categories below have no glyph
# or are invalid in XML.
_TURNING = {*"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"}
_NOT_DRAWN = ("Cc", "Cs", "Cn", "Co", "Zl", "Zp")


def color(number):
    """Returns the colour of line, bar or head `number` as #rrggbb. The first hundred colours are different."""
    if number < len(COLORS):
        return COLORS[number]
    hue = number * 0.618034 % 1.0  # the golden ratio makes neighbouring colours differ
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hsv_to_rgb(hue, 0.75, 0.75))


def new_figure(width, height, layout="constrained"):
    """Creates a matplotlib Figure that needs no window, with sizes in inches; axes do not overlap by default."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def style_axes(axes, xlabel, ylabel, thousands="x"):
    """Labels the axes of a plot, and gives them a grid and no frame.

    Args:
        axes: matplotlib Axes.
        xlabel, ylabel: str.
        thousands: "x", "y", "xy" or "", the axes whose numbers are formatted like 10,000.
    """
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.grid(color=FAINT, alpha=0.4, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    for name in thousands:
        getattr(axes, f"{name}axis").set_major_formatter("{x:,.0f}")


def format_of(path, flag=""):
    """Returns "svg", "png" or "pdf" from a path's extension. Raises `UserError` for other extensions."""
    ending = os.path.splitext(path)[1].lower().removeprefix(".")
    if ending not in FORMATS:
        where = f"{flag}={path}" if flag else path
        raise UserError(f"{where} is not the name of a picture. Expected a name that ends in .svg, .png or .pdf.")
    return ending


def check_picture(flag, path):
    """Raises `UserError` if a picture cannot be written to the path given by a flag, such as "--plot"."""
    if os.path.isdir(path):
        raise UserError(f"{flag}={path}: is a folder. Expected a file name, such as {path.rstrip('/')}/picture.png.")
    format_of(path, flag)
    folder = os.path.dirname(path) or "."
    files.make_folder(folder)
    files.check_writable(folder)


def figure_bytes(figure, format="png", dpi=120):
    """Returns a matplotlib Figure as the bytes of a file; equal figures give equal bytes."""
    import matplotlib

    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "t2t_lite", "pdf.fonttype": 42}):
        figure.savefig(content, format=format, dpi=dpi, metadata=_METADATA[format])
    return content.getvalue()


def write_picture(path, figure):
    """Writes a matplotlib Figure in the format of the extension. Raises `UserError`: see `format_of`."""
    Plot(figure).save(path)


class Picture:
    """Base class of pictures, whose method `content` returns the bytes of a file in one of `FORMATS`."""

    def save(self, path):
        """Writes the picture in the format of the extension .svg, .png or .pdf; otherwise raises `UserError`."""
        files.write_bytes(path, self.content(format_of(path)))


class Plot(Picture):
    """A matplotlib Figure that notebooks display, and that can be written as SVG, PNG or PDF.

    Args:
        figure: matplotlib Figure.
    """

    def __init__(self, figure):
        self.figure = figure

    def content(self, format="png"):
        """Returns the bytes of a file in the format "svg", "png" or "pdf"; equal figures give equal bytes."""
        return figure_bytes(self.figure, format)

    def _repr_png_(self):
        return self.content()


@dataclasses.dataclass(frozen=True)
class Text:
    """A line of text in a drawing.

    Attributes:
        x, y: float, the left end, middle or right end of the text, as `anchor` says, at half the text's height.
        text: str, without characters that cannot be drawn: see `drawable`.
        size: float.
        anchor: "left", "middle" or "right", regardless of the writing direction.
        color: str, #rrggbb.
        angle: float, degrees clockwise.
        bold: bool.
        halo: bool, whether the letters have a pale edge, so that they can be read on any color.
    """

    x: float
    y: float
    text: str
    size: float = 13
    anchor: str = "left"
    color: str = INK
    angle: float = 0
    bold: bool = False
    halo: bool = False


class Drawing(Picture):
    """A drawing of rectangles, with lines on top of the rectangles, and texts on top of the lines.

    x points right, y points down, and one unit is one point. Notebooks display the drawing. Equal drawings give equal
    files.

    Args:
        width, height: float.
        title: str, for screen readers.

    Attributes:
        rectangles: list of (x, y, width, height, color, opacity, note).
        lines: list of (x1, y1, x2, y2, color, opacity, note).
        texts: list of `Text`.
    """

    def __init__(self, width, height, title=""):
        self.width, self.height, self.title = width, height, drawable(title, None)
        self.rectangles, self.lines, self.texts = [], [], []

    def rectangle(self, x, y, width, height, color, opacity=1.0, note=""):
        """Adds a rectangle; `note` is its tooltip in browsers. An opacity above 1, such as a rounded sum, means 1."""
        self.rectangles.append((x, y, width, height, color, min(opacity, 1.0), note))

    def line(self, x1, y1, x2, y2, color, opacity=1.0, note=""):
        """Adds a line: see `rectangle`."""
        self.lines.append((x1, y1, x2, y2, color, min(opacity, 1.0), note))

    def text(self, x, y, text, most=_MOST_CHARACTERS, **options):
        """Adds a text to the drawing, as `drawable` returns it. The options are attributes of `Text`."""
        self.texts.append(Text(x, y, drawable(text, most), **options))

    def svg(self):
        """Returns the drawing as the contents of an SVG file, a str."""
        size = {"width": _number(self.width), "height": _number(self.height)}
        box = f"0 0 {size['width']} {size['height']}"
        root = ElementTree.Element(
            "svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "viewBox": box, "role": "img"}
        )
        ElementTree.SubElement(root, "title").text = self.title
        ElementTree.SubElement(root, "rect", {**size, "fill": "#ffffff"})
        group = ElementTree.SubElement(root, "g", {"class": "rectangles"})
        for *numbers, color, opacity, note in self.rectangles:
            place = dict(zip(("x", "y", "width", "height"), map(_number, numbers), strict=True))
            _with_note(group, "rect", {**place, "fill": color, "fill-opacity": _number(opacity, 4)}, note)
        group = ElementTree.SubElement(root, "g", {"class": "lines", "stroke-width": str(_LINE_WIDTH)})
        for *numbers, color, opacity, note in self.lines:
            place = dict(zip(("x1", "y1", "x2", "y2"), map(_number, numbers), strict=True))
            _with_note(group, "line", {**place, "stroke": color, "stroke-opacity": _number(opacity, 4)}, note)
        group = ElementTree.SubElement(root, "g", {"class": "texts", "font-family": _FONT, "xml:space": "preserve"})
        for text in self.texts:
            ElementTree.SubElement(group, "text", _svg_text(text)).text = text.text
        return ElementTree.tostring(root, encoding="unicode") + "\n"

    _repr_svg_ = svg

    def figure(self):
        """Returns the drawing as a matplotlib Figure of the same size."""
        from matplotlib import font_manager
        from matplotlib.collections import LineCollection, PolyCollection
        from matplotlib.colors import to_rgba
        from matplotlib.patheffects import withStroke

        halo = [withStroke(foreground=_HALO["color"], linewidth=_HALO["width"], alpha=_HALO["opacity"])]
        figure = new_figure(self.width / 72, self.height / 72, layout=None)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, self.width), ylim=(self.height, 0))
        axes.axis("off")
        corners = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h)] for x, y, w, h, *_ in self.rectangles]
        colors = [to_rgba(color, opacity) for *_, color, opacity, _ in self.rectangles]
        axes.add_collection(PolyCollection(corners, facecolors=colors, linewidths=0), autolim=False)
        ends = [[(x1, y1), (x2, y2)] for x1, y1, x2, y2, *_ in self.lines]
        colors = [to_rgba(color, opacity) for *_, color, opacity, _ in self.lines]
        axes.add_collection(LineCollection(ends, colors=colors, linewidths=_LINE_WIDTH), autolim=False)
        installed = {*font_manager.get_font_names()}
        family = ["DejaVu Sans", *(name for name in _MORE_FONTS if name in installed)]
        for text in self.texts:
            axes.text(
                text.x, text.y, text.text, fontsize=text.size, color=text.color,
                horizontalalignment={"middle": "center"}.get(text.anchor, text.anchor),
                verticalalignment="center_baseline", rotation=-text.angle, rotation_mode="anchor",
                fontweight="bold" if text.bold else "normal", family=family, parse_math=False,
                path_effects=halo if text.halo else None,
            )  # fmt: skip
        return figure

    def content(self, format="svg"):
        """Returns the bytes of a file in the format "svg", "png" or "pdf"."""
        if format == "svg":
            return self.svg().encode()
        dpi = min(144, 72 * (_MOST_PIXELS / (self.width * self.height)) ** 0.5)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            content = figure_bytes(self.figure(), format, dpi)
        if lacking := sum("missing from font" in str(warning.message) for warning in caught):
            LOGGER.warning(
                f"{lacking} characters are missing from all installed fonts, and are drawn as boxes. An .svg file is "
                "drawn with the fonts of the program that displays it."
            )
        return content


def drawable(text, most=_MOST_CHARACTERS):
    """Truncates a text to `most` characters; undrawable characters, and those that reorder text, become U+FFFD."""
    text = text if most is None or len(text) <= most else f"{text[: most - 1]}…"
    return "".join("\ufffd" if c in _TURNING or unicodedata.category(c) in _NOT_DRAWN else c for c in text)


def is_right_to_left(text):
    """Returns whether a text is right-to-left, judging by its first letter that has a direction."""
    directions = (unicodedata.bidirectional(c) for c in text)
    return next((direction in ("R", "AL") for direction in directions if direction in ("L", "R", "AL")), False)


def text_width(text, size=13, most=_MOST_CHARACTERS):
    """Estimates the width of a text. The estimate is generous, because fonts differ."""
    widths = {"W": 1.05, "F": 1.05}
    text = drawable(text, most)
    return size * sum(
        0 if unicodedata.combining(c) else widths.get(unicodedata.east_asian_width(c), 0.66) for c in text
    )


def _svg_text(text):
    place = {"x": _number(text.x), "y": _number(text.y), "dy": "0.35em", "font-size": _number(text.size)}
    anchor = _SIDES[text.anchor]
    if is_right_to_left(text.text):  # right-to-left text starts at its right end
        anchor = {"start": "end", "end": "start"}.get(anchor, anchor)
        place |= {"direction": "rtl"}
    place |= {"text-anchor": anchor, "fill": text.color}
    place |= {"font-weight": "bold"} if text.bold else {}
    if text.halo:  # the edge is painted first, below the letters
        place |= {"stroke": _HALO["color"], "stroke-width": str(_HALO["width"]), "stroke-linejoin": "round"}
        place |= {"stroke-opacity": str(_HALO["opacity"]), "paint-order": "stroke"}
    return place | ({"transform": f"rotate({_number(text.angle)} {place['x']} {place['y']})"} if text.angle else {})


def _with_note(parent, tag, attributes, note):
    element = ElementTree.SubElement(parent, tag, attributes)
    if note:
        ElementTree.SubElement(element, "title").text = drawable(note, None)


def _number(value, digits=2):
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")

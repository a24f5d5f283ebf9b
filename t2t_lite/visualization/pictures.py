"""The one style of all pictures: colours, axes, and files that are equal byte for byte when drawn again."""

import colorsys
import io
import os

from t2t_lite import files
from t2t_lite.errors import UserError

# Told apart by the colour-blind (Okabe and Ito 2008, without yellow, and darker ones after it); for runs, heads, sides.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#7b3294", "#666666")
INK = "#222222"
FAINT = "#bbbbbb"
FORMATS = ("svg", "png", "pdf")

# No dates and no random names in files.
_METADATA = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None}, "svg": {"Date": None}}


def color(number):
    """Returns the colour, #rrggbb, of line, bar or head `number`, from 0; no two of the first hundred are equal."""
    if number < len(COLORS):
        return COLORS[number]
    hue = number * 0.618034 % 1.0  # the golden ratio keeps neighbours apart
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hsv_to_rgb(hue, 0.75, 0.75))


def new_figure(width, height):
    """Returns a matplotlib Figure in inches, whose axes do not overlap, without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def style_axes(axes, xlabel, ylabel, thousands="x"):
    """Labels axes of a plot, with a grid and without a frame.

    Args:
        axes: matplotlib's.
        xlabel, ylabel: str.
        thousands: "x", "y", "xy" or "": axes whose numbers are written as 10,000.
    """
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.grid(color=FAINT, alpha=0.4, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    for name in thousands:
        getattr(axes, f"{name}axis").set_major_formatter("{x:,.0f}")


def format_of(path, flag=""):
    """Returns "svg", "png" or "pdf", as the path ends. Raises `UserError` for any other ending; `flag`: what has it."""
    ending = os.path.splitext(path)[1].lower().removeprefix(".")
    if ending not in FORMATS:
        where = f"{flag}={path}" if flag else path
        raise UserError(f"{where}: is no name of a picture. Expected one that ends in .svg, .png or .pdf.")
    return ending


def check_picture(flag, path):
    """Raises `UserError` if no picture can be written to the path that a flag, such as "--plot", has."""
    if os.path.isdir(path):
        raise UserError(f"{flag}={path}: is a folder. Expected a file to write: {path.rstrip('/')}/picture.png.")
    format_of(path, flag)
    folder = os.path.dirname(path) or "."
    files.make_folder(folder)
    files.check_writable(folder)


def figure_bytes(figure, format="png", dpi=120):
    """Returns a matplotlib Figure as the bytes of a file, the same for the same figure."""
    import matplotlib

    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "t2t_lite", "pdf.fonttype": 42}):
        figure.savefig(content, format=format, dpi=dpi, metadata=_METADATA[format])
    return content.getvalue()


def write_picture(path, figure):
    """Writes a matplotlib Figure as its path ends, as `files.write_bytes` does. Raises `UserError`: see `format_of`."""
    files.write_bytes(path, figure_bytes(figure, format_of(path)))

"""A picture that matplotlib draws, with the methods of a `Drawing`."""

from t2t_lite import files
from t2t_lite.visualization import pictures


class Plot:
    """A matplotlib Figure that a notebook shows, and that is written as SVG, PNG or PDF.

    Args:
        figure: matplotlib Figure.
    """

    def __init__(self, figure):
        self.figure = figure

    def content(self, format="png"):
        """Returns the bytes of a file of the format "svg", "png" or "pdf", the same for the same figure."""
        return pictures.figure_bytes(self.figure, format)

    def save(self, path):
        """Writes the picture in the format of the extension: .svg, .png or .pdf. Raises `UserError` for others."""
        files.write_bytes(path, self.content(pictures.format_of(path)))

    def _repr_png_(self):
        return self.content()

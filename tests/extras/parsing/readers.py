"""The readers of trees: see `tests.files.readers`. What damages trees: test_trees.py."""

from t2t_lite.extras.parsing import evalb, trees
from tests.files.readers import TEXT, Reader, read_all

_TREES = b"(S (NN one))\n" * 9
READERS = {
    "trees": Reader(
        _TREES, read_all(trees.read_trees), TEXT | dict.fromkeys(("U+2028", "NUL"), "part of speech")
    ),
    "predicted trees": Reader(_TREES, evalb.read_predictions, TEXT),
}  # fmt: skip
DAMAGED = {}

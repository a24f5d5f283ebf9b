"""The reader of CoNLL's columns: see `tests.files.readers`."""

from t2t_lite.extras.tagging.conll import read_conll
from tests.files.readers import TEXT, Reader, read_all

READERS = {"words": Reader(b"one X\ntwo Y\n\none X\n" * 9, read_all(read_conll), TEXT)}
DAMAGED = {
    "words": [
        ("a", "a X\nb\n", ", line 2: found 1 column. Expected 2, the word first"),
        ("a", "a X\nb Y\n\nc P X\n", ", line 4: found 3 columns. Expected 2"),
        ("a", "a\tX\n\tY\n", ", line 2: found 2 columns, one of them blank"),
        ("a", "token\ttag\nAda\tA\n", ", line 1: 'token<TAB>tag' looks like a header"),
        ("a", "1\tAda\tx\tA\n2\truns\ty\tB\n", r", line 1: the first column numbers the words\. .*--columns=2,4"),
    ],
}

"""The reader of CoNLL's columns: see `tests.files.readers`. What damages columns: test_conll.py."""

from t2t_lite.extras.tagging.conll import read_conll
from tests.files.readers import TEXT, Reader, read_all

READERS = {"words": Reader(b"one X\ntwo Y\n\none X\n" * 9, read_all(read_conll), TEXT)}
DAMAGED = {}

"""Every reader of files that users bring: a small file that it reads, and what it answers to faults of another."""

import gzip
import importlib
import os
import pathlib
import socket
from collections.abc import Callable
from typing import NamedTuple

from t2t_lite import files
from t2t_lite.corpora import plain_text, tables, tmx, wmt_files
from t2t_lite.decoding.command import text_files
from t2t_lite.evaluation import answer_scores, score_files
from t2t_lite.runs.log import read_lines as read_log
from t2t_lite.text import subwords, vocabulary
from t2t_lite.text.class_label_encoder import ClassLabelEncoder
from t2t_lite.text.published.wordpiece import WordPieceEncoder
from tests.data import packing
from tests.text.kinds import trained
from tests.text.published_samples import PIECES

READ = None  # an answer: no mistake


def _written(change):
    return lambda path, content: path.write_bytes(change(content))


def _shut(path, content):
    path.write_bytes(content)
    path.chmod(0)


FAULTS = {  # functions of a path and the bytes of a good file
    "missing": lambda path, content: None,
    "folder": lambda path, content: path.mkdir(),
    "loop": lambda path, content: path.symlink_to(path.name),
    "pipe": lambda path, content: os.mkfifo(path),
    "socket": lambda path, content: socket.socket(socket.AF_UNIX).bind(str(path)),
    "shut": _shut,
    "empty": _written(lambda content: b""),
    "other bytes": _written(lambda content: bytes(range(128, 256)) * 9),
    "a bad line": _written(lambda content: content + b"gr\xf6\xdfe\n"),
    "UTF-16": _written(lambda content: content.decode("latin1").encode("utf-16")),
    "CR": _written(lambda content: content.replace(b"\n", b"\r")),
    "cut gz": _written(lambda content: gzip.compress(content + bytes(9999), mtime=0)[:-9]),
    "gz twice": _written(lambda content: gzip.compress(gzip.compress(content, mtime=0), mtime=0)),
    "zstd": _written(lambda content: b"\x28\xb5\x2f\xfd" + content),
    "PDF": _written(lambda content: b"%PDF-1.5\n" + content),
    "zip": _written(lambda content: b"PK\x03\x04rest" + content),
    "gz": _written(lambda content: gzip.compress(content, mtime=0)),
    "BOM": _written(lambda content: b"\xef\xbb\xbf" + content),
    "CR LF": _written(lambda content: content.replace(b"\n", b"\r\n")),
    "U+2028": _written(lambda content: content.replace(b"one", "o\u2028ne".encode())),
    "NUL": _written(lambda content: content.replace(b"one", b"o\0ne")),
    "a long line": _written(lambda content: content.replace(b"one", b"one" * 33_333)),
}
_PATHS = {
    "missing": "no such file", "folder": "is a folder", "loop": "a link that leads back", "pipe": "pipe",
    "socket": "is a socket", "shut": "no permission to read",
}  # fmt: skip
BYTES = _PATHS | dict.fromkeys(FAULTS.keys() - _PATHS, READ)
TEXT = BYTES | {
    "empty": "the file is empty", "other bytes": "line 1: byte 0x80 at position 0 is not UTF-8",
    "a bad line": "byte 0xf6 at position 2 is not UTF-8", "UTF-16": "the text is UTF-16", "CR": "CR alone",
    "cut gz": r"damaged \(it ends too early\)", "gz twice": "gzip -dc", "zstd": "damaged", "PDF": "PDF", "zip": "unzip",
}  # fmt: skip
_NOT_UTF_8 = dict.fromkeys(("other bytes", "a bad line", "UTF-16", "cut gz", "gz twice", "zstd", "gz"), "not UTF-8")
LINES_OF_A_VOCABULARY = BYTES | _NOT_UTF_8
JSON = LINES_OF_A_VOCABULARY | dict.fromkeys(
    ("empty", "PDF", "zip", "BOM", "NUL", *_NOT_UTF_8), "not readable as JSON: .*Copy the file again"
)


def binary(words):
    return BYTES | dict.fromkeys(FAULTS.keys() - _PATHS - {"U+2028", "NUL", "a long line"}, words)


class Reader(NamedTuple):
    """A reader.

    Attributes:
        content: bytes of a file that it reads.
        read: function of its path.
        answers: {name in `FAULTS`: regular expression of the message, or `READ`}.
    """

    content: bytes
    read: Callable
    answers: dict


def read_all(read, *arguments):
    """Returns the function of a path that reads all that `read` yields."""
    return lambda path: list(read(path, *arguments))


PAIRS = tables.Layout(("inputs", "targets"), languages=("en", "de"))
LABELS = tables.Layout(("label", "text"))
_TEXT = packing.lines([f"number one, größe {n}" for n in range(30)])
_COLUMNS = packing.lines(f"label {n % 2}\tnumber one {n}" for n in range(30))
_MODEL = trained(["one two"] * 9, vocab_size=12, hard_vocab_limit=False, model_type="bpe")
READERS = {
    "bytes": Reader(b"one\n", files.read_bytes, BYTES),
    "lines": Reader(_TEXT, read_all(plain_text.read_lines), TEXT),
    "text": Reader(_TEXT, read_all(plain_text.read_text), TEXT),
    "pairs": Reader(_TEXT, lambda path: list(plain_text.read_pairs(path, path)), TEXT),
    "columns": Reader(_COLUMNS, read_all(tables.read_pairs, PAIRS), TEXT),
    "labels": Reader(_COLUMNS, read_all(tables.read_table, LABELS), TEXT),
    "segments": Reader(packing.sgm(["one", "two"] * 9), read_all(wmt_files.read_segments), TEXT),
    "memory": Reader(
        packing.tmx(["one"], ["eins"]),
        read_all(tmx.read_pairs),
        TEXT
        | {"UTF-16": READ, "CR": READ, "other bytes": "byte 0x80 is not UTF-8", "a bad line": "byte 0xf6 is not UTF-8"}
        | dict.fromkeys(("empty", "gz twice", "PDF", "zip"), "not XML|not UTF-8"),
    ),
    "the decoder's lines": Reader(_TEXT, text_files.input_lines, TEXT | {"empty": READ}),
    "scored lines": Reader(_TEXT, score_files.read_lines, TEXT),
    "labelled answers": Reader(_COLUMNS, lambda path: answer_scores.read_reference(path, "classification"), TEXT),
    "JSON": Reader(b'{"one": 1\n}', files.read_json, JSON),
    "log": Reader(
        b'{"event": "progress", "step": 1, "more": "one"}\n',
        read_all(read_log),
        BYTES | {"missing": READ, "loop": READ},
    ),
    "SentencePiece": Reader(_MODEL, vocabulary.SentencePieceEncoder, binary("not a SentencePiece model")),
    "another SentencePiece": Reader(
        _MODEL, lambda path: subwords.adopt_sentencepiece(path, f"{path}-mine"), binary("not a SentencePiece model")
    ),
    "tokens": Reader(
        b"<pad>\n<EOS>\none\n",
        vocabulary.TokenTextEncoder,
        LINES_OF_A_VOCABULARY
        | dict.fromkeys(("empty", "CR", "PDF"), "begins with .* Expected the lines <pad> and <EOS>"),
    ),
    "pieces": Reader(
        packing.lines([*PIECES, "one"]),
        WordPieceEncoder,
        LINES_OF_A_VOCABULARY | {"empty": "line 1: empty", "CR": r"no \[UNK\] among 1 pieces"},
    ),
    "class labels": Reader(
        b"no\none\n",
        lambda path: ClassLabelEncoder(class_labels_fname=path),
        LINES_OF_A_VOCABULARY | {"empty": "none of them blank"},
    ),
}
DAMAGED = {}  # of extras, see `test_readers`
for _path in sorted(pathlib.Path(__file__).parents[1].glob("extras/*/readers.py")):
    _of_extra = importlib.import_module(f"tests.extras.{_path.parent.name}.readers")
    READERS |= _of_extra.READERS
    DAMAGED |= _of_extra.DAMAGED

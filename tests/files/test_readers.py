"""Every reader with every fault of a file: it reads the file, or says in one line that names it what is wrong."""

import bz2
import gzip
import lzma
import os
import re

import pytest

from t2t_lite.errors import UserError
from t2t_lite.files import pipes
from tests.files import readers
from tests.files.readers import FAULTS, READ, READERS

HEAD, TAIL = '<tmx version="1.4"><header srclang="en"/><body>', "</body></tmx>"


def _cut(pack, **options):
    return pack(b"line\n" * 9999, **options)[:-30]


# {reader: [(name of the file, content, regular expression of the message behind the path)]}
DAMAGED = {
    "lines": [
        ("empty", b"", ": the file is empty. Expected one sentence per line"),
        ("empty.gz", gzip.compress(b"", mtime=0), ": the file is empty"),
        ("nul.gz", b"\x00" * 30, ": damaged or not gz"),
        ("text.bz2", b"text\n", ": damaged or not bz2"),
        ("text.xz", b"text\n", ": damaged or not xz"),
        ("cut.gz", _cut(gzip.compress, mtime=0), ": damaged or not gz"),
        ("cut.GZ", _cut(gzip.compress, mtime=0), r": damaged or not gz \("),
        ("cut.bz2", _cut(bz2.compress), ": damaged or not bz2"),
        ("cut.xz", _cut(lzma.compress), ": damaged or not xz"),
    ],
    "text": [
        ("a", b"good\n\nb\xe4d\n", ", line 3: byte 0xe4 .* is not UTF-8"),
        ("a", b"cut \xc3", ", line 1: byte 0xc3 .* is not UTF-8"),
    ],
    "columns": [
        ("a", "one\teins\none\n", ", line 2: found 1 column. Expected 2"),
        ("a", "one\teins\na\tb\tc\n", ", line 2: found 3 columns. Expected 2"),
    ],
    "labels": [
        ("a", "odd\tx\njust text\n", r", line 2: found 1 column\. Expected 2: label<TAB>text"),
        ("a", "odd\tx\teven\n", ", line 1: found 3 columns"),
        ("a", "odd\t \n", ", line 1: found 2 columns, one of them blank"),
        ("a", b"odd\tx\neven\t\xff\n", ", line 2: byte 0xff at position 5 is not UTF-8"),
    ],
    "segments": [
        ("a.sgm", "<doc>\n\n</doc>\n", ": no segment in 3 lines. Expected lines such as <seg id="),
        ("a.sgm", "<seg id='1'>one\n<seg id='2'>two</seg>\n", ", line 1: .* no </seg>"),
        ("a.sgm", "<seg id='1'>one", ", line 1: .* no </seg>"),
    ],
    "memory": [
        ("a.tmx", "<tmx><body><tu></body></tmx>", ", line 1, column 18: not XML: mismatched tag"),
        ("a.tmx", "no xml", ", line 1, column 1: not XML"),
        ("a.tmx", HEAD, ".*no element found"),
        ("a.tmx", '<!DOCTYPE tmx [<!ENTITY a "x">]><tmx/>', ", line 1: declares the entity 'a'"),
        ("a.tmx", '<!DOCTYPE tmx [<!ENTITY a SYSTEM "/etc/passwd">]><tmx/>', ".* declares the entity 'a'"),
        ("a.tmx", '<!DOCTYPE tmx SYSTEM "x"><tmx><tu><seg>&own;</seg></tu></tmx>', ".* entity &own; is not declared"),
        ("a.tmx", '<?xml version="1.0" encoding="klingon"?><tmx/>', ".*'klingon', which Python does not know"),
        ("a.tmx", '<?xml version="1.0" encoding="rot13"?><tmx/>', ".*'rot13', which Python does not know"),
        ("a.tmx", HEAD.encode() + b"\xff" + TAIL.encode(), ", after line 1: byte 0xff is not UTF-8"),
        ("a.tmx", "<tmx/>", ".* no unit with two segments"),
    ],
    "the decoder's lines": [("in", b"good\nbad \xff\n", ", line 2: byte 0xff at position 4 is not UTF-8")],
    "pieces": [
        ("vocab.txt", "", ": line 1: empty. Expected one piece per line, each once"),
        ("vocab.txt", "[UNK]\n\n[SEP]\n", ": line 2: empty"),
        ("vocab.txt", "[UNK]\n[SEP]\na\n[UNK]\n", r": line 4: '\[UNK\]' is also on line 1"),
        ("vocab.txt", "[UNK]\n[SE", r": no \[SEP\] among 2 pieces"),
        ("vocab.txt", "[SEP]\nthe\n", r": no \[UNK\] among 2 pieces"),
        ("vocab.txt", b"[UNK]\n[SEP]\n\xff\n", ": not UTF-8: byte 12"),
    ],
}
DAMAGED |= readers.DAMAGED


@pytest.mark.parametrize("reader", DAMAGED)
def test_damage_is_named_in_one_line(tmp_path, reader):
    wrong = []
    for name, content, words in DAMAGED[reader]:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(UserError) as caught:
            READERS[reader].read(str(tmp_path / name))
        message = str(caught.value)
        if not re.match(re.escape(str(tmp_path / name)) + words, message) or not message.isprintable():
            wrong.append(f"{name}, {content[:60]!r}: {message!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", READERS)
def test_a_fault_is_read_or_named_in_one_line(tmp_path, monkeypatch, name):
    monkeypatch.setattr(pipes, "SECONDS_FOR_THE_OTHER_END", 0.1)
    content, read, answers = READERS[name]
    read(_file(tmp_path, "good", lambda path, content: path.write_bytes(content), content))
    wrong = []
    for fault, make in FAULTS.items():
        if fault == "shut" and not os.geteuid():
            continue  # root may read everything
        path, message = _file(tmp_path, fault.replace(" ", "_"), make, content), READ
        try:
            read(path)
        except UserError as error:
            message = str(error)
        expected = answers[fault]
        if READ in (message, expected):
            is_right = message == expected
        else:
            is_right = message.startswith(path) and message.isprintable() and re.search(expected, message)
        if not is_right:
            wrong.append(f"{fault}: expected {expected!r}, found {message!r}")
    assert not wrong, "\n".join(wrong)


def _file(folder, name, make, content):
    make(folder / name, content)
    return str(folder / name)

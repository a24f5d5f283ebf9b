"""Files that are text, JSON or bytes as they should be, and yet not what their reader takes."""

import bz2
import gzip
import json
import lzma
import re

import pytest

from t2t_lite.errors import UserError
from tests.files.readers import READERS

HEAD, TAIL = '<tmx version="1.4"><header srclang="en"/><body>', "</body></tmx>"
TREE = "(S (NN a))\n"


def _cut(pack, **options):
    return pack(b"line\n" * 9999, **options)[:-30]


def _squad(*questions):
    """The text of a file; a question is (id, [(start, answer), …])."""
    qas = [
        {"id": i, "question": "?", "answers": [{"text": a, "answer_start": at} for at, a in answers]}
        for i, answers in questions
    ]
    context = "Ada was born in London. She met Charles, who built engines, in 1833."
    return json.dumps({"data": [{"paragraphs": [{"context": context, "qas": qas}]}]})


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
    "words": [
        ("a", "a X\nb\n", ", line 2: found 1 column. Expected 2, the word first"),
        ("a", "a X\nb Y\n\nc P X\n", ", line 4: found 3 columns. Expected 2"),
        ("a", "a\tX\n\tY\n", ", line 2: found 2 columns, one of them blank"),
        ("a", "token\ttag\nAda\tA\n", ", line 1: 'token<TAB>tag' looks like a header"),
        ("a", "1\tAda\tx\tA\n2\truns\ty\tB\n", r", line 1: the first column numbers the words\. .*--columns=2,4"),
    ],
    "questions": [
        ("a", _squad()[:-9], ": not JSON, or cut off"),
        ("a", "[]", ": not in SQuAD's format"),
        ("a", '{"data": [{"paragraphs": [{"context": 3, "qas": [{}]}]}]}', ": not in SQuAD's format"),
        ("a", _squad(("a", [(16, None)])), ": not in SQuAD's format"),
        ("a", _squad(("a", [(5, "London")])), ".* question 'a': the answer 'London' is not in its con"),
        ("a", _squad(("a", [(-1, "")])), ".* the answer '' is not in its context at character -1"),
        ("a", _squad(("a", [])), ".* question 'a': has no answer. Expected one at least"),
        ("a", _squad(("1", [(16, "London")]), ("1", [(16, "London")])), ".* question '1': its id occurs twice"),
        ("a", _squad(("a", [(15, "London")])), ".* is not in its context at character 15. .*at character 16."),
        ("a", _squad(("a", [(0, "in")])), ".* at character 0. .*at character 13, and 2 times elsewhere"),
        ("a", _squad(("a", [(3, "Paris")])), ".* the answer 'Paris' is not in its context at character 3. .*nowhere"),
    ],
    "segments": [
        ("a.sgm", "<doc>\n\n</doc>\n", ": no segment in 3 lines. Expected lines such as <seg id="),
        ("a.sgm", "<seg id='1'>one\n<seg id='2'>two</seg>\n", ", line 1: a segment without </seg>"),
        ("a.sgm", "<seg id='1'>one", ", line 1: a segment without </seg>"),
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
    "trees": [
        ("a", f"{TREE}(S (NP (NN b))\n(S (NN c))\n", ", line 2: .* not closed: 1 bracket"),
        ("a", f"{TREE}(S (NN b)))\n", ", line 2: .*unmatched closing bracket"),
        ("a", f"{TREE}hello (S (NN b))\n", ", line 2: 'hello' .*outside"),
        ("a", f"{TREE}\n(S (NP ) )\n", ", line 3: .*without words"),
        ("a", "( (S (-NONE- *)))\n", ", line 1: .*without words"),
        ("a", "()\n", ", line 1: .*without words"),
        ("a", f"{TREE}(S)\n", ", line 2: .*without words"),
        ("a", f"{TREE}(S (NN a)\n", ", line 2: .* not closed: 1 bracket"),
        ("a", f"{TREE}(S b (NN c))\n", ", line 2: .*'b' .*part of speech"),
        ("a", "(S (NN a b))\n", ", line 1: .*'a' .*part of speech"),
        ("a", "(S ((NN a)))\n", ", line 1: .*label.*''|, line 1: .*''.*label"),
        ("a", "(/S (NN a))\n", ", line 1: .*label.*'/S'|, line 1: .*'/S'.*label"),
        ("a", "(S " * 1000 + "(NN a)" + ")" * 1000, ", line 1: .*1001 nested brackets"),
        ("a", "\n \n", ".*no tree"),
        ("a", b"(S (NN a))\n(S (NN \xe4))\n", ", line 2: .*UTF-8"),
        ("a", "no brackets at all\n", ", line 1: .*'no'"),
    ],
    "the decoder's lines": [("in", b"good\nbad \xff\n", ", line 2: byte 0xff at position 4 is not UTF-8")],
    "SentencePiece": [("text.model", "not a model", ": not a SentencePiece model")],
    "another SentencePiece": [
        ("text.model", content, ": not a SentencePiece model") for content in (b"some text\n", b"\x0a\x05")
    ],
    "tokens": [
        ("twice", "<pad>\n<EOS>\na\na\n", ": an entry occurs twice"),
        ("plain", "the\ndog\nruns\n", r": begins with 'the dog'\. Expected the lines <pad> and <EOS>"),
    ],
    "subwords": [
        ("v", "", ".*found '' as line 1, expected '<pad>_'"),
        ("v", "<pad>\nthe\n", ".*found 'the' as line 2, expected '<EOS>_'"),
        ("v", "<pad>\n<EOS>\nthe\n", ".* has no piece"),
        ("v", b"'<pad>_'\n'\xff'\n", ".*not UTF-8"),
        ("v", b"\x0a\x10\x05model", ".*found"),
    ],
    "pieces": [
        ("vocab.txt", "", ": line 1: empty. Expected one piece per line, each once"),
        ("vocab.txt", "[UNK]\n\n[SEP]\n", ": line 2: empty"),
        ("vocab.txt", "[UNK]\n[SEP]\na\n[UNK]\n", r": line 4: '\[UNK\]' is also line 1"),
        ("vocab.txt", "[UNK]\n[SE", r": no \[SEP\] among 2 pieces"),
        ("vocab.txt", "[SEP]\nthe\n", r": no \[UNK\] among 2 pieces"),
        ("vocab.txt", b"[UNK]\n[SEP]\n\xff\n", ": not UTF-8: byte 12"),
    ],
}


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

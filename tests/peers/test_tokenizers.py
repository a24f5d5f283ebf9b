"""Byte-level BPE and WordPiece against Hugging Face's tokenizers, which also made the table of characters.

With the published vocabularies of GPT-2 and BERT, measured once: docs/vocabularies.md.
"""

import pytest

from t2t_lite.text.byte_level_bpe import ByteLevelBPEEncoder
from t2t_lite.text.byte_level_learning import learn_byte_level_bpe
from t2t_lite.text.wordpiece import WordPieceEncoder
from tests.text.published import PIECES, texts, write_byte_level, write_pieces

tokenizers = pytest.importorskip("tokenizers")
CODE_POINTS = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
# Lower case that came with Unicode 14 to 17, and one character that Unicode 13 composed: Python 3.11 lacks the former.
NEWER = {0x1C89, 0x11938, *range(0xA7CB, 0xA7DD), *range(0x10D50, 0x10D66), *range(0x16EA0, 0x16EB9)}


def each_code_point():
    """Yields texts in which every code point stands at the beginning, inside and at the end of words."""
    for start in range(0, len(CODE_POINTS), 32):
        some = [code for code in CODE_POINTS[start : start + 32] if code not in NEWER]
        yield "".join(f"x{chr(code)}y {chr(code)}" for code in some)


@pytest.fixture(params=["by hand", "learned"])
def byte_level(request, tmp_path):
    path = str(tmp_path / "vocab.json")
    if request.param == "by hand":
        write_byte_level(tmp_path)
    else:
        learn_byte_level_bpe(texts(2000, seed=1), path, 900)
    return ByteLevelBPEEncoder(path), tokenizers.ByteLevelBPETokenizer(path, str(tmp_path / "merges.txt"))


def test_byte_level_bpe(byte_level):
    ours, theirs = byte_level
    for text in [*texts(3000), *each_code_point()]:
        assert [ours.published_ids[i] for i in ours.encode(text)] == theirs.encode(text).ids, ascii(text)


@pytest.mark.parametrize("lower", [True, False], ids=["uncased", "cased"])
def test_wordpiece(tmp_path, lower):
    alone = [chr(code) for code in range(0x21, 0x3000) if f"{code:c}".strip() and chr(code) not in PIECES]
    path = write_pieces(tmp_path, [*PIECES, *alone, *(f"##{piece}" for piece in alone)])
    ours = WordPieceEncoder(path, lower)
    theirs = tokenizers.Tokenizer(tokenizers.models.WordPiece.from_file(path, unk_token="[UNK]"))
    theirs.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lower)
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    for text in [*texts(3000), *each_code_point(), "a" * 100, "a" * 101]:
        assert [ours.published_ids[i] for i in ours.encode(text)] == theirs.encode(text).ids, ascii(text)

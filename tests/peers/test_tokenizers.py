"""Byte-level BPE, BPE of words and WordPiece against Hugging Face's tokenizers, which made the table of characters.

With the published vocabularies of GPT-2 and BERT, measured once: docs/vocabularies.md.
"""

import pytest

from t2t_lite.text.published.byte_level_bpe import ByteLevelBPEEncoder, learn_byte_level_bpe
from t2t_lite.text.published.wordpiece import WordPieceEncoder
from t2t_lite.text.vocabulary_files import open_encoder
from tests.text.published_samples import PIECES, texts, write_byte_level, write_pieces, write_words

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")
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


@pytest.mark.parametrize("is_learned", [False, True], ids=["by hand", "learned"])
def test_bpe_of_words(tmp_path, is_learned):
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    if is_learned:
        theirs.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
        theirs.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=900, limit_alphabet=90, end_of_word_suffix="</w>", special_tokens=["<unk>", "\n</w>"]
        )
        theirs.train_from_iterator(texts(2000, seed=1), trainer)
        theirs.model.save(str(tmp_path))
    else:
        write_words(tmp_path)
    ours = open_encoder(str(tmp_path / "vocab.json"))
    theirs = transformers.OpenAIGPTTokenizer(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    for text in [*texts(3000), *each_code_point()]:
        # Transformers alone takes <unk> in a text for the token of that name.
        ids = ours.encode(text, allowed_special={"<unk>"} if "<unk>" in text else ())
        assert [ours.published_ids[i] for i in ids] == theirs(text).input_ids, ascii(text)
        assert ours.decode(ids) == theirs.decode(theirs(text).input_ids), ascii(text)


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

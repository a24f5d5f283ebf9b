"""WordPiece: BERT's rules by hand, the same ids in a graph, and vocabularies that are damaged."""
# Nearest tests of: t2t_lite/text/published/wordpiece_graph.py, t2t_lite/text/published/pre_tokenization.py

import pickle

import pytest
import tensorflow as tf

from t2t_lite.text.published import published_encoder
from t2t_lite.text.published.pre_tokenization import normalization
from t2t_lite.text.published.wordpiece import WordPieceEncoder
from tests.text.published_samples import PIECES, texts, write_pieces


@pytest.fixture(scope="module", params=["uncased", "cased"])
def encoder(request, tmp_path_factory):
    pieces = PIECES if request.param == "uncased" else [*PIECES, "The", "É"]
    encoder = WordPieceEncoder(write_pieces(tmp_path_factory.mktemp("pieces"), pieces))
    assert encoder.lower == (request.param == "uncased")
    return encoder


@pytest.mark.parametrize("pieces", [PIECES, [*PIECES, "The"]], ids=["uncased", "cased"])
@pytest.mark.parametrize("lower", [True, False, None])
def test_a_copy_of_the_files_reads_text_alike(pieces, lower, tmp_path):
    encoder = WordPieceEncoder(write_pieces(tmp_path, pieces), lower=lower)
    follows = lower is None or lower == (pieces is PIECES)
    assert (published_encoder.CONFIG in encoder.contents) != follows
    for name, content in encoder.contents.items():
        (tmp_path / f"copy-{name}").write_bytes(content)
    again = WordPieceEncoder(str(tmp_path / "copy-vocab.txt"))
    assert again.lower == encoder.lower and again.encode("The un") == encoder.encode("The un")


@pytest.mark.parametrize(
    "text, uncased, cased",
    [
        ("Unaffable", ["un", "##aff", "##able"], ["[UNK]"]),
        ("THE  the's", ["the", "the", "'", "s"], ["[UNK]", "the", "'", "s"]),
        ("Café cafe\u0301s", ["cafe", "cafe", "##s"], ["[UNK]", "[UNK]"]),
        ("É", ["[UNK]"], ["É"]),
        ("x東x京", ["x", "東", "x", "京"], ["x", "東", "x", "京"]),
        ("a\x00\u200b\ufffd\ta\u00a0\u3000a\x0ba", ["a", "a", "a", "##a"], ["a", "a", "a", "##a"]),
        ("[MASK] [", ["[", "mask", "]", "["], ["[", "[UNK]", "]", "["]),
        ("thexq the", ["[UNK]", "the"], ["[UNK]", "the"]),  # one letter that does not fit spoils its word
        ("ΣΑΣ", ["σασ"], ["[UNK]"]),  # σας, as Greek writes it, would be another piece
        ("ß ss \u00b2", ["[UNK]", "ss", "²"], ["[UNK]", "ss", "²"]),  # neither folded nor decomposed
        ("a" * 100, ["a", "##aa", *["##aa"] * 48, "##a"], ["a", "##aa", *["##aa"] * 48, "##a"]),
        ("a" * 101 + " a", ["[UNK]", "a"], ["[UNK]", "a"]),
        ("", [], []),
    ],
)
def test_pieces(encoder, text, uncased, cased):
    assert encoder.pieces(encoder.encode(text)) == (uncased if encoder.lower else cased)


@pytest.mark.parametrize(
    "first, last",
    [
        (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
        (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F),
    ],
)  # fmt: skip
def test_each_ideograph_of_the_published_blocks_is_a_word(first, last):
    """From the first of a block to its last, and none beside it unless that is in the next block."""
    blanks = normalization(False)
    assert all(blanks[code] == f" {chr(code)} " for code in range(first, last + 1))
    for code in {first - 1, last + 1} - {0x2B73F, 0x2B740}:
        assert blanks[code] in ("", chr(code))  # nothing if it is a control


def test_ids_are_reserved_and_the_publishers_are_kept(tmp_path):
    encoder = WordPieceEncoder(write_pieces(tmp_path))
    assert encoder.vocab_size == len(PIECES)
    assert encoder.pieces([0, 1, 2, 3]) == ["[PAD]", "[SEP]", "[UNK]", "[unused0]"]
    assert [PIECES[i] for i in encoder.published_ids] == encoder.tokens
    without = WordPieceEncoder(write_pieces(tmp_path, PIECES[1:]))
    assert without.vocab_size == len(PIECES) and without.published_ids[0] == -1
    assert encoder.decode([*encoder.encode("Unaffable, the cafes!"), 0, 1, 5]) == "unaffable [UNK] the cafes !"


@pytest.mark.few("uncased")
@pytest.mark.slow
def test_the_graph_gives_the_same(encoder):
    """Also where neighbours differ, for any bytes, and from the processes that encode data."""
    spec = tf.TensorSpec([None], tf.string)
    encode = tf.function(encoder.tf_encode, input_signature=[spec], autograph=False)
    decode = tf.function(encoder.tf_decode, input_signature=[tf.TensorSpec([None, None], tf.int32)], autograph=False)
    some = [*texts(400), "", "the" * 30_000, "a " * 20_000, "東" * 20_000, *map(chr, range(0x3000))]
    some += [f"a{'é' * 99}", f"a{'é' * 100}", "a" * 100, "\U0001d15e" * 100]
    ids = list(map(encoder.encode, some))
    assert encode(some).to_list() == ids
    assert list(map(pickle.loads(pickle.dumps(encoder)).encode, some[:100])) == ids[:100]
    assert [encode([text]).to_list()[0] for text in some[:40]] == ids[:40]
    assert encode([]).to_list() == [] and encode([b"a\xff\x80a"]).to_list() == [encoder.encode("aa")]
    rows = [row for row in ids if len(row) < 500]
    decoded = decode(tf.ragged.constant(rows, tf.int32).to_tensor()).numpy()
    assert [text.decode() for text in decoded] == list(map(encoder.decode, rows))

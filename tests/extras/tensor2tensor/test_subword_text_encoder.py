r"""tensor2tensor's subwords: its documented rules by hand, and what must hold for any text."""

# Nearest tests of: extras/tensor2tensor/subword_graph.py

import pickle
import random

import pytest

from t2t_lite.errors import UserError
from t2t_lite.extras.tensor2tensor.subword_text_encoder import (
    SubwordTextEncoder,
    detokenize,
    escape,
    tokenize,
    unescape,
)
from tests.text.published_samples import ESCAPES, SUBWORDS, write_subwords


@pytest.fixture
def encoder(tmp_path):
    return SubwordTextEncoder(write_subwords(tmp_path))


@pytest.mark.parametrize("build", [SubwordTextEncoder.build_from_generator, SubwordTextEncoder.build_to_target_size])
def test_no_subwords_are_learned(build):
    with pytest.raises(UserError, match="can be read but not learned"):
        build(["one two"], 8000, max_subtoken_length=4)


def test_tokens_as_tensor2tensors_tokenizer_documents_them():
    """The example in its data_generators/tokenizer.py."""
    assert tokenize("Dude - that's so cool.") == ["Dude", " - ", "that", "'", "s", "so", "cool", "."]


@pytest.mark.parametrize(
    "text, tokens",
    [
        ("", []),
        (" a", [" ", "a"]),  # a single blank stays at the beginning and at the end
        ("a ", ["a", " "]),
        ("a  b", ["a", "  ", "b"]),
        (" ", [" "]),
        ("4x²½Ⅷ", ["4x²½Ⅷ"]),  # all kinds of numbers
        ("e\u0301a", ["e", "\u0301", "a"]),  # a mark is neither letter nor number
        ("a_b\tc", ["a", "_", "b", "\t", "c"]),
        ("日本語。", ["日本語", "。"]),
    ],
)
def test_tokens(text, tokens):
    assert tokenize(text) == tokens and detokenize(tokens) == text


@pytest.mark.parametrize(
    "token, escaped",
    [
        ("ab", "ab_"),
        ("a_b", "a\\ub_"),
        ("\\", "\\\\_"),
        ("\\u", "\\\\u_"),
        ("z", "\\122;_"),
        ("\n", "\\10;_"),
        ("\U0001f600", "\\128512;_"),
    ],
)
def test_escapes(token, escaped):
    assert escape(token, {*ESCAPES, "a", "b", "\n"}) == escaped
    assert unescape(escaped[:-1]) == token


@pytest.mark.parametrize("escaped", ["\\1114112;", "\\55296;", "\\99999999999999999999;"])
def test_numbers_of_no_character(escaped):
    assert unescape(escaped) == "\u3013"


def test_the_longest_piece_from_the_left(encoder):
    def pieces(text):
        return encoder.pieces(encoder.encode(text))

    assert pieces("the so, cool") == ["the_", "so_", ", ", "_", "cool_"]
    assert pieces("thesob") == ["th", "e", "so", "b", "_"]
    assert pieces("so'") == ["so_", "'", "_"]
    assert pieces("sox") == ["so", "\\", "1", "2", "0", ";", "_"]
    assert encoder.encode("") == []
    assert encoder.decode([*encoder.encode("the so, cool"), 1, 2]) == "the so, cool", "stops at EOS"
    assert encoder.decode([0, *encoder.encode("so"), 0]) == "so"


def test_any_text_comes_back(encoder):
    """Encoding is invertible, every id is a piece, and pickling (to the processes of generation) changes nothing."""
    other = pickle.loads(pickle.dumps(encoder))
    for text in random_texts(2000, 4):
        ids = encoder.encode(text)
        assert encoder.decode(ids) == text and other.encode(text) == ids
        assert all(2 <= i < encoder.vocab_size for i in ids)
        assert "".join(encoder.pieces(ids)) == "".join(escape(token, encoder.alphabet) for token in tokenize(text))


def random_texts(count, seed):
    rng, usual = random.Random(seed), "thesocl .,'é_\\u;0123456789<pad>EOS\t\n\u2028\u200b½日\u05d0\u0661äb  "
    anything = [*range(1, 0xD800), *range(0xE000, 0x11000), *range(0x1F600, 0x1F650), 0x10FFFF]
    return [
        "".join(rng.choice([*usual, chr(rng.choice(anything))]) for _ in range(rng.randrange(20))) for _ in range(count)
    ]


@pytest.mark.slow
def test_the_same_in_a_graph(tmp_path):
    """Ids of texts, and texts of any ids, without EOS and padding; also where only a longer piece has a character."""
    import tensorflow as tf

    encoder = SubwordTextEncoder(
        write_subwords(tmp_path, [*SUBWORDS, "bäh_", "the_", "", "\\1;", "\\55296;_", "\\999999999;", "b\0h"])
    )
    encode = tf.function(encoder.tf_encode, input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    decode = tf.function(encoder.tf_decode, input_signature=[tf.TensorSpec([None, None], tf.int32)], autograph=False)
    texts = ["", " ", "  ", "a b", " a ", "bäh bä", "the so, cool'_", "\\u", "x" * 300, *random_texts(500, 6)]
    assert encode(texts).to_list() == [encoder.encode(text) for text in texts]
    assert encode([]).to_list() == [] and encode([""]).to_list() == [[]]
    rng = random.Random(2)
    rows = [[rng.randrange(encoder.vocab_size) for _ in range(12)] for _ in range(500)] + [[1] * 12, [0] * 12]
    rows += [(encoder.encode(text) + [1] * 12)[:12] for text in texts]
    assert [text.decode() for text in decode(rows).numpy()] == [encoder.decode(row) for row in rows]


def test_quotes_or_none_and_the_last_of_two(tmp_path):
    texts = ["the so, cool'_"]
    expected = [SubwordTextEncoder(write_subwords(tmp_path)).encode(text) for text in texts]
    for number, quote in enumerate(('"', "")):
        path = write_subwords(tmp_path, [p for p in SUBWORDS if p not in (" ", ", ")], quote, f"{number}.subwords")
        assert SubwordTextEncoder(path).decode(SubwordTextEncoder(path).encode(texts[0])) == texts[0]
    twice = SubwordTextEncoder(write_subwords(tmp_path, [*SUBWORDS, "the_", ""], name="twice.subwords"))
    assert twice.encode(texts[0])[0] == len(SUBWORDS) and expected[0][0] == 2, "as tensor2tensor's dict has it"
    assert twice.decode([len(SUBWORDS) + 1, 2]) == "the", "an empty entry is no text"


def test_a_character_that_only_longer_pieces_have(tmp_path):
    """tensor2tensor raises for such a text; here the character is escaped."""
    encoder = SubwordTextEncoder(write_subwords(tmp_path, [*SUBWORDS, "bäh_"]))
    assert encoder.pieces(encoder.encode("bäh")) == ["bäh_"]
    assert encoder.pieces(encoder.encode("bä")) == ["b", "\\", "2", "2", "8", ";", "_"]
    assert encoder.decode(encoder.encode("äb bäh")) == "äb bäh"


def test_reserved_entries_of_older_versions(tmp_path):
    assert SubwordTextEncoder(write_subwords(tmp_path, ["<pad>", "<EOS>", *SUBWORDS[2:]])).encode("the") == [2]


def test_a_text_of_100k_characters(encoder):
    text = "the so cool. " * 7700
    assert encoder.decode(encoder.encode(text)) == text
    assert encoder.decode(encoder.encode("x" * 20_000)) == "x" * 20_000

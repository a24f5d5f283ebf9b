"""The original GPT's BPE of lower-case words: its rules by hand, the same ids in a graph, and damaged files."""

import json
import pickle

import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.extras.families.word_bpe import WordBPEEncoder
from t2t_lite.text.vocabulary_files import open_encoder
from tests.text.published_samples import texts, write_words


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    encoder = open_encoder(write_words(tmp_path_factory.mktemp("words")))
    assert isinstance(encoder, WordBPEEncoder)
    return encoder


@pytest.mark.parametrize(
    "text, pieces",
    [
        ("The then", ["the</w>", "th", "e", "n</w>"]),  # "he" comes after "th"
        ("héthe\n\nThe.", ["he", "the</w>", "the</w>", ".</w>"]),
        ("aaaa aaa aa a", ["aa", "a", "a</w>", "aaa</w>", "a", "a</w>", "a</w>"]),
        ("It's</w>", ["i", "t</w>", "'</w>", "s</w>", "<</w>", "<unk>", "<unk>", "></w>"]),
        ("東京 東", ["東</w>", "京</w>", "東</w>"]),  # ideographs are words
        ("zebra z zz", ["z", "e", "b", "r", "a</w>", "<unk>", "z", "<unk>"]),  # no z ends a word
        ("jjt j", ["<unk>", "<unk>", "t</w>", "<unk>"]),  # one for each character
        ("ΣΑΣ", ["<unk>", "<unk>", "<unk>"]),
        ("ς", ["ς</w>"]),
        ("un\u200bing", ["un", "ing</w>"]),
        ("", []),
    ],
)
def test_pieces(encoder, text, pieces):
    assert encoder.pieces(encoder.encode(text)) == pieces


def test_ids_are_reserved_and_the_publishers_are_kept(encoder):
    published = json.loads(encoder.contents["vocab.json"])
    assert encoder.pieces([0, 1, 2, 3]) == ["<pad>", "\n</w>", "<unk>", "a"]
    assert encoder.published_ids[:4] == [-1, published["\n</w>"], published["<unk>"], published["a"]]
    assert {token: encoder.published_ids[i] for i, token in enumerate(encoder.tokens) if i} == published
    ids = encoder.encode("The thing, in 東京")
    assert encoder.decode([*ids, 0, 1, 40]) == "the thing <unk>in 東 京"
    assert encoder.decode(ids[:-1]) == "the thing <unk>in 東", "as a beginning of the whole"


@pytest.mark.slow
def test_the_graph_gives_the_same(encoder):
    """Also where neighbours differ, for any bytes, and from the processes that encode data."""
    spec = tf.TensorSpec([None], tf.string)
    encode = tf.function(encoder.tf_encode, input_signature=[spec], autograph=False)
    decode = tf.function(encoder.tf_decode, input_signature=[tf.TensorSpec([None, None], tf.int32)], autograph=False)
    some = [*texts(400), "", "the" * 30_000, "a " * 20_000, "東" * 20_000, *map(chr, range(0x3000))]
    ids = list(map(encoder.encode, some))
    assert encode(some).to_list() == ids
    assert list(map(pickle.loads(pickle.dumps(encoder)).encode, some[:100])) == ids[:100]
    assert [encode([text]).to_list()[0] for text in some[:40]] == ids[:40]
    assert encode([]).to_list() == [] and encode([b"a\xff\x80a"]).to_list() == [encoder.encode("a\ufffda")]
    rows = [row for row in ids if len(row) < 500]
    decoded = decode(tf.ragged.constant(rows, tf.int32).to_tensor()).numpy()
    assert [text.decode() for text in decoded] == list(map(encoder.decode, rows))


@pytest.mark.parametrize(
    "merges, special, message",
    [
        (["t he"], ["\n</w>"], r"merges.txt: line 2: 't he': no earlier merge forms 'he'"),
        (["t h", "h e", "t he"], ["\n</w>"], "earlier merges never leave these two"),
        (["t h"], [], r"no token for the end of a text. Expected </s> or <\|endoftext\|> or \\n</w>"),
        (["t h"], ["\n</w>", "ing</w>"], "no merge forms the token 'ing</w>'"),
    ],
)
def test_damaged_files(tmp_path, merges, special, message):
    with pytest.raises(UserError, match=message):
        open_encoder(write_words(tmp_path, merges, special))

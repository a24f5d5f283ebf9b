"""Vocabularies: what each promises, and what its ids are."""
# Nearest tests of: t2t_lite/text/subwords.py

import pickle
import random

import pytest
import sentencepiece
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.text import vocabulary
from t2t_lite.text.subwords import train_sentencepiece
from tests.text.kinds import trained

TEXTS = ["hello world", "", "größe 漢字 𝄞", "  two   blanks ", "never seen: Ωmega, \u201cquotes\u201d"]


@pytest.fixture(scope="module")
def subwords(tmp_path_factory):
    prefix = str(tmp_path_factory.mktemp("vocab") / "v")
    train_sentencepiece(["hello world", "größe of a small world"] * 20, prefix, 300)
    return vocabulary.SentencePieceEncoder(prefix + ".model")


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "vocab.tokens"
    path.write_text("<pad>\n<EOS>\n<UNK>\nhello\nworld\n")
    return vocabulary.TokenTextEncoder(str(path), replace_oov="<UNK>")


def in_graph(encoder, texts, length=64):
    """What the encoder's two graph functions give: (ids, texts of the ids with EOS, rubbish behind it, and padding)."""

    @tf.function
    def both(strings):
        ids = encoder.tf_encode(strings)
        ended = tf.concat([ids, tf.ones_like(ids[:, :0].to_tensor(shape=[None, 1])), [[4, 4]] * len(texts)], 1)
        return ids, encoder.tf_decode(ended.to_tensor(shape=[None, length]))

    ids, decoded = both(tf.constant(texts))
    return ids.to_list(), [text.decode() for text in decoded.numpy()]


def test_what_every_vocabulary_promises(encoder):
    text = "the cafés' owners"
    ids = [*encoder.encode(text)]
    assert {*ids} <= {*range(2, encoder.vocab_size)}
    assert encoder.decode([0, *ids, 0, 1, *ids]) == encoder.decode(ids)
    assert encoder.decode_list([0, *ids]) == encoder.pieces([0, *ids]) and len(encoder.pieces(ids)) == len(ids)
    assert pickle.loads(pickle.dumps(encoder)).encode(text) == ids and len(encoder.fingerprint) == 64
    for wrong in (-1, encoder.vocab_size):
        with pytest.raises(ValueError, match=rf"id {wrong} is outside .*0 to {encoder.vocab_size - 1}\."):
            encoder.decode([wrong])
    if (texts := encoder.piece_bytes) is not None:
        assert len(texts) == encoder.vocab_size and texts[:2] == [b"", b""]
        assert b"".join(texts[i] for i in ids).decode().removeprefix(" ") == encoder.decode(ids)
    found, decoded = in_graph(encoder, [text, "", "the"])
    assert found == [ids, [], encoder.encode("the")]
    assert decoded == [encoder.decode(ids), "", encoder.decode(encoder.encode("the"))]


def test_one_vocabulary_or_two():
    small, large = vocabulary.TextEncoder(12), vocabulary.TextEncoder(13)
    assert vocabulary.vocabulary_sizes({"inputs": small, "targets": large}) == (12, 13)
    assert vocabulary.vocabulary_sizes({"inputs": small, "targets": vocabulary.TextEncoder(12)}) == (12, None)
    assert vocabulary.vocabulary_sizes({"targets": large}) == (13, None)


def test_visible_ids_in_a_graph():
    ids = tf.constant([[0, 3, 2, 9, 1, 5], [1, 4, 4, 4, 4, 4], [8, 7, 0, 2, 3, 10]])
    assert vocabulary.tf_visible(ids).to_list() == [[3, 2, 9], [], [8, 7, 2, 3, 10]]
    assert vocabulary.tf_visible(ids, 3, 9).to_list() == [[3], [], [8, 7, 3]]
    words = [*"_$abcdefgh"]
    assert vocabulary.tf_joined(ids, words, "-").numpy().tolist() == [b"b-a-h", b"", b"g-f-a-b"]


@pytest.mark.slow
def test_two_vocabularies_of_a_saved_model_stay_apart(tmp_path, subwords):
    """The loader shares resources of one name, and the tokenizers' own name is always the same one."""
    train_sentencepiece(["wer reitet so spät durch nacht und wind"] * 3, str(tmp_path / "de"), 290)
    other = vocabulary.SentencePieceEncoder(str(tmp_path / "de.model"))
    module = tf.Module()
    for name, encoder in {"source": subwords, "target": other}.items():
        setattr(module, name, tf.function(encoder.tf_encode, input_signature=[tf.TensorSpec([None], tf.string)]))
    tf.saved_model.save(module, str(tmp_path / "saved"))
    loaded = tf.saved_model.load(str(tmp_path / "saved"))
    assert loaded.source(TEXTS).to_list() == [subwords.encode(text) for text in TEXTS]
    assert loaded.target(TEXTS).to_list() == [other.encode(text) for text in TEXTS]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["subwords", "words", "bytes"])
def test_the_graph_gives_the_ids_and_the_text_of_python(kind, request):
    encoder = vocabulary.ByteTextEncoder() if kind == "bytes" else request.getfixturevalue(kind)
    ids, decoded = in_graph(encoder, TEXTS)
    assert ids == [encoder.encode(text) for text in TEXTS]
    assert decoded == [encoder.decode(encoder.encode(text)) for text in TEXTS]


@pytest.mark.parametrize("base", [vocabulary.TextEncoder, vocabulary.ByteTextEncoder])
def test_an_encoder_of_python_alone_is_refused_in_a_graph(base):
    """Its base class would encode other ids there."""

    class Latin(base):
        def encode(self, text):
            return [byte + 2 for byte in text.encode("latin-1")]

        def decode(self, ids):
            return bytes(i - 2 for i in ids).decode("latin-1")

    encoder = Latin(258) if base is vocabulary.TextEncoder else Latin()
    for name in ("encode", "decode"):
        with pytest.raises(UserError, match=rf"^Latin cannot be used in a graph.*defines {name}, but not tf_{name}\."):
            getattr(encoder, f"tf_{name}")(tf.constant(["a"]))
    both = {"encode": lambda self, text: [5], "tf_encode": lambda self, strings: [[5]]}
    assert type("Complete", (type(encoder),), both).tf_encode(encoder, ["a"]) == [[5]]


def test_every_text_survives_subwords(subwords):
    for text in ("größe 漢字 𝄞", "Ωmega → café", "a_b ▁"):
        assert subwords.decode(subwords.encode(text)).replace("▁", " ").split() == text.replace("▁", " ").split()
        assert 2 not in subwords.encode(text)


def test_a_translation_cannot_contain_a_line_end(subwords):
    for separator in ("\t", "\x0b", "\x85", "\u2028", "\r\n"):
        assert subwords.encode(f"hello{separator}world") == subwords.encode("hello world")


@pytest.mark.slow
def test_numbers():
    digits = vocabulary.TextEncoder(12)
    assert digits.encode("1 2 9") == [3, 4, 11]
    assert digits.decode([3, 0, 11, 1, 5]) == "1 9"
    ids, decoded = in_graph(digits, ["1 2 9", "x 10 99999999999 -1 0", ""])
    assert ids == [[3, 4, 11], [2], []]
    assert decoded == ["1 2 9", "0", ""]
    for wrong in ("10", "x", "-1", "1.5"):
        with pytest.raises(UserError, match=f"'{wrong}' is not in the vocabulary. Expected numbers from 0 to 9"):
            digits.encode(wrong)


def test_bytes_that_are_no_text_decode_to_the_replacement_character():
    assert vocabulary.ByteTextEncoder().decode([0xFF + 2]) == "\ufffd"
    assert vocabulary.ByteTextEncoder().tf_decode(tf.constant([[0xFF + 2, 1]])).numpy()[0].decode() == "\ufffd"


def test_an_unknown_word_is_replaced_or_refused(words):
    assert words.encode("hello there") == [3, 2]
    strict = vocabulary.TokenTextEncoder(words.path)
    with pytest.raises(UserError, match="'there' is not in the vocabulary"):
        strict.encode("hello there")
    assert strict.tf_encode(tf.constant(["hello there"])).to_list() == [[3]]


def test_padding_is_no_word_of_a_text(words):
    assert words.encode("hello <pad> <EOS> world") == [3, 2, 1, 4]
    assert words.tf_encode(tf.constant(["hello <pad> <EOS> world"])).to_list() == [[3, 2, 1, 4]]


def test_words_end_at_every_white_space_in_the_graph_too(words):
    text = "hello\u00a0world\u3000hello\u2028\x85\x1c world "
    assert words.tf_encode(tf.constant([text])).to_list() == [words.encode(text)] == [[3, 4, 3, 4]]
    assert vocabulary.TextEncoder(9).tf_encode(tf.constant(["1\u00a02"])).to_list() == [[3, 4]]


def test_the_same_lines_give_the_same_files(tmp_path):
    lines = [f"word{i} the small world {i * i}" for i in range(500)]
    for name in ("a", "b"):
        train_sentencepiece(lines, str(tmp_path / name), 400)
    for ending in (".model", ".vocab"):
        assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.model", "a.vocab", "b.model", "b.vocab"]
    vocab = (tmp_path / "a.vocab").read_text().splitlines()
    assert [line.split("\t")[0] for line in vocab[:3]] == ["<pad>", "</s>", "<unk>"]
    assert len(vocab) == 400


def test_the_fingerprint_tells_vocabularies_apart(tmp_path, subwords):
    train_sentencepiece(["another text entirely"] * 5, str(tmp_path / "w"), 280)
    other = vocabulary.SentencePieceEncoder(str(tmp_path / "w.model"))
    prints = {subwords.fingerprint, other.fingerprint, *(vocabulary.TextEncoder(n).fingerprint for n in (12, 13))}
    assert len(prints) == 4
    assert all(len(fingerprint) == 64 for fingerprint in prints)


def test_without_text_nothing_is_learned(tmp_path):
    with pytest.raises(UserError, match="no text to learn from"):
        train_sentencepiece([], str(tmp_path / "vocab.p"), 300)
    assert list(tmp_path.iterdir()) == []


def test_a_model_with_other_ids_is_refused(tmp_path):
    other = trained(["a b c"] * 5, vocab_size=8, model_type="bpe", pad_id=-1, unk_id=0, bos_id=1, eos_id=2)
    (tmp_path / "other.model").write_bytes(other)
    with pytest.raises(UserError, match=r"other.model: the ids of .* \(-1, 2, 0\). Expected \(0, 1, 2\)"):
        vocabulary.SentencePieceEncoder(str(tmp_path / "other.model"))


def test_encoding_word_by_word_equals_encoding_the_text(subwords):
    """Words are looked up once they are known; SentencePiece itself, on the whole text, is the oracle."""
    assert subwords.is_by_word
    expected = sentencepiece.SentencePieceProcessor(model_file=subwords.path)
    draw = random.Random(3)
    characters = "abc größe  hello\u2581\t\x00\u3000\u00a0\u0301\u2028語😀\ud7ff"
    for _ in range(2000):
        text = "".join(draw.choices(characters, k=draw.randint(0, 12)))
        assert subwords.encode(text) == expected.encode(text), ascii(text)


@pytest.mark.parametrize(
    "options",
    [{"model_type": "bpe", "user_defined_symbols": ["of the"]}, {"model_type": "unigram", "hard_vocab_limit": False}],
    ids=["a piece of two words", "unigram"],
)
def test_models_that_need_the_whole_text(tmp_path, options):
    usual = {"vocab_size": 280, "byte_fallback": True, "normalization_rule_name": "identity"}
    (tmp_path / "v.model").write_bytes(trained(["a b c of the"] * 9, **usual, **options))
    encoder = vocabulary.SentencePieceEncoder(str(tmp_path / "v.model"))
    assert not encoder.is_by_word
    expected = sentencepiece.SentencePieceProcessor(model_file=encoder.path)
    assert encoder.pieces(encoder.encode("a of the b")) == expected.encode("a of the b", out_type=str)


def test_a_model_with_a_piece_that_is_no_text_is_refused(tmp_path):
    train_sentencepiece(["hello world"] * 9, str(tmp_path / "v"), 270)
    model = (tmp_path / "v.model").read_bytes()
    (tmp_path / "v.model").write_bytes(model.replace(b"<unk>", b"<\xffnk>", 1))
    with pytest.raises(UserError, match=r"v\.model: not a SentencePiece model"):
        vocabulary.SentencePieceEncoder(str(tmp_path / "v.model"))


@pytest.mark.parametrize(
    ("lines", "unknown", "message"),
    [
        ("a\nb\nc", None, r"words: begins with 'a b'"),
        ("<pad>\n<EOS>", None, "words: an entry occurs twice"),
        ("<pad>\n<EOS>\na\na", None, "words: an entry occurs twice"),
        ("<pad>\n<EOS>\na", "<UNK>", "words: has no entry '<UNK>'"),
        (b"<pad>\n<EOS>\n\xff", None, "words: not UTF-8: byte 12"),
    ],
)
def test_lists_of_words_that_cannot_be(tmp_path, lines, unknown, message):
    (tmp_path / "words").write_bytes(lines if isinstance(lines, bytes) else lines.encode())
    with pytest.raises(UserError, match=message):
        vocabulary.TokenTextEncoder(str(tmp_path / "words"), unknown)

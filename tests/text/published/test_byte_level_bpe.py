"""Byte-level BPE: GPT-2's rules by hand, what must hold for any text, and files that are damaged."""
# Nearest tests of: t2t_lite/text/published/bpe_files.py, t2t_lite/text/published/byte_level_graph.py,
# Nearest tests of: t2t_lite/text/published/pre_tokenization.py

import json
import pickle
import random
import string

import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.text.published.byte_level_bpe import ByteLevelBPEEncoder, learn_byte_level_bpe
from t2t_lite.text.published.pre_tokenization import split
from t2t_lite.text.vocabulary_files import open_encoder
from tests.text.published_samples import BYTE_TOKENS, MERGES, SPECIAL, texts, write_byte_level


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return ByteLevelBPEEncoder(write_byte_level(tmp_path_factory.mktemp("bpe")))


@pytest.fixture(scope="module")
def graph(encoder):
    """The two functions of an export, each traced once."""
    texts, ids = tf.TensorSpec([None], tf.string), tf.TensorSpec([None, None], tf.int32)
    encode, decode = (
        tf.function(function, input_signature=[spec], autograph=False)
        for function, spec in ((encoder.tf_encode, texts), (encoder.tf_decode, ids))
    )
    return lambda some: encode(some).to_list(), lambda rows: decode(tf.ragged.constant(rows, tf.int32).to_tensor())


@pytest.mark.parametrize(
    "text, words",
    [
        ("", []),
        ("It's a test.", ["It", "'s", " a", " test", "."]),
        ("a  b", ["a", " ", " b"]),
        ("a \n b ", ["a", " \n", " b", " "]),
        ("a\n\nb", ["a", "\n", "\n", "b"]),
        ("\u00a0 b\u3000c", ["\u00a0", " b", "\u3000", "c"]),
        ("I'll've 'd 'Don't", ["I", "'ll", "'ve", " '", "d", " '", "Don", "'t"]),
        ("a's b't c're d've", ["a", "'s", " b", "'t", " c", "'re", " d", "'ve"]),
        ("e'm f'll g'd h'n", ["e", "'m", " f", "'ll", " g", "'d", " h", "'", "n"]),
        ("''s 's", ["''", "s", " '", "s"]),
        ("\t's'sun'S", ["\t", "'s", "'s", "un", "'", "S"]),
        ("x²Ⅷ٣ 12a_?!", ["x", "²Ⅷ٣", " 12", "a", "_?!"]),
        ("e\u0301 \u200b東京。", ["e", "\u0301", " \u200b", "東京", "。"]),
        ("a\x00b\x1cc\x85d", ["a", "\x00", "b", "\x1c", "c", "\x85", "d"]),
        ("\U00010d4a\U0002ebf0 \U00011bf0", ["\U00010d4a\U0002ebf0", " \U00011bf0"]),  # letters, a digit of Unicode 16
    ],
)
def test_words(text, words):
    assert split(text) == words


def test_the_endings_and_the_spaces_are_the_published_ones():
    """Of all endings of one or two letters after an apostrophe those of GPT-2, and of all characters the 25 spaces."""
    letters = string.ascii_lowercase
    endings = [*letters, *(first + second for first in letters for second in letters)]
    assert [e for e in endings if split(f"x'{e}") == ["x", f"'{e}"]] == ["d", "m", "s", "t", "ll", "re", "ve"]
    spaces = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000 and chr(code).isspace()]
    joined = [code for code in spaces if split(f"x{chr(code)}?") == ["x", f"{chr(code)}?"]]
    alone = [code for code in spaces if split(f"x{chr(code)}?") == ["x", chr(code), "?"]]
    assert joined == [0x1C, 0x1D, 0x1E, 0x1F, 32]
    assert len(alone) == 24 and {*alone, *joined} == {*spaces}


@pytest.mark.parametrize(
    "text, pieces",
    [
        ("the thing", ["t", "he", "Ġt", "h", "ing"]),  # " t" is joined before "the" could be
        (" the\n\nthe", ["Ġthe", "Ċ", "Ċ", "t", "he"]),
        ("it's", ["i", "t", "'s"]),
        ("aaaaa aaaa", ["aa", "aaa", "Ġ", "aa", "aa"]),  # from left to right, in the order of the merges
        ("全\x00", ["åħ", "¨", "Ā"]),
    ],
)
def test_merges(encoder, text, pieces):
    assert encoder.pieces(encoder.encode(text)) == pieces


def test_ids_are_reserved_and_the_publishers_are_kept(encoder):
    published = json.loads(encoder.contents["vocab.json"])
    assert encoder.vocab_size == len(published) + 2, "padding and unknown are added"
    assert encoder.pieces([0, 1, 2, 3]) == ["<pad>", "<|endoftext|>", "<unk>", "!"]
    assert encoder.published_ids[:4] == [-1, published["<|endoftext|>"], -1, published["!"]]
    kept = {token: encoder.published_ids[i] for i, token in enumerate(encoder.tokens) if i not in (0, 2)}
    assert kept == published
    assert encoder.decode([*encoder.encode("the "), 0, 1, 40]) == "the "


def test_robertas_tokens_take_the_reserved_ids(tmp_path):
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *BYTE_TOKENS, "he", "<|endoftext|>", "madeupword0000", "<mask>"]
    (tmp_path / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    (tmp_path / "merges.txt").write_text("h e\n")
    encoder = ByteLevelBPEEncoder(str(tmp_path / "vocab.json"))
    assert encoder.vocab_size == len(tokens)
    assert encoder.published_ids[:5] == [1, 2, 3, 0, 4]
    assert encoder.special_id("<mask>") == len(tokens) - 1
    with pytest.raises(UserError, match=r"vocab.json: the vocabulary has no special token \[MASK\]"):
        encoder.special_id("[MASK]")


def test_special_tokens_in_a_text_are_text_unless_they_are_allowed(encoder):
    text = "he<|endoftext|><s>"
    assert encoder.decode(encoder.encode(text)) == text and 1 not in encoder.encode(text)
    he, opening = encoder.encode("he"), encoder.special_ids["<s>"]
    assert encoder.encode(text, {"<|endoftext|>"}) == [*he, 1, *encoder.encode("<s>")]
    assert encoder.encode(text, "all") == [*he, 1, opening]
    assert encoder.decode([*he, opening, *he]) == "hehe", "a special token has no bytes"


@pytest.mark.slow
def test_any_text_comes_back_and_the_graph_gives_the_same(encoder, graph):
    """Also from the processes that encode data, which get the encoder by pickle."""
    encode, decode = graph
    some = [*texts(1500), "", "the" * 20_000, "東" * 40_000, " " * 50_000, *map(chr, range(0x250)), "\ue000\U0010ffff"]
    ids = list(map(encoder.encode, some))
    assert list(map(encoder.decode, ids)) == some
    other = pickle.loads(pickle.dumps(encoder))
    assert list(map(other.encode, some[:300])) == ids[:300]
    assert encode(some) == ids
    rows = [row for row in ids if len(row) < 1000]
    assert [text.decode() for text in decode(rows).numpy()] == [
        text for text in some if len(encoder.encode(text)) < 1000
    ]


@pytest.mark.slow
def test_neighbours_do_not_matter_in_the_graph(graph):
    some = [*texts(60), "'", "s", "", " ", "'", "ll"]
    assert graph[0](some) == [graph[0]([text])[0] for text in some]
    assert graph[0]([]) == []


@pytest.mark.slow
def test_any_bytes_are_decoded_alike(encoder, graph):
    """Ids that a model predicts need not make valid UTF-8."""
    rng = random.Random(0)
    rows = [[rng.randrange(3, encoder.vocab_size) for _ in range(rng.randrange(9))] for _ in range(800)]
    assert [text.decode() for text in graph[1](rows).numpy()] == list(map(encoder.decode, rows))
    assert graph[0]([b"he\xff\xfe", b"\x80"]) == list(map(encoder.encode, ["he\ufffd\ufffd", "\ufffd"]))


@pytest.mark.parametrize("names", [("encoder.json", "vocab.bpe"), ("my-vocab.json", "my-merges.txt")])
def test_names_of_the_files(tmp_path, encoder, names):
    other = ByteLevelBPEEncoder(write_byte_level(tmp_path, names=names))
    assert other.fingerprint == encoder.fingerprint
    changed = ByteLevelBPEEncoder(write_byte_level(tmp_path, MERGES[::-1][-1:], names=names))
    assert changed.fingerprint != encoder.fingerprint


def damaged(folder, vocab=None, merges=None):
    path = write_byte_level(folder)
    for name, change in (("vocab.json", vocab), ("merges.txt", merges)):
        if change:
            content = (folder / name).read_bytes()
            (folder / name).write_bytes(change(content))
    return path


@pytest.mark.parametrize(
    "vocab, merges, message",
    [
        (lambda c: c[:-9], None, "vocab.json: not readable as JSON"),
        (lambda c: b"\xff" + c, None, "vocab.json: not readable as JSON"),
        (lambda c: b"[]", None, "vocab.json: expected an object"),
        (lambda c: c.replace(b'": 7,', b'": "7",'), None, "expected a whole number"),
        (lambda c: c.replace(b'": 7,', b'": 6,'), None, "is 6. Expected 7, because the ids must be 0 to 272"),
        (lambda c: c.replace(b'": 272', b'": 300'), None, "is 300. Expected 272"),
        (lambda c: c.replace(b'"!"', b'"<!>"'), None, "the token '!' is missing"),
        (lambda c: c.replace(b'"he"', b'"hx"'), None, "line 3: 'h e': "),
        (lambda c: c.replace(b'"<s>"', b'"he"'), None, "'he' occurs twice"),
        (lambda c: c.replace(b"<|endoftext|>", b"<end>"), None, "no token for the end of a text. Expected </s> or"),
        (None, lambda c: c[:-12], "no merge forms the token 'åħ'"),
        (None, lambda c: c[:-3], "line 16: 'Ċ ': expected two tokens with a space"),
        (None, lambda c: c[:-2], "merges.txt: not UTF-8: byte"),
        (None, lambda c: b"", "line 1: ''"),
        (None, lambda c: c + b"h e\n", "line 17: 'h e': an earlier merge forms 'he'"),
        (None, lambda c: c.replace(b"i n\n", b"").replace(b"1 2\n", b"1 2\ni n\n"), "no earlier merge forms 'in'"),
        (None, lambda c: c + b"h e x\n", "line 17: 'h e x': expected two tokens with a space"),
        (None, lambda c: c + b"x y\n", "vocab.json has no token 'xy'"),
    ],
)
def test_damaged_files(tmp_path, vocab, merges, message):
    with pytest.raises(UserError) as caught:
        ByteLevelBPEEncoder(damaged(tmp_path, vocab, merges))
    assert message in str(caught.value) and str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "merges",
    [
        ["b c", "a b", "ab c"],  # of "abc", the first leaves "a" "bc"
        ["a b", "a ab"],  # fine; and "aab" is then "aab"
        ["a a", "a aa"],  # of "aaa", the first leaves "aa" "a"
        ["a b", "b a", "ab ab", "ba ba"],  # of "baba", the first leaves "b" "ab" "a"
    ],
)
def test_merges_that_do_not_build_their_token(tmp_path, merges):
    """Brute force: the token of each merge must be what the merges make of its text."""
    ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}

    def apply(symbols):
        for pair in ranks:
            at = 0
            while at < len(symbols) - 1:
                if tuple(symbols[at : at + 2]) == pair:
                    symbols[at : at + 2] = ["".join(pair)]
                at += 1
        return symbols

    is_right = all(apply(list("".join(pair))) == ["".join(pair)] for pair in ranks)
    path = write_byte_level(tmp_path, merges)
    if is_right:
        assert ByteLevelBPEEncoder(path).encode("a")
    else:
        with pytest.raises(UserError, match="earlier merges never leave these two"):
            ByteLevelBPEEncoder(path)


def test_missing_files(tmp_path):
    path = write_byte_level(tmp_path)
    (tmp_path / "merges.txt").unlink()
    for wrong, message in ((path, "merges.txt"), (str(tmp_path / "vocab.txt"), "ends in vocab.json or encoder.json")):
        with pytest.raises(UserError, match=message):
            ByteLevelBPEEncoder(wrong)


def test_a_learned_vocabulary(tmp_path):
    """It joins what is frequent, spells everything else, and is the same each time."""
    lines = ["the cat's hat, the hat of the cat", "日本 the\u00a0end\r"] * 40
    paths = [str(tmp_path / f"{name}-vocab.json") for name in ("a", "b")]
    for path in paths:
        learn_byte_level_bpe(lines, path, 270)
    first, second = map(ByteLevelBPEEncoder, paths)
    assert first.fingerprint == second.fingerprint and first.vocab_size == 270
    assert first.tokens[3 + 256] == "at" and {"Ġthe", "hat"} & set(first.tokens)
    words = ["ab", "bc", "abc"]  # the last one of the first and c: "bc" is rarer
    learn_byte_level_bpe(
        [word for word, count in zip(words, (40, 30, 20), strict=True) for _ in range(count)], paths[1], 262
    )
    joined = ByteLevelBPEEncoder(paths[1])
    assert [joined.pieces(joined.encode(word)) for word in words] == [[word] for word in words]
    assert all(first.decode(first.encode(text)) == text for text in [*texts(200), *lines[:2]])
    assert SPECIAL[-1] in json.loads(first.contents["vocab.json"])
    with pytest.raises(UserError, match=r"With 265, .* Set vocab_size=259,"):
        learn_byte_level_bpe(["ab abc"] * 3, paths[0], 1000)
    for size in (3, 258):
        with pytest.raises(UserError):
            learn_byte_level_bpe(["ab abc"] * 3, paths[0], size)


def test_byte_order_marks_are_no_part_of_a_vocabulary(tmp_path):
    path = write_byte_level(tmp_path)
    plain = ByteLevelBPEEncoder(path)
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" + (tmp_path / name).read_bytes())
    marked = open_encoder(path)
    assert (marked.tokens, marked.contents) == (plain.tokens, plain.contents)

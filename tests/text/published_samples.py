"""Small published vocabularies, made by hand, and texts that are hard to split."""

import io
import json
import random

import sentencepiece

from t2t_lite.text.published.pre_tokenization import BYTE_ORDER, CHARACTERS

MERGES = ["Ġ t", "h e", "Ġt he", "i n", "in g", "' s", "l l", "Ġ Ġ", "Ġ <", "Ġ< s", "1 2", "a a", "aa a", "å ħ", "Ċ Ċ"]
BYTE_TOKENS = [CHARACTERS[byte] for byte in BYTE_ORDER]
WORD_MERGES = ["t h", "th e</w>", "h e", "a a", "aa a</w>", "i n", "in g</w>", "l l</w>", "u n", "東 京</w>"]
WORD_SYMBOLS = "abcdefghiklmnoprstuxyz東京12!'.<>ς"
SPECIAL = ["<s>", "<|endoftext|>"]
PIECES = [
    *("[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "un", "##aff", "##able", "cafe", "##s", "σας"),
    *("!", "'", "[", "]", "#", "##x", "x", "東", "京", "s", "mask", "a", "##a", "##aa", "1", "²", "ss", "i", "σασ"),
]
HARD = (
    "  's'll 'd've \t\n\r\u000b\u0085\u00a0\u2003\u3000\u200b\x00\x1c aAbcthelingzZ12²Ⅷ٣½.,!?<|>[]_#-éße\u0301İΣσς"
    "東京\u0e01\u0e34\u1100\uac00\u2028\ufeff\ufffd\ufdd0\ufdd1\U0001f600\U0001d11e\U0002b820\U0002f800\U0010ffff\u0378\U000e0100"
)
ESCAPES = list("\\_u;0123456789")
SUBWORDS = ["<pad>_", "<EOS>_", "the_", "th", "so_", "so", "cool_", ", ", "' _", *ESCAPES, *"abcdehlostpEOS<>, .'é"]


def write_byte_level(folder, merges=MERGES, special=SPECIAL, names=("vocab.json", "merges.txt")):
    """Writes the two files and returns the path of the first; the ids follow this order."""
    tokens = [*BYTE_TOKENS, *(merge.replace(" ", "") for merge in merges), *special]
    (folder / names[0]).write_text(json.dumps({token: i for i, token in enumerate(tokens)}), encoding="utf-8")
    (folder / names[1]).write_text("".join(f"{line}\n" for line in ["#version: 0.2", *merges]), encoding="utf-8")
    return str(folder / names[0])


def write_words(folder, merges=WORD_MERGES, special=("\n</w>",)):
    """Writes the two files of a vocabulary as the original GPT's, and returns the path of the first."""
    symbols = [*WORD_SYMBOLS, *(f"{symbol}</w>" for symbol in WORD_SYMBOLS if symbol != "z")]
    tokens = ["<unk>", *symbols, *(merge.replace(" ", "") for merge in merges), *special]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}), encoding="utf-8")
    (folder / "merges.txt").write_text("".join(f"{line}\n" for line in ["#version: 0.2", *merges]), encoding="utf-8")
    return str(folder / "vocab.json")


def sentencepiece_model(sentences, vocab_size, **options):
    """Returns the bytes of a small SentencePiece model."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=model, vocab_size=vocab_size, hard_vocab_limit=False,
        minloglevel=2, **options,
    )  # fmt: skip
    return model.getvalue()


def write_pieces(folder, pieces=PIECES):
    """Writes a vocab.txt and returns its path."""
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    return str(folder / "vocab.txt")


def texts(count, seed=3):
    """Returns random texts: of hard characters, of words and blanks, and of any code points."""
    rng = random.Random(seed)
    words = [
        "the",
        "then",
        "I'll",
        "it's",
        "'s",
        "''s",
        "unaffables",
        "12",
        "aaaaaaa",
        "ing",
        "<s>",
        "[MASK]",
        "東京",
        "!",
    ]
    blanks = [" ", "  ", "\n", " \n", "\t ", "\u00a0", "", "\r\n\n"]
    anything = [code for code in range(0x11000) if not 0xD800 <= code < 0xE000]
    found = []
    for i in range(count):
        length = rng.randrange(12)
        if i % 3 == 0:
            found.append("".join(rng.choices(HARD, k=length)))
        elif i % 3 == 1:
            found.append("".join(rng.choice(words) + rng.choice(blanks) for _ in range(length)))
        else:
            found.append("".join(map(chr, rng.choices(anything, k=length))))
    return found


def write_subwords(folder, pieces=SUBWORDS, quote="'", name="vocab.subwords"):
    """Writes a vocabulary of tensor2tensor's and returns its path."""
    path = folder / name
    path.write_bytes("".join(f"{quote}{piece}{quote}\n" for piece in pieces).encode())
    return str(path)

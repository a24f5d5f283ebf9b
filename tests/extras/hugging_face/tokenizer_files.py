"""Files tokenizer.json as Transformers 5 writes them, of the vocabularies in folders."""

import base64
import json
import os

from t2t_lite.text.sentencepiece_model import ModelProto
from tests.extras.hugging_face.folders import refuses_import
from tests.extras.hugging_face.in_and_out import loaded
from tests.text.published_samples import PIECES

# As Transformers 5.24 writes them.
BERT = {
    "normalizer": {
        "type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
        "lowercase": True,
    },
    "pre_tokenizer": {"type": "BertPreTokenizer"},
}  # fmt: skip
WORD_PIECE = {
    "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100
}  # fmt: skip
GPT2 = {
    "normalizer": None,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
}
BPE = {
    "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
    "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
}  # fmt: skip


def word_piece(path):
    return BERT | {"model": WORD_PIECE | {"vocab": {piece: i for i, piece in enumerate(PIECES)}}}


def bpe(path, way=GPT2, **settings):
    merges = [line.split(" ") for line in (path / "merges.txt").read_text().split("\n")[1:-1]]
    return way | {"model": BPE | settings | {"vocab": json.loads((path / "vocab.json").read_text()), "merges": merges}}


def unigram(path):
    proto = ModelProto.FromString((path / "spiece.model").read_bytes())
    rules = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    quotes = [{"type": "Replace", "pattern": {"String": text}, "content": '"'} for text in ("``", "''")]
    others = [{"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]
    compiled = {"type": "Precompiled", "precompiled_charsmap": rules}
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    return {
        "model": {"type": "Unigram", "vocab": [[piece.piece, piece.score] for piece in proto.pieces], "unk_id": 1},
        "added_tokens": [{"id": i, "content": proto.pieces[i].piece, "special": True} for i in range(5)],
        "normalizer": {"type": "Sequence", "normalizers": [*quotes, *others, compiled]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]},
    }


def write(path, said, **config):
    """Writes tokenizer.json and its configuration in place of the vocabulary's own files."""
    for name in {"vocab.txt", "vocab.json", "merges.txt", "spiece.model"} & set(os.listdir(path)):
        (path / name).unlink()
    (path / "tokenizer.json").write_text(json.dumps(said))
    if config:
        (path / "tokenizer_config.json").write_text(json.dumps(config))


def changed(said, part, **settings):
    return said | {part: (said[part] or {}) | settings}


def refused(path, words):
    refuses_import(path, path / "refused", words)


def encoder_of(path, name):
    encoders = loaded(path, path / name).encoders
    return encoders.get("inputs") or encoders["targets"]

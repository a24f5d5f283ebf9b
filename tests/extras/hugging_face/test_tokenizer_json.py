"""Vocabularies in `tokenizer.json`, which Transformers 5 writes instead of their own files."""

import base64
import json
import os

import pytest

import t2t_lite
from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.export import import_hugging_face
from t2t_lite.text.sentencepiece_model import ModelProto
from tests.extras.hugging_face.encoder_folders import write_encoder
from tests.extras.hugging_face.gpt_folders import write_gpt
from tests.text.published_samples import PIECES, write_byte_level, write_words

# As Transformers 5.24 writes them.
BERT = {
    "normalizer": {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    },
    "pre_tokenizer": {"type": "BertPreTokenizer"},
}
WORD_PIECE = {
    "type": "WordPiece",
    "unk_token": "[UNK]",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
}
GPT2 = {
    "normalizer": None,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
}
BPE = {
    "type": "BPE",
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": "",
    "end_of_word_suffix": "",
    "fuse_unk": False,
    "byte_fallback": False,
    "ignore_merges": False,
}


def word_piece(path):
    return BERT | {"model": WORD_PIECE | {"vocab": {piece: i for i, piece in enumerate(PIECES)}}}


def bpe(path, way=GPT2, **settings):
    merges = [line.split(" ") for line in (path / "merges.txt").read_text().split("\n")[1:-1]]
    return way | {"model": BPE | settings | {"vocab": json.loads((path / "vocab.json").read_text()), "merges": merges}}


def unigram(path):
    proto = ModelProto.FromString((path / "spiece.model").read_bytes())
    rules = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    return {
        "model": {"type": "Unigram", "vocab": [[piece.piece, piece.score] for piece in proto.pieces], "unk_id": 1},
        "added_tokens": [{"id": i, "content": proto.pieces[i].piece, "special": True} for i in range(5)],
        "normalizer": {"normalizers": [{"type": "NFKD"}, {"type": "Precompiled", "precompiled_charsmap": rules}]},
    }


def write(path, said, **config):
    """Writes tokenizer.json and its configuration in place of the vocabulary's own files."""
    for name in {"vocab.txt", "vocab.json", "merges.txt", "spiece.model"} & set(os.listdir(path)):
        (path / name).unlink()
    (path / "tokenizer.json").write_text(json.dumps(said))
    if config:
        (path / "tokenizer_config.json").write_text(json.dumps(config))


@pytest.fixture
def folder(tmp_path):
    """A path of no file yet."""
    return tmp_path / "theirs"


def changed(said, part, **settings):
    return said | {part: (said[part] or {}) | settings}


def refused(path, words):
    with pytest.raises(UserError) as caught:
        import_hugging_face(str(path), str(path / "refused"))
    assert words in str(caught.value)
    assert not (path / "refused").exists()


def encoder_of(path, name):
    import_hugging_face(str(path), str(path / name))
    loaded = t2t_lite.load(str(path / name))
    return loaded.encoders.get("inputs") or loaded.encoders["targets"]


FOLDERS = {
    "WordPiece": (lambda path: write_encoder(path, "BertForMaskedLM"), word_piece),
    "BPE": (lambda path: write_encoder(path, "RobertaForMaskedLM"), bpe),
    "GPT-2": (lambda path: write_gpt(path, "gpt2", "", write_byte_level), bpe),
}
if "albert" in registry.list_families():
    FOLDERS["Unigram"] = (lambda path: write_encoder(path, "AlbertForMaskedLM"), unigram)
if "openai-gpt" in registry.list_families():
    FOLDERS["GPT"] = (
        lambda path: write_gpt(path, "openai-gpt", "", write_words),
        lambda path: bpe(path, BERT, end_of_word_suffix="</w>", unk_token="<unk>"),
    )


@pytest.mark.slow
@pytest.mark.few("WordPiece", "Unigram", "GPT-2")
@pytest.mark.parametrize("kind", FOLDERS)
def test_it_holds_what_the_other_files_held(folder, kind):
    fill, of_files = FOLDERS[kind]
    fill(folder)
    said, before = of_files(folder), encoder_of(folder, "run")
    write(folder, said)
    after = encoder_of(folder, "again")
    every = range(before.vocab_size)
    assert before.pieces(every) == after.pieces(every) and before.encode("The cafe 12") == after.encode("The cafe 12")
    write(folder, changed(said, "model", type="WordLevel"))
    refused(folder, "a vocabulary of the kind WordLevel")


def test_damaged_pieces_and_merges(folder):
    write_encoder(folder, "BertForMaskedLM")
    said = word_piece(folder)
    for vocab in ([], {"[UNK]": "0"}, *({**said["model"]["vocab"], piece: 99} for piece in ("a\nb", "\ud83d"))):
        write(folder, changed(said, "model", vocab=vocab))
        refused(folder, "tokenizer.json: 'vocab': ")
    for merges in ([7], [["a", 2]], [None]):
        write(folder, GPT2 | {"model": BPE | {"vocab": {"a": 0}, "merges": merges}})
        refused(folder, "tokenizer.json: 'merges': ")


@pytest.mark.slow
def test_it_says_whether_letters_become_small(folder):
    """The pieces, all small, would say that they do."""
    write_encoder(folder, "BertForMaskedLM")
    said = word_piece(folder)
    small = encoder_of(folder, "small")
    beside = changed(said, "normalizer", lowercase=False)
    (folder / "tokenizer.json").write_text(json.dumps(beside))
    for name in ("beside", "alone"):
        kept = encoder_of(folder, name)
        assert small.encode("THE") == small.encode("the") == kept.encode("the")
        assert kept.encode("THE") == kept.tf_encode(["THE"]).to_list()[0] == [kept.unknown_id]
        write(folder, beside)
    write(folder, beside, do_lower_case=True)
    refused(folder, "do_lower_case=True, but by")


@pytest.mark.parametrize(
    "kind, part, settings, words",
    [
        ("WordPiece", "normalizer", {"strip_accents": False}, "normalizer: strip_accents=False. Expected True"),
        ("WordPiece", "normalizer", {"strip_accents": True, "lowercase": False}, "strip_accents=True. Expected False"),
        ("WordPiece", "normalizer", {"handle_chinese_chars": False}, "handle_chinese_chars=False. Expected True"),
        ("WordPiece", "normalizer", {"type": "Sequence"}, "normalizer: type='Sequence'. Expected 'BertNormalizer'"),
        ("WordPiece", "pre_tokenizer", {"type": "Whitespace"}, "pre_tokenizer: type='Whitespace'"),
        ("WordPiece", "model", {"max_input_chars_per_word": 200}, "max_input_chars_per_word=200. Expected 100"),
        ("BPE", "normalizer", {"type": "NFC"}, "normalizer: type='NFC'. Expected none"),
        ("BPE", "pre_tokenizer", {"add_prefix_space": True}, "add_prefix_space=True. Expected False"),
        ("BPE", "pre_tokenizer", {"type": "Sequence"}, "pre_tokenizer: type='Sequence'. Expected 'ByteLevel'"),
        ("BPE", "model", {"ignore_merges": True}, "model: ignore_merges=True. Expected none"),
        ("GPT-2", "pre_tokenizer", {"add_prefix_space": True}, "add_prefix_space=True. Expected False"),
        *(
            (kind, "normalizer", {"lowercase": False}, "normalizer: lowercase=False. Expected True")
            for kind in ("GPT",)
            if kind in FOLDERS
        ),
    ],
)
def test_another_way_of_texts_to_words_is_refused(folder, kind, part, settings, words):
    fill, of_files = FOLDERS[kind]
    fill(folder)
    write(folder, changed(of_files(folder), part, **settings))
    refused(folder, words)


def test_parts_that_are_missing_are_refused(folder):
    write_encoder(folder, "BertForMaskedLM")
    write(folder, {"model": word_piece(folder)["model"]})
    refused(folder, "no normalizer: type. Expected 'BertNormalizer'")


@pytest.mark.parametrize("kind", ["BPE", "GPT-2"])
def test_a_space_before_texts_is_refused_in_the_configuration(folder, kind):
    FOLDERS[kind][0](folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({"add_prefix_space": True}))
    refused(folder, "tokenizer_config.json: add_prefix_space=True. Expected false")


def test_a_language_model_has_no_vocabulary_of_an_encoder(folder):
    write_gpt(folder, "gpt2", "", write_byte_level)
    write(folder, word_piece(folder))
    refused(folder, "an encoder's vocabulary. Expected vocab.json and merges.txt")


def test_messages_name_the_users_file(folder):
    """Not the temporary one that is made of it."""
    write_encoder(folder, "BertForMaskedLM")
    said = word_piece(folder)
    vocab = {piece: i for piece, i in said["model"]["vocab"].items() if piece != "[SEP]"}
    write(folder, changed(said, "model", vocab=vocab))
    refused(folder, f"{folder}/tokenizer.json: no [SEP] among ")
    write(folder, said | {"added_tokens": [{"id": len(vocab) + 1, "content": "[E1]", "lstrip": True}]})
    refused(folder, f"{folder}/tokenizer.json: the added token '[E1]' has lstrip=true. Expected false.")

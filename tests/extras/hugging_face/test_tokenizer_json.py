"""Vocabularies in `tokenizer.json`, which Transformers 5 writes instead of their own files."""

# Nearest tests of: extras/hugging_face/published_vocabulary.py

import json

import pytest

from t2t_lite import registry
from tests.extras.hugging_face.encoder_folders import write_encoder
from tests.extras.hugging_face.gpt_folders import write_gpt
from tests.extras.hugging_face.in_and_out import exported, loaded
from tests.extras.hugging_face.tokenizer_files import (
    BERT,
    BPE,
    GPT2,
    bpe,
    changed,
    encoder_of,
    refused,
    unigram,
    word_piece,
    write,
)  # fmt: skip
from tests.text.published_samples import write_byte_level, write_words


@pytest.fixture
def folder(tmp_path):
    """A path of no file yet."""
    return tmp_path / "theirs"


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


def made(folder, kind):
    """Fills a folder; returns what its tokenizer.json would say."""
    fill, of_files = FOLDERS[kind]
    fill(folder)
    return of_files(folder)


@pytest.mark.slow
@pytest.mark.few("WordPiece", "Unigram", "GPT-2")
@pytest.mark.parametrize("kind", FOLDERS)
def test_it_holds_what_the_other_files_held(folder, kind):
    said, before = made(folder, kind), encoder_of(folder, "run")
    write(folder, said)
    after = encoder_of(folder, "again")
    every = range(before.vocab_size)
    assert before.pieces(every) == after.pieces(every) and before.encode("The cafe 12") == after.encode("The cafe 12")
    del said["model"]["type"]  # as in the published files of gpt2 and distilbert-base-uncased
    write(folder, said)
    assert encoder_of(folder, "untyped").pieces(every) == before.pieces(every)
    write(folder, changed(said, "model", type="WordLevel"))
    refused(folder, "type is WordLevel")


@pytest.mark.parametrize("kind", ["WordPiece", "GPT-2"])
def test_it_replaces_the_other_files(folder, kind):
    """As in Transformers, which does not write them any longer, so older ones may lie beside it."""
    said = made(folder, kind)
    ids = said["model"]["vocab"]
    *_, first, second = (token for token in ids if len(token) == 1 and token.isascii())
    ids[first], ids[second] = ids[second], ids[first]
    (folder / "tokenizer.json").write_text(json.dumps(said))
    theirs = [ids[first], ids[second]]
    encoder = encoder_of(folder, "run")
    assert [encoder.published_ids[i] for i in encoder.encode(first) + encoder.encode(second)] == theirs
    del ids[first]
    (folder / "tokenizer.json").write_text(json.dumps(said))
    refused(folder, f"{folder}/tokenizer.json: ")


@pytest.mark.slow
def test_the_first_merge_is_not_on_the_first_line(folder, tmp_path):
    """Transformers 4 skips this line."""
    write(folder, made(folder, "GPT-2"))
    exported(loaded(folder, tmp_path / "run"), tmp_path / "ours")
    assert (tmp_path / "ours" / "merges.txt").read_text().startswith("#version: 0.2\n")


def _template(*tokens):
    parts = [{"Sequence" if token in "AB" else "SpecialToken": {"id": token, "type_id": 0}} for token in tokens]
    return {"type": "TemplateProcessing", "single": parts}


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        ("WordPiece", _template("[CLS]", "A", "[SEP]"), _template("A", "[SEP]")),
        ("WordPiece", {"type": "BertProcessing", "cls": ["[CLS]", 2], "sep": ["[SEP]", 3]}, None),
        ("BPE", {"type": "RobertaProcessing", "cls": ["<s>", 0], "sep": ["</s>", 2]}, {"type": "ByteLevel"}),
        ("GPT-2", {"type": "ByteLevel"}, _template("<|endoftext|>", "A")),
        ("GPT-2", None, {"type": "Sequence", "processors": [{"type": "ByteLevel"}, _template("A", "<|endoftext|>")]}),
    ],
)
def test_other_special_tokens_around_texts_are_refused(folder, kind, right, wrong):
    said = made(folder, kind)
    write(folder, said | {"post_processor": wrong})
    refused(folder, "tokenizer.json: post_processor=…Expected …A")
    write(folder, said | {"post_processor": {"type": "TemplateProcessing", "single": [[]]}})
    refused(folder, "'post_processor' is damaged")
    write(folder, said | {"post_processor": right})
    encoder_of(folder, "run")


def test_damaged_pieces_and_merges(folder):
    said = made(folder, "WordPiece")
    for vocab in ([], {"[UNK]": "0"}, *({**said["model"]["vocab"], piece: 99} for piece in ("a\nb", "\ud83d"))):
        write(folder, changed(said, "model", vocab=vocab))
        refused(folder, "tokenizer.json: 'vocab': ")
    vocab = {piece: i + (i > 6) for piece, i in said["model"]["vocab"].items()}
    write(folder, changed(said, "model", vocab=vocab))
    refused(folder, f"tokenizer.json: 'vocab': expected the ids 0 to {len(vocab) - 1}, each once")
    for merges in ([7], [["a", 2]], [None]):
        write(folder, GPT2 | {"model": BPE | {"vocab": {"a": 0}, "merges": merges}})
        refused(folder, "tokenizer.json: 'merges': ")


@pytest.mark.slow
def test_it_says_whether_letters_become_small(folder):
    """The pieces, all small, would say that they do."""
    said = made(folder, "WordPiece")
    small = encoder_of(folder, "small")
    beside = changed(said, "normalizer", lowercase=False)
    (folder / "tokenizer.json").write_text(json.dumps(beside))
    for name in ("beside", "alone"):
        kept = encoder_of(folder, name)
        assert small.encode("THE") == small.encode("the") == kept.encode("the")
        assert kept.encode("THE") == kept.tf_encode(["THE"]).to_list()[0] == [kept.unknown_id]
        write(folder, beside)
    write(folder, beside, do_lower_case=True)
    refused(folder, "do_lower_case=True, but")


OTHER_WAYS = [
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
    ("Unigram", "normalizer", {"normalizers": [{"type": "NFKC"}]}, "no normalizer: pattern. Expected …``"),
    ("Unigram", "pre_tokenizer", {"pretokenizers": [{"type": "Digits"}]}, "type='Digits'. Expected 'Metaspace'"),
    ("GPT", "normalizer", {"lowercase": False}, "normalizer: lowercase=False. Expected True"),
    ("GPT", "normalizer", {"strip_accents": False}, "normalizer: strip_accents=False. Expected True"),
]


@pytest.mark.parametrize("kind, part, settings, words", [row for row in OTHER_WAYS if row[0] in FOLDERS])
def test_another_way_of_texts_to_words_is_refused(folder, kind, part, settings, words):
    write(folder, changed(made(folder, kind), part, **settings))
    refused(folder, words)


def test_parts_that_are_missing_are_refused(folder):
    write(folder, {"model": made(folder, "WordPiece")["model"]})
    refused(folder, "no normalizer: type. Expected 'BertNormalizer'")


@pytest.mark.parametrize(
    ("kind", "name"), [("BPE", "add_prefix_space"), ("GPT-2", "add_prefix_space"), ("GPT-2", "add_bos_token")]
)
def test_additions_to_texts_are_refused_in_the_configuration(folder, kind, name):
    FOLDERS[kind][0](folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({name: True}))
    refused(folder, f"tokenizer_config.json: {name}=true. Expected false")


def test_a_language_model_has_no_vocabulary_of_an_encoder(folder):
    write_gpt(folder, "gpt2", "", write_byte_level)
    write(folder, word_piece(folder))
    refused(folder, "an encoder's vocabulary. Expected vocab.json and merges.txt")


def test_messages_name_the_users_file(folder):
    """Not the temporary one that is made of it."""
    said = made(folder, "WordPiece")
    vocab = {piece.replace("[SEP]", "[END]"): i for piece, i in said["model"]["vocab"].items()}
    write(folder, changed(said, "model", vocab=vocab))
    refused(folder, f"{folder}/tokenizer.json: no [SEP] among ")
    write(folder, said | {"added_tokens": [{"id": len(vocab), "content": "[E1]", "lstrip": True}]})
    refused(folder, f"{folder}/tokenizer.json: the added token '[E1]' has lstrip=true. Expected false.")

"""Vocabularies of every kind are told apart by names, those of BPE by tokens, and taken over with all their files."""

import pathlib

import pytest

from t2t_lite import files
from t2t_lite.errors import UserError
from t2t_lite.registry import Registries, Registry
from t2t_lite.text import subwords, vocabulary_files
from t2t_lite.text.published.byte_level_bpe import ByteLevelBPEEncoder, learn_byte_level_bpe
from t2t_lite.text.published.wordpiece import WordPieceEncoder
from t2t_lite.text.vocabulary import ByteTextEncoder, SentencePieceEncoder
from tests import faults
from tests.text.published_samples import MERGES, texts, write_byte_level, write_pieces, write_subwords, write_words


def write_sentencepiece(folder):
    subwords.train_sentencepiece(["the thing is there"] * 9, str(folder / "spm"), 275)
    return str(folder / "spm.model")


KINDS = {
    SentencePieceEncoder: (".model", write_sentencepiece, ["a.model", "a.vocab"]),
    ByteLevelBPEEncoder: ("-vocab.json", write_byte_level, ["a-vocab.json", "a-merges.txt"]),
    WordPieceEncoder: ("-vocab.txt", write_pieces, ["a-vocab.txt"]),
}
if ".subwords" in Registries.encoders:  # of an extra
    KINDS[Registries.encoders.get(".subwords")] = (".subwords", write_subwords, ["a.subwords"])
if "word_bpe" in Registries.encoders:
    KINDS[Registries.encoders.get("word_bpe")] = ("-vocab.json", write_words, ["a-vocab.json", "a-merges.txt"])


def test_an_object_that_is_not_an_encoder_is_named():
    encoders = {"inputs": ByteTextEncoder(), "targets": ByteTextEncoder()}
    assert vocabulary_files.checked(encoders, "mine") is encoders
    with pytest.raises(UserError, match=r"^mine: feature_encoders returned an object of class dict\. .*TextEncoder"):
        vocabulary_files.checked(encoders | {"targets": {}}, "mine")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind(tmp_path, kind):
    ending, write, names = KINDS[kind]
    source = write(tmp_path)
    assert vocabulary_files.ending_of(source) == ending
    (tmp_path / "data").mkdir()
    path = str(tmp_path / "data" / f"a{ending}")
    vocabulary_files.adopt(source, path)
    assert sorted(each.name for each in (tmp_path / "data").iterdir()) == sorted(names)
    assert [pathlib.Path(each).name for each in vocabulary_files.files_of(path)] == names
    adopted, given = map(vocabulary_files.open_encoder, (path, source))
    assert vocabulary_files.has_pieces(adopted) and vocabulary_files.read_by(adopted) == vocabulary_files.files_of(path)
    assert type(adopted) is type(given) is kind
    assert adopted.fingerprint == given.fingerprint and adopted.vocab_size == given.vocab_size
    assert all(adopted.encode(text) == given.encode(text) for text in texts(50))
    for file, content in vocabulary_files.as_adopted(source, path).items():
        assert pathlib.Path(file).read_bytes() == content


@pytest.mark.parametrize("kind", ["adopted -vocab.txt", "adopted -vocab.json", "learned -vocab.json"])
def test_settings_of_a_deleted_vocabulary_do_not_apply_to_the_next(tmp_path, kind):
    path = tmp_path / f"a{kind.split()[1]}"
    config = tmp_path / "a-tokenizer_config.json"
    config.write_text('{"do_lower_case": false, "added_tokens_decoder": {"9": {"content": "<x>"}}}')
    if kind == "learned -vocab.json":
        learn_byte_level_bpe(["the thing is there"] * 9, str(path), 275)
    else:
        write = write_pieces if path.suffix == ".txt" else write_byte_level
        vocabulary_files.adopt(write(tmp_path), str(path))
    assert not config.exists() and not vocabulary_files.open_encoder(str(path)).added


def test_nothing_is_written_of_a_damaged_one(tmp_path):
    source = write_byte_level(tmp_path, MERGES)
    (tmp_path / "merges.txt").write_text("h e\n")
    with pytest.raises(UserError, match="no merge forms"):
        vocabulary_files.adopt(source, str(tmp_path / "a-vocab.json"))
    assert not list(tmp_path.glob("a-*"))


def test_a_kind_that_is_not_installed_is_named_with_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(Registries, "encoders", Registry("encoders"))
    path = write_words(tmp_path)
    with pytest.raises(UserError, match=rf"^{path}: encoders: 'word_bpe' is not registered"):
        vocabulary_files.open_encoder(path)


def test_an_encoder_without_files():
    assert not vocabulary_files.has_pieces(ByteTextEncoder()) and vocabulary_files.read_by(ByteTextEncoder()) == []


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("kind", ["learned .model", "learned -vocab.json", "adopted .model", "adopted -vocab.json"])
def test_the_main_file_comes_last(tmp_path, kind, call):
    """That it exists means that the vocabulary is complete, whenever its writing ends."""
    ending = kind.split(" ")[1]
    source = (write_sentencepiece if ending == ".model" else write_byte_level)(tmp_path)
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / f"a{ending}"
    lines = ["the thing is there"] * 9
    writers = {
        "learned .model": lambda: subwords.train_sentencepiece(lines, str(path).removesuffix(ending), 275),
        "learned -vocab.json": lambda: learn_byte_level_bpe(lines, str(path), 262),
        "adopted .model": lambda: vocabulary_files.adopt(source, str(path)),
        "adopted -vocab.json": lambda: vocabulary_files.adopt(source, str(path)),
    }
    with faults.failing(files, "write_bytes", call) as calls, pytest.raises(KeyboardInterrupt):
        writers[kind]()
    assert len(calls) == call and not path.exists()
    writers[kind]()
    assert len([*path.parent.iterdir()]) == 2 and vocabulary_files.open_encoder(str(path)).encode("the thing")

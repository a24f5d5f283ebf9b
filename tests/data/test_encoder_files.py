"""Ported problems whose encoders read files of their own: what is learned, and what a run and an export have."""
# Nearest tests of: t2t_lite/data/folder.py

import os
import pathlib
import shutil
import types

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.folder import encoder_files
from t2t_lite.data.problem import DatasetSplit, Problem, Text2ClassProblem, Text2TextProblem, VocabType
from t2t_lite.errors import MissingFile, UserError
from t2t_lite.export.saved_model import write_package
from t2t_lite.runs.opening import open_run
from t2t_lite.runs.saving import save_run
from t2t_lite.settings.config import HParams
from t2t_lite.text.class_label_encoder import ClassLabelEncoder
from t2t_lite.text.vocabulary import EOS_ID, TokenTextEncoder
from tests.models.own_model import OwnPlainModel

WORDS = "<pad>\n<EOS>\nUNK\none\ntwo\neins\n"


class Ported(Text2TextProblem):
    """Pairs whose shared vocabulary is learned."""

    name = "ported"
    is_generate_per_split = True
    approx_vocab_size = 280

    @property
    def dataset_splits(self):
        return [{"split": DatasetSplit.TRAIN, "shards": 1}, {"split": DatasetSplit.EVAL, "shards": 1}]

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        for number in range(9):
            yield {"inputs": f"one two {number}", "targets": "eins zwei"}


class OfWords(Ported):
    """A vocabulary of words that the user has put into the data folder."""

    def feature_encoders(self, data_dir):
        encoder = TokenTextEncoder(os.path.join(data_dir, "my_words.txt"), replace_oov="UNK")
        return {"inputs": encoder, "targets": encoder}


class MakesItsVocabulary(Ported):
    """As tensor2tensor's contract of `get_or_create_vocab` has it."""

    def get_or_create_vocab(self, data_dir, tmp_dir, force_get=False):
        path = os.path.join(data_dir, "created.txt")
        if not force_get:
            pathlib.Path(path).write_text(WORDS)
        return TokenTextEncoder(path, replace_oov="UNK")


class WritesItsVocabulary(Ported):
    """Writes its vocabulary before it returns the samples, as tensor2tensor's `translate_ende_wmt_bpe32k` does."""

    vocab_type = VocabType.TOKEN
    oov_token = "UNK"

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        pathlib.Path(data_dir, self.vocab_filename).write_text(WORDS)
        return super().generate_samples(data_dir, tmp_dir, dataset_split)


class WritesAndOpensItsVocabulary(WritesItsVocabulary):
    vocab_type = VocabType.SUBWORD
    vocab_filename = "vocab.ported.tokens"

    def get_or_create_vocab(self, data_dir, tmp_dir, force_get=False):
        return TokenTextEncoder(os.path.join(data_dir, self.vocab_filename), replace_oov="UNK")


class OfLabels(Text2ClassProblem, Ported):
    """Classes whose labels are a file in a folder of the data folder, which tf.io.gfile reads."""

    num_classes = 2

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        for number in range(9):
            yield {"inputs": f"one two {number}", "label": number % 2}

    def feature_encoders(self, data_dir):
        encoder = self.get_or_create_vocab(data_dir, None, force_get=True)  # tensor2tensor's way
        with tf.io.gfile.GFile(os.path.join(data_dir, "more files/the labels.txt")) as file:
            return {"inputs": encoder, "targets": ClassLabelEncoder(file.read().split())}


class Encodes(Ported):
    """Writes what its encoders read while it generates, and has no samples of text."""

    generate_samples = Text2TextProblem.generate_samples

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        path = pathlib.Path(data_dir, "written.txt")
        path.write_text(WORDS)
        encoder = TokenTextEncoder(str(path), "UNK")
        for text in ("one two", "two"):
            yield {"inputs": [*encoder.encode(text), EOS_ID], "targets": [*encoder.encode("eins"), EOS_ID]}

    def feature_encoders(self, data_dir):
        encoder = TokenTextEncoder(os.path.join(data_dir, "written.txt"), "UNK")
        return {"inputs": encoder, "targets": encoder}


LEARNED = ["vocab.ported.280.model", "vocab.ported.280.vocab"]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Ported, LEARNED),
        (OfWords, ["my_words.txt"]),
        (MakesItsVocabulary, ["created.txt"]),
        (WritesItsVocabulary, ["vocab.ported.tokens"]),
        (WritesAndOpensItsVocabulary, ["vocab.ported.tokens"]),
        (OfLabels, ["more files/the labels.txt", *LEARNED]),
        (Encodes, ["written.txt"]),
    ],
)
def test_what_the_encoders_read_is_made_and_found_and_nothing_else(tmp_path, kind, names):
    (tmp_path / "my_words.txt").write_text(WORDS)
    (tmp_path / "more files").mkdir()
    (tmp_path / "more files" / "the labels.txt").write_text("no yes")
    folder = str(tmp_path)
    kind().generate_data(folder, folder)
    assert sorted(encoder_files(kind(), folder)) == names
    assert all(path == str(tmp_path / name) for name, path in encoder_files(kind(), folder).items())
    assert (tmp_path / LEARNED[0]).exists() == (LEARNED[0] in names), "no vocabulary is learned that nobody reads"
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    kind().generate_data(folder, folder)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before, "they are known to be finished"


def test_what_is_missing_is_said_before_a_record_is_written(tmp_path):
    folder = str(tmp_path / "data")
    with pytest.raises(MissingFile, match=r"my_words\.txt: no such file"):
        OfWords().generate_data(folder, folder)
    with pytest.raises(MissingFile, match=r"the labels\.txt: no such file"):
        OfLabels().generate_data(folder, folder)
    assert not list(pathlib.Path(folder).glob("*-of-*"))


def test_copies_that_give_other_encoders_are_refused(tmp_path):
    """What is not missed where it is missing is found by its effect."""

    class OfOptionalWords(Ported):
        def feature_encoders(self, data_dir):
            path = pathlib.Path(data_dir, "labels.txt")
            encoder = ClassLabelEncoder(path.read_text().split() if path.exists() else ["none"])
            return {"inputs": encoder, "targets": encoder}

    (tmp_path / "labels.txt").write_text("no yes")
    with pytest.raises(
        UserError, match=r"^ported: feature_encoders reads more files in .* than none: .*vocabulary_files"
    ):
        encoder_files(OfOptionalWords(), str(tmp_path))


def test_a_file_that_cannot_be_copied_is_said(tmp_path, caplog):
    (tmp_path / "data and more").mkdir()
    (tmp_path / "data and more" / "elsewhere.txt").write_text(WORDS)

    class OfAnotherFolder(Ported):
        def feature_encoders(self, data_dir):
            encoder = TokenTextEncoder(str(tmp_path / "data and more" / "elsewhere.txt"))
            return {"inputs": encoder, "targets": encoder}

    assert encoder_files(OfAnotherFolder(), str(tmp_path / "data")) == {}
    assert "elsewhere.txt: ported reads" in caplog.text


@registry.register_problem("own_files_of_encoders")
class OwnFilesOfEncoders(Problem):
    """Texts whose encoder is made of two files, one of which it does not tell."""

    features = types.MappingProxyType({"targets": 2})

    def feature_encoders(self, data_dir):
        unknown = pathlib.Path(data_dir, "unknown").read_text().strip()
        return {"targets": TokenTextEncoder(f"{data_dir}/words", replace_oov=unknown)}


@pytest.mark.slow
def test_runs_and_exports_are_complete_without_the_data_folder(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "words").write_text(WORDS)
    (data / "unknown").write_text("UNK")
    problem = registry.problem("own_files_of_encoders")
    model = OwnPlainModel(6)
    model({"targets": np.array([[3, 1]], "int32")})
    run = str(tmp_path / "run")
    save_run(model, run, problem=problem, data_dir=str(data), hparams=HParams(), step=1)
    shutil.rmtree(data)
    opened = open_run(run)
    assert opened.encoders["targets"].encode("three two") == [2, 4]
    write_package(str(tmp_path / "export"), types.SimpleNamespace(runs=[opened]))
    packed = tmp_path / "export" / "assets.extra" / "t2t_lite"
    assert {"words", "unknown"} <= {path.name for path in packed.iterdir()}
    os.remove(f"{run}/unknown")
    with pytest.raises(MissingFile, match=r"run/unknown: no such file"):
        open_run(run)

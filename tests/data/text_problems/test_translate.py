"""Sentences in two languages from the corpora that a problem names, ported from tensor2tensor as it stands."""

import pytest

from t2t_lite.corpora import downloads
from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import DatasetSplit, TranslateProblem, VocabType
from t2t_lite.errors import UserError
from t2t_lite.text.vocabulary import TokenTextEncoder
from tests.data import corpus, packing
from tests.data.stored import decoded

ALL = corpus.sentence_pairs(70)


class Ported(TranslateProblem):
    name = "ported"
    approx_vocab_size = 300
    dataset_splits = [{"split": "train", "shards": 1}, {"split": "eval", "shards": 1}]  # noqa: RUF012
    language_pair = ("en", "de")

    def source_data_files(self, dataset_split):
        if dataset_split == DatasetSplit.TRAIN:
            return [["http://x/a.tgz", ("a.en", "a.de")], ["", ("tsv", 2, 0, "b.tsv")]]
        return [["dev.tgz", ("dev.en", "dev.de")]]


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    packing.shut_out_the_world(monkeypatch, tmp_path)


def test_every_split_is_read_before_a_record_is_written(tmp_path):
    corpus.write_corpus(tmp_path, "a", ALL[:30])
    (tmp_path / "b.tsv").write_text("".join(f"{targets}\tnote\t{inputs}\n" for inputs, targets in ALL[30:]))
    with pytest.raises(UserError, match=r"dev\.tgz: no such file"):
        Ported().generate_data(str(tmp_path), str(tmp_path))
    corpus.write_corpus(tmp_path, "dev", [*ALL[:5], ("a", "b")])
    (tmp_path / "dev.de").write_bytes((tmp_path / "dev.de").read_bytes().replace(b"\nb\n", b"\n\xff\n"))
    with pytest.raises(UserError, match=r"dev\.de, line 6: byte 0xff"):
        Ported().generate_data(str(tmp_path), str(tmp_path))
    assert not list(tmp_path.glob("*-of-*")) and not list(tmp_path.glob("vocab.*"))
    problem = Ported()
    problem.skip_bad_lines = True
    problem.generate_data(str(tmp_path), str(tmp_path))
    assert sorted(decoded(problem, tmp_path)) == sorted(ALL)
    assert sorted(decoded(problem, tmp_path, "eval")) == sorted(ALL[:5])
    splits = find_manifest(problem, str(tmp_path))["splits"]
    assert (splits["train"]["removed"], splits["eval"]["removed"]) == ({}, {"bad lines": 1})

    class Tested(Ported):
        dataset_splits = [*Ported.dataset_splits, {"split": "test", "shards": 1}]  # noqa: RUF012

        def source_data_files(self, dataset_split):
            good = super().source_data_files(DatasetSplit.TRAIN)
            return [["", ("dev.en", "dev.de")]] if dataset_split == DatasetSplit.TEST else good

    with pytest.raises(UserError, match=r"dev\.de, line 6: byte 0xff"):
        Tested().generate_data(str(tmp_path / "tested"), str(tmp_path))
    assert not list(tmp_path.glob("tested/vocab.*"))


def test_the_vocabulary_is_learned_from_the_corpora_for_it(tmp_path):
    corpus.write_corpus(tmp_path, "a", ALL[:30])
    corpus.write_corpus(tmp_path, "v", ALL[50:])
    (tmp_path / "b.tsv").write_text("x\ty\tz\n")
    problem = Ported()
    assert [tuple(pair.values()) for pair in problem.samples_for_vocab("", str(tmp_path))] == [*ALL[:30], ("z", "x")]
    problem.vocab_data_files = lambda: [["", ("v.en", "v.de")]]
    assert [tuple(pair.values()) for pair in problem.samples_for_vocab("", str(tmp_path))] == ALL[50:]


def test_the_prepared_set_is_read_where_a_file_is_missing(tmp_path, monkeypatch):
    asked, read = [], []
    monkeypatch.setattr(downloads, "find_prepared", lambda *arguments: asked.append(arguments) or "prepared")
    monkeypatch.setattr(downloads, "read_prepared", lambda *arguments: read.append(arguments) or [{"inputs": "a"}])
    problem = Ported()
    problem.prepared_dataset = "wmt/de-en"
    assert list(problem.generate_samples("", str(tmp_path), "eval")) == [{"inputs": "a"}]
    assert asked == [("wmt/de-en", ["train", "validation"], str(tmp_path))]
    assert read == [("prepared", "validation", ("en", "de"))]
    corpus.write_corpus(tmp_path, "dev", ALL[:3])
    assert len(list(problem.generate_samples("", str(tmp_path), "eval"))) == 3 and len(read) == 1


def test_own_samples_need_no_corpora_and_a_cleaner_is_refused(tmp_path):
    class Own(Ported):
        vocab_type = VocabType.CHARACTER

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            yield {"inputs": "one", "targets": dataset_split}

    Own().generate_data(str(tmp_path), str(tmp_path))
    assert decoded(Own(), tmp_path, "eval") == [("one", "eval")]
    assert list(Own().samples_for_vocab("", "")) == [{"inputs": "one", "targets": "train"}]
    problem = Own()
    problem.datatypes_to_clean = ["txt"]
    with pytest.raises(UserError, match="ported: datatypes_to_clean"):
        problem.generate_data(str(tmp_path / "d"), str(tmp_path))
    with pytest.raises(NotImplementedError, match="TranslateProblem: define source_data_files"):
        TranslateProblem().source_data_files("train")


def test_a_problem_that_encodes_text_of_its_own_needs_no_source_data_files(tmp_path):
    class Encoded(TranslateProblem):
        """As tensor2tensor's TranslateEnzhWmt32k, which writes two vocabularies while it generates."""

        name = "encoded"
        dataset_splits = Ported.dataset_splits

        def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
            for side in ("en", "de"):
                (tmp_path / f"words.{side}").write_text(f"<pad>\n<EOS>\n{side}\n")
            encoders = self.feature_encoders(data_dir)
            yield {name: [*encoder.encode(encoder.decode([2])), 1] for name, encoder in encoders.items()}

        def feature_encoders(self, data_dir):
            files = {"inputs": "words.en", "targets": "words.de"}
            return {name: TokenTextEncoder(f"{data_dir}/{file}") for name, file in files.items()}

    Encoded().generate_data(str(tmp_path), str(tmp_path))
    assert decoded(Encoded(), tmp_path) == decoded(Encoded(), tmp_path, "eval") == [("en", "de")]

"""What a problem may generate, and how generation is repeated, resumed and refused."""
# Nearest tests of: t2t_lite/data/folder.py

import json
import logging
import os
import pathlib
import types
from unittest import mock

import pytest

from t2t_lite.data import sharding
from t2t_lite.data.generation import coverage
from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import DatasetSplit, Text2TextProblem, VocabType
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.text import subwords
from t2t_lite.text.published.byte_level_bpe import learn_byte_level_bpe
from t2t_lite.text.vocabulary import ByteTextEncoder
from t2t_lite.text.vocabulary_files import open_encoder
from tests.data import corpus
from tests.data.toys import ToyBytes, ToyStream, ToyText, files_in


@pytest.fixture(scope="module")
def toy_dir(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("toy"))
    ToyText().generate_data(folder, folder)
    return folder


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ({"inputs": "a"}, r"generate_samples gave {'inputs': 'a'}\. Expected"),
        ({"inputs": b"a", "targets": "b"}, r"generate_samples gave {'inputs': b'a', .*Expected"),
        (("a", "b"), r"generate_samples gave \('a', 'b'\)"),
        ({"inputs": None, "targets": "b"}, "generate_samples gave"),
        ({"inputs": "a \ud83d", "targets": "b"}, r"gave {'inputs': 'a \\ud83d', .*surrogate"),
    ],
)
def test_samples_that_are_no_text_are_shown(tmp_path, monkeypatch, sample, expected):
    monkeypatch.setattr(ToyText, "generate_samples", lambda *_: iter([{"inputs": "a", "targets": "b"}, sample]))
    with pytest.raises(UserError, match=expected):
        ToyText().generate_data(str(tmp_path), str(tmp_path))
    with pytest.raises(UserError, match=expected):
        ToyBytes().generate_data(str(tmp_path / "bytes"), str(tmp_path))


def test_examples_that_no_record_can_hold_are_shown_and_leave_nothing(tmp_path, monkeypatch):
    good = {"inputs": [6, 1], "targets": [7, 1]}
    monkeypatch.setattr(ToyBytes, "generate_encoded_samples", lambda *_: iter([good, {"inputs": [5, 1]}, good]))
    with pytest.raises(UserError, match="no id in targets"):
        ToyBytes().generate_data(str(tmp_path), str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_problem_that_ends_the_program_is_an_error(tmp_path, monkeypatch):
    def generate_samples(*_):
        yield {"inputs": "a", "targets": "b"}
        raise SystemExit(0)

    monkeypatch.setattr(ToyBytes, "generate_samples", generate_samples)
    with pytest.raises(UserError, match=r"sys\.exit\(0\)"):
        ToyBytes().generate_data(str(tmp_path), str(tmp_path))


@pytest.mark.parametrize(("asked", "reason"), [(9000, "too many for this corpus"), (2**8, "too few")])
def test_text_for_which_a_vocabulary_is_too_large_or_small_gets_the_nearest(
    tmp_path, monkeypatch, caplog, asked, reason
):
    monkeypatch.setattr(ToyText, "approx_vocab_size", asked)
    ToyText().generate_data(str(tmp_path), str(tmp_path))
    (size,) = {facts["size"] for facts in find_manifest(ToyText(), str(tmp_path))["vocabulary"].values()}
    (warning,) = [line.getMessage() for line in caplog.records if line.levelname == "WARNING"]
    assert f"{asked} pieces are {reason}" in warning and warning.endswith(f" will have {size} pieces.")
    assert 259 < size < 9000


def test_the_size_of_a_problem_that_insists_on_it_is_not_a_flag(tmp_path, monkeypatch):
    """An error names what this problem can change: t2t-datagen refuses --vocab_size for it."""
    monkeypatch.setattr(ToyText, "approx_vocab_size", 2**8)
    monkeypatch.setattr(ToyText, "vocab_size_is_approximate", False)
    with pytest.raises(UserError, match=r"too few\. .* Set approx_vocab_size well above \d+\.$"):
        ToyText().generate_data(str(tmp_path), str(tmp_path))


def test_an_override_of_filepattern_names_other_files_in_any_folder(tmp_path, monkeypatch):
    folder = tmp_path / "d[1]"
    folder.mkdir()
    ToyBytes().generate_data(str(folder), str(tmp_path))
    expected = Records(ToyBytes(), str(folder), DatasetSplit.EVAL).paths
    monkeypatch.setattr(
        ToyBytes, "filepattern", lambda self, data_dir, mode, shard=None: os.path.join(data_dir, f"{self.name}-dev*")
    )
    assert Records(ToyBytes(), str(folder), DatasetSplit.TRAIN).paths == expected


def test_a_split_that_no_example_of_one_stream_falls_to_is_an_error(tmp_path):
    class Few(ToyStream, ToyBytes):
        name = "few"
        dataset_splits = [{"split": "train", "shards": 50}, {"split": "eval", "shards": 1}]  # noqa: RUF012
        max_cases = 2

    with pytest.raises(UserError, match=r"few: if 2 examples .* none are left for the dev set"):
        Few().generate_data(str(tmp_path), str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "splits",
    [
        [],
        ["train"],
        [{"split": "train"}],
        [{"split": "dev", "shards": 1}],
        2 * [{"split": "test", "shards": 1}],
        *([{"split": "train", "shards": shards}] for shards in (0, 2.0, 100_000)),
    ],
)
def test_splits_that_cannot_be_written_are_shown_before_any_file(tmp_path, monkeypatch, splits):
    monkeypatch.setattr(ToyText, "dataset_splits", splits)
    with pytest.raises(UserError, match=r"toy_text: dataset_splits is \[.*'split': 'train', 'shards': 10.*99,999"):
        ToyText().generate_data(str(tmp_path), str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_no_samples_is_an_error_and_leaves_no_records(tmp_path):
    class Nothing(ToyText):
        name = "nothing"

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            yield from super().generate_samples(data_dir, tmp_dir, dataset_split) if dataset_split == "train" else ()

    with pytest.raises(UserError, match="nothing: the dev set "):
        Nothing().generate_data(str(tmp_path), str(tmp_path))
    assert not list(tmp_path.glob("*dev*"))
    assert not (tmp_path / "nothing-manifest.json").exists()


@pytest.mark.parametrize("data_dir", ["", pathlib.Path("d")])
def test_the_folder_may_be_the_working_directory_or_an_object_of_pathlib(tmp_path, monkeypatch, data_dir):
    monkeypatch.chdir(tmp_path)
    ToyBytes().generate_data(data_dir, pathlib.Path("t"))
    folder = tmp_path / data_dir
    assert not list(folder.glob("*.chunk*")) and len(list(folder.glob("toy_bytes-*"))) == 5
    assert next(iter(ToyBytes().dataset(data_dir, "eval")))


def test_finished_data_is_left_alone(tmp_path, caplog):
    folder = str(tmp_path)
    ToyText().generate_data(folder, folder)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    with caplog.at_level("INFO", logger="t2t_lite"):
        ToyText().generate_data(folder, folder)
    assert f"already in {folder} (60 train examples, 20 dev examples, vocabulary of 300); nothing to do" in caplog.text
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_another_request_over_finished_data_is_refused(toy_dir):
    before = files_in(toy_dir)
    for name, value in (("random_seed", 5), ("max_cases", 7), ("approx_vocab_size", 400)):
        problem = ToyText()
        setattr(problem, name, value)
        with pytest.raises(UserError, match=f"contains toy_text with .* you requested .*{value}"):
            problem.generate_data(toy_dir, toy_dir)
    problem = ToyText()
    problem.dataset_splits = [{"split": "train", "shards": 4}, {"split": "eval", "shards": 1}]
    with pytest.raises(UserError, match="shards = train: 3, eval: 1, but you requested shards = train: 4, eval: 1"):
        problem.generate_data(toy_dir, toy_dir)
    assert files_in(toy_dir) == before


def test_stopped_generation_is_taken_up_again(tmp_path, toy_dir, monkeypatch):
    folder = str(tmp_path)
    generate_until_shards(monkeypatch, folder, KeyboardInterrupt)
    with pytest.raises(UserError, match=r"no such records. Run: t2t-datagen --problem=toy_text --data_dir="):
        _ = Records(ToyText(), folder, DatasetSplit.TRAIN).paths
    ToyText().generate_data(folder, folder)
    assert files_in(folder) == files_in(toy_dir)


def test_where_the_text_has_changed_since_it_was_stopped_neither_records_nor_vocabulary_are_kept(
    tmp_path, toy_dir, monkeypatch
):
    folder, generate_samples = str(tmp_path), ToyText.generate_samples

    def other_samples(self, data_dir, tmp_dir, dataset_split):  # as many; then the dev set fails
        for sample in generate_samples(self, data_dir, tmp_dir, dataset_split):
            yield {name: text.upper() for name, text in sample.items()}
        if dataset_split == DatasetSplit.EVAL:
            raise UserError("a line of the dev set")

    with monkeypatch.context() as context:
        context.setattr(ToyText, "generate_samples", other_samples)
        with pytest.raises(UserError, match="a line of the dev set"):
            ToyText().generate_data(folder, folder)
    with pytest.raises(UserError, match=r"the source yields other samples"):
        ToyText().generate_data(folder, folder)
    assert files_in(folder) == {}
    ToyText().generate_data(folder, folder)
    assert files_in(folder) == files_in(toy_dir)


def generate_until_shards(monkeypatch, folder, error=OSError, **attributes):
    """Generates a ToyText with these attributes, until an error before it writes shards."""
    with monkeypatch.context() as context:
        for name, value in attributes.items():
            context.setattr(ToyText, name, value)
        context.setattr(sharding, "write_shards", mock.Mock(side_effect=error))
        with pytest.raises(error):
            ToyText().generate_data(folder, folder)


def test_what_another_stopped_request_learned_is_not_used(tmp_path, toy_dir, monkeypatch):
    folder = str(tmp_path)
    generate_until_shards(monkeypatch, folder, count=30, random_seed=5)  # another vocabulary under the same name
    assert (tmp_path / "vocab.toy_text.300.model").read_bytes() != files_in(toy_dir)["vocab.toy_text.300.model"]
    ToyText().generate_data(folder, folder)
    assert files_in(folder) == files_in(toy_dir)


def test_what_a_stopped_request_learned_is_not_left_by_one_that_learns_nothing(tmp_path, toy_dir, monkeypatch):
    folder = str(tmp_path)
    generate_until_shards(monkeypatch, folder, count=30, random_seed=5)
    generate_until_shards(monkeypatch, folder, UserError, count=0, approx_vocab_size=400)
    assert files_in(folder) == {}
    ToyText().generate_data(folder, folder)
    assert files_in(folder) == files_in(toy_dir)


def test_what_an_older_module_of_the_problem_has_begun_is_not_continued(tmp_path, monkeypatch, caplog):
    folder = str(tmp_path)
    generate_until_shards(monkeypatch, folder)
    (begun,) = tmp_path.glob("*.begun")
    said = json.loads(begun.read_text())
    assert len(said["source"]) == 64
    begun.write_text(json.dumps(said | {"source": "older"}))
    with caplog.at_level("INFO", logger="t2t_lite"):
        ToyText().generate_data(folder, folder)
    assert "replacing the unfinished output of a different request" in caplog.text


def test_a_vocabulary_of_the_users_own_is_used_and_kept(tmp_path, monkeypatch):
    folder = str(tmp_path)
    subwords.train_sentencepiece(["the text of the user"] * 9, folder + "/vocab.toy_text.300", 275)
    own = (tmp_path / "vocab.toy_text.300.model").read_bytes()
    generate_until_shards(monkeypatch, folder, random_seed=5)
    ToyText().generate_data(folder, folder)
    assert (tmp_path / "vocab.toy_text.300.model").read_bytes() == own
    assert find_manifest(ToyText(), folder)["vocabulary"]["inputs"]["size"] == 275


def test_a_deleted_file_is_written_again(tmp_path, toy_dir):
    ToyText().generate_data(str(tmp_path), str(tmp_path))
    (tmp_path / "toy_text-train-00001-of-00003").unlink()
    with pytest.raises(UserError, match="2 of 3 shards"):
        _ = Records(ToyText(), str(tmp_path), DatasetSplit.TRAIN).paths
    for name in ("toy_text-train-00001-of-00003", "vocab.toy_text.300.model"):
        (tmp_path / name).unlink(missing_ok=True)
        ToyText().generate_data(str(tmp_path), str(tmp_path))
        assert files_in(tmp_path) == files_in(toy_dir), name


# A vocabulary of another language is said.

ENGLISH = [text for text, _ in corpus.sentence_pairs(200)]
THAI = "\u0e1a\u0e49\u0e32\u0e19\u0e2a\u0e35\u0e41\u0e14\u0e07"


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabularies")
    subwords.train_sentencepiece(ENGLISH, str(folder / "pieces"), 320)
    learn_byte_level_bpe(ENGLISH, str(folder / "x-vocab.json"), 300)
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "house"]))
    return {name: open_encoder(str(folder / name)) for name in ("pieces.model", "x-vocab.json", "vocab.txt")}


def shares(encoder, text):
    return {name: round(share, 2) for name, share in coverage(encoder, encoder.encode(text)).items()}


@pytest.mark.parametrize(
    ("name", "known", "unknown", "in_bytes"),
    [("pieces.model", "the red house", 0, 0.96), ("x-vocab.json", "the red house", 0, 1), ("vocab.txt", "the", 1, 0)],
)
def test_shares_of_unknown_ids_and_bytes(vocabularies, name, known, unknown, in_bytes):
    encoder = vocabularies[name]
    assert shares(encoder, known) == {"<unk>": 0, "byte pieces": 0}
    assert shares(encoder, THAI) == {"<unk>": unknown, "byte pieces": in_bytes}
    assert shares(ByteTextEncoder(), THAI) == {"<unk>": 0, "byte pieces": 0}


@pytest.mark.parametrize(("text", "level"), [("the red house", None), (THAI, logging.WARNING)])
def test_generation_says_it(tmp_path, vocabularies, caplog, text, level):
    class Adopting(Text2TextProblem):
        name = "adopting"
        is_generate_per_split = True
        existing_vocabularies = types.MappingProxyType(
            dict.fromkeys(("inputs", "targets"), vocabularies["pieces.model"].path)
        )

        @property
        def dataset_splits(self):
            return [{"split": DatasetSplit.TRAIN, "shards": 1}, {"split": DatasetSplit.EVAL, "shards": 1}]

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            for _ in range(20):
                yield {"inputs": "the red house", "targets": text}

    with caplog.at_level(logging.INFO, "t2t_lite"):
        Adopting().generate_data(str(tmp_path), str(tmp_path))
    said = [record for record in caplog.records if "byte pieces" in record.getMessage()]
    assert [record.levelno for record in said] == ([level] if level else [])
    if level:
        assert "adopting: targets have 0.0 % <unk> and 93.1 % byte pieces among their ids" in said[0].getMessage()


def test_an_unknown_id_of_a_vocabulary_with_bytes_is_computed(tmp_path, caplog):
    """As ported problems do, in which the first reserved token has the id 2."""

    class Tagged(ToyText):
        name = "tagged"
        additional_reserved_tokens = ("<de>",)
        tag = 2

        def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
            for sample in super().generate_encoded_samples(data_dir, tmp_dir, dataset_split):
                yield {**sample, "inputs": [self.tag, *sample["inputs"]]}

    for Tagged.tag in (2, 3):
        caplog.clear()
        Tagged().generate_data(str(tmp_path / str(Tagged.tag)), str(tmp_path))
        said = [record.getMessage() for record in caplog.records if "begin at 3" in record.getMessage()]
        assert len(said) == (Tagged.tag == 2) and all(text.startswith("tagged: inputs contain <unk>") for text in said)


def test_an_entry_for_undecodable_text_does_not_spell_every_text(tmp_path, caplog):
    class Words(ToyText):
        name, vocab_type, oov_token = "words", VocabType.TOKEN, "UNK"

    (tmp_path / Words().vocab_filename).write_text("<pad>\n<EOS>\nUNK\n\ufffd\n")
    Words().generate_data(str(tmp_path), str(tmp_path))
    said = [record.getMessage() for record in caplog.records]
    assert any("% <unk>" in text for text in said) and not any("begin at 3" in text for text in said)

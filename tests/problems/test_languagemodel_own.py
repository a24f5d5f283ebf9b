"""Language models of the user's own text files."""

import gzip
import itertools

import pytest

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.data.stored import read_examples

TRAIN = "\n".join(f"{number} bottles of beer on the wall,\n\n  {number}  bottles" for number in range(300))
DEV = "7 bottles\n<|endoftext|>\nof beer"
CHARACTERS = "languagemodel_own_characters"


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.fixture
def files(tmp_path):
    return {f"{name}_files": [write(tmp_path / name, text)] for name, text in (("train", TRAIN), ("dev", DEV))}


def generated(name, folder, **arguments):
    problem = registry.problem(name)
    problem.configure(**arguments)
    problem.generate_data(str(folder), str(folder))
    return problem


@pytest.mark.slow
def test_rows_must_fit_into_a_batch(tmp_path, files):
    problem = generated(CHARACTERS, tmp_path / "data", sequence_length=64, **files)
    hparams = registry.hparams("transformer_lm_tiny").parse("batch_size=60")
    records = Records(problem, str(tmp_path / "data"), "train")
    with pytest.raises(UserError, match=r"batch_size=60: languagemodel_own_characters has rows of 64 ids"):
        records.check_training(hparams)
    whole = records.check_training(hparams.parse("batch_size=64"))
    assert (whole.examples, whole.dropped) == (whole.facts["examples"], 0)
    inspection = pytest.importorskip("t2t_lite.extras.inspection.inspection")
    assert "left out" in "\n".join(inspection.inspect_data(problem, str(tmp_path / "data"), hparams))


def ids(problem, folder, split):
    rows = read_examples(Records(problem, str(folder), split).paths)
    return list(itertools.chain.from_iterable(row["targets"] for row in rows))


def test_a_text_comes_back_and_later_commands_need_the_folder_alone(tmp_path, files):
    generated("languagemodel_own", tmp_path / "d", vocab_size=300, sequence_length=20, **files)
    for path in itertools.chain(*files.values()):
        (tmp_path / path).unlink()
    problem = registry.problem("languagemodel_own")
    Records(problem, str(tmp_path / "d"), DatasetSplit.TRAIN).check()
    encoder = problem.get_feature_encoders(str(tmp_path / "d"))["targets"]
    found = ids(problem, tmp_path / "d", DatasetSplit.EVAL)
    border = found.index(1)
    assert [encoder.decode(part) for part in (found[:border], found[border + 1 :])] == ["7 bottles\n", "of beer"]
    assert encoder.vocab_size == 300 and problem.sequence_length == 20 and found[-1] == 1


def test_the_end_of_a_line_that_is_read_in_parts_is_no_border(tmp_path, files):
    line = "x" * 2**16 + "<|endoftext|>\n"
    files["dev_files"] = [write(tmp_path / "long", f"{line}<|endoftext|>\nrest")]
    problem = generated(CHARACTERS, tmp_path / "d", sequence_length=512, **files)
    found, text = ids(problem, tmp_path / "d", DatasetSplit.EVAL), ByteTextEncoder()
    assert found == [*text.encode(line), 1, *text.encode("rest"), 1]


def test_subwords_lose_white_space_alone(tmp_path, files):
    files["dev_files"] = files["train_files"]
    problem = generated("languagemodel_own", tmp_path, vocab_type="subwords", vocab_size=310, **files)
    encoder = problem.get_feature_encoders(str(tmp_path))["targets"]
    text = encoder.decode([i for i in ids(problem, tmp_path, DatasetSplit.EVAL) if i != 1])
    assert text.split(" ") == TRAIN.split()


def test_a_vocabulary_is_used_again(tmp_path, files):
    first = generated("languagemodel_own", tmp_path / "a", vocab_size=300, **files)
    second = generated("languagemodel_own", tmp_path / "b", vocab_from=[str(tmp_path / "a")], **files)
    held = registry.problem("languagemodel_own")
    (tmp_path / "c").mkdir()
    held.hold_vocabulary(str(tmp_path / "c"), first.vocabulary_files(str(tmp_path / "a"))[1], sequence_length=64)
    (tmp_path / "c").rename(tmp_path / "moved")
    again = registry.problem("languagemodel_own")
    found = [
        problem.get_feature_encoders(str(tmp_path / folder))["targets"].fingerprint
        for problem, folder in ((first, "a"), (second, "b"), (again, "moved"))
    ]
    assert len(set(found)) == 1 and again.sequence_length == 64
    with pytest.raises(UserError, match=r"--vocab_size together with --vocab_from"):
        registry.problem("languagemodel_own").configure(vocab_from=[str(tmp_path / "a")], vocab_size=300, **files)


@pytest.mark.parametrize(
    "content, text",
    [
        pytest.param("x", "x", id="one character"),
        pytest.param("ends without a line end", "ends without a line end", id="no line end"),
        pytest.param("a\r\nb\r\n", "a\nb\n", id="CR LF"),
        pytest.param("\ufeffa\u2028b\x00\tc \n", "a\u2028b\x00\tc \n", id="control characters"),
        pytest.param("ä" * 100_000, "ä" * 100_000, id="a long line"),
        pytest.param(" \n\n", " \n\n", id="blank"),
    ],
)
def test_any_text_is_kept_as_it_is(tmp_path, content, text):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(content.encode()))
    problem = generated(CHARACTERS, tmp_path / "d", train_files=[str(path)], dev_files=[str(path)])
    assert ids(problem, tmp_path / "d", DatasetSplit.EVAL) == [*ByteTextEncoder().encode(text), 1]
    assert ids(problem, tmp_path / "d", DatasetSplit.TRAIN)

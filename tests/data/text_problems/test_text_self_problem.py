"""Text alone, line by line, and documents in rows of one length: nothing is lost, and borders are kept."""

import itertools
import random

import pytest

from t2t_lite import registry
from t2t_lite.data import batching
from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import ChoppedTextProblem, DatasetSplit, Text2SelfProblem, VocabType
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams
from t2t_lite.text import vocabulary_files
from t2t_lite.text.published import byte_level_bpe
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.data.stored import read_examples

LENGTH = 16
WORDS = ["to", "be,", "or", "not", "it's", "über", "42", "a" * 400, "日本語" * 60, "\u2028", "\x00"]


def text_of(seed, count):
    """Text with all kinds of white space between its words."""
    draw = random.Random(seed)
    return "".join(draw.choice(WORDS) + draw.choice([" ", " ", " ", "  ", "\n", "\t", " \n", ""]) for _ in range(count))


DOCUMENTS = [text_of(1, 900), "x", text_of(2, 30), " \n"]


class Plays(ChoppedTextProblem):
    name = "plays"
    vocab_type = VocabType.CHARACTER
    sequence_length = LENGTH
    dataset_splits = [  # noqa: RUF012
        {"split": DatasetSplit.TRAIN, "shards": 3},
        {"split": DatasetSplit.EVAL, "shards": 1},
        {"split": DatasetSplit.TEST, "shards": 1},
    ]

    def train_text_filepaths(self, tmp_dir):
        paths = [f"{tmp_dir}/{number}" for number in range(len(DOCUMENTS))]
        for path, text in zip(paths, DOCUMENTS, strict=True):
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text)
        return paths

    dev_text_filepaths = test_text_filepaths = train_text_filepaths


def generated(folder, problem):
    folder.mkdir(exist_ok=True)
    problem.generate_data(str(folder), str(folder))
    return lambda split: [example["targets"] for example in read_examples(Records(problem, str(folder), split).paths)]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("plays")


@pytest.fixture(scope="module")
def rows_of(data_dir):
    return generated(data_dir, Plays())


def ids_of_documents():
    return list(itertools.chain.from_iterable([*ByteTextEncoder().encode(text), 1] for text in DOCUMENTS))


def test_a_class_that_says_something_impossible(tmp_path):
    problem = Plays()
    problem.remainder_policy = "drops"
    with pytest.raises(UserError, match="remainder_policy=drops: expected one of pad, drop"):
        problem.generate_data(str(tmp_path), str(tmp_path))
    problem = Plays()
    problem.dataset_splits = [{"split": DatasetSplit.TRAIN, "shards": 3}, {"split": DatasetSplit.EVAL, "shards": 2}]
    with pytest.raises(UserError, match=r"plays: .*dev set keep the order .* Expected 1 shard, not 2"):
        problem.generate_data(str(tmp_path), str(tmp_path))
    problem = Plays()
    problem.is_generate_per_split = False  # the samples of all splits would be shuffled
    with pytest.raises(UserError, match=r"plays: .*dev set keep the order .* is_generate_per_split = True"):
        problem.generate_data(str(tmp_path), str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_ordered_sets_are_the_text(rows_of):
    for split in (DatasetSplit.EVAL, DatasetSplit.TEST):
        rows = rows_of(split)
        assert list(itertools.chain.from_iterable(rows)) == ids_of_documents()
        assert {len(row) for row in rows[:-1]} == {LENGTH} >= {max(len(rows[-1]), LENGTH)}


@pytest.mark.slow
def test_training_rows_are_the_same_shuffled(rows_of):
    rows, shuffled = rows_of(DatasetSplit.EVAL), rows_of(DatasetSplit.TRAIN)
    assert sorted(rows) == sorted(shuffled) and rows != shuffled


@pytest.mark.slow
def test_rests_may_be_dropped(tmp_path, rows_of):
    class Dropped(Plays):
        remainder_policy = "drop"

    rows = rows_of(DatasetSplit.EVAL)
    assert len(rows[-1]) < LENGTH and generated(tmp_path, Dropped())(DatasetSplit.EVAL) == rows[:-1]
    # the bytes of the last row have no loss, so that there is no loss per byte
    assert Records(Dropped(), str(tmp_path), DatasetSplit.EVAL).unit_counts() == {}


def test_the_manifest_counts_the_text_and_its_ends(data_dir, rows_of):
    ends, facts = len(DOCUMENTS), find_manifest(Plays(), str(data_dir))["splits"][DatasetSplit.EVAL]
    assert facts["units"] == {
        "word": sum(len(text.split()) for text in DOCUMENTS) + ends,
        "character": sum(map(len, DOCUMENTS)) + ends,
        "byte": sum(len(text.encode()) for text in DOCUMENTS) + ends,
    }
    assert facts["units"]["byte"] == facts["tokens"]["targets"]


@pytest.mark.slow
def test_batches_are_full_whatever_max_length_says(data_dir, rows_of):
    hparams = HParams(batch_size=4 * LENGTH, max_length=3)
    batches = list(Plays().dataset(str(data_dir), "train", hparams).take(20))
    assert {batch["targets"].shape[1] for batch, _ in batches if len(batch["targets"]) == 4} == {LENGTH}


@pytest.mark.slow
def test_fixed_shapes_are_full_too(data_dir, rows_of):
    problem, hparams = Plays(), HParams(batch_size=4 * LENGTH)
    records = Records(problem, str(data_dir), "train")
    split, paths = records.check_training(hparams), records.paths
    ladder = batching.problem_ladder(problem, hparams, paths, {}, split.facts)
    assert ladder.shapes[-1].tolist() == [4, LENGTH]
    for batch in batching.training_batches(problem, hparams, paths, ladder=ladder).take(60):
        assert [*batch["targets"].shape] in ladder.shapes.tolist()


@pytest.mark.slow
def test_inspection_shows_rows(data_dir, rows_of):
    inspection = pytest.importorskip("t2t_lite.extras.inspection.inspection")
    hparams = registry.hparams("transformer_tiny").parse(f"batch_size={4 * LENGTH}")
    text = "\n".join(inspection.inspect_data(Plays(), str(data_dir), hparams))
    assert f"max_length={LENGTH} " in text and "vocabulary of targets: ByteTextEncoder" in text and "\u21b5" in text


def test_pieces_have_the_ids_of_the_whole_text(tmp_path):
    plain = text_of(3, 9000).replace("日", " ").replace("aa", "")
    path = str(tmp_path / "plain-vocab.json")
    byte_level_bpe.learn_byte_level_bpe([plain], path, 350)
    encoder = vocabulary_files.open_encoder(path)

    class Plain(Plays):
        def generate_documents(self, data_dir, tmp_dir, dataset_split):
            yield [plain[start : start + 777] for start in range(0, len(plain), 777)]

    samples = list(Plain().generate_samples(None, None, DatasetSplit.TRAIN))
    assert len(samples) > 50 and [sample["ends"] for sample in samples] == [False] * (len(samples) - 1) + [True]
    assert "".join(sample["targets"] for sample in samples) == plain
    pieces = [encoder.encode(sample["targets"]) for sample in samples]
    assert list(itertools.chain.from_iterable(pieces)) == encoder.encode(plain)


TEXTS = ["to be", "or not", " ", "to be, that is the question"]


class Lines(Text2SelfProblem):
    name = "lines"
    is_generate_per_split = True
    vocab_type = VocabType.CHARACTER
    dataset_splits = [{"split": s, "shards": 2} for s in (DatasetSplit.TRAIN, DatasetSplit.EVAL)]  # noqa: RUF012

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        for text in TEXTS:
            yield {"targets": text}


@pytest.fixture(scope="module")
def lines_dir(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("lines"))
    Lines().generate_data(folder, folder)
    return folder


def test_records_hold_targets_alone(lines_dir):
    found = read_examples(Records(Lines(), lines_dir, DatasetSplit.TRAIN).paths)
    expected = [{"targets": [*ByteTextEncoder().encode(text), 1]} for text in TEXTS if text != " "]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert find_manifest(Lines(), lines_dir)["splits"]["train"]["removed"] == {"empty": 1}


def test_samples_of_pairs_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(Lines, "generate_samples", lambda *args: [{"inputs": "a"}])
    with pytest.raises(UserError, match=r'lines: generate_samples gave .*Expected \{"targets": str\}'):
        Lines().generate_data(str(tmp_path), str(tmp_path))

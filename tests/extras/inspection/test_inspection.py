"""What --inspect says agrees with what can be counted by hand, for every kind of problem and encoder."""

# Nearest tests of: extras/inspection/length_histogram.py

import pathlib
import re

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit, Problem, Text2TextProblem, VocabType
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.extras.inspection import inspection, length_histogram
from t2t_lite.text.vocabulary import TextEncoder
from tests.data.stored import read_examples


class Pairs(Text2TextProblem):
    """Inputs of 3 words, targets of 1 to 8; every word of the words' vocabulary but "jay"."""

    name = "pairs"
    is_generate_per_split = True
    approx_vocab_size = 280
    oov_token = "<UNK>"
    language_pair = ("en", "de")
    dataset_splits = [{"split": s, "shards": n} for s, n in ((DatasetSplit.TRAIN, 2), (DatasetSplit.EVAL, 1))]  # noqa: RUF012

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        for n in range(160 if dataset_split == DatasetSplit.TRAIN else 20):
            yield {"inputs": f"the old {'owl' if n % 4 else 'jay'}", "targets": " ".join(["eule"] * (n % 8 + 1))}


class Words(Pairs):
    name = "pairs_words"
    vocab_type = VocabType.TOKEN


class Bytes(Pairs):
    name = "pairs_bytes"
    vocab_type = VocabType.CHARACTER


class Separate(Pairs):
    name = "pairs_separate"
    approx_target_vocab_size = 270


class Numbers(Problem):
    name = "pairs_numbers"

    def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
        for n in range(160):
            yield {"inputs": [5, 6, 7, 1], "targets": [8] * (n % 8 + 1) + [1]}

    def feature_encoders(self, data_dir):
        return {"inputs": TextEncoder(10), "targets": TextEncoder(10)}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "vocab.pairs_words.tokens").write_text("<pad>\n<EOS>\n<UNK>\nthe\nold\nowl\neule\n")
    for kind in (Pairs, Words, Bytes, Separate, Numbers):
        kind().generate_data(str(folder), str(folder))
    return str(folder)


def inspected(problem, data_dir, hparams="max_length=1", **more):
    """All that is said; as nothing is as short as these hyperparameters ask for, there are no batches to make."""
    hparams = registry.hparams("transformer_tiny").parse(hparams)
    return "\n\n".join(inspection.inspect_data(problem, data_dir, hparams, "the set", **more))


def row(text, name):
    """The cells of the only line that begins with `name`."""
    [line] = [line for line in text.splitlines() if line.startswith(name)]
    return line.removeprefix(name).split()


@pytest.mark.slow
def test_counts_rates_and_lengths_of_words(data_dir):
    text = inspected(Words(), data_dir)
    assert row(text, "train") == ["160", "640", "880", "2", "0"]  # (3 + 1) and (1 to 8, + 1) ids
    assert row(text, "dev") == ["20", "80", str(sum(n % 8 + 2 for n in range(20))), "1", "0"]
    assert "vocabulary of both sides: TokenTextEncoder, 7 entries" in text
    assert row(text, "tokens per word") == ["1.00", "1.00"]
    assert row(text, "tokens per character") == ["0.32", "0.25"]  # inputs: 3 in 9.5, as <UNK> has two more than owl
    assert row(text, "spelled in bytes") == ["-", "-"]
    assert row(text, "unknown") == ["8.33%", "0.00%"]  # one word in three of one sentence in four
    assert row(text, "50 % have at most") == ["4", "5"]
    assert row(text, "99 % have at most") == ["4", "9"]
    assert row(text, "longest") == ["4", "9"]


@pytest.mark.parametrize(
    ("kind", "words", "rates"),
    [
        (Pairs, "SentencePieceEncoder, 280 entries", ("0.00%", "0.00%")),
        (Bytes, "ByteTextEncoder, 258 entries", ("-", "-")),
        (Numbers, "TextEncoder, 10 entries", ("-", "-")),
    ],
)
def test_every_kind_of_encoder(data_dir, kind, words, rates):
    text = inspected(kind(), data_dir)
    assert f"vocabulary of both sides: {words}, SHA-256 " in text
    assert tuple(row(text, "unknown")) == rates
    encoders = kind().get_feature_encoders(data_dir)
    examples = read_examples(Records(kind(), data_dir, DatasetSplit.TRAIN).paths)
    decoded = {encoders["targets"].decode(example["targets"]) for example in examples}
    ends = re.findall(r"\n {6}(\S.*)\n\n", text)  # the last lines of the examples; two may be pieces
    assert len(ends) == 10 and set(ends[2:]) <= decoded


def test_a_vocabulary_a_side(data_dir):
    text = inspected(Separate(), data_dir)
    assert "vocabulary of inputs:  SentencePieceEncoder, 280 entries" in text
    assert "vocabulary of targets: SentencePieceEncoder, 270 entries" in text


@pytest.mark.slow
def test_the_first_tag_is_shown_and_counted(tmp_path):
    pytest.importorskip("t2t_lite.extras.tagging")
    (tmp_path / "tags").write_text("".join(f"The O\nunaffables B-X\n{n} O\n\n" for n in range(40)))
    problem, files = registry.problem("tag_own"), [str(tmp_path / "tags")]
    problem.configure(train_files=files, dev_files=files, vocab_size=300)
    problem.generate_data(str(tmp_path), str(tmp_path))
    text = inspected(problem, str(tmp_path), "min_length=99")
    assert problem.tags(str(tmp_path)) == ["B-X", "O"] and text.count("\n      O B-X O\n") == 10
    assert row(text, "tokens per word")[1] == "1.00"
    assert row(text, "tokens per character")[1] == "0.60"  # 3 in 5


@pytest.mark.slow
def test_the_alternative_row_is_text(tmp_path):
    (tmp_path / "text").write_text("".join(f"the number {n} is here\n" for n in range(90)))
    problem, files = registry.problem("next_sentence_own"), [str(tmp_path / "text")]
    problem.configure(train_files=files, dev_files=files, vocab_size=300, sequence_length=32)
    problem.generate_data(str(tmp_path), str(tmp_path))
    text = inspected(problem, str(tmp_path))
    assert len(re.findall(r"\n {6}[a-z ]*number [0-9]+ is here", text)) >= 10
    targets, other = map(float, row(text, "tokens per word"))
    assert other == pytest.approx(targets, rel=0.2)


@pytest.mark.slow
def test_bytes_that_stand_for_unknown_characters(tmp_path):
    class Rare(Pairs):
        name = "pairs_rare"

        def generate_text_for_vocab(self, data_dir, tmp_dir):
            yield from ["the old jay", "the old owl", "eule"] * 20

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            for _ in range(30):
                yield {"inputs": "owl", "targets": "owl ø"}

    Rare.get_or_create_vocab(Pairs(), str(tmp_path), str(tmp_path))
    (tmp_path / "vocab.pairs.280.model").rename(tmp_path / "vocab.pairs_rare.280.model")
    (tmp_path / "vocab.pairs.280.vocab").rename(tmp_path / "vocab.pairs_rare.280.vocab")
    Rare().generate_data(str(tmp_path), str(tmp_path))
    ids = Rare().feature_encoders(str(tmp_path))["targets"].encode("owl ø")
    assert row(inspected(Rare(), str(tmp_path)), "spelled in bytes") == ["0.00%", f"{2 / len(ids):.2%}"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "titles", "tokens"),
    [
        ({"was_reversed": True}, "inputs (de)  targets (en)", ["880", "640"]),
        ({"was_copy": True}, "inputs (en)  targets (en)", ["640", "640"]),
        ({"was_copy": True, "was_reversed": True}, "inputs (de)  targets (de)", ["880", "880"]),
    ],
)
def test_the_sides_are_those_that_a_model_sees(data_dir, kind, titles, tokens):
    problem = Words(**kind)
    text = inspected(problem, data_dir, "max_length=6")
    assert row(text, "train")[1:3] == tokens
    assert titles in text
    lost = 0 if tokens == ["640", "640"] else 60  # targets of 7, 8 and 9 ids
    assert f"max_length=6 (the set): {lost} of 160 examples are left out ({lost / 160:.2%})" in text
    assert (pathlib.Path(data_dir) / f"{problem.full_name}-lengths.png").exists()


@pytest.mark.slow
def test_the_batches_are_those_of_training(data_dir):
    problem, hparams = Words(), registry.hparams("transformer_tiny").parse("batch_size=36,max_length=7,min_length=5")
    paths, encoders = Records(problem, data_dir, "train").paths, problem.get_feature_encoders(data_dir)
    found = length_histogram.measure_batches(problem, hparams, paths, encoders, examples=60)
    rows, widths = found.shapes[:, 0], found.shapes[:, 1:]
    assert rows.sum() >= 60 > rows[:-1].sum()
    assert (rows * widths.max(1) <= 36).all()
    assert set(widths[:, 0]) == {4} and set(widths[:, 1]) <= {5, 6, 7}
    assert found.fill[0] == 1
    assert found.fill[1] == pytest.approx(found.tokens[:, 1].sum() / (rows * widths[:, 1]).sum())
    assert found.fill[0] > found.fill[2] >= found.fill[1]
    assert found.distinct == len(set(map(tuple, found.shapes.tolist())))
    text = inspected(problem, data_dir, "batch_size=36,max_length=7,min_length=5,gradient_accumulation_steps=2")
    batches = int(np.ceil(60 / found.mean_rows))
    assert f"a pass over the data: about {batches} batches, {-(-batches // 2)} steps of 2 batches" in text


@pytest.mark.slow
def test_positions_without_a_prediction_are_not_padding(tmp_path):
    pytest.importorskip("t2t_lite.extras.xlnet")
    (tmp_path / "text").write_text("".join(f"the number {n} is here\n" for n in range(90)))
    problem, files = registry.problem("permutation_lm_own"), [str(tmp_path / "text")]
    problem.configure(train_files=files, dev_files=files, vocab_size=300, sequence_length=32)
    problem.generate_data(str(tmp_path), str(tmp_path))
    inputs, targets, order, _ = row(inspected(problem, str(tmp_path)), "fill")
    assert inputs == targets == order


def test_the_numbers_of_batches_by_hand():
    """Batches of 2 and 4 rows: 18 of 18 cells of inputs are filled, 28 of 10 + 24 of targets, 46 of 52."""
    shapes = length_histogram.BatchShapes(np.array([[2, 3, 5], [4, 3, 6]]), np.array([[6, 8], [12, 20]]))
    hparams = registry.hparams("transformer_tiny").parse("batch_size=36,gradient_accumulation_steps=2")
    text = inspection._batches_text(["inputs (en)", "targets (de)"], shapes, 10, hparams, "the set")
    assert [line.split() for line in text.splitlines()[1:]] == [
        ["of", "2", "batches", "inputs", "(en)", "targets", "(de)", "both"], ["fill", "100.0%", "82.4%", "88.5%"],
        ["tokens", "per", "batch", "9", "14", "23"], ["smallest", "width", "3", "5"], ["largest", "width", "3", "6"],
        ["rows", "per", "batch:", "3", "(2", "to", "4);", "distinct", "shapes:", "2"],
        ["a", "pass", "over", "the", "data:", "about", "4", "batches,", "2", "steps", "of", "2", "batches"],
    ]  # fmt: skip
    assert "batch_size=36 " in text.splitlines()[0] and "the set" in text.splitlines()[0]


@pytest.mark.long
def test_bpe_dropout_makes_longer_sentences(data_dir):
    sets = ("batch_size=64", "batch_size=64,bpe_dropout=1")
    as_written, in_characters = (row(inspected(Pairs(), data_dir, hparams), "largest width") for hparams in sets)
    assert int(in_characters[1]) > int(as_written[1])


@pytest.mark.slow
def test_nothing_is_within_the_limits(data_dir):
    text = inspected(Words(), data_dir, "max_length=2")
    assert "160 of 160 examples are left out (100.00%)" in text
    assert "batches of" not in text


def copy_words(data_dir, folder):
    for path in pathlib.Path(data_dir).glob("*pairs_words*"):
        (folder / path.name).write_bytes(path.read_bytes())


@pytest.mark.slow
def test_data_without_a_manifest_are_shown_from_a_sample(data_dir, tmp_path):
    copy_words(data_dir, tmp_path)
    (tmp_path / "pairs_words-manifest.json").unlink()
    text = inspected(Words(), str(tmp_path), sample_size=40)
    assert row(text, "train") == ["not", "counted", "2"]
    assert "of a sample of 40 examples" in text
    assert re.search(r": \d+ of 40 examples of the sample are left out", text)


@pytest.mark.slow
def test_data_that_can_only_be_read_are_shown_without_the_picture(data_dir, tmp_path, caplog):
    copy_words(data_dir, tmp_path)
    whole = inspected(Words(), str(tmp_path))
    (tmp_path / "pairs_words-lengths.png").unlink()
    (tmp_path / "pairs_words-lengths.png").mkdir()  # for root all folders are writable
    text = inspected(Words(), str(tmp_path))
    assert whole == f"{text}\n\nlengths as a picture: {tmp_path}/pairs_words-lengths.png"
    assert "pairs_words-lengths.png: is a folder" in caplog.text


@pytest.mark.parametrize(
    ("how", "words"), [("missing", "1 of 2 shards"), ("changed", "damaged"), ("cut", "bytes, but")]
)
def test_bad_files_are_named(data_dir, tmp_path, how, words):
    copy_words(data_dir, tmp_path)
    bad = tmp_path / "pairs_words-train-00001-of-00002"
    data = bytearray(bad.read_bytes())
    data[len(data) // 2] ^= 255
    bad.write_bytes(data[:-9] if how == "cut" else data)
    if how == "missing":
        bad.unlink()
    with pytest.raises(UserError, match=words):
        inspected(Words(), str(tmp_path))


def test_texts_do_nothing_to_a_terminal():
    assert inspection.printable("a\x1b[2Jb\nc") == "a\ufffd[2Jb\u21b5c"
    assert inspection.printable("x" * 1000).endswith("x… (1,000 characters)")


def test_percentiles():
    lengths = {n: 1 for n in range(1, 101)}
    assert [length_histogram.percentile(lengths, p) for p in (50, 90, 99, 100)] == [50, 90, 99, 100]
    assert [length_histogram.percentile({7: 3}, p) for p in (50, 100)] == [7, 7]
    assert [length_histogram.percentile({1: 1, 2: 1, 3: 1}, p) for p in (33, 50, 67)] == [1, 2, 3]  # at least so many


LENGTHS = {"inputs": {3: 1000, 40: 1}, "targets": {4: 500, 100_000: 1}}


@pytest.mark.parametrize(
    ("lengths", "max_length", "end", "bars", "mark", "words"),
    [
        # 0.999 of inputs have 3 at most, and of targets 100,000; bars of 667 lengths
        (LENGTHS, 30, 100_000, 667, 30.5, None),
        (LENGTHS, 130_000, 130_000, 867, 130_000.5, None),
        (LENGTHS, 200_000, 100_000, 667, None, None),
        # of 2,001 examples of one length each, the axis ends at 1999 and 2 are beyond it
        ({"inputs": dict.fromkeys(range(1, 2002), 1)}, 9, 1999, 14, 9.5, None),
        ({"inputs": {3: 5000, 900: 4}, "targets": {5: 10}}, 6, 6, 1, 6.5, "4 of inputs"),
        ({"inputs": {3: 5000, 900: 4}, "targets": {5: 10}}, 99, 5, 1, None, "4 of inputs"),
    ],
)  # fmt: skip
def test_the_picture(lengths, max_length, end, bars, mark, words, monkeypatch):
    """Its axis, its bars and their counts, the line at max_length, and what is longer."""
    drawn = []
    monkeypatch.setattr(length_histogram.drawing, "write_picture", lambda path, figure: drawn.append((path, figure)))
    length_histogram.write_histogram("a.png", lengths, max_length, "a title")
    ((path, figure),) = drawn
    (axes,) = figure.axes
    assert path == "a.png" and axes.get_title() == "a title"
    for at, (name, counts) in enumerate(lengths.items()):
        stairs = axes.patches[2 * at].get_data()
        first, second, *_, last = stairs.edges
        assert first == 0.5 and second - first == bars and end < last <= end + bars + 0.5
        assert stairs.values.sum() == sum(n for length, n in counts.items() if length < stairs.edges[-1])
        assert axes.patches[2 * at].get_label() == name
    assert [line.get_xdata()[0] for line in axes.lines] == ([mark] if mark else [])
    assert f"max_length={max_length}" in axes.texts[0].get_text()
    assert (words or "not shown") in axes.get_xlabel() if words else "not shown" not in axes.get_xlabel()
    assert (" lengths" in axes.get_ylabel()) == (bars > 1) and str(bars) in f"{axes.get_ylabel()} 1"

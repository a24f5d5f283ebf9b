"""Texts with a class or a number, ported from tensor2tensor as they stand, and the iterators that they call."""
# Nearest tests of: t2t_lite/text/class_label_encoder.py

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.data import problem as text_problems
from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import DatasetSplit, Text2ClassProblem, Text2RealProblem, TextConcat2ClassProblem, VocabType
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.data.stored import read_examples

HPARAMS = registry.hparams("transformer_tiny").parse("min_length=99")  # none is as long: no batches are made
TEXTS = {"good": 1, "bad": 0, "fine": 1, "dull": 0, " ": 1}


class Opinion(Text2ClassProblem):
    name = "opinion"
    is_generate_per_split = True
    vocab_type = VocabType.CHARACTER
    num_classes = 2
    dataset_splits = [{"split": s, "shards": 2} for s in (DatasetSplit.TRAIN, DatasetSplit.EVAL)]  # noqa: RUF012
    label_type = int

    def class_labels(self, data_dir):
        return ["negative", "positive"]

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        for text, label in TEXTS.items():
            yield {"inputs": text, "label": self.label_type(label)}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("opinion"))
    Opinion().generate_data(folder, folder)
    return folder


def test_records_hold_the_texts_and_the_labels_from_1(data_dir):
    found = read_examples(Records(Opinion(), data_dir, DatasetSplit.TRAIN).paths)
    expected = [{"inputs": [*ByteTextEncoder().encode(text), 1], "targets": [label + 1]}
                for text, label in TEXTS.items() if text != " "]  # fmt: skip
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert find_manifest(Opinion(), data_dir)["splits"]["train"]["removed"] == {"empty": 1}


def test_labels_that_are_encoded_from_0_as_in_tensor2tensor_are_an_error(tmp_path):
    class Encoded(Opinion):
        first, form = 0, list

        def generate_encoded_samples(self, data_dir, tmp_dir, dataset_split):
            for sample in self.generate_samples(data_dir, tmp_dir, dataset_split):
                yield {"inputs": [2, 1], "targets": self.form([sample["label"] + self.first])}

    with pytest.raises(UserError, match=r"^opinion: generate_encoded_samples gave the targets \[0\].*\[label \+ 1\]"):
        Encoded().generate_data(str(tmp_path), str(tmp_path))
    Encoded.form = lambda self, ids: np.array([])
    with pytest.raises(UserError, match="an example has no id in targets"):
        Encoded().generate_data(str(tmp_path), str(tmp_path))
    Encoded.first, Encoded.form = 1, lambda self, ids: np.array(ids)
    Encoded().generate_data(str(tmp_path), str(tmp_path))
    found = read_examples(Records(Encoded(), str(tmp_path), DatasetSplit.TRAIN).paths)
    assert sorted(example["targets"] for example in found) == sorted([label + 1] for label in TEXTS.values())


@pytest.mark.slow
def test_a_batch_holds_one_label_for_each_row(data_dir):
    problem = Opinion()
    encoders = problem.get_feature_encoders(data_dir)
    for split in ("train", "dev"):
        (batch, labels) = next(iter(problem.dataset(data_dir, split, HParams(batch_size=64))))
        assert labels.shape == batch["inputs"].shape[:1] and len(labels) >= 4
        for row, label in zip(batch["inputs"].numpy(), labels.numpy(), strict=True):
            text, name = encoders["inputs"].decode(row), encoders["targets"].decode(label)
            assert name == ("positive" if TEXTS[text] else "negative")


@pytest.mark.slow
def test_inspection_shows_labels(data_dir):
    inspection = pytest.importorskip("t2t_lite.extras.inspection.inspection")
    text = "\n".join(inspection.inspect_data(Opinion(), data_dir, HPARAMS))
    assert "good\n" in text and "positive\n" in text
    assert "vocabulary of targets: ClassLabelEncoder, 3 entries" in text


def test_a_label_may_be_numpys(data_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(Opinion, "label_type", lambda self, number: np.int64(number))
    Opinion().generate_data(str(tmp_path), str(tmp_path))
    paths = [Records(Opinion(), folder, DatasetSplit.TRAIN).paths for folder in (str(tmp_path), data_dir)]
    assert [*read_examples(paths[0])] == [*read_examples(paths[1])]


@pytest.mark.parametrize("label", [2, -1, "positive"])
def test_a_label_that_is_none(tmp_path, monkeypatch, label):
    monkeypatch.setattr(Opinion, "label_type", lambda self, number: label)
    with pytest.raises(
        UserError, match=rf"opinion: generate_samples gave the label '?{label}'?\. Expected an int from 0"
    ):
        Opinion().generate_data(str(tmp_path), str(tmp_path))


def test_the_texts_of_a_pair_are_one_row_and_each_begins_with_the_prefix(tmp_path):
    class Pairs(TextConcat2ClassProblem, Opinion):
        name = "pairs"
        inputs_prefix = "> "
        texts_of_sample = ("to be", "or")

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            yield {"inputs": list(self.texts_of_sample), "label": 1}

    Pairs().generate_data(str(tmp_path), str(tmp_path))
    encode = ByteTextEncoder().encode
    (row,) = read_examples(Records(Pairs(), str(tmp_path), DatasetSplit.TRAIN).paths)
    assert row == {"inputs": [*encode("> to be"), 1, *encode("> or"), 1], "targets": [2]}
    Pairs.texts_of_sample = ("to be", "or", "not")
    with pytest.raises(UserError, match=r"pairs: .*\['to be', 'or', 'not'\].* 2 str"):
        Pairs().generate_data(str(tmp_path / "other"), str(tmp_path))


def test_labels_of_another_order_are_refused(data_dir, monkeypatch):
    monkeypatch.setattr(Opinion, "class_labels", lambda self, data_dir: ["positive", "negative"])
    with pytest.raises(UserError, match=r"targets of opinion: this vocabulary .* differs "):
        Records(Opinion(), data_dir, DatasetSplit.TRAIN).check()
    monkeypatch.setattr(Opinion, "num_classes", 3)
    with pytest.raises(UserError, match="opinion: 2 class labels, but num_classes = 3"):
        Records(Opinion(), data_dir, DatasetSplit.TRAIN).check()


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (None, "label_range is None. Expected"),
        ((1,), r"label_range is \(1,\)\. Expected"),
        ((2, 1), "label_range: numbers from 2 to 1: expected two finite numbers"),
        (("a", "b"), "label_range: numbers from 'a' to 'b': expected"),
        ((0, 10**400), "label_range: numbers from 0 to a huge number: expected"),
    ],
)
def test_a_range_that_is_none_is_named(ends, message):
    class Numbers(Text2RealProblem):
        def label_range(self, data_dir):
            return ends

    with pytest.raises(UserError, match=message):
        Numbers().label_ids("data")
    with pytest.raises(UserError, match="Unset: define label_range") as caught:
        type("Unset", (Text2RealProblem,), {})().label_ids("data")
    assert isinstance(caught.value, NotImplementedError)


@pytest.fixture
def written(tmp_path):
    """A function: writes a text into a new file and returns its path."""

    def write(text):
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def test_lines_pairs_columns_and_texts(written):
    one, other = written("a b \n\nc\n"), written("A\n\nC\r\n")
    pairs = [{"inputs": "a b", "targets": "A"}, {"inputs": "", "targets": ""}, {"inputs": "c", "targets": "C"}]
    assert [*text_problems.txt_line_iterator(one)] == ["a b", "", "c"]
    assert [*text_problems.text2text_txt_iterator(one, other)] == pairs
    assert [*text_problems.text2self_txt_iterator(other)] == [{"targets": "A"}, {"targets": ""}, {"targets": "C"}]
    assert [*text_problems.text2text_txt_tab_iterator(written("a b\tA\nc\tC\n"))] == [pairs[0], pairs[2]]
    with pytest.raises(UserError, match=r"but .* has 1"):
        [*text_problems.text2text_txt_iterator(one, written("A\n"))]
    with pytest.raises(UserError, match="line 2: found 1 column"):
        [*text_problems.text2text_txt_tab_iterator(written("a\tA\nb\n"))]


def test_classes(written):
    texts = written("good\nbad\n")
    expected = [{"inputs": "good", "label": 1}, {"inputs": "bad", "label": 0}]
    assert [*text_problems.text2class_txt_iterator(texts, written("1\n0\n"))] == expected
    named = written("pos\nneg\n")
    assert [*text_problems.text2class_txt_iterator(texts, named, class_strs=["neg", "pos"])] == expected
    with pytest.raises(UserError, match=r"line 1: 'pos'\. Expected a whole number"):
        [*text_problems.text2class_txt_iterator(texts, named)]
    with pytest.raises(UserError, match=r"line 2: 'neg'\. Expected no or pos"):
        [*text_problems.text2class_txt_iterator(texts, named, class_strs=["no", "pos"])]


def test_numbers(written):
    texts = written("one\ntwo\n")
    expected = [{"inputs": "one", "targets": [1.0]}, {"inputs": "two", "targets": [2.5]}]
    assert [*text_problems.text2real_txt_iterator(texts, written("1\n2.5\n"))] == expected
    with pytest.raises(UserError, match=r"line 2: 'two'\. Expected a number"):
        [*text_problems.text2real_txt_iterator(texts, written("1\ntwo\n"))]


def test_the_line_of_a_mistake_behind_a_skipped_line(written, tmp_path):
    (tmp_path / "texts").write_bytes(b"\xff\ngood\n")
    skipped = []
    for of_labels in (text_problems.text2class_txt_iterator, text_problems.text2real_txt_iterator):
        with pytest.raises(UserError, match="line 2: 'many'"):
            [*of_labels(str(tmp_path / "texts"), written("1\nmany\n"), on_bad_line=skipped.append)]
    assert len(skipped) == 2

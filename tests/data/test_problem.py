"""What every problem promises: records with its samples, names of files, directions, and defaults."""
# Nearest tests of: t2t_lite/data/base_problem.py, t2t_lite/data/text_problems/__init__.py

import subprocess
import sys
from types import SimpleNamespace
from unittest import mock

import pytest

from t2t_lite import registry
from t2t_lite.data import problem as problems
from t2t_lite.data import sharding, text_problems
from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import DatasetSplit, Problem, Text2TextProblem
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.text import subwords
from t2t_lite.text.vocabulary import TextEncoder
from tests.data import corpus
from tests.data.stored import decoded
from tests.data.toys import ToyBytes, ToyStream, ToyText, ToyWords, files_in


@pytest.fixture(scope="module")
def toy_dir(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("toy"))
    ToyText().generate_data(folder, folder)
    return folder


@pytest.mark.parametrize("kind", [ToyText, ToyBytes, ToyWords])
def test_the_records_hold_the_samples(tmp_path, kind):
    if kind is ToyWords:
        words = {word for pair in corpus.sentence_pairs(80) for side in pair for word in side.split()}
        (tmp_path / "vocab.toy_words.tokens").write_text("\n".join(["<pad>", "<EOS>", "<UNK>", *sorted(words)]) + "\n")
    problem = kind()
    problem.generate_data(str(tmp_path), str(tmp_path))
    for split in (DatasetSplit.TRAIN, DatasetSplit.EVAL):
        expected = [tuple(sample.values()) for sample in problem.generate_samples(None, None, split)]
        assert sorted(decoded(problem, str(tmp_path), split)) == sorted(expected)


def test_each_side_begins_with_its_prefix(tmp_path):
    problem = ToyBytes()
    problem.count, problem.inputs_prefix, problem.targets_prefix = 4, "to German: ", "> "
    problem.generate_data(str(tmp_path), str(tmp_path))
    expected = [
        ("to German: " + inputs, "> " + targets)
        for inputs, targets in corpus.sentence_pairs(4, seed=DatasetSplit.TRAIN)
    ]
    assert sorted(decoded(problem, str(tmp_path), DatasetSplit.TRAIN)) == sorted(expected)


def test_files_have_tensor2tensors_names(toy_dir):
    assert sorted(files_in(toy_dir)) == [
        "toy_text-dev-00000-of-00001",
        "toy_text-manifest.json",
        "toy_text-train-00000-of-00003",
        "toy_text-train-00001-of-00003",
        "toy_text-train-00002-of-00003",
        "vocab.toy_text.300.model",
        "vocab.toy_text.300.vocab",
    ]
    problem = ToyText()
    assert problem.training_filepaths("d", 2, False)[1] == "d/toy_text-unshuffled-train-00001-of-00002"
    assert problem.dev_filepaths("d", 1, True) == ["d/toy_text-dev-00000-of-00001"]
    assert problem.test_filepaths("d", 1, True) == ["d/toy_text-test-00000-of-00001"]
    for mode, tag in (("train", "train"), ("eval", "dev"), ("infer", "dev"), ("test", "test")):
        assert problem.filepattern("d", mode) == f"d/toy_text-{tag}*"
    assert problem.filepattern("d", "train", shard=3) == "d/toy_text-train-00003*"


def test_one_stream_is_dealt_over_all_splits(tmp_path):
    problem = ToyStream()
    problem.generate_data(str(tmp_path), str(tmp_path))
    train, dev = (list(decoded(problem, str(tmp_path), split)) for split in (DatasetSplit.TRAIN, DatasetSplit.EVAL))
    assert (len(train), len(dev)) == (45, 15)
    assert sorted(train + dev) == sorted(corpus.sentence_pairs(60, seed=DatasetSplit.TRAIN))


def test_max_cases_limits_each_split(tmp_path):
    problem = ToyText()
    problem.max_cases = 15
    problem.generate_data(str(tmp_path), str(tmp_path))
    counts = {split: facts["examples"] for split, facts in find_manifest(problem, str(tmp_path))["splits"].items()}
    assert counts == {"train": 15, "eval": 15}


def test_pairs_with_a_blank_side_are_dropped_and_counted_for_each_split(tmp_path, caplog):
    class Holes(ToyBytes):
        name = "holes"

        def generate_samples(self, data_dir, tmp_dir, dataset_split):
            yield {"inputs": "  ", "targets": "x"}
            yield from super().generate_samples(data_dir, tmp_dir, dataset_split)
            if dataset_split == "train":
                yield {"inputs": "x", "targets": ""}

    with caplog.at_level("INFO", logger="t2t_lite"):
        Holes().generate_data(str(tmp_path), str(tmp_path))
    facts = find_manifest(Holes(), str(tmp_path))["splits"]
    assert [facts[split]["examples"] for split in ("train", "eval")] == [60, 20]
    assert [facts[split]["removed"] for split in ("train", "eval")] == [{"empty": 2}, {"empty": 1}]
    assert "holes: train: 2 left out (empty)" in caplog.text and "holes: dev: 1 left out (empty)" in caplog.text


def test_as_many_processes_encode_as_the_problem_says(tmp_path):
    with mock.patch.object(sharding, "write_shards", side_effect=KeyError) as write, pytest.raises(KeyError):
        problem = ToyBytes()
        problem.random_seed, problem.num_workers = 17, 3
        problem.generate_data(str(tmp_path), str(tmp_path))
    assert (write.call_args.kwargs["num_workers"], write.call_args.kwargs["seed"]) == (3, 17)


def test_records_and_another_vocabulary_are_refused(tmp_path):
    folder = str(tmp_path)
    ToyText().generate_data(folder, folder)
    Records(ToyText(), folder, DatasetSplit.TRAIN).check()
    subwords.train_sentencepiece(["another text " * 20, "xyz uvw"] * 9, folder + "/vocab.toy_text.300", 275)
    with pytest.raises(UserError, match=r"vocab.toy_text.300.model: this vocabulary \(275 entries.* \(300 entries"):
        Records(ToyText(), folder, DatasetSplit.TRAIN).check()


def test_a_missing_vocabulary_names_the_command(tmp_path):
    with pytest.raises(
        UserError, match=r"vocab.toy_text.300.model: no such vocabulary. Run: t2t-datagen --problem=toy"
    ):
        ToyText().feature_encoders(str(tmp_path))
    with pytest.raises(UserError, match=r"vocab.toy_words.tokens: no such file"):
        ToyWords().generate_data(str(tmp_path), str(tmp_path))


@pytest.mark.parametrize(
    ("flags", "name", "languages", "sides"),
    [
        ({}, "toy_text", ("en", "de"), ("inputs", "targets")),
        ({"was_reversed": True}, "toy_text_rev", ("de", "en"), ("targets", "inputs")),
        ({"was_copy": True}, "toy_text_copy", ("en", "en"), ("inputs", "inputs")),
        ({"was_reversed": True, "was_copy": True}, "toy_text_copy_rev", ("de", "de"), ("targets", "targets")),
    ],
)
def test_reversed_and_copied(flags, name, languages, sides, monkeypatch):
    encoders = {"inputs": TextEncoder(3), "targets": TextEncoder(4)}
    monkeypatch.setattr(ToyText, "feature_encoders", lambda self, data_dir: encoders)
    problem = ToyText(**flags)
    assert problem.full_name == name
    assert problem.dataset_filename() == "toy_text"
    assert problem.languages == languages
    assert tuple(problem.get_feature_encoders("d").values()) == tuple(map(encoders.get, sides))
    assert tuple(problem.maybe_reverse_and_copy({"inputs": "inputs", "targets": "targets"}).values()) == sides
    assert problem.feature_encoders("d") == encoders


def test_encoders_are_read_once_for_each_folder():
    read = []

    class Counting(Problem):
        def feature_encoders(self, data_dir):
            read.append(data_dir)
            return dict.fromkeys(("inputs", "targets"), TextEncoder(ord(data_dir)))

    problem = Counting()
    assert [problem.get_feature_encoders(folder)["inputs"].vocab_size for folder in "aba"] == [97, 98, 97]
    assert read == ["a", "b"]


def test_encoders_are_read_again_after_their_vocabulary_has_been_generated_again(tmp_path):
    problem = ToyText()
    for size in (300, 310):
        problem.approx_vocab_size = size
        problem.generate_data(str(tmp_path), str(tmp_path))
        assert problem.get_feature_encoders(str(tmp_path))["inputs"].vocab_size == size
        for path in tmp_path.iterdir():
            path.unlink()


def test_defaults_are_tensor2tensors_and_what_must_be_written_is_named(tmp_path):
    assert Problem().dataset_splits == [{"split": "train", "shards": 10}, {"split": "eval", "shards": 1}]
    assert Text2TextProblem().dataset_splits == [{"split": "train", "shards": 100}, {"split": "eval", "shards": 1}]
    assert (Problem.random_seed, Problem.max_cases, Problem().on_bad_line) == (429459, 0, None)
    assert (Text2TextProblem.approx_vocab_size, Text2TextProblem.eval_decode_metric) == (2**15, "bleu")
    assert Problem().choose_output("a", ["b", "c"], {}) == 0 and Problem().output_text("a", "b", {}) == "b"
    for call, name in (
        (lambda: Problem().generate_encoded_samples("", "", "train"), "Problem: define generate_encoded_samples"),
        (lambda: Problem().feature_encoders(""), "Problem: define feature_encoders"),
        (lambda: Text2TextProblem().is_generate_per_split, "Text2TextProblem: set is_generate_per_split"),
        (lambda: Text2TextProblem().generate_samples("", "", "train"), "Text2TextProblem: define generate_samples"),
    ):
        with pytest.raises(NotImplementedError, match=name):
            call()
    with pytest.raises(UserError, match=r"toy_bytes: .*--task_id"):
        ToyBytes().generate_data(str(tmp_path), str(tmp_path), task_id=0)
    with pytest.raises(NotImplementedError, match="Problem: define feature_encoders"):
        Problem().generate_data(str(tmp_path), str(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("max_length", "batch_size", "longest"), [(256, 4096, 256), (0, 4096, 4096), (256, 100, 100)])
def test_max_length_never_exceeds_what_a_batch_holds_but_for_rows_of_one_length(max_length, batch_size, longest):
    problem, hparams = Problem(), SimpleNamespace(max_length=max_length, batch_size=batch_size)
    assert problem.max_length(hparams) == longest
    problem.sequence_length = 5000
    assert problem.max_length(hparams) == 5000


def test_only_two_texts_are_swapped():
    class Labels(Problem):
        name = "labels"
        features = {"inputs": 2, "targets": 1}  # noqa: RUF012

    for flag in ("was_reversed", "was_copy"):
        with pytest.raises(UserError, match=r"labels_(rev|copy): its inputs and targets cannot .* Use labels\."):
            Labels(**{flag: True}).maybe_reverse_and_copy({"inputs": [5, 1], "targets": [1]})
    for problem in map(registry.problem, ("masked_lm_own_rev", "sentence_order_own_rev", "classify_own_copy")):
        with pytest.raises(UserError, match=f"{problem.full_name}: its inputs .* Use {problem.name}"):
            problem.maybe_reverse_and_copy({feature: [5, 1] for feature in problem.record_features})


def test_problems_of_texts_are_imported_as_from_tensor2tensor():
    for name in ("Text2TextProblem", "Text2ClassProblem", "VocabType", "text2text_txt_iterator"):
        assert getattr(text_problems, name) is getattr(problems, name)
    assert not hasattr(text_problems, "Text2MusicProblem")


@pytest.mark.slow
def test_problems_are_imported_without_tensorflow():
    script = "import sys, t2t_lite.data.problem; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0

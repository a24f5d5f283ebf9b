"""Vocabularies of a text problem: one or two, learned or taken over."""

import json
import logging
import pathlib

import pytest
import sentencepiece

from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import DatasetSplit, Text2SelfProblem, Text2TextProblem, VocabType
from t2t_lite.errors import UserError
from t2t_lite.text import subwords, vocabulary
from tests.data import corpus
from tests.data.stored import decoded


class OneVocabulary(Text2TextProblem):
    name = "toy_pairs"
    approx_vocab_size = 300
    is_generate_per_split = True
    dataset_splits = [{"split": DatasetSplit.TRAIN, "shards": 2}, {"split": DatasetSplit.EVAL, "shards": 1}]  # noqa: RUF012

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        for inputs, targets in corpus.sentence_pairs(200 if dataset_split == DatasetSplit.TRAIN else 20):
            yield {"inputs": inputs, "targets": targets}


class TwoVocabularies(OneVocabulary):
    approx_target_vocab_size = 310
    additional_reserved_tokens = ("<2de>",)


def taking_over(inputs, targets):
    """Returns a problem that takes these models over."""
    problem = OneVocabulary()
    problem.existing_vocabularies = {"inputs": str(inputs), "targets": str(targets)}
    return problem


@pytest.fixture(scope="module")
def two_dir(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("two"))
    TwoVocabularies().generate_data(folder, folder)
    return folder


@pytest.fixture
def theirs(tmp_path):
    """Paths of two models with SentencePiece's usual ids."""
    paths = []
    for name, size in (("a", 60), ("b", 65)):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(side for pair in corpus.sentence_pairs(100) for side in pair),
            model_prefix=str(tmp_path / name),
            model_type="bpe",
            vocab_size=size,
            minloglevel=2,
        )
        paths.append(tmp_path / f"{name}.model")
    return paths


def test_byte_level_vocabularies_are_learned(tmp_path):
    problem = TwoVocabularies()
    problem.vocab_type = VocabType.BYTE_LEVEL_BPE
    with pytest.raises(UserError, match=r"additional_reserved_tokens \(<2de>\) .* byte-level BPE"):
        problem.generate_data(str(tmp_path), str(tmp_path))
    problem.additional_reserved_tokens = ()
    problem.approx_target_vocab_size = 2000
    problem.generate_data(str(tmp_path), str(tmp_path))
    encoders = problem.feature_encoders(str(tmp_path))
    assert encoders["inputs"].vocab_size == 300
    assert 259 < encoders["targets"].vocab_size < 300, "what its few words can use, not the 2,000 that were asked for"
    assert sorted(decoded(problem, tmp_path)) == sorted(corpus.sentence_pairs(200))
    files = [pathlib.Path(path) for path in problem.vocabulary_files(str(tmp_path))]
    assert [file.name for file in files] == [
        f"vocab.toy_pairs.{side}-{name}"
        for side in ("inputs.300", "targets.2000")
        for name in ("vocab.json", "merges.txt")
    ]
    before = [file.read_bytes() for file in files]
    problem.generate_data(str(tmp_path), str(tmp_path))
    assert [file.read_bytes() for file in files] == before and problem.learned_files(str(tmp_path)) == list(
        map(str, files)
    )


def test_each_side_has_the_vocabulary_of_its_own_text(two_dir, tmp_path):
    problem = TwoVocabularies()
    names = {"inputs": "vocab.toy_pairs.inputs.300.model", "targets": "vocab.toy_pairs.targets.310.model"}
    assert problem.vocab_filenames == names
    encoders = problem.feature_encoders(two_dir)
    pairs = corpus.sentence_pairs(200)
    for number, (side, size) in enumerate((("inputs", 300), ("targets", 310))):
        lines = [pair[number] for pair in pairs]
        subwords.train_sentencepiece(lines, str(tmp_path / side), size, user_defined_symbols=["<2de>"])
        assert (tmp_path / f"{side}.model").read_bytes() == (pathlib.Path(two_dir) / names[side]).read_bytes()
        assert encoders[side].vocab_size == size
        assert encoders[side].pieces([3]) == ["<2de>"]
    assert vocabulary.vocabulary_sizes(encoders) == (300, 310)
    assert problem.get_or_create_vocab(two_dir, None, force_get=True).vocab_size == 300


def test_records_are_in_the_ids_of_each_side_and_the_files_of_both_vocabularies_are_known(two_dir):
    problem = TwoVocabularies()
    assert sorted(decoded(problem, two_dir)) == sorted(corpus.sentence_pairs(200))
    files = [pathlib.Path(path).name for path in problem.vocabulary_files(two_dir)]
    assert files == [
        f"vocab.toy_pairs.{side}.{ending}"
        for side in ("inputs.300", "targets.310")
        for ending in ("model", "vocab")
    ]  # fmt: skip
    assert problem.learned_files(two_dir) == problem.vocabulary_files(two_dir)
    reversed_ = TwoVocabularies(was_reversed=True)
    assert reversed_.get_feature_encoders(two_dir)["inputs"].vocab_size == 310


def test_the_manifest_says_what_the_vocabularies_are_made_of(two_dir):
    manifest = json.loads((pathlib.Path(two_dir) / "toy_pairs-manifest.json").read_text())
    assert manifest["request"]["vocabulary"] == list(TwoVocabularies().vocab_filenames.values())
    assert manifest["request"]["max_samples_for_vocab"] == 2_000_000
    assert manifest["request"]["additional_reserved_tokens"] == ["<2de>"]
    assert manifest["vocabulary"]["inputs"]["size"] == 300 and manifest["vocabulary"]["targets"]["size"] == 310
    other = TwoVocabularies()
    other.max_samples_for_vocab = 100
    with pytest.raises(
        UserError, match=r"max_samples_for_vocab = 2000000, but you requested max_samples_for_vocab = 100"
    ):
        other.generate_data(two_dir, two_dir)


def test_one_of_two_that_is_there_is_kept(two_dir, tmp_path):
    targets = pathlib.Path(two_dir) / "vocab.toy_pairs.targets.310.model"
    (tmp_path / targets.name).write_bytes(targets.read_bytes())
    with pytest.raises(UserError, match=r"vocab.toy_pairs.inputs.300.model: no such vocabulary"):
        TwoVocabularies().feature_encoders(str(tmp_path))
    TwoVocabularies().prepare_generation(str(tmp_path), None)
    for side in ("inputs", "targets"):
        name = TwoVocabularies().vocab_filenames[side]
        assert (tmp_path / name).read_bytes() == (pathlib.Path(two_dir) / name).read_bytes()


def test_a_vocabulary_is_learned_from_a_sample(tmp_path, caplog):
    problem = OneVocabulary()
    problem.max_samples_for_vocab = 150
    with caplog.at_level(logging.INFO, "t2t_lite"):
        lines = list(problem.generate_text_for_vocab(str(tmp_path), None))
    assert "toy_pairs: learning a vocabulary from 150 of 200 samples" in caplog.text
    drawn = list(zip(lines[::2], lines[1::2], strict=True))
    everything = corpus.sentence_pairs(200)
    assert len(drawn) == 150
    at = -1
    for pair in drawn:  # in the order of the stream
        at = everything.index(pair, at + 1)
    problem.max_samples_for_vocab = None
    assert len(list(problem.generate_text_for_vocab(str(tmp_path), None))) == 400


def test_another_model_over_finished_or_other_data_is_refused(tmp_path, theirs):
    folder = str(tmp_path / "data")
    taking_over(theirs[0], theirs[0]).generate_data(folder, folder)
    with pytest.raises(UserError, match=r"existing_vocabularies = inputs: \w+, targets: \w+, but you requested"):
        taking_over(theirs[1], theirs[1]).generate_data(folder, folder)
    with pytest.raises(UserError, match=r"toy_pairs.300.model: .*b.model"):
        taking_over(theirs[1], theirs[1]).prepare_generation(folder, None)
    with pytest.raises(UserError, match=r"vocabulary = vocab.toy_pairs.300.model, but you requested vocabulary = "):
        taking_over(theirs[0], tmp_path / "none.model").generate_data(folder, folder)
    with pytest.raises(UserError, match=r"none.model: no such file"):
        taking_over(theirs[0], tmp_path / "none.model").generate_data(str(tmp_path / "new"), str(tmp_path / "new"))


def test_other_kinds_of_vocabulary_stay_one():
    problem = TwoVocabularies()
    problem.vocab_type = VocabType.TOKEN
    assert set(problem.vocab_filenames.values()) == {"vocab.toy_pairs.tokens"}
    problem.vocab_type = VocabType.CHARACTER
    encoders = problem.feature_encoders("nowhere")
    assert vocabulary.vocabulary_sizes(encoders) == (258, None)
    assert problem.generation_settings() == {"vocabulary": None}


@pytest.mark.parametrize("vocab_type", [VocabType.SUBWORD, VocabType.BYTE_LEVEL_BPE, VocabType.CHARACTER])
def test_line_ends_that_a_vocabulary_does_not_keep_are_reported_once(tmp_path, caplog, monkeypatch, vocab_type):
    code = {"inputs": "a function\n", "targets": "def f():\n    return 5"}
    monkeypatch.setattr(OneVocabulary, "generate_samples", lambda self, *folders: [code] * 9)
    monkeypatch.setattr(OneVocabulary, "vocab_type", vocab_type)
    monkeypatch.setattr(OneVocabulary, "is_generate_per_split", False)
    OneVocabulary().generate_data(str(tmp_path), str(tmp_path))
    said = [record.getMessage() for record in caplog.records if "line ends" in record.getMessage()]
    assert len(said) == (vocab_type == VocabType.SUBWORD) and all("'def f():" in text for text in said)
    ((_, targets),) = {*decoded(OneVocabulary(), tmp_path)}
    assert (targets == code["targets"]) == (vocab_type != VocabType.SUBWORD)


def test_inputs_are_known_by_tensor2tensors_name():
    assert OneVocabulary().has_inputs and not Lines().has_inputs


def test_the_vocabularies_of_another_problem_serve(two_dir):
    other = OneVocabulary()
    other.use_vocab_from_other_problem = TwoVocabularies()
    assert {side: encoder.vocab_size for side, encoder in other.feature_encoders(two_dir).items()} == {
        "inputs": 300,
        "targets": 310,
    }
    assert other.learned_files(two_dir) == []


class Lines(Text2SelfProblem):
    name = "lines_of_vocab"
    is_generate_per_split = True
    approx_vocab_size = 300
    dataset_splits = OneVocabulary.dataset_splits

    def generate_samples(self, data_dir, tmp_dir, dataset_split):
        for sample in OneVocabulary().generate_samples(data_dir, tmp_dir, dataset_split):
            yield {"targets": sample["targets"]}


def test_the_vocabulary_of_a_problem_with_other_features_serves(tmp_path, two_dir):
    pairs, lines = OneVocabulary(), Lines()
    pairs.use_vocab_from_other_problem = Lines()
    pairs.generate_data(str(tmp_path), str(tmp_path))
    encoders = pairs.feature_encoders(str(tmp_path))
    assert [*encoders] == ["inputs", "targets"] and encoders["inputs"].path.endswith("vocab.lines_of_vocab.300.model")
    lines.use_vocab_from_other_problem = TwoVocabularies()
    assert {side: encoder.vocab_size for side, encoder in lines.feature_encoders(two_dir).items()} == {"targets": 310}
    lines.text_features = ("context",)
    with pytest.raises(UserError, match=r"vocabularies for inputs and targets, .* context"):
        lines.feature_encoders(two_dir)


@pytest.mark.parametrize("returned", [None, {"inputs": "a", "targets": "b"}, "text", 5])
@pytest.mark.parametrize("method", ["generate_samples", "generate_encoded_samples"])
def test_what_is_no_generator_is_named(tmp_path, monkeypatch, method, returned):
    """Such as None, of a method that prints its samples or forgets to yield them."""
    monkeypatch.setattr(TwoVocabularies, method, lambda self, *folders: returned)
    with pytest.raises(
        UserError, match=rf"^toy_pairs: {method} returned .*\. Expected a generator or a list of .*yield"
    ):
        TwoVocabularies().generate_data(str(tmp_path), str(tmp_path))


def test_a_text_of_sentencepieces_spaces_is_empty(tmp_path, monkeypatch):
    """It has no pieces, so that an example of it would be an end alone."""
    pairs = [*corpus.sentence_pairs(200), ("\u2581", "eins"), ("one", "\x01 \u2581")]
    samples = [{"inputs": inputs, "targets": targets} for inputs, targets in pairs]
    monkeypatch.setattr(TwoVocabularies, "generate_samples", lambda self, *folders: samples)
    TwoVocabularies().generate_data(str(tmp_path), str(tmp_path))
    facts = find_manifest(TwoVocabularies(), str(tmp_path))["splits"]["train"]
    assert facts["removed"] == {"empty": 2}


@pytest.mark.parametrize("name", ["vocab.shared.300", "vocab.shared.300.subwords"])
def test_a_vocab_filename_as_in_tensor2tensor_is_refused_before_a_vocabulary_is_learned(tmp_path, monkeypatch, name):
    monkeypatch.setattr(OneVocabulary, "vocab_filename", name)
    with pytest.raises(UserError, match=rf"^toy_pairs: vocab_filename is '{name}'.* not exist.*ends in \.model\.$"):
        OneVocabulary().generate_data(str(tmp_path / "data"), str(tmp_path))
    assert not list(tmp_path.iterdir())

"""`translate_own` with separate vocabularies, and with one that is there already."""
# Nearest tests of: problems/translate_own.py

import functools
import json
import re
import shutil

import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.export import export_saved_model
from t2t_lite.runs.run_config import write_run_config
from t2t_lite.text import subwords
from t2t_lite.text.vocabulary import SentencePieceEncoder
from t2t_lite.text.vocabulary_files import open_encoder
from tests.data import corpus
from tests.decoding import runs
from tests.problems import own
from tests.text import published_samples

PAIRS = list(dict.fromkeys(corpus.sentence_pairs(300)))
generated = functools.partial(own.generated, "translate_own")


@pytest.fixture
def train(tmp_path):
    return corpus.write_corpus(tmp_path, "train", PAIRS).split(",")


@pytest.fixture
def models(tmp_path):
    """Two SentencePiece models: of the words of either side."""
    for side, size in ((0, 300), (1, 310)):
        subwords.train_sentencepiece([pair[side] for pair in PAIRS], str(tmp_path / f"spm{side}"), size)
    return [str(tmp_path / f"spm{side}.model") for side in (0, 1)]


def run_of(folder, problem_name, data_dir):
    """Makes `folder` look like an output_dir of the trainer."""
    problem = registry.problem(problem_name)
    folder.mkdir()
    for path in problem.vocabulary_files(str(data_dir)):
        shutil.copy(path, folder)
    names = {"problem": problem_name, "model": "transformer", "hparams_set": "transformer_tiny", "usr_dir": ""}
    sizes = {"vocab_size": 300, "target_vocab_size": None, "vocabulary_sha256": {}, "hparams": {}}
    write_run_config(str(folder), {**names, **sizes})


def fingerprints(problem, folder):
    return {side: encoder.fingerprint for side, encoder in problem.get_feature_encoders(str(folder)).items()}


def test_there_are_2_to_10_000_labels(tmp_path):
    problem = own.configured("classify_own", **own.files_of(tmp_path, train=own.SINGLE, dev=own.SINGLE))
    for count in (2, 10_000):
        assert problem.enough_labels([f"{n:05}" for n in (*range(count), 0)], "label") == [
            f"{n:05}" for n in range(count)
        ]
    for count, found in ((1, "1 label"), (10_001, "10,001 labels")):
        with pytest.raises(UserError, match=f"train.tsv: {found}.* 2 to 10,000"):
            problem.enough_labels(map(str, range(count)), "label")


def test_a_learned_vocabulary_normalizes_in_python_and_in_the_graph(tmp_path):
    """The rule is in the model's file, of which an export has a copy."""
    pairs = [(f"{inputs} {at}", targets) for at, (inputs, targets) in enumerate(PAIRS)]
    train = corpus.write_corpus(tmp_path, "digits", pairs).split(",")
    asked = {"normalization": "nmt_nfkc_cf", "character_coverage": 1.0, "split_digits": True}
    problem = generated(tmp_path / "d", train_files=train, vocab_size=330, **asked)
    encoder = registry.problem("translate_own").get_feature_encoders(str(tmp_path / "d"))["inputs"]
    texts = ["The\u00a0RED\u200bＨouse ﬁne 1234", "the red house fine 1234"]
    assert encoder.encode(texts[0]) == encoder.encode(texts[1])
    assert encoder.tf_encode(tf.constant(texts)).to_list() == [encoder.encode(texts[1])] * 2
    assert [piece for piece in encoder.pieces(encoder.encode("1234")) if piece != "\u2581"] == [*"1234"]
    assert not any(sum(map(str.isdigit, piece)) > 1 for piece in encoder.pieces(range(259, encoder.vocab_size)))
    manifest = json.loads((tmp_path / "d" / "translate_own-manifest.json").read_text())
    assert {name: manifest["request"][name] for name in asked} == asked
    assert problem.generation_settings()["normalization"] == "nmt_nfkc_cf"


def test_defaults_that_are_given_are_those_of_earlier_data(tmp_path, train):
    """A manifest of 0.1.0 lacks them, as do those of versions before a setting was added."""
    generated(tmp_path / "d", train_files=train, vocab_size=300)
    path = tmp_path / "d" / "translate_own-manifest.json"
    manifest = json.loads(path.read_text())
    for name in ("normalization", "character_coverage", "split_digits", "columns", "separator"):
        assert manifest["request"].pop(name) is None
    path.write_text(json.dumps(manifest))
    defaults = {"normalization": "identity", "character_coverage": 0.9999, "split_digits": False}
    generated(tmp_path / "d", train_files=train, vocab_size=300, **defaults)
    assert json.loads(path.read_text()) == manifest


@pytest.mark.parametrize("vocab_type", ["subwords", "byte_level_bpe"])
def test_a_size_that_an_error_proposes_is_accepted(tmp_path, vocab_type):
    train = corpus.write_corpus(tmp_path, "few", [("aa bb", "cc dd"), ("aa", "cc")]).split(",")
    with pytest.raises(UserError, match="9000 pieces are too many") as error:
        generated(tmp_path / "d", train_files=train, vocab_size=9000, vocab_type=vocab_type)
    proposed = int(re.search(r"--vocab_size=(\d+),", str(error.value))[1])
    problem = generated(tmp_path / "d", train_files=train, vocab_size=proposed, vocab_type=vocab_type)
    assert problem.feature_encoders(str(tmp_path / "d"))["inputs"].vocab_size == proposed
    merges = tmp_path / "d" / f"vocab.translate_own.{proposed}-merges.txt"
    assert merges.exists() == (vocab_type == "byte_level_bpe")


def test_one_model_for_both_sides(tmp_path, train, models):
    problem = generated(tmp_path / "d", train_files=train, vocab_from=models[:1])
    encoders = problem.feature_encoders(str(tmp_path / "d"))
    assert encoders["inputs"] is encoders["targets"]
    assert encoders["inputs"].fingerprint == SentencePieceEncoder(models[0]).fingerprint
    assert (tmp_path / "d" / "vocab.translate_own.300.model").exists()
    assert (problem.approx_vocab_size, problem.approx_target_vocab_size) == (300, None)
    (tmp_path / "spm0.model").unlink()
    assert registry.problem("translate_own").feature_encoders(str(tmp_path / "d"))["inputs"].vocab_size == 300
    problem.generate_data(str(tmp_path / "d"), str(tmp_path))  # finished: the source is not needed again
    (tmp_path / "d" / "translate_own-manifest.json").unlink()
    for path in (tmp_path / "d").glob("*-of-*"):
        path.unlink()
    with pytest.raises(UserError, match=r"spm0\.model: no such file"):
        problem.generate_data(str(tmp_path / "d"), str(tmp_path))


def test_a_model_for_each_side(tmp_path, train, models):
    problem = generated(tmp_path / "d", train_files=train, vocab_from=models)
    expected = [SentencePieceEncoder(path).fingerprint for path in models]
    assert list(fingerprints(problem, tmp_path / "d").values()) == expected
    assert (problem.approx_vocab_size, problem.approx_target_vocab_size) == (300, 310)
    names = sorted(path.name for path in (tmp_path / "d").glob("vocab.*.model"))
    assert names == ["vocab.translate_own.inputs.300.model", "vocab.translate_own.targets.310.model"]


@pytest.mark.parametrize("write", [published_samples.write_byte_level, published_samples.write_pieces])
def test_a_published_vocabulary(tmp_path, train, write):
    """It is copied with all its files, and a run that was trained with it hands it on."""
    source = write(tmp_path)
    problem = generated(tmp_path / "d", train_files=train, vocab_from=[source])
    expected = open_encoder(source).fingerprint
    assert set(fingerprints(problem, tmp_path / "d").values()) == {expected}
    run_of(tmp_path / "run", "translate_own", tmp_path / "d")
    tuned = generated(tmp_path / "tuned", train_files=train, vocab_from=[str(tmp_path / "run")])
    assert set(fingerprints(tuned, tmp_path / "tuned").values()) == {expected}


@pytest.mark.parametrize("sizes", [{"vocab_size": 310}, {"vocab_size": 300, "target_vocab_size": 310}])
def test_the_vocabulary_of_a_data_dir_and_of_a_trained_model(tmp_path, train, sizes):
    first = generated(tmp_path / "first", train_files=train, **sizes)
    run_of(tmp_path / "run", "translate_own", tmp_path / "first")
    other = corpus.write_corpus(tmp_path, "other", list(dict.fromkeys(corpus.sentence_pairs(100, 7)))).split(",")
    for source in ("first", "run"):
        tuned = generated(tmp_path / f"from-{source}", train_files=other, vocab_from=[str(tmp_path / source)])
        assert fingerprints(tuned, tmp_path / f"from-{source}") == fingerprints(first, tmp_path / "first")
        assert tuned.config["files"]["train"][0]["path"] == other[0]
    run_of(tmp_path / "second", "translate_own", tmp_path / "from-run")  # the run that goes on from the first
    assert fingerprints(registry.problem("translate_own"), tmp_path / "second") == fingerprints(
        first, tmp_path / "first"
    )


def test_the_vocabularies_of_a_model_of_the_other_direction(tmp_path, train):
    first = generated(tmp_path / "first", train_files=train, vocab_size=300, target_vocab_size=310)
    run_of(tmp_path / "run", "translate_own_rev", tmp_path / "first")
    for files, name in ((train, "translate_own"), (train[::-1], "translate_own_rev")):
        folder = tmp_path / f"from-{name}"
        generated(folder, train_files=files, vocab_from=[str(tmp_path / "run")])
        assert fingerprints(registry.problem(name), folder) == fingerprints(first, tmp_path / "first")


def test_the_vocabulary_of_a_classifiers_inputs(tmp_path, train):
    texts = own.files_of(tmp_path, train=own.SINGLE, dev=own.SINGLE)
    classifier = own.generated("classify_own", tmp_path / "classes", vocab_size=300, **texts)
    problem = generated(tmp_path / "d", train_files=train, vocab_from=[str(tmp_path / "classes")])
    expected = fingerprints(classifier, tmp_path / "classes")["inputs"]
    assert set(fingerprints(problem, tmp_path / "d").values()) == {expected}


@pytest.mark.long
@pytest.mark.slow  # translates, exports and loads the export
def test_a_model_with_separate_vocabularies_writes_its_targets(tmp_path, train):
    (tmp_path / "data").mkdir()
    problem = registry.problem("translate_own_rev")
    problem.configure(train_files=train, vocab_size=300, target_vocab_size=340)
    translator = Translator.load(str(runs.make_problem_run(problem, "transformer", tmp_path, (1,), 0)))
    targets, sentence = problem.get_feature_encoders(str(tmp_path / "data"))["targets"], PAIRS[0][1]
    assert targets.vocab_size == 300
    for translation in translator.translate([sentence, f"{sentence} {sentence}"], beam_size=2, extra_length=5):
        ids = translation.hypotheses[0].ids
        assert (translation.text, translation.tokens) == (targets.decode(ids), targets.pieces(ids))
    export_saved_model(translator, str(tmp_path / "export"), beam_size=2)
    served = tf.saved_model.load(str(tmp_path / "export" / "1")).signatures["serving_default"]
    (text,) = served(inputs=tf.constant([sentence]))["outputs"].numpy()
    assert [text.decode()] == [t.text for t in translator.translate([sentence], beam_size=2)]

"""A model trained by Keras' fit becomes a run that the commands open, and a run a model of Keras."""

# Nearest tests of: t2t_lite/training/evaluator.py

import re

import keras
import numpy as np
import pytest

import t2t_lite
from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.evaluation.scores import corpus_bleu
from t2t_lite.models import Transformer
from t2t_lite.models.arguments import model_hparams
from t2t_lite.training import BleuCallback, MaskedAccuracy, SmoothedCrossEntropy
from tests.layers.equations import array

WORDS = ["red", "house", "old", "green", "tree", "new"], ["rot", "Haus", "alt", "grün", "Baum", "neu"]
SMALL = {
    "hidden_size": 16, "filter_size": 32, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1,
    "dropout": 0.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder of records: words, and the same in another language."""
    folder = tmp_path_factory.mktemp("save_run")
    rng, lines = np.random.default_rng(0), ([], [])
    for _ in range(120):
        order = rng.integers(0, 6, rng.integers(1, 4))
        for side, words in zip(lines, WORDS, strict=True):
            side.append(" ".join(words[i] for i in order) + "\n")
    for name, side in zip(("a.en", "a.de"), lines, strict=True):
        (folder / name).write_text("".join(side), encoding="utf-8")
    problem, pair = registry.problem("translate_own"), [str(folder / "a.en"), str(folder / "a.de")]
    problem.configure(train_files=pair, dev_files=pair, vocab_size=310)
    problem.generate_data(str(folder / "data"), str(folder))
    return folder


@pytest.fixture(scope="module")
def fitted(data):
    """A model fitted on the problem's own batches, its problem and the folder of its data."""
    problem, folder = registry.problem("translate_own"), str(data / "data")
    hparams = registry.hparams("transformer_tiny").parse("batch_size=300,max_length=40")
    keras.utils.set_random_seed(1)
    model = Transformer(problem.get_feature_encoders(folder)["inputs"].vocab_size, **SMALL)
    model.compile(keras.optimizers.Adam(0.01), SmoothedCrossEntropy(0.1), metrics=[MaskedAccuracy()])
    train, dev = (problem.dataset(folder, split, hparams) for split in ("train", "eval"))
    bleu = BleuCallback(problem, folder, max_examples=40, epochs=2, steps=30, beam_size=1, extra_length=4)
    seen = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: bleu.seen.append(logs.get("val_bleu")))
    bleu.seen = []
    fit = model.fit(train, steps_per_epoch=20, epochs=2, validation_data=dev, callbacks=[bleu, seen], verbose=0)
    assert fit.history["val_masked_accuracy"][-1] > fit.history["val_masked_accuracy"][0]
    model.bleu = bleu
    return model, problem, folder


@pytest.mark.slow
def test_bleu_is_that_of_the_translator(fitted):
    """After every second epoch, in the logs of later callbacks too; inside of epochs in its own history alone."""
    model, problem, folder = fitted
    bleu = model.bleu
    assert [step for step, _ in bleu.history] == [30, 40]
    assert bleu.seen == [None, bleu.history[-1][1]] and model.history.history["val_bleu"] == bleu.seen[1:]
    assert len(bleu.texts) == 40
    translator = t2t_lite.Translator(model, problem.get_feature_encoders(folder), registry.hparams("transformer_tiny"))
    outputs = [t.text for t in translator.translate([text for text, _, _ in bleu.texts], beam_size=1, extra_length=4)]
    assert outputs == [output for _, output, _ in bleu.texts]
    score = corpus_bleu(outputs, [reference for _, _, reference in bleu.texts])
    assert (score.score, score.signature) == (bleu.history[-1][1], bleu.signature)


@pytest.mark.long
def test_bleu_is_measured_anew_in_each_fit_and_whenever_keras_calls(fitted):
    """Of a model compiled again, whose steps begin at 0; and with calls after every third step alone."""
    _, problem, folder = fitted
    train = problem.dataset(folder, "train", registry.hparams("transformer_tiny"))
    model = Transformer(problem.get_feature_encoders(folder)["inputs"].vocab_size, **SMALL)
    bleu = BleuCallback(problem, folder, max_examples=2, steps=4, beam_size=1, extra_length=1)
    for _ in range(2):
        model.compile(keras.optimizers.SGD(0.0), SmoothedCrossEntropy(0.1), steps_per_execution=3)
        model.fit(train, steps_per_epoch=9, epochs=1, callbacks=[bleu], verbose=0)
    assert [step for step, _ in bleu.history] == [6, 9] * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "options, words",
    [
        ({"epochs": 0}, "epochs=0: expected a whole number of at least 1"),
        ({"split": "valid"}, "split='valid': expected one of train"),
        ({"max_examples": 1.5}, "max_examples=1.5: expected a whole"),
    ],
)
def test_bleu_refuses_bad_options_before_training(fitted, options, words):
    with pytest.raises(UserError, match=words):
        BleuCallback(fitted[1], fitted[2], **options)


@pytest.fixture(scope="module")
def run(fitted, data):
    model, problem, folder = fitted
    checkpoint = model.save_run(str(data / "run"), problem=problem, data_dir=folder)
    assert checkpoint == str(data / "run" / "model.ckpt-40")
    return data / "run"


@pytest.mark.slow
def test_the_model_of_a_run_is_the_one_that_was_saved(fitted, run):
    model = fitted[0]
    loaded = Transformer.from_run(run)
    ids = np.array([[5, 6, 7, 1]], "int32")
    batch = {"inputs": ids, "targets": ids}
    np.testing.assert_array_equal(array(loaded(batch)), array(model(batch)))
    assert {**loaded.config, "dropout": 0} == {**model.config, "dropout": 0}
    loaded.compile("sgd", SmoothedCrossEntropy())
    loaded.fit(batch, ids, verbose=0)


def test_a_model_of_another_class_is_named(run):
    class Other(Transformer):
        pass

    with pytest.raises(UserError, match=r"a Transformer\. Expected a Other"):
        Other.from_run(run)


@pytest.mark.slow
def test_given_hyperparameters_must_be_those_of_the_model(fitted, tmp_path):
    model, problem, folder = fitted
    of_model = model_hparams(model, registry.hparams("transformer_tiny"))
    model.save_run(str(tmp_path / "run"), problem=problem, data_dir=folder, hparams=of_model, step=7)
    assert t2t_lite.Translator.load(tmp_path / "run" / "model.ckpt-7").hparams == of_model
    other = of_model.parse("num_heads=4,layer_prepostprocess_dropout=0.3")
    with pytest.raises(UserError, match="num_heads=4, but the model was made with 2"):
        model.save_run(str(tmp_path / "other"), problem=problem, data_dir=folder, hparams=other)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.slow
def test_what_does_not_fit_is_named(fitted, run, tmp_path):
    model, problem, folder = fitted
    settings = {"problem": problem, "data_dir": folder}
    with pytest.raises(UserError, match="already contains files"):
        model.save_run(str(run), **settings)
    with pytest.raises(UserError, match=re.escape("the model has 9 and 9. ")):
        other = Transformer(9, **SMALL)
        other.build()
        other.save_run(str(tmp_path / "a"), **settings)
    for step in (-5, True, 2.5, 2**70):
        with pytest.raises(UserError, match=rf"step={step}: expected a whole number"):
            model.save_run(str(tmp_path / "a"), **settings, step=step)
    with pytest.raises(UserError, match="has no weights yet"):
        Transformer(9, **SMALL).save_run(str(tmp_path / "a"), **settings)
    with pytest.raises(UserError, match=r"activation=.*hyperparameter"):
        own = Transformer(model.vocab_size, **SMALL, activation=lambda x: x * 0.5)
        own.build()
        own.save_run(str(tmp_path / "a"), **settings)

    class Unregistered(Transformer):
        pass

    with pytest.raises(UserError, match="Unregistered: the model is not registered"):
        own = Unregistered(model.vocab_size, **SMALL)
        own.build()
        own.save_run(str(tmp_path / "a"), **settings)
    assert not list(tmp_path.iterdir())

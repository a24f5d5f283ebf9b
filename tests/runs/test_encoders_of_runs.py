"""`TransformerEncoder.from_run` of every head: it answers as the Predictor, is fitted further, and kept by Keras."""

# Nearest tests of: t2t_lite/runs/opening.py

import contextlib
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data import batching
from t2t_lite.data.records import Records
from t2t_lite.decoding.predictor import Predictor
from t2t_lite.errors import UserError
from t2t_lite.models import TransformerEncoder
from t2t_lite.text.vocabulary import vocabulary_sizes
from t2t_lite.training import SmoothedCrossEntropy
from t2t_lite.training.objectives import mean_loss, objective_sums
from tests.registered import registered

pytestmark = pytest.mark.slow

SIZES = (
    "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=128,max_length=40,"
    "attention_dropout=0,layer_prepostprocess_dropout=0"
)
TEXTS = [f"{animal} number {number}" for number in range(20) for animal in ("dog", "fox")]


def questions():
    asked = {"question": "what?", "answers": [{"text": "number", "answer_start": 4}]}
    paragraphs = [{"context": text, "qas": [{"id": text, **asked}]} for text in TEXTS]
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


FILES = {
    "classify_own": "\n".join(f"{text.split()[0]}\t{text}" for text in TEXTS),
    "regress_own": "\n".join(f"{text.split()[-1]}\t{text}" for text in TEXTS),
    "tag_own": "\n\n".join("\n".join(f"{word}\t{word[0]}" for word in [*text.split()[:2], "quick"]) for text in TEXTS),
    "qa_own": questions(),
    "masked_lm_own": "\n".join(TEXTS * 5),
    "sentence_order_own": "\n".join(TEXTS * 5),
    "next_sentence_own": "\n\n".join("\n".join(TEXTS[i : i + 3]) for i in range(38)),
}
ROWS = "qa_own", "masked_lm_own", "sentence_order_own", "next_sentence_own"  # of a length
ASKED = {"qa_own": [("what?", TEXTS[0]), ("what?", TEXTS[1])]}
GUESSED = ["dog [MASK] 3", "[MASK] number 17"]


@pytest.fixture(scope="module", params=registered(FILES))
def saved(request, tmp_path_factory):
    """Returns (problem, hparams, data_dir, the path of a run of an untrained model)."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "a").write_text(FILES[request.param])
    problem = registry.problem(request.param)
    rows = {"sequence_length": 40} if request.param in ROWS else {}
    problem.configure([str(folder / "a")], [str(folder / "a")], vocab_size=300, **rows)
    problem.generate_data(str(folder), str(folder))
    hparams = problem.model_hparams(registry.hparams("bert_tiny").of_model(TransformerEncoder).parse(SIZES))
    model = TransformerEncoder.from_hparams(hparams, *vocabulary_sizes(problem.get_feature_encoders(str(folder))))
    model.build()
    draw = np.random.default_rng(1)
    for weight in model.weights:  # far from one another, so that no two answers are alike by chance
        weight.assign(weight + 0.3 * draw.normal(size=weight.shape))
    model.save_run(str(folder / "run"), problem=problem, data_dir=str(folder), hparams=hparams, step=0)
    return problem, hparams, str(folder), str(folder / "run")


def answers(predictor):
    name = predictor.problem.name
    if predictor.problem.task == "masked_language_model":
        return predictor.fill_mask(GUESSED)
    return predictor.predict(ASKED.get(name, TEXTS[:4]))


@pytest.mark.few("sentence_order_own")
def test_it_answers_as_the_predictor_and_so_does_its_keras_file(saved, tmp_path):
    problem, hparams, folder, run = saved
    model, predictor = TransformerEncoder.from_run(run), Predictor.load(run)
    expected = answers(predictor)
    assert answers(Predictor(model, predictor.encoders, predictor.problem)) == expected
    model.save(tmp_path / "model.keras")
    kept = keras.saving.load_model(tmp_path / "model.keras")
    assert answers(Predictor(kept, predictor.encoders, predictor.problem)) == expected
    batch, _ = next(iter(problem.dataset(folder, "eval", hparams)))
    for one, other in zip(*map(keras.tree.flatten, (model(batch), kept(batch))), strict=True):
        np.testing.assert_array_equal(one, other)


def compiled(model, problem, hparams, rate):
    """Returns the model, compiled for `fit` with the losses of t2t-trainer."""
    loss = "mse" if problem.task == "regression" else SmoothedCrossEntropy(0.0)
    if hparams.sentence_classes:
        loss = {name: SmoothedCrossEntropy(0.0) for name in ("targets", "sentence")}
    model.compile(keras.optimizers.Adam(rate), loss)
    return model


@pytest.mark.few("next_sentence_own-train", "sentence_order_own-eval", "regress_own-eval")
@pytest.mark.parametrize("split", ["train", "eval"])
def test_the_loss_of_fit_is_that_of_the_trainer(saved, split):
    problem, hparams, folder, run = saved
    model, batches = TransformerEncoder.from_run(run), problem.dataset(folder, split, hparams)
    make = batching.training_batches if split == "train" else batching.evaluation_batches
    paths, encoders = Records(problem, folder, split).paths, problem.get_feature_encoders(folder)
    batch = next(iter(make(problem, hparams, paths, encoders)))
    tf.debugging.assert_equal(next(iter(batches))[0]["inputs"], batch["inputs"])
    counts = {name: tf.cast(tf.math.count_nonzero(ids), tf.float32) for name, ids in batch.items()}
    expected = float(mean_loss(objective_sums(model(batch), batch), counts))
    compiled(model, problem, hparams, rate=0.0)
    if split == "train":
        found = model.fit(batches, steps_per_epoch=1, verbose=0).history["loss"][0]
    else:
        found = model.evaluate(batches.take(1), verbose=0, return_dict=True)["loss"]
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.long
@pytest.mark.few("masked_lm_own", "classify_own")
def test_it_is_fitted_further_and_goes_on_from_a_keras_file(saved, tmp_path):
    problem, hparams, folder, run = saved
    model = compiled(TransformerEncoder.from_run(run), problem, hparams, rate=0.003)
    batches, dev = problem.dataset(folder, "train", hparams), problem.dataset(folder, "eval", hparams)
    before = model.evaluate(dev, verbose=0)
    model.fit(batches, steps_per_epoch=20, verbose=0)
    after = model.evaluate(dev, verbose=0)
    assert np.ravel(after)[0] < np.ravel(before)[0]
    model.save(tmp_path / "model.keras")
    kept = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(np.ravel(kept.evaluate(dev, verbose=0)), np.ravel(after), rtol=1e-5)
    kept.fit(batches, steps_per_epoch=1, verbose=0)
    assert int(kept.optimizer.iterations) == 21


@pytest.mark.few("masked_lm_own")
def test_replicas_among_which_masked_ids_cannot_be_shared_out_are_refused(saved):
    problem, _, folder, _ = saved
    masks = problem.name in ("masked_lm_own", "sentence_order_own", "next_sentence_own")
    refused = pytest.raises(UserError, match="masked ids over 2 replicas") if masks else contextlib.nullcontext()
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope(), refused:
        problem.dataset(folder)

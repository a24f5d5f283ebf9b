"""ELMo's recipe: LSTMs in both directions learn a language, and a classifier reads the mix of their layers."""

import functools
import random

import numpy as np
import pytest
import tensorflow as tf

import t2t_lite
from t2t_lite import registry
from t2t_lite.export.saved_model import export_saved_model
from t2t_lite.extras.baselines.lstm_lm import LSTMLanguageModel
from t2t_lite.training.optimization.optimizers import layer_depths
from tests.training.runs import assert_replicas_and_parts_give_one_run, log, state, trainer

pytestmark = pytest.mark.slow

SIZES = "hidden_size=16,num_hidden_layers=2,batch_size=128,layer_prepostprocess_dropout=0.1"
WORDS = {"warm": ["sun", "fire", "summer", "coffee"], "cold": ["snow", "ice", "winter", "frost"]}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Folders with text, and with sentences of two classes in the vocabulary of the text."""
    folder, draw = tmp_path_factory.mktemp("lstm"), random.Random(1)
    lines = [f"{kind}\tI like {draw.choice(WORDS[kind])} and {draw.choice(WORDS[kind])}" for kind in [*WORDS] * 150]
    (folder / "a.tsv").write_text("\n".join(lines))
    (folder / "a.txt").write_text("\n".join(line.partition("\t")[2] for line in lines))
    text, labelled = registry.problem("languagemodel_own"), registry.problem("classify_own")
    text.configure([str(folder / "a.txt")], [str(folder / "a.txt")], sequence_length=32, vocab_size=310)
    text.generate_data(str(folder / "text"), str(folder))
    labelled.configure([str(folder / "a.tsv")], [str(folder / "a.tsv")], vocab_from=[str(folder / "text")])
    labelled.generate_data(str(folder / "labelled"), str(folder))
    return folder


def learner(data, output_dir, problem="languagemodel_own", rate=0.01, hparams="", **settings):
    constant = f"learning_rate_schedule=constant,learning_rate_constant={rate}"
    named = {"problem": problem, "hparams_set": "lstm_lm_tiny", "model": "lstm_lm"}
    folder = "text" if problem == "languagemodel_own" else "labelled"
    return trainer(str(data / folder), output_dir, f"{SIZES},{constant}{hparams}", **named, **settings)


@pytest.fixture(scope="module")
def language(data, tmp_path_factory):
    """A run of the language model: (its folder, the metrics of its last evaluation)."""
    folder = tmp_path_factory.mktemp("runs") / "language"
    return folder, learner(data, folder, evaluates=True, local_eval_frequency=30).train(60)


def test_both_directions_learn(data, language):
    _, metrics = language
    first = log(language[0], "evaluation", documented=False)[0]
    assert metrics["loss"] < 1.5 and metrics["cost_targets"] < 1.5, metrics
    assert metrics["loss"] < first["loss"] and metrics["cost_targets"] < first["cost_targets"]


@pytest.mark.long
def test_two_replicas_are_two_batches_of_one_and_a_run_in_parts_is_that_in_one(data, tmp_path):
    assert_replicas_and_parts_give_one_run(functools.partial(learner, data), tmp_path, 2)


@pytest.mark.long
def test_a_frozen_language_model_is_read_by_a_classifier(data, language, tmp_path):
    options = {"problem": "classify_own", "hparams": ",unfreeze_steps=1000000", "warm_start_from": str(language[0])}
    run = learner(data, tmp_path / "classes", rate=0.05, evaluates=True, local_eval_frequency=90, **options)
    assert run.train(90)["accuracy"] > 0.75
    before, after = state(language[0], 60), state(tmp_path / "classes", 90)
    shared = [name for name in before if name.startswith("model/") and name in after]
    assert len(shared) == 1 + 2 * 2 * 3  # the embeddings, and of each layer two matrices and a bias
    for name in shared:
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)
    assert not np.array_equal(after["model/mix/weight/.ATTRIBUTES/VARIABLE_VALUE"], np.zeros(3))

    predictor = t2t_lite.load(str(tmp_path / "classes"))
    assert predictor.predict(["I like snow and ice"])[0].label == "cold"
    (features,) = predictor.features(["I like snow"], layers="all", join="concat")
    pieces = predictor.encoders["inputs"].encode("I like snow")
    assert features.shape == (1 + len(pieces) + 1, 2 * 2 * 16)
    path = export_saved_model(predictor, str(tmp_path / "export"), layers="all", join="concat")
    call = tf.saved_model.load(path).signatures
    text = tf.constant(["I like snow"])
    np.testing.assert_allclose(call["features"](inputs=text)["features"][0], features, atol=1e-5)
    expected = [*predictor.predict(["I like snow"])[0].probabilities.values()]
    np.testing.assert_allclose(call["predict"](inputs=text)["probabilities"][0], expected, atol=1e-5)


@pytest.mark.long
def test_it_continues_a_text_and_scores_it(language):
    generator = t2t_lite.load(str(language[0]))
    (found,) = generator.generate(["I like"], max_new_tokens=8)
    assert found.text.split()[0] in {word for words in WORDS.values() for word in words}
    usual, strange = generator.score(["I like snow and ice", "ice and like snow I"])
    assert usual.log_prob > strange.log_prob


def test_lower_layers_are_deeper_for_the_optimizer_and_what_makes_the_embeddings_is_lowest():
    model = LSTMLanguageModel(20, 4, head="class", hidden_size=8)
    model.build()
    paths = [weight.path for weight in model.trainable_variables]
    expected = {"class_head/": 0, "mix/": 0}
    expected |= {f"{stack}_{i}/": 2 - i for stack in ("forward", "backward") for i in (0, 1)}
    for path, depth in zip(paths, layer_depths(paths), strict=True):
        assert depth == next((value for part, value in expected.items() if part in path), 3), path

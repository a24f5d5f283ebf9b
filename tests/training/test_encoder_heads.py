"""Runs on tags, answers and numbers: replicas, a run in parts, the counts of what is cut, and that they are learned."""

import functools
import json
import random

import keras
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.errors import UserError
from t2t_lite.models import TransformerEncoder
from t2t_lite.text.vocabulary import vocabulary_sizes
from t2t_lite.training import MaskedAccuracy, SmoothedCrossEntropy
from t2t_lite.training.objectives import objective_sums
from t2t_lite.training.training_data import open_training_data
from tests.registered import registered
from tests.training.runs import assert_replicas_and_parts_give_one_run, trainer

pytestmark = pytest.mark.slow

SIZES = (
    "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=128,max_length=40,"
    "learning_rate_schedule=constant,attention_dropout=0,layer_prepostprocess_dropout=0"
)
KINDS = {"dog": "animal", "fox": "animal", "red": "color", "blue": "color", "runs": "other", "a": "other"}


def sentences():
    draw = random.Random(1)
    return [[draw.choice([*KINDS]) for _ in range(draw.randrange(3, 9))] for _ in range(200)]


def tagged():
    return "\n\n".join("\n".join(f"{word}\t{KINDS[word]}" for word in words) for words in sentences())


def numbered():
    return "\n".join(f"{('dog' in words) + 2.5 * ('red' in words)}\t{' '.join(words)}" for words in sentences())


def asked():
    paragraphs = []
    for number, words in enumerate(sentences()):
        context = " ".join([*words, "seven", *words[:2]])
        answers = [{"text": "seven", "answer_start": context.index("seven")}]
        paragraphs.append({"context": context, "qas": [{"id": f"{number}", "question": "many?", "answers": answers}]})
    return json.dumps({"data": [{"paragraphs": paragraphs}]})


PROBLEMS = registered({"tag_own": tagged, "regress_own": numbered, "qa_own": asked})


@pytest.fixture(scope="module", params=PROBLEMS)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def data(name, tmp_path_factory):
    folder = tmp_path_factory.mktemp(name)
    (folder / "a").write_text(PROBLEMS[name]())
    problem = registry.problem(name)
    rows = {"sequence_length": 40} if name == "qa_own" else {}
    problem.configure([str(folder / "a")], [str(folder / "a")], vocab_size=300, **rows)
    problem.generate_data(str(folder), str(folder))
    return folder


def run(name, data, output_dir, rate=0.001, hparams="", **settings):
    named = {"problem": name, "hparams_set": "bert_tiny", "model": "transformer"}
    return trainer(str(data), output_dir, f"{SIZES},learning_rate_constant={rate}{hparams}", **named, **settings)


@pytest.mark.long
def test_two_replicas_are_two_batches_of_one_and_a_run_in_parts_is_that_in_one(name, data, tmp_path):
    if name != "tag_own":
        pytest.skip("one is enough: of tags the replicas have unequal numbers")
    assert_replicas_and_parts_give_one_run(functools.partial(run, name, data), tmp_path, 2)


@pytest.mark.long
def test_it_is_learned(name, data, tmp_path):
    metrics = run(name, data, tmp_path, 0.01, evaluates=True, local_eval_frequency=200).train(200)
    assert metrics["loss"] < (0.05 if name == "regress_own" else 0.01)  # the variance of the numbers is 0.14
    assert ("perplexity" in metrics) == (name != "regress_own")
    assert metrics.get("token_accuracy", 1) == metrics.get("exact_match", 1) == 1


@pytest.mark.long
def test_keras_fits_it(name, data):
    problem, hparams = registry.problem(name), registry.hparams("bert_tiny").of_model(TransformerEncoder)
    hparams = problem.model_hparams(hparams.parse(SIZES))
    encoders = problem.get_feature_encoders(str(data))
    model = TransformerEncoder.from_hparams(hparams, *vocabulary_sizes(encoders))
    loss = "mse" if name == "regress_own" else SmoothedCrossEntropy(0.0)
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=[] if name == "regress_own" else [MaskedAccuracy()])
    batches, dev = (problem.dataset(str(data), split, hparams) for split in ("train", "eval"))
    before = model.evaluate(dev, verbose=0, return_dict=True)
    after = model.fit(batches, steps_per_epoch=30, validation_data=dev, verbose=0).history
    assert after["val_loss"][0] < 0.9 * before["loss"]
    sums = [objective_sums(model(batch), batch).nats["targets"] for batch, _ in dev]
    counts = sum(int(tf.math.count_nonzero(batch["targets"])) for batch, _ in dev)
    assert after["val_loss"][0] == pytest.approx(float(sum(sums)) / counts, rel=0.05)  # Keras weights batches by rows


def test_texts_are_not_segmented_anew_where_targets_belong_to_pieces(name, data):
    hparams = registry.hparams("bert_tiny").parse("bpe_dropout=0.1,batch_size=64,max_length=40")
    if name == "regress_own":
        assert open_training_data(name, hparams, str(data)).examples == 200
        return
    with pytest.raises(UserError, match=rf"bpe_dropout=0\.1: .*{name}"):
        open_training_data(name, hparams, str(data))


@pytest.mark.few("tag_own")
def test_what_is_cut_to_the_longest_row_is_counted(name, data):
    if name == "qa_own":
        pytest.skip("its contexts are read in windows, none is cut")
    hparams = registry.hparams("bert_tiny").parse("max_length=7,batch_size=64")
    found = open_training_data(name, hparams, str(data))
    assert found.examples == 200 and found.dropped == 0
    assert 0 < found.cut[DatasetSplit.TRAIN] == found.cut[DatasetSplit.EVAL] < 200
    for batch in found.batches.take(20):
        assert batch["inputs"].shape[1] <= 7
        assert (tf.reduce_sum(tf.cast(batch["inputs"] == 1, tf.int32), 1).numpy() == 1).all()

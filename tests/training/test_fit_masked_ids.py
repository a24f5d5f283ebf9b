"""Keras' `fit` on masked ids and the order of sentences: its loss is that of t2t-trainer's code on the same batch."""

import keras
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data import batching
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.models import TransformerEncoder
from t2t_lite.text.vocabulary import vocabulary_sizes
from t2t_lite.training import MaskedAccuracy, SmoothedCrossEntropy
from t2t_lite.training.objectives import mean_loss, objective_sums

pytestmark = pytest.mark.slow

SIZES = (
    "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=256,max_length=40,"
    "attention_dropout=0,layer_prepostprocess_dropout=0"
)
DOCUMENTS = [[f"document {number} says {word}" for word in ("one", "two", "three")] for number in range(60)]
TEXT = "\n\n".join(map("\n".join, DOCUMENTS))


@pytest.fixture(scope="module", params=["masked_lm_own", "sentence_order_own", "next_sentence_own"])
def prepared(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "a.txt").write_text(TEXT)
    problem = registry.problem(request.param)
    problem.configure([str(folder / "a.txt")], [str(folder / "a.txt")], vocab_size=300, sequence_length=30)
    problem.generate_data(str(folder), str(folder))
    return problem, str(folder)


@pytest.mark.few("next_sentence_own-train", "sentence_order_own-eval")
@pytest.mark.parametrize("split", ["train", "eval"])
def test_the_loss_of_fit_is_that_of_the_trainer(prepared, split):
    problem, folder = prepared
    encoders = problem.get_feature_encoders(folder)
    hparams = problem.model_hparams(registry.hparams("bert_tiny").of_model(TransformerEncoder).parse(SIZES))
    model = TransformerEncoder.from_hparams(hparams, *vocabulary_sizes(encoders))
    losses, metrics = SmoothedCrossEntropy(0.0), [MaskedAccuracy()]
    if hparams.sentence_classes:
        losses = {name: SmoothedCrossEntropy(0.0) for name in ("targets", "sentence")}
        metrics = {name: [MaskedAccuracy()] for name in ("targets", "sentence")}
    model.compile(keras.optimizers.Adam(0.0), losses, metrics=metrics, run_eagerly=True)
    make = batching.training_batches if split == "train" else batching.evaluation_batches
    batch = next(iter(make(problem, hparams, Records(problem, folder, split).paths, encoders)))
    counts = {name: tf.cast(tf.math.count_nonzero(ids), tf.float32) for name, ids in batch.items()}
    expected = float(mean_loss(objective_sums(model(batch), batch), counts))
    batches = problem.dataset(folder, split, hparams)
    tf.debugging.assert_equal(next(iter(batches))[0]["inputs"], batch["inputs"])
    if split == "train":
        found = model.fit(batches, steps_per_epoch=1, verbose=0).history["loss"][0]
    else:
        found = model.evaluate(batches.take(1), verbose=0, return_dict=True)["loss"]
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.few("masked_lm_own")
def test_replicas_among_which_masked_ids_cannot_be_shared_out_are_refused(prepared):
    problem, folder = prepared
    refused = pytest.raises(UserError, match="masked ids over 2 replicas")
    with tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope(), refused:
        problem.dataset(folder)

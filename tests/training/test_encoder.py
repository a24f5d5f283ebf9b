"""Runs of an encoder: pretraining on two replicas, an exact resume, and a classifier that goes on from it."""

import functools
import random

import pytest
import tensorflow as tf

import t2t_lite
from t2t_lite import registry
from tests.training.runs import assert_replicas_and_parts_give_one_run, log, trainer

pytestmark = pytest.mark.slow

SIZES = (
    "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=128,learning_rate_warmup_steps=2,"
    "attention_dropout=0.1,layer_prepostprocess_dropout=0.1"
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Folders with text, and with sentences of two classes in the vocabulary of the text."""
    folder = tmp_path_factory.mktemp("encoder")
    draw = random.Random(1)
    words = {"warm": ["sun", "fire", "summer", "coffee"], "cold": ["snow", "ice", "winter", "frost"]}
    lines = [f"{kind}\tI like {draw.choice(words[kind])} and {draw.choice(words[kind])}" for kind in [*words] * 150]
    (folder / "a.tsv").write_text("\n".join(lines))
    (folder / "a.txt").write_text("\n".join(line.partition("\t")[2] for line in lines))
    text, labelled = registry.problem("masked_lm_own"), registry.problem("classify_own")
    text.configure([str(folder / "a.txt")], [str(folder / "a.txt")], sequence_length=31, vocab_size=310)
    text.generate_data(str(folder / "text"), str(folder))
    labelled.configure([str(folder / "a.tsv")], [str(folder / "a.tsv")], vocab_from=[str(folder / "text")])
    labelled.generate_data(str(folder / "labelled"), str(folder))
    ordered = registry.problem("sentence_order_own")
    files = [str(folder / "a.txt")]
    ordered.configure(files, files, sequence_length=31, vocab_from=[str(folder / "text")], mask_unit="ngram")
    ordered.generate_data(str(folder / "ordered"), str(folder))
    return folder


def masked(data, output_dir, rate=0.001, hparams="", **settings):
    named = {"problem": "masked_lm_own", "hparams_set": "bert_tiny", "model": "transformer"}
    return trainer(
        str(data / "text"),
        output_dir,
        f"{SIZES}{hparams},learning_rate_schedule=constant,learning_rate_constant={rate}",
        **named,
        **settings,
    )


def ordered(data, output_dir, hparams="", **settings):
    """A run of masked ids and the order of sentences, whose two layers share their weights, as ALBERT's do."""
    two = SIZES.replace("num_hidden_layers=1", "num_hidden_layers=2")
    sizes = f"{two},embedding_size=8,max_position=64,learning_rate_schedule=constant{hparams}"
    named = {"problem": "sentence_order_own", "hparams_set": "albert_base", "model": "transformer"}
    return trainer(str(data / "ordered"), output_dir, sizes, **named, **settings)


@pytest.mark.long
def test_two_replicas_are_two_batches_of_one_and_a_run_in_parts_is_that_in_one(data, tmp_path):
    assert_replicas_and_parts_give_one_run(functools.partial(ordered, data), tmp_path, 2)
    assert log(tmp_path / "parts", "progress")[-1]["loss_sentence"] > 0


@pytest.mark.long
def test_a_classifier_goes_on_from_masked_words_and_answers(data, tmp_path):
    masked(data, tmp_path / "masked", 0.003).train(60)
    guessed = t2t_lite.load(str(tmp_path / "masked")).fill_mask(["I like [MASK] and ice"], top=310)
    (candidates,) = guessed[0]
    assert sum(c.probability for c in candidates) == pytest.approx(1, abs=1e-4)
    assert [c.probability for c in candidates] == sorted((c.probability for c in candidates), reverse=True)
    named = {"problem": "classify_own", "hparams_set": "bert_tiny", "model": "transformer"}
    named |= {"evaluates": True, "local_eval_frequency": 200, "warm_start_from": str(tmp_path / "masked")}
    metrics = trainer(
        str(data / "labelled"),
        tmp_path / "classes",
        f"{SIZES},learning_rate_schedule=constant,learning_rate_constant=0.003",
        **named,
    ).train(200)
    assert metrics["accuracy"] == 1
    predictor = t2t_lite.load(str(tmp_path / "classes"))
    assert [p.label for p in predictor.predict(["I like frost and ice", "I like sun and fire"])] == ["cold", "warm"]
    texts, options = ["I like ice", "sun"], {"layers": "all", "join": "concat"}
    whole, pooled = (predictor.features(texts, **options, pooling=pooling) for pooling in (None, "mean"))
    assert [states.shape[1] for states in whole] == [16, 16] and len(whole[0]) > len(whole[1])
    for states, mean in zip(whole, pooled, strict=True):
        tf.debugging.assert_near(states.mean(0), mean, atol=1e-5)

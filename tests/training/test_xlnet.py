"""Runs of XLNet: orders on eight replicas, an exact resume, and a classifier that goes on from published weights."""

import functools
import pathlib
import random

import numpy as np
import pytest

import t2t_lite
from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.export import export_hugging_face, export_saved_model, import_hugging_face
from tests.export.served import served
from tests.interchange.xlnet_folders import write_xlnet
from tests.training.runs import assert_replicas_and_parts_give_one_run, log, trainer

pytestmark = pytest.mark.slow

SIZES = (
    "num_hidden_layers=1,hidden_size=16,filter_size=32,num_heads=2,batch_size=128,learning_rate_schedule=constant,"
    "learning_rate_constant=0.001,attention_dropout=0.1,layer_prepostprocess_dropout=0.1,relu_dropout=0.1"
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Folders with texts and with sentences of two classes; the second one's words are those of a small vocabulary."""
    folder = tmp_path_factory.mktemp("xlnet")
    draw = random.Random(1)
    words = {"warm": ["the", "red", "cafe"], "cold": ["12", "Un", "sing"]}
    lines = [f"{kind}\t{draw.choice(words[kind])} in {draw.choice(words[kind])}" for kind in [*words] * 150]
    (folder / "a.tsv").write_text("\n".join(lines))
    (folder / "a.txt").write_text("\n".join(line.partition("\t")[2] for line in lines))
    text = registry.problem("permutation_lm_own")
    text.configure([str(folder / "a.txt")], [str(folder / "a.txt")], sequence_length=31, vocab_size=300)
    text.generate_data(str(folder / "text"), str(folder))
    return folder


def permuted(data, output_dir, hparams="", **settings):
    named = {"problem": "permutation_lm_own", "hparams_set": "xlnet_tiny", "model": "transformer"}
    return trainer(str(data / "text"), output_dir, SIZES + hparams, **{**named, **settings})


def test_a_model_that_would_see_what_it_predicts_is_refused(data, tmp_path):
    with pytest.raises(UserError, match=r"does not read 'order', .* Expected a model that does, such as --model=xlnet"):
        trainer(
            str(data / "text"), tmp_path / "x", "num_hidden_layers=1,hidden_size=8,filter_size=8,num_heads=1",
            problem="permutation_lm_own", hparams_set="bert_tiny", model="transformer_encoder",
        ).train(1)  # fmt: skip


@pytest.mark.long
def test_eight_replicas_are_eight_batches_of_one_and_a_run_in_parts_is_that_in_one(data, tmp_path):
    assert_replicas_and_parts_give_one_run(functools.partial(permuted, data), tmp_path, 8)


@pytest.mark.long
def test_it_learns_which_words_go_together(data, tmp_path):
    """A predicted word is of the class of the other one, which an encoder of all words before would not know."""
    permuted(data, tmp_path / "run", ",learning_rate_constant=0.003", evaluates=True, local_eval_frequency=300).train(
        300
    )
    losses = [line["loss"] for line in log(tmp_path / "run", "evaluation")]
    assert losses[-1] < 2.0, losses
    (masks,) = t2t_lite.load(str(tmp_path / "run")).fill_mask(["red in [MASK]"], top=50)
    assert sum(candidate.probability for candidate in masks[0]) == pytest.approx(1, abs=1e-4)


@pytest.mark.long
def test_published_weights_are_tuned_served_and_given_back(data, tmp_path):
    write_xlnet(tmp_path / "theirs", "XLNetLMHeadModel")
    import_hugging_face(str(tmp_path / "theirs"), str(tmp_path / "xlnet"))
    labelled = registry.problem("classify_own")
    labelled.configure([str(data / "a.tsv")], [str(data / "a.tsv")], vocab_from=[str(tmp_path / "xlnet")])
    labelled.generate_data(str(tmp_path / "labelled"), str(tmp_path))
    config = t2t_lite.load(str(tmp_path / "xlnet")).run.config
    assert config["model"] == "xlnet"
    metrics = trainer(
        str(tmp_path / "labelled"), tmp_path / "tuned",
        "num_hidden_layers=2,hidden_size=16,filter_size=24,num_heads=4,batch_size=256,learning_rate_schedule=constant,"
        f"learning_rate_constant=0.003,last_id={config['hparams']['last_id']}",
        problem="classify_own", hparams_set="xlnet_base", model="xlnet", warm_start_from=str(tmp_path / "xlnet"),
        evaluates=True, local_eval_frequency=150,
    ).train(150)  # fmt: skip
    assert metrics["accuracy"] == 1
    predictor = t2t_lite.load(str(tmp_path / "tuned"))
    texts = ["the in red", "12 in Un"]
    answers = predictor.predict(texts)
    assert [answer.label for answer in answers] == ["warm", "cold"]
    found = served(export_saved_model(predictor, str(tmp_path / "export")))
    probabilities = found("predict", {"inputs": [text.encode() for text in texts]})["probabilities"]
    expected = [[*answer.probabilities.values()] for answer in answers]
    np.testing.assert_allclose(probabilities, expected, atol=1e-5)
    export_hugging_face(predictor, str(tmp_path / "back"))
    again = import_hugging_face(str(tmp_path / "back"), str(tmp_path / "again"))
    assert t2t_lite.load(str(pathlib.Path(again).parent)).predict(texts) == answers

"""Folders of sentence-transformers: their vectors by default, the same after an export, and clear refusals."""

import logging
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.export.encoder_signatures import EncoderSignatures
from tests.extras.hugging_face.encoder_folders import write_encoder
from tests.extras.hugging_face.folders import config_of, refuses_import, tensors_of
from tests.extras.hugging_face.in_and_out import exported, loaded
from tests.extras.sentence_transformers.sentence_folders import LENGTH, NEW, OLD, write_sentence_encoder

TEXTS = ["the cafe", "", "naive red un the in", " ".join(["the", "red"] * 30)]
_POOLED = {"mean": lambda states: states.mean(0), "max": lambda states: states.max(0), "cls": lambda states: states[0]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "pooling", "is_unit"), [(OLD, "mean", True), (NEW, "cls", True), (OLD, "max", False)]
)
def test_a_text_becomes_the_folders_vector(tmp_path, version, pooling, is_unit):
    """By default; every position on request; in an export as in Python; after a second round, too."""
    folder = write_sentence_encoder(tmp_path / "theirs", version, pooling, is_unit)
    predictor = loaded(folder, tmp_path / "run")
    states = predictor.features(TEXTS, pooling="none")
    assert [len(rows) for rows in states][1:] == [2, 7, LENGTH], "[CLS], at most as many pieces as fit, [SEP]"
    assert len(predictor.features(TEXTS, pooling="none", max_length=LENGTH + 3)[3]) == LENGTH + 4, "one's own limit"
    vectors = np.stack(predictor.features(TEXTS))
    expected = np.stack([_POOLED[pooling](rows) for rows in states])
    expected = expected / np.linalg.norm(expected, axis=1, keepdims=True) if is_unit else expected
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    served = EncoderSignatures(predictor, None).functions()["features"](tf.constant(TEXTS))
    assert served.keys() == {"features", "truncated"}
    np.testing.assert_allclose(served["features"], vectors, atol=1e-6)
    assert served["truncated"].numpy().tolist() == [False, False, False, True]

    exported(predictor, tmp_path / "ours")
    assert config_of(tmp_path / "ours")["architectures"] == ["BertModel"]
    assert not [name for name in tensors_of(tmp_path / "ours") if not name.startswith("bert.")], "no untrained head"
    for name, array in tensors_of(folder).items():
        np.testing.assert_array_equal(tensors_of(tmp_path / "ours")[name], array, err_msg=name)
    again = loaded(tmp_path / "ours", tmp_path / "again")
    np.testing.assert_array_equal(np.stack(again.features(TEXTS)), vectors)
    assert (tmp_path / "ours" / "2_Normalize").exists() == is_unit
    assert "sentence-transformers" in (tmp_path / "ours" / "README.md").read_text()


@pytest.mark.slow
def test_a_head_stays_beside_the_pooling(tmp_path):
    """A classifier that began with a sentence encoder is one for both packages."""
    folder = write_sentence_encoder(tmp_path / "theirs", class_name="BertForSequenceClassification")
    predictor = loaded(folder, tmp_path / "run")
    exported(predictor, tmp_path / "ours")
    again = loaded(tmp_path / "ours", tmp_path / "again")
    assert again.problem.name == "classify_own" and again.model.config["features_pooling"] == "mean"
    assert again.predict(TEXTS) == predictor.predict(TEXTS)
    np.testing.assert_array_equal(again.features(TEXTS), predictor.features(TEXTS))


@pytest.mark.slow
def test_other_encoders_have_no_pooling(tmp_path):
    folder, _ = write_encoder(tmp_path / "theirs", "BertForMaskedLM")
    predictor = loaded(folder, tmp_path / "run")
    assert predictor.features(TEXTS[:1])[0].ndim == 2
    exported(predictor, tmp_path / "ours")
    assert not (tmp_path / "ours" / "modules.json").exists()


def _first(**values):
    return lambda modules: [{**modules[0], **values}, *modules[1:]]


def _with(**values):
    return lambda value: {**value, **values}


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("modules", lambda modules: [*modules, {"path": "3_Dense", "type": "x.models.Dense"}], "type=x.models.Dense…"),
        ("modules", lambda modules: modules[:1], "modules.json: type=Transformer…Expected Transformer, Pooling and"),
        ("modules", lambda modules: [*modules[:1], *modules[:0:-1]], "type=Transformer, Normalize, Pooling"),
        ("modules", _first(path="0_BERT"), "path=0_BERT…in the folder itself"),
        ("modules", lambda modules: [modules[0], {**modules[1], "path": "../1_Pooling"}], "path=../1_Pooling"),
        ("pooling_file", _with(pooling_mode_max_tokens=True), "1_Pooling/config.json: pooling_mode=mean and max"),
        ("pooling_file", _with(pooling_mode="lasttoken"), "pooling_mode=lasttoken…one of mean, cls, max"),
        ("pooling_file", _with(pooling_mode=[{}]), "pooling_mode={}"),
        ("texts", _with(max_seq_length=4), "sentence_bert_config.json: max_seq_length=4…5 or more"),
        ("texts", _with(max_seq_length="9"), "max_seq_length=9…5 or more"),
        ("texts", _with(transformer_task="fill-mask"), "transformer_task=fill-mask…feature-extraction"),
        ("texts", _with(processing_kwargs={"text": {"max_length": 6}}), "processing_kwargs={'text'…Expected {}, or no"),
        ("prompts", _with(truncate_dim=8), "config_sentence_transformers.json: truncate_dim=8. Expected null…shorten"),
        ("prompts", _with(default_prompt_name="query"), "default_prompt_name=query…write the prompt before each text"),
        ("normalize", _with(module_input_name="token_embeddings"), "module_input_name=token_embeddings…sentence_embe"),
    ],
)  # fmt: skip
def test_what_would_give_other_vectors_is_refused(tmp_path, file, change, words):
    version = NEW if file == "normalize" else OLD  # which has no such file
    folder = write_sentence_encoder(tmp_path / "theirs", version, **{file: change})
    refuses_import(folder, tmp_path, f"{folder}/…{words}")


def test_capital_letters(tmp_path):
    """Lower case that the vocabulary has anyway changes nothing; a vocabulary with capital letters would differ."""
    lower = _with(do_lower_case=True)
    folder = write_sentence_encoder(tmp_path / "cased", texts=lower, tokenizer=_with(do_lower_case=False))
    refuses_import(folder, tmp_path, "do_lower_case=True…false, because the vocabulary distinguishes")
    loaded(write_sentence_encoder(tmp_path / "lower", texts=lower), tmp_path / "run")


def test_prompts_are_left_out_aloud(tmp_path, caplog):
    prompts = _with(prompts={"query": "Find: ", "document": ""})
    with caplog.at_level(logging.WARNING):
        loaded(write_sentence_encoder(tmp_path / "theirs", prompts=prompts), tmp_path / "run")
    assert any("config_sentence_transformers.json: prompts are ignored" in line for line in caplog.messages)


@pytest.mark.parametrize(("stated", "length"), [(LENGTH, LENGTH - 1), (512, 23), (None, 23)])
def test_the_longest_text(tmp_path, stated, length):
    """At most as many positions as the table has."""
    predictor = loaded(write_sentence_encoder(tmp_path / "theirs", NEW, length=stated), tmp_path / "run")
    assert predictor.features_length == length


def test_the_last_position_of_an_xlnet_is_not_the_first(tmp_path):
    xlnet = pytest.importorskip("t2t_lite.extras.xlnet.xlnet_folder").xlnet()
    from t2t_lite.extras.sentence_transformers.sentence_folder import SentenceFolder

    folder = pathlib.Path(write_sentence_encoder(tmp_path / "theirs", pooling="cls"))
    with pytest.raises(UserError, match=r"1_Pooling/config\.json: pooling_mode=cls\. Expected mean or max: .*XLNet"):
        SentenceFolder().read(str(folder), xlnet, None, None)

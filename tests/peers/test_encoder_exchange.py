"""BERT and its relatives against Hugging Face's classes, there and back: ids, hidden states, logits, weights."""

import pathlib

import keras
import numpy as np
import pytest
import torch
import transformers

import t2t_lite
from t2t_lite.export import export_hugging_face, import_hugging_face
from tests.interchange.encoder_folders import LABELS, POSITIONS, write_encoder
from tests.text.published import texts

CLASSES = [
    "BertForMaskedLM", "BertForSequenceClassification", "RobertaForMaskedLM", "RobertaForSequenceClassification",
]  # fmt: skip
TEXTS = [text for text in texts(60) if 0 < len(text) <= 12][:20]


@pytest.fixture(scope="module", params=CLASSES)
def both(request, tmp_path_factory):
    """(our Predictor, their model, their tokenizer) of a folder that Hugging Face's package has written."""
    made = tmp_path_factory.mktemp(request.param)
    ours, _ = write_encoder(made / "ours", request.param)
    config = transformers.AutoConfig.from_pretrained(ours)
    torch.manual_seed(3)
    model = getattr(transformers, request.param)(config).eval()
    for name, weight in model.named_parameters():  # no weight is at a value that hides a mistake
        is_scale = "norm" in name.lower() and name.endswith("weight")
        torch.nn.init.normal_(weight, mean=float(is_scale), std=0.3)
    folder = str(made / "theirs")
    model.save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(ours, do_lower_case=True)
    tokenizer.save_pretrained(folder)
    assert not pathlib.Path(folder, "vocab.txt").exists()  # tokenizer.json holds it
    import_hugging_face(folder, str(made / "run"))
    return t2t_lite.load(str(made / "run")), model, tokenizer


def read(tokenizer, text):
    return tokenizer(text, return_tensors="pt", split_special_tokens=True)


def test_ids(both):
    predictor, _, tokenizer = both
    encoder = predictor.encoders["inputs"]
    first = encoder.published_ids[predictor.model.config["first_id"]]
    for text in texts(300):
        theirs = tokenizer(text, split_special_tokens=True).input_ids
        assert theirs == [first, *(encoder.published_ids[i] for i in [*encoder.encode(text), 1])], text


def test_hidden_states_and_logits(both):
    predictor, model, tokenizer = both
    encoder, config = predictor.encoders["inputs"], predictor.model.config
    assert len(TEXTS) == 20
    for text in TEXTS:
        batch = read(tokenizer, text)
        if batch["input_ids"].shape[1] > POSITIONS:
            continue
        with torch.inference_mode():
            found = model(**batch, output_hidden_states=True)
        inputs = np.array([[*encoder.encode(text), 1]])
        states = predictor.model.encode(inputs, return_hidden_states=True)["states"]
        for ours, theirs in zip(states, found.hidden_states, strict=True):
            np.testing.assert_allclose(ours, theirs.numpy(), atol=1e-4)
        if config["head"] == "class":
            row = predictor.predict([text])[0].probabilities
            assert list(row) == LABELS
            np.testing.assert_allclose(list(row.values()), torch.softmax(found.logits[0], -1).numpy(), atol=1e-5)
            continue
        logits = keras.ops.convert_to_numpy(predictor.model({"inputs": inputs, "targets": inputs}))
        published = encoder.published_ids
        np.testing.assert_allclose(logits, found.logits[0, 1:].numpy()[:, published], atol=1e-4)


def test_it_goes_back(both, tmp_path):
    """As a folder that their package loads, with the same weights, ids and settings."""
    predictor, model, tokenizer = both
    folder = export_hugging_face(predictor, str(tmp_path / "back"))
    again, loading = type(model).from_pretrained(folder, output_loading_info=True)
    assert not loading["missing_keys"] and not loading["unexpected_keys"] and not loading["mismatched_keys"], loading
    before, after = model.state_dict(), again.state_dict()
    unused = model.config.max_position_embeddings - POSITIONS  # RoBERTa's first positions, which no text uses
    for name in before:
        start = unused if "position_embeddings" in name and unused else None
        assert torch.equal(before[name][start:], after[name][start:]), name
    auto = (
        transformers.AutoModelForMaskedLM if predictor.labels == [] else transformers.AutoModelForSequenceClassification
    )
    assert type(auto.from_pretrained(folder)) is type(model)
    assert again.config.id2label == model.config.id2label
    reader = transformers.AutoTokenizer.from_pretrained(folder)
    assert (reader.cls_token_id, reader.pad_token_id) == (tokenizer.cls_token_id, tokenizer.pad_token_id)
    for text in [*texts(60), f"the {tokenizer.mask_token} in"]:
        assert reader(text).input_ids == tokenizer(text).input_ids, text

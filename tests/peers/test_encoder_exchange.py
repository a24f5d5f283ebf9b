"""BERT and its relatives against Hugging Face's classes, there and back: ids, hidden states, logits, weights."""

import os
import re
import unicodedata

import keras
import numpy as np
import pytest
import torch
import transformers

from t2t_lite.export import export_hugging_face
from t2t_lite.extras.hugging_face.published_vocabulary import published
from tests.extras.hugging_face.encoder_folders import CLASSES, FAIRSEQ, POSITIONS, write_encoder
from tests.peers.exchange import assert_same_states, assert_same_tokenizer, imported, loaded, random_peer
from tests.text.published_samples import texts

INPUTS = np.array([[7, 8, 9, 1, 10, 11, 1, 0, 0], [12, 13, 1, 14, 1, 0, 0, 0, 0], [20, 21, 22, 23, 24, 25, 26, 27, 1]])
SEGMENTS = np.array([[0, 0, 0, 0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1, 0, 0, 0, 0], [0] * 10])
TARGETS = np.array([[7, 0, 9, 0, 0, 3, 0, 0, 0], [0] * 9, [0, 0, 0, 0, 0, 0, 5, 0, 0]])


@pytest.fixture(scope="module", params=CLASSES)
def both(request, tmp_path_factory):
    """(our Predictor, their model, their tokenizer) of a folder that Hugging Face's package has written."""
    made = tmp_path_factory.mktemp(request.param)
    ours, _ = write_encoder(made / "ours", request.param)
    config = transformers.AutoConfig.from_pretrained(ours)
    model = random_peer(lambda: getattr(transformers, request.param)(config))
    kind = request.param.partition("For")[0]
    kind = kind if kind in ("Roberta", "Albert", "DistilBert", "XLMRoberta") else "Bert"
    tokenizer = getattr(transformers, f"{kind}Tokenizer").from_pretrained(ours)
    predictor = imported(made, model, tokenizer)
    files = os.listdir(made / "theirs")
    assert not {"vocab.txt", "vocab.json", "spiece.model", FAIRSEQ} & set(files)  # tokenizer.json holds it
    return predictor, model, tokenizer


def published_ids(predictor):
    return published(predictor.encoders["inputs"]).ids


def test_ids(both):
    predictor, _, tokenizer = both
    encoder, ids = predictor.encoders["inputs"], published_ids(predictor)
    first = ids[predictor.model.config["first_id"]]
    for text in (text for text in texts(300) if not _differs(text, tokenizer)):
        theirs = tokenizer(text, split_special_tokens=True).input_ids
        assert theirs == [first, *(ids[i] for i in [*encoder.encode(text), 1])], text


def _differs(text, tokenizer):
    """Returns whether Transformers 5 may read a text otherwise than a vocabulary's own code: see docs/encoders.md."""
    if isinstance(tokenizer, transformers.AlbertTokenizer):
        return re.search("[\v\x1c-\x1f]", text)
    if tokenizer.vocab_files_names["vocab_file"] == FAIRSEQ:
        return "<s>" in text or "\x85" in text or any(unicodedata.category(c)[0] == "M" for c in text)
    return False


def test_hidden_states_and_logits(both):
    """Of a batch of texts and pairs of unequal lengths; of their padding nothing is compared."""
    predictor, peer, _ = both
    model, published = predictor.model, np.array(published_ids(predictor))
    mask = np.pad(INPUTS != 0, ((0, 0), (1, 0)), constant_values=True)
    rows = published[np.pad(INPUTS, ((0, 0), (1, 0)), constant_values=model.config["first_id"])]
    batch = {"input_ids": torch.tensor(rows), "attention_mask": torch.tensor(mask.astype("int64"))}
    if model.config["num_segments"] > 1:
        batch["token_type_ids"] = torch.tensor(SEGMENTS)
    found = assert_same_states(model, peer, INPUTS, batch, mask, 1e-4)
    batch = {name: np.ones((3, 2)[:rank], "int32") for name, rank in model.features.items()}
    batch |= {"inputs": INPUTS} | ({"targets": TARGETS} if model.config["head"] in ("masked_lm", "tag") else {})
    outputs = model(batch)
    outputs = outputs if isinstance(outputs, dict) else {"targets": outputs}
    logits, visible = keras.ops.convert_to_numpy(outputs["targets"]), mask[:, 1:]
    if model.config["head"] == "masked_lm":
        expected = found.prediction_logits if "prediction_logits" in found else found.logits
        np.testing.assert_allclose(logits, expected.numpy()[:, 1:][TARGETS != 0][:, published], atol=1e-4)
    elif model.config["head"] == "span":
        expected = np.stack([found.start_logits.numpy(), found.end_logits.numpy()], 1)[:, :, 1:]
        np.testing.assert_allclose(logits[:, :, 1:] * visible[:, None], expected * visible[:, None], atol=1e-4)
    elif model.config["head"] == "tag":
        expected = found.logits.numpy()[:, 1:]
        np.testing.assert_allclose(logits[..., 1:] * visible[..., None], expected * visible[..., None], atol=1e-4)
    else:
        np.testing.assert_allclose(logits[:, -found.logits.shape[1] :], found.logits.numpy(), atol=1e-4)
    if "sentence" in outputs:
        expected = found["sop_logits" if "sop_logits" in found else "seq_relationship_logits"]
        np.testing.assert_allclose(outputs["sentence"][:, 1:], expected.numpy(), atol=1e-4)


def test_it_goes_back(both, tmp_path):
    """As a folder that their package loads, with the same weights, ids and settings."""
    predictor, model, tokenizer = both
    folder = export_hugging_face(predictor, str(tmp_path / "back"))
    again = loaded(type(model), folder)
    before, after = model.state_dict(), again.state_dict()
    unused = model.config.max_position_embeddings - POSITIONS  # RoBERTa's first positions, which no text uses
    for name in before:
        start = unused if "position_embeddings" in name and unused else None
        assert torch.equal(before[name][start:], after[name][start:]), name
    auto = getattr(transformers, f"AutoModelFor{type(model).__name__.partition('For')[2]}")
    assert type(auto.from_pretrained(folder)) is type(model)
    assert again.config.id2label == model.config.id2label
    kept = [text for text in texts(60) if not re.search("[\v\x1c-\x1f]", text)]
    assert_same_tokenizer(folder, tokenizer, fast_texts=kept)

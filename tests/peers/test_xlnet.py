"""XLNet against Hugging Face's classes, there and back: ids, states, logits of any factorization order, weights."""

import re

import keras
import numpy as np
import pytest
import torch
import transformers

from t2t_lite.export import export_hugging_face
from t2t_lite.extras.hugging_face.published_vocabulary import published
from tests.peers.exchange import assert_same_states, assert_same_tokenizer, imported, loaded, random_peer
from tests.text.published_samples import texts

folders = pytest.importorskip("tests.extras.xlnet.xlnet_folders")
INPUTS = np.array([[7, 8, 9, 1, 10, 11, 1, 0, 0], [12, 13, 1, 14, 1, 0, 0, 0, 0], [20, 21, 22, 23, 24, 25, 26, 27, 1]])
SEGMENTS = np.array([[0, 0, 0, 0, 1, 1, 1, 2, 0, 0], [0, 0, 0, 1, 1, 2, 0, 0, 0, 0], [0] * 9 + [2]])
ORDER = np.array([[0, 2, 3, 0, 0, 1, 0, 0, 0], [0] * 9, [1, 0, 0, 0, 4, 2, 5, 3, 0]])
LENGTHS = (INPUTS != 0).sum(1)
# Transformers 5 deletes these, where XLNet's code reads spaces. ("<s>" is its special token, but here four characters.)
DELETED = "[\v\x1c-\x1f]"


@pytest.fixture(scope="module", params=folders.CLASSES)
def both(request, tmp_path_factory):
    """(our Predictor, their model, their tokenizer) of a folder that Hugging Face's package has written."""
    made = tmp_path_factory.mktemp(request.param)
    ours, _ = folders.write_xlnet(made / "ours", request.param, clamp_len=4)
    config = transformers.AutoConfig.from_pretrained(ours)
    model = random_peer(lambda: getattr(transformers, request.param)(config))
    tokenizer = transformers.XLNetTokenizer.from_pretrained(ours)
    return imported(made, model, tokenizer), model, tokenizer


def peer_batch(predictor):
    """Returns what their model is called with: rows with the last position, their padding, their segments."""
    ids = np.array(published(predictor.encoders["inputs"]).ids)
    rows = np.pad(INPUTS, ((0, 0), (0, 1)))
    rows[np.arange(3), LENGTHS] = predictor.model.config["last_id"]
    mask = np.arange(10) <= LENGTHS[:, None]
    batch = {"input_ids": ids[rows], "attention_mask": mask.astype("int64"), "token_type_ids": SEGMENTS}
    return {name: torch.tensor(array) for name, array in batch.items()}, mask, ids


def test_ids(both):
    predictor, _, tokenizer = both
    encoder, ids = predictor.encoders["inputs"], published(predictor.encoders["inputs"]).ids
    last = ids[predictor.model.config["last_id"]]
    for text in (text for text in texts(400) if "<s>" not in text and not re.search(DELETED, text)):
        theirs = tokenizer(text, split_special_tokens=True).input_ids
        assert theirs == [*(ids[i] for i in [*encoder.encode(text), 1]), last], text


def test_hidden_states_and_logits(both):
    """Of a batch of texts and pairs of unequal lengths; of their padding nothing is compared."""
    predictor, peer, _ = both
    model = predictor.model
    batch, mask, ids = peer_batch(predictor)
    found = assert_same_states(model, peer, INPUTS, batch, mask, 1e-5)
    logits, visible = keras.ops.convert_to_numpy(model({"inputs": INPUTS})), (INPUTS != 0)[..., None]
    if model.config["head"] == "masked_lm":
        theirs = found.logits.numpy()[:, :-1][..., ids]
        np.testing.assert_allclose(logits * visible, theirs * visible, atol=2e-5)
    elif model.config["head"] == "tag":
        np.testing.assert_allclose(logits[..., 1:] * visible, found.logits.numpy()[:, :-1] * visible, atol=1e-5)
    elif model.config["head"] == "span":
        expected = np.stack([found.start_logits.numpy(), found.end_logits.numpy()], 1)[:, :, :-1]
        visible = visible[:, None, :, 0]
        np.testing.assert_allclose(logits[:, :, 1:] * visible, expected * visible, atol=1e-5)
    else:  # there a class is read from the last column, whatever the row's length is
        for row, length in enumerate(LENGTHS):
            alone = {name: tensor[row : row + 1, : length + 1] for name, tensor in batch.items()}
            with torch.inference_mode():
                np.testing.assert_allclose(logits[row, 1:], peer(**alone).logits.numpy()[0], atol=1e-5)


def test_logits_of_an_order(both):
    """Of the second stream, with the same masks given to both sides as each of them takes these."""
    predictor, peer, _ = both
    if predictor.model.config["head"] != "masked_lm":
        pytest.skip("of one class alone")
    batch, _, ids = peer_batch(predictor)
    order = np.pad(ORDER, ((0, 0), (0, 1)))
    hidden = (order[:, None] > 0) & (order[:, None] >= order[:, :, None])  # [row, who looks, who is seen]
    mapping = np.zeros((3, ORDER.astype(bool).sum(1).max(), 10), "float32")
    places = [np.flatnonzero(row) for row in order]
    for row, own in enumerate(places):
        mapping[row, np.arange(len(own)), own] = 1
    with torch.inference_mode():
        found = peer(
            **batch, perm_mask=torch.tensor(hidden.astype("float32")), target_mapping=torch.tensor(mapping)
        ).logits.numpy()
    expected = np.concatenate([found[row, : len(own)] for row, own in enumerate(places)])[:, ids]
    logits = predictor.model({"inputs": INPUTS, "targets": np.where(ORDER > 0, INPUTS, 0), "order": ORDER})
    np.testing.assert_allclose(logits, expected, atol=1e-4)


def test_it_goes_back(both, tmp_path):
    """As a folder that their package loads, with the same weights, ids and settings."""
    predictor, model, tokenizer = both
    folder = export_hugging_face(predictor, str(tmp_path / "back"))
    again = loaded(type(model), folder)
    before, after = model.state_dict(), again.state_dict()
    for name in before:
        if not name.endswith("mask_emb") or predictor.model.config["head"] == "masked_lm":
            assert torch.equal(before[name], after[name]), name
    auto = "AutoModelForCausalLM" if "LMHead" in type(model).__name__ else "AutoModel" + type(model).__name__[5:]
    assert type(getattr(transformers, auto.removesuffix("Simple")).from_pretrained(folder)) is type(model)
    assert again.config.id2label == model.config.id2label and again.config.clamp_len == 4
    kept = [text for text in texts(60) if not re.search(DELETED, text)]
    assert_same_tokenizer(folder, tokenizer, [*kept, "Caf\u00e9 ``the''"])

"""Tokens that were added to the vocabulary of a BERT or an ALBERT in Hugging Face's folders."""

import json
import pathlib

import numpy as np
import pytest

import t2t_lite
from t2t_lite.export import export_hugging_face, import_hugging_face
from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors
from tests.extras.hugging_face.encoder_folders import write_encoder
from tests.extras.hugging_face.test_encoders import config_of, tensors_of
from tests.text.published_samples import PIECES


def added_to(folder, tensors, *tokens):
    """Gives a BERT's folder more rows, for tokens that were added; returns the tensors and {id: facts}."""
    name = "bert.embeddings.word_embeddings.weight"
    count = len(PIECES)
    tensors = tensors | {name: np.concatenate([tensors[name], tensors[name][: len(tokens)] + 1])}
    write_tensors(f"{folder}/model.safetensors", tensors)
    path = pathlib.Path(folder, "config.json")
    path.write_text(json.dumps(config_of(folder) | {"vocab_size": count + len(tokens)}))
    return tensors, {str(count + n): {"content": token, "special": "[" in token} for n, token in enumerate(tokens)}


@pytest.mark.slow
@pytest.mark.few("tokenizer_config.json")
@pytest.mark.parametrize("file", ["tokenizer_config.json", "tokenizer.json", "added_tokens.json"])
def test_tokens_that_were_added(tmp_path, file):
    """Each is one id with its own embedding, wherever it stands, as in Transformers; in and out again."""
    folder, tensors = write_encoder(tmp_path / "theirs", "BertForSequenceClassification")
    tensors, added = added_to(folder, tensors, "COVID", "[E1]")
    listed = [{"id": int(i), **facts} for i, facts in added.items()]
    model = {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {piece: i for i, piece in enumerate(PIECES)}}
    words = {"normalizer": {"type": "BertNormalizer", "lowercase": True}, "pre_tokenizer": {"type": "BertPreTokenizer"}}
    content = {
        "tokenizer_config.json": {"added_tokens_decoder": added},
        "tokenizer.json": {"model": model, "added_tokens": listed, **words},
        "added_tokens.json": {facts["content"]: int(i) for i, facts in added.items()},
    }[file]
    pathlib.Path(folder, file).write_text(json.dumps(content))
    if file == "added_tokens.json":
        special = {"additional_special_tokens": ["[E1]"], "pad_token": "[PAD]"}
        pathlib.Path(folder, "special_tokens_map.json").write_text(json.dumps(special))
    for number, source in enumerate((folder, str(tmp_path / "0"))):
        import_hugging_face(source, str(tmp_path / f"run{number}"))
        predictor = t2t_lite.load(str(tmp_path / f"run{number}"))
        encoder = predictor.encoders["inputs"]
        ids = encoder.encode("the [E1]cafe Covids")
        assert encoder.pieces(ids) == ["the", "[E1]", "cafe", "COVID", "s"]
        assert encoder.tf_encode(["the [E1]cafe Covids"]).to_list() == [ids]
        rows = predictor.model.embedding.embeddings.numpy()
        expected = tensors["bert.embeddings.word_embeddings.weight"]
        np.testing.assert_array_equal(rows[ids], expected[[encoder.published_ids[i] for i in ids]])
        export_hugging_face(predictor, str(tmp_path / str(number)))
    for name, array in tensors_of(tmp_path / "1").items():
        np.testing.assert_array_equal(array, tensors[name], err_msg=name)
    assert config_of(tmp_path / "1", "tokenizer_config.json")["added_tokens_decoder"].keys() == added.keys()

"""The folder that `export_hugging_face` writes, loaded offline as its README says."""

import numpy as np
import pytest
import torch
from keras import ops

from t2t_lite import registry
from t2t_lite.export import export_hugging_face
from tests.export.models import translator_of
from tests.extras.hugging_face.folders import config_of, two_vocabularies
from tests.peers.conftest import HOSTILE
from tests.peers.searches import EXTRA, generate, load
from tests.peers.weights import marian_batch


@pytest.fixture(scope="module", params=["trained", *["pre_norm"] * ("blenderbot" in registry.list_families())])
def translator(request):
    """One that becomes a Marian, and one that becomes a Blenderbot."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def exported(translator, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("hf") / "model")
    assert export_hugging_face(translator, path) == path
    return load(path)


@pytest.fixture(scope="module")
def ours(translator, texts):
    return translator.translate(texts, alpha=0.0, ends="top", extra_length=EXTRA)


def test_the_tokenizer_gives_our_ids(translator, exported, texts):
    _, tokenizer = exported
    for text in texts:
        assert tokenizer(text).input_ids == [*translator.encoders["inputs"].encode(text), 1], text
        assert tokenizer(text_target=text).input_ids == [*translator.encoders["targets"].encode(text), 1], text
    assert any("<0xF0>" in translator.encoders["inputs"].pieces(tokenizer(text).input_ids) for text in HOSTILE)


def test_ids_become_our_text(translator, exported, texts):
    """Also those of characters that are spelled by bytes."""
    _, tokenizer = exported
    for text in texts:
        ids = translator.encoders["targets"].encode(text)
        assert tokenizer.decode([0, *ids, 1, 0], skip_special_tokens=True) == translator.encoders["targets"].decode(ids)


def test_the_same_ids_and_text(exported, texts, ours):
    model, tokenizer = exported
    found = generate(model, tokenizer, texts, num_beams=4, length_penalty=0.0)
    same = [ids == translation.hypotheses[0].ids for ids, translation in zip(found, ours, strict=True)]
    assert sum(same) >= 0.995 * len(texts)
    decoded = tokenizer.batch_decode([[*ids, 1] for ids in found], skip_special_tokens=True)
    for text, translation, is_same in zip(decoded, ours, same, strict=True):
        assert text == translation.text or not is_same


def test_transformers_defaults_do_not_interfere(exported, texts):
    """Blenderbot's own have forced ends and forbidden repetitions, as a chat needs them."""
    model, tokenizer = exported
    search = model.generation_config
    assert search.forced_eos_token_id is None and search.bos_token_id is None
    assert not search.encoder_no_repeat_ngram_size and not search.no_repeat_ngram_size
    batch = tokenizer(texts[:8], return_tensors="pt", padding=True)
    with torch.inference_mode():
        found = tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True)
    assert len(set(found)) > 4 and all(text == text.strip() and "</s>" not in text for text in found)


def test_the_folder_says_how_to_search(translator, exported, texts):
    model, tokenizer = exported
    assert (model.generation_config.num_beams, model.generation_config.length_penalty) == (4, 0.6)
    found = generate(model, tokenizer, texts[:60])
    ours = translator.translate(texts[:60], alpha=0.6, length_penalty="power", ends="top", extra_length=EXTRA)
    assert sum(a == b.hypotheses[0].ids for a, b in zip(found, ours, strict=True)) >= 59


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory):
    return two_vocabularies(tmp_path_factory)


@pytest.mark.parametrize(
    "options",
    [
        {"position_layout": "interleaved"},
        {"position_layout": "marian", "activation": "swish", "attention_bias": True, "softmax_bias": True},
        {"target_vocab_size": 310, "activation": "gelu", "num_encoder_layers": 1, "num_decoder_layers": 2},
        {"target_vocab_size": 310, "tie_embeddings": False, "softmax_bias": True},
        {"tie_embeddings": False},
        {"norm": "pre", "norm_epsilon": 1e-6, "position_layout": "tensor2tensor"},
        {"norm": "pre", "norm_epsilon": 0.3, "attention_bias": True, "softmax_bias": True, "activation": "swish"},
        {
            "norm": "pre",
            "norm_epsilon": 1e-6,
            "position": "learned",
            "max_position": 40,
            "target_space_embedding": True,
        },
        {"norm": "pre", "position": "none", "num_encoder_layers": 1, "num_decoder_layers": 2, "activation": "gelu"},
    ],
    ids=str,
)
def test_logits(options, vocabularies, tmp_path):
    side = "targets" if "target_vocab_size" in options else "inputs"
    encoders = {"inputs": vocabularies["inputs"], "targets": vocabularies[side]}
    translator = translator_of(encoders, **options)
    model, tokenizer = load(export_hugging_face(translator, str(tmp_path / "hf")))
    rng = np.random.default_rng(1)
    inputs, targets = rng.integers(3, 310, (3, 9)).astype("int32"), rng.integers(3, 310, (3, 7)).astype("int32")
    inputs[1, 5:] = targets[2, 4:] = 0
    with torch.inference_mode():
        theirs = model(**marian_batch(inputs, targets)).logits.numpy()
    mine = ops.convert_to_numpy(translator.model({"inputs": inputs, "targets": targets}, training=False))
    np.testing.assert_allclose(theirs[..., 1:], mine[..., 1:], atol=1e-5)  # all but the padding's
    if options.get("tie_embeddings", True):
        assert (theirs[..., 0] < -90).all()
    else:
        np.testing.assert_allclose(theirs[..., 0], mine[..., 0], atol=1e-5)
    assert tokenizer("the red house").input_ids == [*encoders["inputs"].encode("the red house"), 1]
    ids = encoders["targets"].encode("ein grün Baum")
    assert tokenizer.decode(ids) == "ein grün Baum" and tokenizer(text_target="ein grün Baum").input_ids == [*ids, 1]


def test_what_transformers_itself_would_save(exported, tmp_path):
    """Its own reader and writer agree with what we have written."""
    model, _ = exported
    model.save_pretrained(tmp_path)
    again, loading = type(model).from_pretrained(tmp_path, output_loading_info=True)
    assert not loading["missing_keys"]
    for name, tensor in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name
    assert config_of(tmp_path)["activation_function"] == "relu"

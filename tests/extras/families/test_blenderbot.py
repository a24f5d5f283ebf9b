"""Pre-norm models as Blenderbots: what is written computes the same by Blenderbot's own equations, and comes back."""

import pathlib

import numpy as np
import pytest
from keras import ops

from t2t_lite import registry
from t2t_lite.decoding.translator import Translator
from t2t_lite.export import formats
from t2t_lite.extras.hugging_face.hugging_face import export_hugging_face, import_hugging_face
from t2t_lite.extras.hugging_face.translation_models import divided
from tests.export.models import translator_of
from tests.extras.hugging_face.folders import (
    changed,
    config_of,
    json_with,
    model_of,
    refuses_import,
    spoil,
    tensors_of,
    tensors_with,
    two_vocabularies,
)

HEADS = 2
SETS = ["transformer_base", "transformer_big", "transformer_tiny", "transformer_quickstart"]
TENSOR2TENSOR = {"norm": "pre", "norm_epsilon": 1e-6, "position_layout": "tensor2tensor"}
OPTIONS = {
    "tensor2tensor": TENSOR2TENSOR,
    "the_papers_positions": {"norm": "pre", "norm_epsilon": 1e-6},
    "its_own_epsilon": {"norm": "pre", "position_layout": "marian"},
    "an_epsilon_that_counts": {"norm": "pre", "norm_epsilon": 0.3, "softmax_bias": True},
    "learned": {"norm": "pre", "norm_epsilon": 0.3, "position": "learned", "max_position": 40},
    "no_positions": {"norm": "pre", "norm_epsilon": 1e-6, "position": "none", "attention_bias": True},
    "target_space": {**TENSOR2TENSOR, "target_space_embedding": True, "num_encoder_layers": 1, "num_decoder_layers": 2},
}


@pytest.fixture(scope="module")
def encoders(tmp_path_factory):
    """One SentencePiece vocabulary for both sides."""
    return dict.fromkeys(("inputs", "targets"), two_vocabularies(tmp_path_factory)["inputs"])


@pytest.fixture(scope="module", params=OPTIONS)
def exported(request, encoders, tmp_path_factory):
    """(Translator, the folder it was exported to, its options)."""
    options = OPTIONS[request.param]
    translator = translator_of(encoders, **options)
    return translator, export_hugging_face(translator, str(tmp_path_factory.mktemp("hf") / "model")), options


class Blenderbot:
    """The logits of transformers' BlenderbotForConditionalGeneration in NumPy, float64, of one pair of sentences."""

    def __init__(self, folder):
        self.weights = {name: tensor.astype("float64") for name, tensor in tensors_of(folder).items()}
        self.config = config_of(folder)

    def logits(self, inputs, decoder_inputs):
        memory = self.stack("encoder", inputs, None)
        hidden = self.stack("decoder", decoder_inputs, memory)
        return hidden @ self.weights["model.shared.weight"].T + self.weights["final_logits_bias"]

    def stack(self, side, ids, memory):
        x = self.weights["model.shared.weight"][ids] * self.config["d_model"] ** 0.5
        x = x + self.weights[f"model.{side}.embed_positions.weight"][: len(ids)]
        for number in range(self.config[f"{side}_layers"]):
            prefix = f"model.{side}.layers.{number}"
            normed = self.norm(x, f"{prefix}.self_attn_layer_norm")
            x = x + self.attention(f"{prefix}.self_attn", normed, normed, is_causal=memory is not None)
            if memory is not None:
                normed = self.norm(x, f"{prefix}.encoder_attn_layer_norm")
                x = x + self.attention(f"{prefix}.encoder_attn", normed, memory)
            inner = np.maximum(self.dense(f"{prefix}.fc1", self.norm(x, f"{prefix}.final_layer_norm")), 0)
            x = x + self.dense(f"{prefix}.fc2", inner)
        return self.norm(x, f"model.{side}.layer_norm")

    def norm(self, x, name):
        centred = x - x.mean(-1, keepdims=True)
        variance = np.square(centred).mean(-1, keepdims=True)
        return centred / np.sqrt(variance + 1e-5) * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def dense(self, name, x):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def attention(self, name, x, memory, is_causal=False):
        def heads(projected):
            return projected.reshape(len(projected), HEADS, -1).swapaxes(0, 1)

        query, key = heads(self.dense(f"{name}.q_proj", x)), heads(self.dense(f"{name}.k_proj", memory))
        scores = query @ key.swapaxes(1, 2) / query.shape[-1] ** 0.5
        if is_causal:
            scores = np.where(np.tril(np.ones(scores.shape[1:])) > 0, scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        mixed = shares @ heads(self.dense(f"{name}.v_proj", memory))
        return self.dense(f"{name}.out_proj", mixed.swapaxes(0, 1).reshape(len(x), -1))


@pytest.mark.few("tensor2tensor", "an_epsilon_that_counts", "learned")
def test_it_computes_what_our_model_does(exported):
    """By Blenderbot's equations, whose epsilon is 1e-5; without the trick, 0.3 would be far off."""
    translator, folder, _ = exported
    rng = np.random.default_rng(1)
    inputs, targets = (rng.integers(3, 320, size).astype("int32") for size in (9, 7))
    ours = translator.model({"inputs": inputs[None], "targets": targets[None]}, training=False)
    theirs = Blenderbot(folder).logits(inputs, np.r_[0, targets[:-1]])
    np.testing.assert_allclose(theirs[:, 1:], ops.convert_to_numpy(ours)[0, :, 1:], atol=2e-5)
    assert (theirs[:, 0] < -50).all(), "no search chooses the padding"


@pytest.mark.few("an_epsilon_that_counts")
@pytest.mark.slow
def test_out_and_in_and_out_again_is_the_same_to_the_bit(exported, tmp_path):
    translator, folder, options = exported
    import_hugging_face(folder, str(tmp_path / "run"), languages=("en", "de"))
    again = Translator.load(str(tmp_path / "run"))
    second = export_hugging_face(again, str(tmp_path / "hf"))
    names = (
        "model.safetensors", "config.json", "generation_config.json", "vocab.json", "source.spm", "target.spm"
    )  # fmt: skip
    for name in names:
        assert pathlib.Path(second, name).read_bytes() == pathlib.Path(folder, name).read_bytes(), name
    found = again.model.config
    if options.get("position", "sinusoidal") == "sinusoidal" and "target_space_embedding" not in options:
        for name in ("position", "position_layout", "norm_epsilon"):
            assert found[name] == translator.model.config[name]
    else:  # as the tables are there, for the epsilon that is there
        assert (found["position"], found["norm_epsilon"]) == ("learned", 1e-5)
    ids = np.array([[5, 9, 300, 17, 1]], "int32")
    logits = [
        ops.convert_to_numpy(t.model({"inputs": ids, "targets": ids}, training=False)) for t in (translator, again)
    ]
    np.testing.assert_allclose(logits[1][..., 1:], logits[0][..., 1:], atol=2e-5)


def test_there_is_room_for_the_longest_input_only_as_far_as_the_table_goes(exported):
    translator, folder, _ = exported
    rows = translator.model.config["max_position"] if translator.model.config["position"] == "learned" else 1024
    config, search, tokenizer = (
        config_of(folder, f"{name}.json") for name in ("config", "generation_config", "tokenizer_config")
    )
    assert config["max_position_embeddings"] == rows == len(tensors_of(folder)["model.decoder.embed_positions.weight"])
    assert tokenizer["model_max_length"] <= rows and search["max_length"] == min(512, rows)


@pytest.mark.parametrize("hparams_set", SETS)
def test_the_usual_sets_go_everywhere(hparams_set):
    model = model_of(registry.hparams(hparams_set))
    assert all(not formats.obstacles(name, model) for name in formats.names())
    assert "yes, Blenderbot" in formats.destinations_text(model)


def test_weights_are_divided_so_that_they_come_back():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=100_000).astype("float32")
    for scale in (np.float32(10**0.5), np.float32(1 / 3), np.float32(0.1), np.float32(1)):
        stored = weights * scale
        assert (divided(stored, scale) * scale == stored).all()
        np.testing.assert_allclose(divided(stored, scale), weights, rtol=2e-7)


@pytest.fixture(scope="module")
def of_tensor2tensor(encoders, tmp_path_factory):
    """The folder of an exported model of tensor2tensor's settings; read only."""
    return export_hugging_face(translator_of(encoders, **TENSOR2TENSOR), str(tmp_path_factory.mktemp("made") / "hf"))


@pytest.mark.parametrize(
    "name, change, words",
    [
        ("config.json", json_with(tie_word_embeddings=False), "tie_word_embeddings=False"),
        ("config.json", json_with(share_encoder_decoder_embeddings=False), "share_encoder_decoder_embeddings=False"),
        ("config.json", json_with(max_position_embeddings=-1), "max_position_embeddings=-1"),
        ("config.json", json_with(max_position_embeddings=1000), "embed_positions.weight is float32 1024 x 8"),
        ("config.json", json_with(model_type="marian"), "layer_norm…does not belong"),
        ("model.safetensors", tensors_with(lambda t: t.pop("model.encoder.layer_norm.bias")), "layer_norm.bias is mis"),
        ("model.safetensors", tensors_with(lambda t: spoil(t, "model.decoder.embed_positions.weight", np.nan)),
         "embed_positions.weight contains NaN"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)  # fmt: skip
def test_what_is_refused_on_the_way_in(of_tensor2tensor, tmp_path, name, change, words):
    folder = changed(of_tensor2tensor, tmp_path / "changed", name, change)
    refuses_import(folder, tmp_path, words, languages=("en", "de"))


@pytest.mark.slow
def test_fine_tuned_elsewhere_its_positions_stay_as_they_were_learned(of_tensor2tensor, tmp_path):
    changes = tensors_with(lambda t: spoil(t, "model.decoder.embed_positions.weight", 0.7))
    tuned = changed(of_tensor2tensor, tmp_path / "tuned", "model.safetensors", changes)
    import_hugging_face(tuned, str(tmp_path / "run"), languages=("en", "de"))
    model = Translator.load(str(tmp_path / "run")).model
    table = tensors_of(tuned)["model.decoder.embed_positions.weight"]
    np.testing.assert_array_equal(ops.convert_to_numpy(model.decoder_position.table), table)

"""The language model: what it reads and in which order, long prompts, sizes of published models."""

# Nearest tests of: t2t_lite/models/transformer_parts.py

import math

import keras
import numpy as np
import pytest
from keras import ops

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.models import TransformerLM
from t2t_lite.models.shapes_only import shapes_only
from t2t_lite.settings.search_options import SearchOptions
from tests.models import every_model
from tests.models.model_rows import padded

VOCAB = 11
SMALL = {"vocab_size": VOCAB, "hidden_size": 16, "filter_size": 32, "num_heads": 2, "num_layers": 1}
ROWS = {name: row for name, row in every_model.ROWS.items() if row.name == "transformer_lm"}
PROMPTS = [[5, 3, 7, 4, 9, 2, 8, 6, 10], [], [4], [6, 6, 3, 10, 2]]
TARGETS = [[4, 5, 6, 7, 1], [5, 1], [9, 8, 7, 1], [4, 4, 4, 4, 1]]


def logits_of(model, targets, inputs=None):
    features = {"targets": targets} if inputs is None else {"targets": targets, "inputs": inputs}
    return ops.convert_to_numpy(model(features, training=False))


@pytest.fixture(scope="module", params=ROWS.values(), ids=ROWS)
def model(request):
    keras.utils.set_random_seed(3)
    made = request.param.unbuilt()
    made.build()
    for weight in made.trainable_weights:
        weight.assign(2 * weight)  # far from uniform
    return made


@pytest.mark.few("transformer_lm", "transformer_lm_relative", "transformer_lm_rotary", "transformer_lm_conditional")
def test_inputs_and_targets_are_read_as_one_row_without_a_gap(model):
    batch = logits_of(model, padded(TARGETS), padded(PROMPTS))
    for i, (prompt, target) in enumerate(zip(PROMPTS, TARGETS, strict=True)):
        if model.config["begin"] == "zero" or not prompt:
            row = logits_of(model, np.array([prompt + target], "int32"))[0, len(prompt) :]
        else:  # nothing is read before a prompt
            x = model.target_embedding(np.array([prompt + target[:-1]], "int32"))
            x = x if model.config["unconditional"] else x + model.target_embedding(np.array([prompt[:1]], "int32"))
            x = x if model.decoder_position is None else model.decoder_position(x)
            x = model.decoder(x) if model.decoder_norm is None else model.decoder_norm(model.decoder(x))
            row = ops.convert_to_numpy(model.logits(x))[0, len(prompt) - 1 :]
        np.testing.assert_allclose(batch[i, : len(target)], row, atol=1e-4)


@pytest.mark.few("transformer_lm", "transformer_lm_own")
def test_decoding_reads_the_prompts_last_id_at_its_first_step_whatever_it_is_given(model):
    full = logits_of(model, padded(TARGETS), padded(PROMPTS))
    cache = model.init_cache(model.encode(padded(PROMPTS)), 5)
    ids = np.full(len(PROMPTS), 10, "int32")
    for position in range(2):
        logits, cache = model.decode_step(ops.convert_to_tensor(ids), ops.convert_to_tensor(position, "int32"), cache)
        np.testing.assert_allclose(ops.convert_to_numpy(logits), full[:, position], atol=1e-4)
        ids = padded(TARGETS)[:, position]


def searcher_of(model, **options):
    searching = pytest.importorskip("t2t_lite.decoding.search.searcher", reason="it needs TensorFlow")
    return searching.Searcher(model, **options)


FULL = [{"beam_size": 3}, {"sampling": True, "n_best": 2, "seed": 3}]


@pytest.mark.slow
@pytest.mark.parametrize("options", FULL, ids=["beam", "samples"])
def test_a_prompt_that_has_reached_the_end_of_the_table_does_not_disturb_shorter_ones(options):
    check_full_prompts(options, compile=False)


@pytest.mark.long
@pytest.mark.parametrize("options", FULL, ids=["beam", "samples"])
def test_nor_in_a_compiled_search(options):
    check_full_prompts(options, compile=True)


def check_full_prompts(options, compile):
    model = TransformerLM(**SMALL, position="learned", max_position=12, begin="end")
    searcher = searcher_of(model, longest_output=lambda length, options: 12 - length, end_id=None)
    options = SearchOptions(compile=compile, **options)
    for prompt, results in zip(PROMPTS, searcher.search(PROMPTS, options), strict=True):
        [alone] = searcher.search([prompt], options)
        assert [len(result.ids) for result in results] == [12 - len(prompt)] * len(alone)
        assert [result.ids for result in results] == [result.ids for result in alone]
        assert [result.score for result in results] == pytest.approx([result.score for result in alone], abs=1e-4)


def test_each_feature_may_have_the_smallest_dtype_that_holds_its_ids():
    model = TransformerLM(400, hidden_size=8, filter_size=16, num_heads=2, num_layers=1)
    targets = np.array([[5, 6]])
    for others in ({"inputs": np.array([[300, 301]])}, {"before": np.array([300])}):
        expected = ops.convert_to_numpy(model({"targets": targets, **others}))
        found = ops.convert_to_numpy(model({"targets": targets.astype("uint8"), **others}))
        np.testing.assert_array_equal(found, expected)


def test_what_is_read_first():
    for begin, position in (("zero", "sinusoidal"), ("end", "none"), ("end", "sinusoidal")):
        model = TransformerLM(**SMALL, begin=begin, position=position)
        first = model.target_embedding(np.array([[0 if begin == "zero" else 1]], "int32"))
        first = first if position == "none" else model.decoder_position(first)
        expected = ops.convert_to_numpy(model.logits(model.decoder(first)))[:, 0]
        np.testing.assert_allclose(logits_of(model, np.array([[5, 6]], "int32"))[:, 0], expected, atol=1e-5)


@pytest.mark.parametrize("begin", ["zero", "end"])
def test_an_id_before_the_targets_is_read_in_the_place_of_the_beginning(begin):
    """In the first row, whose text goes on; the second one begins here."""
    model, targets = TransformerLM(**SMALL, begin=begin), np.array([[5, 6, 1], [7, 4, 3]], "int32")
    found = ops.convert_to_numpy(model({"targets": targets, "before": np.array([9, 0], "int32")}))
    np.testing.assert_allclose(found[1:], logits_of(model, targets[1:]), atol=1e-5)
    row = model.decoder_position(model.target_embedding(np.array([[9, 5, 6]])))
    expected = ops.convert_to_numpy(model.logits(model.decoder(row)))
    np.testing.assert_allclose(found[:1], expected, atol=1e-5)


def test_unused_ids_have_no_probability():
    model = TransformerLM(**SMALL, unused_ids=[0, 2])
    probabilities = ops.convert_to_numpy(ops.softmax(model({"targets": padded(TARGETS)})))
    assert (probabilities[..., [0, 2]] == 0).all()
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-5)


def test_attention_weights_are_of_targets_or_of_the_whole_row(model):
    weights = model.attention_weights({"targets": padded(TARGETS)})
    assert [tuple(layer.shape) for layer in weights["decoder"]] == [(4, 2, 5, 5)] * model.config["num_layers"]
    whole = model.attention_weights({"targets": padded(TARGETS), "inputs": padded(PROMPTS)})
    read = 9 + 5 - (model.config["begin"] == "end")
    assert [tuple(layer.shape) for layer in whole["decoder"]] == [(4, 2, read, read)] * model.config["num_layers"]


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        ({"begin": "start"}, "`begin` must be one of zero, end: received begin='start'"),
        ({"unused_ids": [11]}, "`unused_ids` must be ids from 0 to 10: received unused_ids=\\[11\\]"),
        ({"unused_ids": "x"}, "`unused_ids` must be ids from 0 to 10"),
        ({"target_vocab_size": 12}, "`target_vocab_size` must be None or `vocab_size`"),
        ({"num_layers": 0}, "`num_layers` must be an integer of at least 1: received num_layers=0"),
        ({"dropout": 1}, r"`dropout` must be a rate in \[0, 1\): received dropout=1"),
        ({"position": "sines"}, "`position` must be one of sinusoidal, learned, rotary, none: received position='sin"),
        ({"no_such": 1}, "no_such"),
        ({"position": "rotary"}, "`begin` must be end if position=rotary"),
    ],
    ids=str,
)
def test_bad_arguments_are_named(argument, text):
    with pytest.raises(ValueError, match=text):
        TransformerLM(**{**SMALL, **argument})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "vocab_size", "parameters"),
    [  # as Hugging Face's GPT2LMHeadModel and OpenAIGPTLMHeadModel count them, in models without rows for padding
        ("gpt2_small", 50_257, 124_439_808),
        ("gpt2_medium", 50_257, 354_823_168),
        ("gpt2_large", 50_257, 774_030_080),
        ("gpt2_xl", 50_257, 1_557_611_200),
        ("gpt", 40_478, 116_534_784),
    ],
)
def test_published_models_have_their_sizes(name, vocab_size, parameters):
    model = shapes_only(TransformerLM, registry.hparams(name), vocab_size)
    assert sum(math.prod(w.shape) for w in model.trainable_weights) == parameters


@pytest.mark.parametrize("initializer, gain", [("normal", 0.02), ("uniform_unit_scaling", 1.0)])
def test_what_is_added_to_the_residual_stream_can_begin_smaller(initializer, gain):
    """By the square root of 2 N (Radford et al. 2019, section 2.3): of 8 layers by 4."""
    sizes = {"hidden_size": 64, "filter_size": 64, "num_heads": 2, "num_layers": 8}
    model = TransformerLM(20, **sizes, initializer=initializer, initializer_gain=gain, scale_residuals=True)
    model.build()
    for layer in model.decoder.layers:
        attention, network = layer.self_attention.layer, layer.feed_forward.layer
        of_inner = np.std(network.inner.kernel)
        for dense, factor in (
            (attention.query_projection, 1), (attention.value_projection, 1), (attention.output_projection, 0.25),
            (network.outer, 0.25),
        ):  # fmt: skip
            assert np.std(dense.kernel) == pytest.approx(factor * of_inner, rel=0.1), dense.name
    assert registry.hparams("gpt2_medium").scale_residuals and "scale_residuals" not in registry.hparams("gpt").values()


@pytest.mark.parametrize("name", ["attention_lm_small", "transformer_tall_pretrain_lm", "transformer_lm_tiny"])
def test_a_set_makes_the_model_that_it_says(name):
    hparams = registry.hparams(name)
    model = shapes_only(TransformerLM, hparams, 100)
    assert len(model.decoder.layers) == hparams.num_hidden_layers
    assert model.config["tie_embeddings"] == (name != "attention_lm_small")
    assert (model.config["norm"], model.config["begin"]) == ("post" if "attention" in name else "pre", "zero")


def test_a_problem_with_two_vocabularies_is_refused():
    with pytest.raises(UserError, match="one vocabulary: received target_vocab_size=12"):
        TransformerLM.from_hparams(registry.hparams("transformer_lm_tiny"), 11, 12)

"""The Transformers of the sets have the paper's sizes and parameters, their learning rates tensor2tensor's values."""

# Nearest tests of: hparams/transformer.py

import math

import pytest

from t2t_lite import registry
from t2t_lite.hparams import transformer as sets
from t2t_lite.models import Transformer
from t2t_lite.models.arguments import constructor_arguments
from t2t_lite.models.shapes_only import shapes_only
from t2t_lite.training.optimization.schedules import ProductSchedule

ALL = [name for name in vars(sets) if name.startswith("transformer_")]

# The paper's table 3: layers, d_model, d_ff, heads, d_k, d_v, dropout, label smoothing.
BASE = (6, 512, 2048, 8, 64, 64, 0.1, 0.1)
TABLE_3 = {
    "transformer_base_v1": BASE,
    "transformer_h1": (6, 512, 2048, 1, 512, 512, 0.1, 0.1),
    "transformer_h4": (6, 512, 2048, 4, 128, 128, 0.1, 0.1),
    "transformer_h16": (6, 512, 2048, 16, 32, 32, 0.1, 0.1),
    "transformer_h32": (6, 512, 2048, 32, 16, 16, 0.1, 0.1),
    "transformer_k128": (6, 512, 2048, 8, 16, 64, 0.1, 0.1),
    "transformer_k256": (6, 512, 2048, 8, 32, 64, 0.1, 0.1),
    "transformer_l2": (2, *BASE[1:]),
    "transformer_l4": (4, *BASE[1:]),
    "transformer_l8": (8, *BASE[1:]),
    "transformer_hs256": (6, 256, 2048, 8, 32, 32, 0.1, 0.1),
    "transformer_hs1024": (6, 1024, 2048, 8, 128, 128, 0.1, 0.1),
    "transformer_ff1024": (6, 512, 1024, *BASE[3:]),
    "transformer_ff4096": (6, 512, 4096, *BASE[3:]),
    "transformer_dr0": (*BASE[:6], 0.0, 0.1),
    "transformer_dr2": (*BASE[:6], 0.2, 0.1),
    "transformer_ls0": (*BASE[:6], 0.1, 0.0),
    "transformer_ls2": (*BASE[:6], 0.1, 0.2),
    "transformer_learned_positions": BASE,
    "transformer_big_v1": (6, 1024, 4096, 16, 64, 64, 0.3, 0.1),
    "transformer_big_enfr_v1": (6, 1024, 4096, 16, 64, 64, 0.1, 0.1),
    "transformer_parsing_v1": (4, 1024, 2048, 8, 128, 128, 0.2, 0.1),
}

# The paper's table 3, last column: millions of parameters; rows that leave it empty have base's 65.
PAPER_MILLIONS = dict.fromkeys(sets.TABLE_3, 65) | {
    "transformer_k128": 58, "transformer_k256": 60, "transformer_l2": 36, "transformer_l4": 50, "transformer_l8": 80,
    "transformer_hs256": 28, "transformer_hs1024": 168, "transformer_ff1024": 53, "transformer_ff4096": 90,
}  # fmt: skip
PAPER_VOCABULARY = 40_800  # what makes base 65 million; the paper says "about 37000"


_BUILT = {}


def model(name):
    """The model of a set, or of another one whose constructor gets the same; rates of dropout may differ."""
    hparams = registry.hparams(name)
    arguments = constructor_arguments(hparams, Transformer)
    key = repr(sorted((name, value) for name, value in arguments.items() if "dropout" not in name))
    if key not in _BUILT:
        _BUILT[key] = shapes_only(Transformer, hparams, 37_000)
    return _BUILT[key]


def parameters(name, vocab_size=37_000):
    """Of a set that ties its embeddings, where another size is asked for."""
    here = sum(math.prod(w.shape) for w in model(name).trainable_weights)
    return here + (vocab_size - 37_000) * registry.hparams(name).hidden_size


@pytest.mark.few(
    "transformer_base_v1",
    "transformer_h4",
    "transformer_k128",
    "transformer_l2",
    "transformer_hs256",
    "transformer_ff1024",
)
@pytest.mark.slow
@pytest.mark.parametrize("name", TABLE_3)
def test_the_papers_sets_are_rows_of_its_table(name):
    hparams, built = registry.hparams(name), model(name)
    attentions = [layer.self_attention.layer for layer in built.encoder.layers + built.decoder.layers]
    attentions += [layer.cross_attention.layer for layer in built.decoder.layers]
    [head] = {(a.query_size, a.value_size) for a in attentions}
    [layers] = {len(built.encoder.layers), len(built.decoder.layers)}
    sizes = (hparams.hidden_size, hparams.filter_size, hparams.num_heads)
    rates = (hparams.layer_prepostprocess_dropout, hparams.label_smoothing)
    assert (layers, *sizes, *head, *rates) == TABLE_3[name]


@pytest.mark.parametrize("name", ALL)
def test_a_set_is_a_function_that_makes_a_fresh_one_which_builds_and_has_a_learning_rate(name):
    make = getattr(sets, name)
    make().hidden_size = 1
    assert make() == registry.hparams(name)
    assert parameters(name) > 0
    assert float(ProductSchedule(make(), 100_000)(0)) > 0


def test_base_and_big_have_the_papers_sizes():
    assert parameters("transformer_base_v1") == 63_045_632
    assert parameters("transformer_big_v1") == 214_171_648
    assert parameters("transformer_base_v1", PAPER_VOCABULARY) == pytest.approx(65e6, abs=0.5e6)
    assert parameters("transformer_big_v1") == pytest.approx(213e6, abs=1.5e6)


@pytest.mark.parametrize("name", [name for name in PAPER_MILLIONS if "positions" not in name])  # embeddings apart
def test_variants_differ_from_base_as_in_table_3(name):
    difference = parameters(name, PAPER_VOCABULARY) - parameters("transformer_base_v1", PAPER_VOCABULARY)
    assert difference == pytest.approx((PAPER_MILLIONS[name] - 65) * 1e6, abs=1e6)


def test_learned_positions_are_two_tables():
    tables = 2 * 1024 * 512
    assert parameters("transformer_learned_positions") - parameters("transformer_base_v1") == tables


STEPS = (1, 1_000, 4_000, 8_000, 16_000, 100_000, 300_000)


@pytest.mark.parametrize(
    ("name", "rates"),
    {  # as tensor2tensor gives them; of the last two, equation 3 of the paper
        "transformer_base": (1.24e-7, 1.24e-4, 4.94e-4, 9.88e-4, 6.99e-4, 2.80e-4, 1.61e-4),
        "transformer_big": (8.73e-8, 8.73e-5, 3.49e-4, 6.99e-4, 4.94e-4, 1.98e-4, 1.14e-4),
        "transformer_base_single_gpu": (4.94e-8, 4.94e-5, 1.98e-4, 3.95e-4, 7.91e-4, 3.16e-4, 1.83e-4),
        "transformer_big_single_gpu": (3.09e-8, 3.09e-5, 1.24e-4, 2.47e-4, 4.94e-4, 1.98e-4, 1.14e-4),
        "transformer_tiny": (2.47e-7, 2.47e-4, 9.88e-4, 1.98e-3, 1.40e-3, 5.59e-4, 3.23e-4),
        "transformer_base_v1": (1.75e-7, 1.75e-4, 6.99e-4, 4.94e-4, 3.49e-4, 1.40e-4, 8.07e-5),
        "transformer_big_v1": (1.24e-7, 1.24e-4, 4.94e-4, 3.49e-4, 2.47e-4, 9.88e-5, 5.71e-5),
    }.items(),
)
def test_learning_rates(name, rates):
    schedule = ProductSchedule(registry.hparams(name), 300_000)
    assert [float(schedule(step - 1)) for step in STEPS] == pytest.approx(rates, rel=5e-3)  # three digits are given

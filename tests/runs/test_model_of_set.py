"""Which model a set chooses where none is stated."""

# Nearest tests of: t2t_lite/runs/directory.py, t2t_lite/runs/run_config.py

import pytest

from t2t_lite import registry
from t2t_lite.errors import UnknownName, UserError
from t2t_lite.runs.directory import check_names, fill_in_settings, model_name, run_hparams
from t2t_lite.runs.run_config import check_set, model_of_set
from t2t_lite.settings.config import HParams


def there(cases):
    """Returns those of cases whose names are registered; extras have some."""
    known = {*registry.list_hparams(), *registry.list_models(), *registry.list_problems(), None}
    return [case for case in cases if known.issuperset(case)]


@pytest.mark.parametrize(
    ("hparams_set", "model"),
    there(
        {
            "transformer_memory_tiny": "transformer_memory",
            "transformer_xl_enwik8_base": "transformer_memory",
            "adaptive_universal_transformer_tiny": "universal_transformer",
            "xlnet_tiny": "xlnet",
            "albert_base": "transformer_encoder",
            "gpt2_small": "transformer_lm",  # the memory's model derives from it, and has its settings, too
            "transformer_moe_tiny": "transformer_moe",  # whose settings any model has that has experts
            "transformer_tiny": None,
            "transformer_lm_tiny": "transformer_lm",
            "music_transformer_small": "transformer_lm",
            "bert_tiny": "transformer_encoder",
        }.items()
    ),
)
def test_a_set_knows_its_model(hparams_set, model):
    assert model_of_set(hparams_set) == model
    assert model_name(hparams_set=hparams_set) == (model or "transformer")


def test_transformer_means_the_decoder_alone_on_a_language_model_problem(caplog):
    caplog.set_level("INFO", "t2t_lite")
    name = "languagemodel_own"
    assert model_name("transformer", name) == model_name(None, name) == "transformer_lm"
    assert caplog.messages == [f"{name} has the task language_model, so the model is transformer_lm"] * 2
    caplog.clear()
    assert model_name("transformer_lm", name) == "transformer_lm"
    assert model_name(None, "algorithmic_reverse_decimal40") == model_name() == "transformer"
    assert not caplog.messages
    check_names({"problem": name, "model": "transformer_lm"}, model="transformer")


def test_every_set_suits_the_model_that_it_chooses():
    for name in registry.list_hparams():
        model = model_name(hparams_set=name)
        check_set(name, registry.hparams(name), registry.model(model))
        assert run_hparams({}, name) == run_hparams({}, name, model=model)


def test_a_stated_model_is_the_model():
    assert model_name("transformer", None, "bert_tiny") == "transformer"
    assert model_name("transformer_lm", "languagemodel_own", "bert_tiny") == "transformer_lm"


@pytest.mark.parametrize(
    ("problem", "hparams_set", "model"),
    there(
        [
            ("languagemodel_own", "transformer_tiny", "transformer_lm"),
            ("classify_own", "bert_tiny", "transformer_encoder"),
            ("permutation_lm_own", "bert_tiny", "xlnet"),  # it knows all that this set has
            ("translate_own", "transformer_lm_tiny", "transformer"),
            ("classify_own", "xlnet_tiny", "xlnet"),
            ("permutation_lm_own", "albert_base", "transformer_encoder"),
            ("translate_own", "transformer_moe_tiny", "transformer_moe"),
            ("languagemodel_own", "transformer_memory_tiny", "transformer_memory"),
        ]
    ),
)
def test_the_task_chooses_among_those_that_the_set_suits(problem, hparams_set, model):
    assert model_name(None, problem, hparams_set) == model


@pytest.fixture
def own_set():
    """Function of a set and the arguments of `register_hparams`, which registers it as own_set."""

    def register(hparams, **arguments):
        registry.register_hparams("own_set", **arguments)(lambda: hparams)

    yield register
    registry.Registries.hparams.remove("own_set")


def test_a_users_set_knows_its_model_by_what_it_was_made_of_or_by_its_name(own_set):
    own_set(registry.hparams("albert_base").override_from_dict({"hidden_size": 64}))
    assert model_of_set("own_set") == "transformer_encoder"
    registry.Registries.hparams.remove("own_set")
    own_set(HParams(), model="transformer_lm")
    assert model_of_set("own_set") == "transformer_lm"


def test_what_no_model_declares_chooses_none(own_set):
    hparams = HParams()
    hparams.add_hparam("mine", 3)
    own_set(hparams)
    assert model_of_set("own_set") is None and run_hparams({}, "own_set").mine == 3
    hparams.add_hparam("num_hidden_groups", 1)
    assert model_of_set("own_set") == "transformer_encoder"
    hparams.add_hparam("unused_ids", "0")  # of another model
    assert model_of_set("own_set") is None
    assert model_name(None, "translate_own", "own_set") == "transformer"
    with pytest.raises(UserError, match=r"^--hparams_set=own_set: this set is for --model="):
        run_hparams({}, "own_set")


def test_a_new_run_is_of_the_sets_model_and_an_unknown_set_is_told(tmp_path):
    given = str(tmp_path), "languagemodel_own", None, None
    _, model, hparams, _ = fill_in_settings(*given, "transformer_lm_tiny")
    assert model == "transformer_lm" and hparams.begin == "zero"
    with pytest.raises(UnknownName, match="transformer_lm_tiny"):
        fill_in_settings(*given, "transformer_lm_tin")

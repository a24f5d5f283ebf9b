"""Names -> problems, models, hyperparameter sets."""
# Nearest tests of: t2t_lite/cli/registers.py, t2t_lite/process/registering_modules.py

import concurrent.futures
import re

import pytest

from t2t_lite import models, registry
from t2t_lite.cli import registers
from t2t_lite.errors import UnknownName, UserError
from t2t_lite.registry import Registry
from t2t_lite.settings.config import HParams
from tests.processes import python


class Fake:
    def __init__(self, was_reversed=False, was_copy=False):
        self.was_reversed, self.was_copy = was_reversed, was_copy


@pytest.fixture
def fake_problem():
    """A problem registered as `my_fake` for one test."""
    registry.register_problem("my_fake")(Fake)
    yield "my_fake"
    registry.Registries.problems.remove("my_fake")


@pytest.mark.parametrize(
    ("name", "expected"),
    [  # tensor2tensor's rule: t2t_interface "b.2"
        ("TranslateEndeWmt32k", "translate_ende_wmt32k"),
        ("LSTMSeq2seq", "lstm_seq2seq"),
        ("TransformerAE", "transformer_ae"),
        ("SentimentIMDB", "sentiment_imdb"),
        ("TranslateEnde2018Wmt32k", "translate_ende2018_wmt32k"),
    ],
)
def test_default_names_are_tensor2tensors(name, expected):
    assert registry.default_name(type(name, (), {})) == expected


def test_decorators_work_bare_empty_and_with_a_name():
    entries = Registry("some")

    @entries.register
    def bare_set():
        return HParams()

    @entries.register()
    def empty_set():
        return HParams()

    @entries.register("own_name")
    def some_set():
        return HParams()

    assert entries.names() == ["bare_set", "empty_set", "own_name"]
    assert entries.get("own_name") is some_set
    assert entries.names("own") == ["own_name"]


def test_a_name_is_registered_once(fake_problem):
    registry.register_problem(fake_problem)(Fake)  # the same again: notebooks do this
    with pytest.raises(KeyError, match=r"already registered in .*test_registry\.py"):
        registry.register_problem(fake_problem)(type("Other", (Fake,), {}))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: registry.register_problem("mine_rev")(Fake), "reserved"),
        (lambda: registry.register_problem("mine_copy")(Fake), "reserved"),
        (lambda: registry.register_hparams("seven")(7), "must be a class or a function, got int"),
        (lambda: registry.problem("my_fake_rev_rev"), "given twice"),
    ],
)
def test_names_that_cannot_be(fake_problem, call, words):
    with pytest.raises(UserError, match=words):
        call()


@pytest.mark.parametrize(
    ("suffix", "was_reversed", "was_copy"),
    [
        ("", False, False),
        ("_rev", True, False),
        ("_copy", False, True),
        ("_copy_rev", True, True),
        ("_rev_copy", True, True),
    ],
)
def test_suffixes_of_problems(fake_problem, suffix, was_reversed, was_copy):
    problem = registry.problem(fake_problem + suffix)
    assert (problem.was_reversed, problem.was_copy) == (was_reversed, was_copy)
    assert problem.name == fake_problem


@pytest.mark.parametrize(
    ("look_up", "name", "near"),
    [
        (registry.problem, "translate_ende_wmt32", "translate_ende_wmt32k"),
        (registry.problem, "translate_ende_wmt32_rev", "translate_ende_wmt32k"),
        (registry.model, "tranformer", "transformer"),
        (registry.hparams, "transformer_bas", "transformer_base"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(look_up, name, near):
    with pytest.raises(KeyError) as caught:
        look_up(name)
    message = str(caught.value)
    assert isinstance(caught.value, UserError)
    assert near in message.split("Nearest:")[1]
    assert "t2t-trainer --registry_help" in message
    assert "\n" not in message


def test_hparams_are_fresh_each_time():
    registry.hparams("transformer_base").hidden_size = 8
    assert registry.hparams("transformer_base").hidden_size == 512


@pytest.mark.parametrize("returned", [None, {"hidden_size": 8}, "transformer_base"])
def test_a_set_that_returns_no_hparams_is_named(returned):
    registry.register_hparams("forgetful")(lambda: returned)
    try:
        with pytest.raises(UserError, match=r"hparams set forgetful: .*test_registry returned .*`return hparams`"):
            registry.hparams("forgetful")
    finally:
        registry.Registries.hparams.remove("forgetful")


@pytest.mark.parametrize("change", [lambda h: h.parse("num_heads=2"), lambda h: h.override_from_dict({"num_heads": 2})])
def test_a_set_that_ignores_a_changed_copy_is_named(change):
    """In tensor2tensor, `hparams.parse(…)` changes the object itself, so ported sets ignore what it returns."""
    shared = HParams()

    def forgets():
        hparams = HParams()
        change(hparams)
        return hparams

    sets = {"forgets": forgets, "keeps": lambda: change(HParams()), "of_shared": lambda: change(shared)}
    for name, function in {**sets, "shared": lambda: shared}.items():
        registry.register_hparams(name)(function)
    try:
        with pytest.raises(UserError, match=r"^hparams set forgets: parse\(\) .* copy.*test_registry.*hparams ="):
            registry.hparams("forgets")
        assert registry.hparams("keeps").num_heads == registry.hparams("of_shared").num_heads == 2
        assert registry.hparams("shared") is shared
    finally:
        for name in (*sets, "shared"):
            registry.Registries.hparams.remove(name)


def test_a_mistake_in_a_set_names_the_set():
    registry.register_hparams("mistaken")(lambda: setattr(HParams(), "learning_rate", 0.05))
    try:
        with pytest.raises(UserError, match=r"^hparams set mistaken: hparam 'learning_rate' is not declared. .*legacy"):
            registry.hparams("mistaken")
    finally:
        registry.Registries.hparams.remove("mistaken")


def test_where_hparams_are_expected_a_name_will_do():
    hparams = registry.hparams("transformer_tiny")
    assert registry.hparams(hparams) is hparams
    model, same = (models.Transformer.from_hparams(each, 100) for each in ("transformer_tiny", hparams))
    assert model.config == same.config
    for nothing in (None, 5, ["transformer_tiny"], {}):
        with pytest.raises(UserError, match=r"^hparams: expected HParams, such as registry.hparams\(.*, found "):
            models.Transformer.from_hparams(nothing, 100)
    with pytest.raises(UnknownName, match=r"transformer_tinny.* Nearest: transformer_tiny"):
        models.Transformer.from_hparams("transformer_tinny", 100)


def test_help_string_lists_every_name_under_its_first_word():
    lines = registry.help_string().splitlines()
    assert [line for line in lines if line and line[0] != " "] == [
        "Models:",
        "HParams:",
        "RangedHParams:",
        "Problems:",
        "Metrics:",
    ]
    for kind, names in {
        "Models": registry.list_models(),
        "HParams": registry.list_hparams(),
        "Problems": registry.list_problems(),
    }.items():
        assert names
        section = lines[lines.index(f"{kind}:") + 1 :]
        section = section[: [*section, ""].index("")]
        assert [line.split("* ")[1] for line in section if "* " in line] == names


@pytest.mark.parametrize("hook", ["packed_length", "decode_hooks", "hparams", "example_reading_spec", "preprocess"])
def test_what_a_ported_problem_says_in_vain_is_told(hook, caplog):
    mixin = type("Mixin", (), {hook: property(lambda self: 256)})
    ported = registry.register_problem("my_fake_too")(type("Ported", (mixin, Fake), {}))
    registry.register_problem("my_fake_three")(type("PortedToo", (ported,), {}))
    for name in ("my_fake_too", "my_fake_three"):
        registry.Registries.problems.remove(name)
    (record,) = caplog.records
    assert f"my_fake_too: defines {hook}, which only tensor2tensor uses" in record.getMessage()


def test_a_thread_waits_for_names_that_another_one_imports(tmp_path, monkeypatch):
    names = Registry("slow names", "register")
    text = "import time\nfrom t2t_lite import registry\ntime.sleep(0.2)\nregistry.slow_names.register('slow')(dict)\n"
    (tmp_path / "slow_names.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "slow_names", names, raising=False)
    monkeypatch.setattr(registers, "modules_of", lambda *_: ["slow_names"])
    with concurrent.futures.ThreadPoolExecutor() as pool:
        assert list(pool.map(names.get, ["slow", "slow"])) == [dict, dict]


def test_problems_are_looked_up_without_tensorflow():
    script = "import sys; from t2t_lite import registry; registry.list_problems(); print('tensorflow' in sys.modules)"
    done = python(script, check=True)
    assert done.stdout == "False\n"


def test_models_are_known_before_they_are_imported():
    script = "import sys; from t2t_lite import registry; print(*registry.list_models()); print('keras' in sys.modules)"
    done = python(script, check=True)
    modules = {name: registry.model(name).__module__ for name in registry.list_models()}
    own = [name for name, module in modules.items() if re.fullmatch(r"t2t_lite\.(models|extras\.\w+)\.\w+", module)]
    assert registry.list_built_in_models() == own
    assert done.stdout == f"{' '.join(own)}\nFalse\n"
    with pytest.raises(UnknownName, match=r"'transformer' is already registered in .*transformer\.py"):
        registry.register_model("transformer")(dict)


def test_a_name_that_was_removed_is_free_be_it_built_in_or_not_imported_yet(monkeypatch):
    names = Registry("models")
    monkeypatch.setattr(names, "_loaded", True)
    names._modules["built_in"] = ["t2t_lite.models.transformer"]  # as before the first look-up
    names.remove("built_in")
    assert "built_in" not in names and names.names() == []
    assert names.register("built_in")(Registry) is Registry is names.get("built_in")


@pytest.mark.whole
def test_names_are_read_from_the_sources_of_modules():
    """So `openai-gpt` may be in any module, and is known before one of them is imported."""
    found = registry.Registries.families.built_in()
    assert found["gpt2"] == ["t2t_lite.extras.hugging_face.gpt2"]
    assert registry.Registries.models.built_in()["transformer"] == ["t2t_lite.models.transformer"]
    assert {*found} == {*registry.list_families()}
    assert all(len(modules) == 1 for modules in found.values())

"""Which models a format can hold, and what is said of one that it cannot."""
# Nearest tests of: t2t_lite/export/by_task.py

import types

import pytest

from t2t_lite import registry
from t2t_lite.data.problem import Text2TextProblem
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.export import by_task, formats
from t2t_lite.export.encoder_signatures import EncoderSignatures
from t2t_lite.export.generation_signatures import GenerationSignatures
from t2t_lite.export.signatures import TextSignatures
from t2t_lite.models import Transformer, TransformerLM
from t2t_lite.registry import Registries, Registry
from tests.export.models import SMALL, random_transformer


def supported(config):
    return {**dict.fromkeys(SMALL), "num_heads": (4, 8), "position": ("sinusoidal", "none")}


@pytest.fixture(autouse=True)
def toolkit(monkeypatch):
    """A format of Transformers with four or eight heads."""
    monkeypatch.setattr(Registries, "export_formats", Registry("export formats"))
    Registries.export_formats.register("toolkit")(lambda: formats.Format("A Toolkit", Transformer, supported))


@pytest.mark.parametrize(
    ("options", "reasons"),
    [
        ({"num_heads": 4}, []),
        ({"num_heads": 8, "hidden_size": 16, "dropout": 0.3}, []),
        ({}, ["num_heads=2, expected 4 or 8"]),
        (
            {"position": "learned", "max_position": 9, "num_heads": 4},
            ["position=learned (hparam pos), expected sinusoidal or none", "max_position=9, expected 1024"],
        ),
        (
            {"position": "none", "activation": "gelu", "num_heads": 4},
            ["activation=gelu (hparam ffn_activation), expected relu"],
        ),
    ],
)
def test_all_reasons_are_given(options, reasons):
    model = random_transformer(258, **options)
    assert formats.names() == ["saved_model", "toolkit"]
    assert formats.obstacles("toolkit", model) == reasons and formats.obstacles("saved_model", model) == []
    answer = f"no: {'; '.join(reasons)}" if reasons else "yes"
    assert formats.destinations_text(model).splitlines()[1:] == ["  saved_model  yes", f"  toolkit      {answer}"]
    if not reasons:
        formats.check_model("toolkit", model)
        return
    with pytest.raises(UserError) as error:
        formats.check_model("toolkit", model)
    start = f"A Toolkit cannot hold this model: {'; '.join(reasons)}. A SavedModel (--format=saved_model)"
    assert str(error.value).startswith(start)


def test_models_of_another_class():
    model = TransformerLM(9, hidden_size=8, filter_size=12, num_heads=2, num_layers=1)
    (reason,) = formats.obstacles("toolkit", model)
    assert reason == "it is of class TransformerLM. Expected model=transformer"
    assert formats.class_obstacles(model, {TransformerLM}) == []
    ensemble = type("Ensemble", (), {})()
    (reason,) = formats.class_obstacles(ensemble, {TransformerLM, Transformer})
    assert reason.startswith("it is an ensemble. Expected one model=transformer or transformer_lm (t2t-avg-all ")


class Plain(Text2TextProblem):
    name = "plain"


class Spelled(Plain):
    name = "spelled"

    def output_text(self, text):
        return text.upper()


class Tidied(Spelled):
    name = "tidied"

    def input_text(self, text):
        return text.strip()


@pytest.mark.parametrize(
    ("problem", "words"),
    [(Plain, None), (Spelled, "spelled: output_text"), (Tidied, "tidied: input_text and output_text"), (None, None)],
)
def test_texts_that_a_problem_changes_are_warned_of(caplog, problem, words):
    answerer = types.SimpleNamespace(
        model=random_transformer(258, num_heads=4), encoders=None, problem=problem and problem()
    )
    formats.check("toolkit", answerer)
    assert len(caplog.messages) == bool(words)
    assert all(words in text and "A Toolkit" in text for text in caplog.messages)


def test_signatures_of_each_task():
    names = ("sequence_to_sequence", "language_model", "regression")
    tasks = dict(zip(names, (TextSignatures, GenerationSignatures, EncoderSignatures), strict=True))
    assert {name: by_task.signatures_of(registry.task(name)) for name in tasks} == tasks
    own = types.SimpleNamespace(substitution=types.SimpleNamespace(signatures=int))
    assert by_task.signatures_of(registry.task("regression"), own) is int
    assert by_task.signatures_of(registry.task("regression"), Plain()) is EncoderSignatures


def test_a_task_that_answers_in_python_alone_is_refused_before_a_model_is_loaded(monkeypatch):
    """Any other is loaded in the dtype that is asked for, however slow it is on this machine."""
    runs = {name: types.SimpleNamespace(problem=registry.problem(name), checkpoint="here") for name in
            ("translate_own", "regress_own")}  # fmt: skip
    monkeypatch.setattr(by_task, "find_run", runs.get)
    monkeypatch.setattr(Translator, "load", lambda *given, **options: (given, options))
    assert by_task.load(["translate_own"], "d", "bfloat16") == (
        (["translate_own"], "d", "bfloat16"), {"check_device": False}
    )  # fmt: skip
    monkeypatch.setattr(registry.task("regression"), "answered_by", "Oracle")
    with pytest.raises(UserError, match=r"^here: .*regress_own.*regression.*classification, language_model"):
        by_task.load(["regress_own"])


def test_files_that_extras_add(monkeypatch):
    monkeypatch.setattr(Registries, "export_files", Registry("export files"))
    Registries.export_files.register("CARD.md")(lambda answerer, **facts: f"{answerer} ü {facts['license']}")
    assert by_task.added_files("x", license="MIT", command="") == {"CARD.md": "x ü MIT".encode()}

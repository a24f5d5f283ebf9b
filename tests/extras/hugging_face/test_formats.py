"""Where a model can go: one table of rules, which the exporters obey."""

import pytest

from t2t_lite import registry
from t2t_lite.export import formats
from tests.export.models import random_transformer, translator_of
from tests.extras.hugging_face.folders import model_of


@pytest.mark.parametrize("hparams_set", ["transformer_base_v1", "transformer_big_v1"])
def test_the_papers_sets_go_everywhere(hparams_set):
    model = model_of(registry.hparams(hparams_set))
    assert all(not formats.obstacles(name, model) for name in formats.names())
    assert "yes, Marian" in formats.destinations_text(model)


def test_all_reasons_are_given():
    hparams = registry.hparams("transformer_base_v1").parse("self_attention_type=restricted,ffn_activation=swiglu")
    hparams = hparams.parse("attention_neighborhood=9")
    lines = {line.split()[0]: line for line in formats.destinations_text(model_of(hparams)).splitlines()[1:]}
    assert list(lines) == list(formats.names())
    assert lines["saved_model"].endswith("yes")
    assert "self_attention=restricted(neighborhood=9) (hparam self_attention_type)" in lines["hugging_face"]
    assert "activation=swiglu (hparam ffn_activation)" in lines["hugging_face"]


def test_vocabularies_that_are_known_count(encoders):
    encoders = dict.fromkeys(("inputs", "targets"), encoders["inputs"])
    model = random_transformer(258, norm="post", norm_epsilon=1e-5)
    assert "with a SentencePiece vocabulary" in formats.destinations_text(model)
    assert "ByteTextEncoder" in formats.destinations_text(model, translator_of().encoders)
    assert "SentencePiece" not in formats.destinations_text(model, encoders)


def test_a_model_that_no_family_matches_is_refused_by_its_options(monkeypatch):
    """As pre-norm ones are where no extra has a family of them."""
    monkeypatch.setattr(registry, "list_families", lambda: ["gpt2", "marian"])
    reasons = formats.obstacles("hugging_face", model_of(registry.hparams("transformer_base")))
    assert any(reason.startswith("norm=pre") and reason.endswith("expected post") for reason in reasons)

"""Where pre-norm models can go: to a Blenderbot."""

import pytest

from t2t_lite import registry
from t2t_lite.export import formats
from tests.extras.hugging_face.folders import model_of


@pytest.mark.parametrize(
    "hparams_set", ["transformer_base", "transformer_big", "transformer_tiny", "transformer_quickstart"]
)
def test_the_usual_sets_go_everywhere(hparams_set):
    model = model_of(registry.hparams(hparams_set))
    assert all(not formats.obstacles(name, model) for name in formats.names())
    assert "yes, Blenderbot" in formats.destinations_text(model)

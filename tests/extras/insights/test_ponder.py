"""The page's data about the steps of a Universal Transformer, which other models do not have."""

import types

import numpy as np
import pytest

from t2t_lite.decoding.translator import Translator
from t2t_lite.extras.insights.models import CALLS
from t2t_lite.extras.insights.text_answers import Translations
from tests.extras.universal.pondering_run import make_pondering_run


@pytest.mark.slow
def test_steps_of_every_piece(tmp_path, eager):
    translator = Translator.load(str(make_pondering_run(tmp_path)))
    answers, texts = Translations(translator), {"source": "the red.", "output": "a tree."}
    encoders = {"source": translator.encoders["inputs"], "output": translator.encoders["targets"]}
    ids = {name: encoders[name].encode(text) for name, text in texts.items()}
    steps = translator.model.ponder_steps(
        {"inputs": np.array([[*ids["source"], 1]]), "targets": np.array([[*ids["output"], 1]])}
    )
    expected = {
        name: [
            {"token": token, "steps": n}
            for token, n in zip(encoders[name].pieces(ids[name]), np.asarray(found)[0, :-1].tolist(), strict=True)
        ]
        for name, found in zip(texts, (steps["inputs"], steps["targets"]), strict=True)
    }
    assert answers.ponder({"text": texts["source"], "target": texts["output"]}) == expected
    assert answers.ponder({"text": texts["source"], "target": ids["output"]}).keys() == expected.keys()
    plain = Translations(types.SimpleNamespace(model=object(), problem=None))
    assert "ponder" in answers.calls and "ponder" in CALLS and "ponder" not in plain.calls

"""What is refused, and that nothing is written then: without ctranslate2. The export itself: tests/peers."""

import os
import sys

import pytest

from t2t_lite.decoding.search.adapters import Ensemble
from t2t_lite.decoding.translator import Translator
from t2t_lite.errors import UserError
from t2t_lite.export import export_ctranslate2
from t2t_lite.extras.hugging_face.marian_vocabulary import unique_pieces
from t2t_lite.models import Transformer
from t2t_lite.text.vocabulary import ByteTextEncoder
from tests.export.models import translator_of
from tests.layers.kinds import RELATIVE, RELATIVE_VALUES, RESTRICTED


@pytest.mark.parametrize(
    "option, expected",
    [
        ({"self_attention": RESTRICTED}, r"self_attention=restricted\(neighborhood=3\) \(hparam self_attention_type\)"),
        ({"self_attention": [RESTRICTED, "dot_product"]}, "self_attention=restricted.*/dot_product"),
        ({"value_dim": 6, "key_dim": 4}, "value_dim=6"),
        ({"self_attention": RELATIVE, "position": "none"}, "add_relative_to_values=False"),
        ({"self_attention": RELATIVE_VALUES, "position": "sinusoidal"}, "position=sinusoidal"),
    ],
    ids=str,
)
def test_an_option_that_it_does_not_have_is_refused_by_name(option, expected, tmp_path):
    with pytest.raises(UserError, match=expected):
        export_ctranslate2(translator_of(**option), str(tmp_path / "ct2"))
    assert os.listdir(tmp_path) == []


def test_other_models_are_refused(tmp_path):
    class Changed(Transformer):
        pass

    one = translator_of()
    for model, words in ((Ensemble([one.model, one.model]), "ensemble"), (Changed(**one.model.config), "Changed")):
        with pytest.raises(UserError, match=words):
            export_ctranslate2(Translator(model, one.encoders, one.hparams), str(tmp_path / "ct2"))
    assert os.listdir(tmp_path) == []


def test_mistakes(tmp_path, monkeypatch):
    translator = translator_of()
    with pytest.raises(UserError, match="--quantization=int4: expected one of int8"):
        export_ctranslate2(translator, str(tmp_path / "ct2"), "int4")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("")
    with pytest.raises(UserError, match="full: holds files already"):
        export_ctranslate2(translator, str(tmp_path / "full"))
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(UserError, match=r"pip install 't2t_lite\[ctranslate2\]'"):
        export_ctranslate2(translator, str(tmp_path / "ct2"))
    assert os.listdir(tmp_path) == ["full"]


def test_pieces_are_all_different():
    class Odd(ByteTextEncoder):
        def pieces(self, ids):
            return ["</s>" if i == 7 else piece for i, piece in zip(ids, super().pieces(ids), strict=True)]

    pieces = unique_pieces(Odd())
    assert len(set(pieces)) == len(pieces) == 258
    assert pieces[:2] == ["<pad>", "<</s>>"] and pieces[7] == "</s>"

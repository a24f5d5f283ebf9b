"""The clean-up of ALBERT's and XLNet's tokenizers, as a part of a SentencePiece model's rules."""

import pytest
import sentencepiece

from t2t_lite.errors import UserError
from t2t_lite.extras.families.unigram_vocabulary import adopted
from t2t_lite.text.sentencepiece_model import ModelProto
from tests.text.published_samples import sentencepiece_model

ALBERT = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]", "[MASK]"]}
XLNET = {"control_symbols": ["<cls>", "<sep>", "<pad>", "<mask>"], "unk_id": 0, "bos_id": 1, "eos_id": 2}
RULES = {"½": "1/2", "e\u0301": "é", "j\u030c": "ǰ"}  # of the published model itself


@pytest.fixture(scope="module", params=[ALBERT, XLNET], ids=["albert", "xlnet"])
def model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("rules") / "rules.tsv"
    codes = [[" ".join(f"{ord(c):X}" for c in side) for side in rule] for rule in RULES.items()]
    path.write_text("".join(f"{text}\t{became}\n" for text, became in codes))
    return sentencepiece_model(["the café in a house"] * 9, 30, normalization_rule_tsv=str(path), **request.param)


# By Transformers 4.57: the model's rules after `preprocess_text` of its tokenizers that are not fast.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("lower", "keep_accents", "expected"),
    [
        (False, True, {"``Cafe\u0301''": '"Café"', "É½": "É1/2", "J\u030cj\u030c": "J\u030cǰ"}),
        (True, True, {"``CAFE\u0301''": '"café"', "É½": "é1/2", "J\u030cj\u030c": "ǰǰ", "İ": "i\u0307"}),
        (False, False, {"``Cafe\u0301''": '"Cafe"', "É½": "E1⁄2", "J\u030cj\u030c": "Jj"}),
        (True, False, {"``CAFE\u0301''": '"cafe"', "É½": "e1⁄2", "J\u030cj\u030c": "jj"}),
    ],
)
def test_a_text_is_cleaned_up_as_the_options_say(model, lower, keep_accents, expected):
    ours, _ = adopted(model, "spiece.model", lower, keep_accents)
    read = sentencepiece.SentencePieceProcessor(model_proto=ours).normalize
    always = {"'''": "\"'", "`'": "`'", "a|b": "a|b", " a \u3000\u00a0\t b ": "a▁b"}
    for text, result in (expected | always).items():
        assert read(text).lstrip("▁") == result, text


@pytest.mark.slow
def test_a_model_that_does_the_clean_up_itself_stays_as_it_is(model):
    ours, _ = adopted(model, "spiece.model", True, False)
    again, _ = adopted(ours, "spiece.model", False, True)
    rules = [ModelProto.FromString(each).normalizer_spec.precompiled_charsmap for each in (ours, again)]
    assert rules[0] == rules[1]


def test_damaged_rules_are_named(model):
    proto = ModelProto.FromString(model)
    proto.normalizer_spec.precompiled_charsmap = b"\x08\0\0\0" + b"\xff" * 9
    with pytest.raises(UserError, match=r"spiece\.model"):
        adopted(proto.SerializeToString(), "spiece.model", False, True)

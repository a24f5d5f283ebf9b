"""`translate_own` with protected texts: symbols in the vocabulary and in both sides of the records."""

# Nearest tests of: extras/protect/protect_settings.py

import json
import logging
import re

import pytest

from t2t_lite import registry
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.errors import UserError
from t2t_lite.extras.protect.protected_texts import ProtectedTexts
from t2t_lite.text import subwords
from t2t_lite.text.vocabulary import SentencePieceEncoder
from tests.data import corpus
from tests.data.stored import decoded
from tests.extras import own_problems
from tests.problems import own

PAIRS = [
    (f"see {{a{at}}} at https://x.org/{at} , friend {at}", f"bei https://x.org/{at} steht {{a{at}}} , Freund {at}")
    for at in range(120)
]
ODD = [("{a} is http://x.en", "{a} ist http://x.de"), ("⟦url1⟧ is", "⟦ ist")]
KINDS = ["placeholders", "urls"]


@pytest.fixture
def train(tmp_path):
    return corpus.write_corpus(tmp_path, "train", [*PAIRS, *ODD]).split(",")


def test_records_have_symbols_for_what_both_sides_have(tmp_path, train, caplog):
    asked = {"dev_files": train, "vocab_size": 330, "user_defined_symbols": ["<2de>"]}
    with caplog.at_level(logging.INFO):
        problem = own.generated("translate_own", tmp_path / "d", train_files=train, protect=KINDS, **asked)
    for split in ("train", "dev"):
        assert len(re.findall(f"translate_own: {split}: 241 protected texts .*; 3 were kept", caplog.text)) == 1
    fresh = registry.problem("translate_own")
    encoder = fresh.get_feature_encoders(str(tmp_path / "d"))["inputs"]
    assert fresh.substitution.kinds == ("urls", "placeholders")
    assert encoder.pieces(range(3, 24)) == ["<2de>", *fresh.substitution.symbols]
    dev = decoded(fresh, tmp_path / "d", DatasetSplit.EVAL)
    assert {
        ("see ⟦placeholder1⟧ at ⟦url1⟧ , friend 0", "bei ⟦url1⟧ steht ⟦placeholder1⟧ , Freund 0"),
        ("⟦placeholder1⟧ is http://x.en", "⟦placeholder1⟧ ist http://x.de"),
        ("⟦ url1⟧ is", "⟦ ist"),
    } <= {*dev}
    trained = decoded(fresh, tmp_path / "d", DatasetSplit.TRAIN)
    numbers = [re.findall("⟦[a-z]+([0-9]+)⟧", inputs)[0] for inputs, _ in trained if "⟦url" in inputs]
    assert len(numbers) == 120 and 50 < numbers.count("1") < 90 and {*numbers} == {str(n) for n in range(1, 11)}
    for inputs, targets in trained:  # the same text, the same symbol, whatever the order
        assert sorted(re.findall("⟦[a-z]+[0-9]+⟧", inputs)) == sorted(re.findall("⟦[a-z]+[0-9]+⟧", targets))
    manifest = json.loads((tmp_path / "d" / "translate_own-manifest.json").read_text())
    assert manifest["request"]["protect"] == problem.config["protect"] == ["urls", "placeholders"]
    for other in (None, ["urls"]):
        with pytest.raises(UserError, match="protect = urls and placeholders, but you requested protect"):
            own.generated("translate_own", tmp_path / "d", train_files=train, protect=other, **asked)


def test_a_number_of_symbols_is_part_of_the_data(tmp_path, caplog):
    """Without a number, the folder says what it said before there were numbers, so older folders stay valid."""
    many = " ".join(f"{{a{at}}}" for at in range(14))
    lines = [(f"see {many} {at}", f"siehe {many} {at}") for at in range(60)]
    train = corpus.write_corpus(tmp_path, "many", [*PAIRS, *lines]).split(",")
    asked = {"dev_files": train, "train_files": train, "vocab_size": 380}
    with caplog.at_level(logging.INFO):
        own.generated("translate_own", tmp_path / "d", protect=["placeholders:10", "urls"], **asked)
    assert json.loads((tmp_path / "d" / "translate_own-manifest.json").read_text())["request"]["protect"] == [
        "urls", "placeholders"
    ]  # fmt: skip
    assert "with placeholders:14 in --protect, each text has its own symbol" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.INFO):
        problem = own.generated("translate_own", tmp_path / "e", protect=["placeholders:14", "urls"], **asked)
    assert "own symbol" not in caplog.text and problem.config["protect"] == ["urls", "placeholders:14"]
    fresh = registry.problem("translate_own")
    encoder = fresh.get_feature_encoders(str(tmp_path / "e"))["inputs"]
    assert encoder.pieces(range(3, 27)) == fresh.substitution.symbols and len(fresh.substitution.symbols) == 24
    trained = [re.findall("placeholder([0-9]+)", inputs) for inputs, _ in decoded(fresh, tmp_path / "e", "train")]
    assert all(len({*numbers}) == len(numbers) for numbers in trained) and {len(one) for one in trained} == {1, 14}


def test_without_it_nothing_is_different(tmp_path, train):
    problem = own.generated("translate_own", tmp_path / "d", train_files=train, vocab_size=330)
    assert problem.substitution is None and problem.additional_reserved_tokens == ()
    assert json.loads((tmp_path / "d" / "translate_own-manifest.json").read_text())["request"]["protect"] is None
    assert not any(
        "⟦url" in piece for piece in problem.feature_encoders(str(tmp_path / "d"))["inputs"].pieces(range(9))
    )


def test_a_vocabulary_that_is_there_needs_the_symbols(tmp_path, train):
    for name, symbols in (("with", ProtectedTexts(["urls"]).symbols), ("without", [])):
        subwords.train_sentencepiece(
            [" ".join(pair) for pair in PAIRS], str(tmp_path / name), 330, user_defined_symbols=symbols
        )
    model = str(tmp_path / "with.model")
    problem = own.generated("translate_own", tmp_path / "d", train_files=train, vocab_from=[model], protect=["urls"])
    assert "⟦url1⟧" in problem.feature_encoders(str(tmp_path / "d"))["inputs"].pieces([3])
    again = own.generated(
        "translate_own", tmp_path / "e", train_files=train, vocab_from=[str(tmp_path / "d")], protect=["urls"]
    )
    assert again.substitution.kinds == ("urls",) and SentencePieceEncoder(model).vocab_size == again.approx_vocab_size
    for sources, kinds, lacking in (
        (["without.model"], ["urls"], r"without\.model .*⟦url1⟧"),
        (["with.model"], ["urls", "tags"], r"--protect=urls,tags: .*with\.model"),
        (["with.model"], ["urls:11"], r"with\.model .*⟦url1⟧ to ⟦url11⟧"),
        (["with.model", "without.model"], ["urls"], r"without\.model"),
    ):
        with pytest.raises(UserError, match=lacking):
            registry.problem("translate_own").configure(
                train, vocab_from=[str(tmp_path / name) for name in sources], protect=kinds
            )


def test_mistakes_in_the_flag_are_named(tmp_path, train, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mistakes = [
        (
            {"protect": ["url"]},
            "--protect: 'url': Nearest: urls. Expected urls, emails, tags, placeholders, printf, icu",
        ),
        ({"protect": ["urls:101"]}, "--protect: 'urls:101': expected from 1 to 100 symbols, such as urls:30"),
        ({"protect": ["urls:20", "urls"]}, "--protect: urls occurs with two numbers of symbols"),
        ({"protect": ["urls"], "vocab_type": "byte_level_bpe"}, "but --vocab_type=byte_level_bpe"),
        ({"protect": ["urls"], "user_defined_symbols": ["x", "⟦url2⟧"]}, "⟦url2⟧ is a symbol of --protect=urls"),
    ]
    own_problems.check_mistakes("translate_own", {"train_files": train, "dev_files": train}, mistakes)

"""BLEU, chrF and TER as sacreBLEU computes them; texts whose scores are wrong without an error."""
# Nearest tests of: t2t_lite/evaluation/ter_options.py, t2t_lite/evaluation/tokenizations.py

import functools
import logging
import unicodedata

import pytest
import sacrebleu
from sacrebleu.tokenizers import tokenizer_spm

from t2t_lite.errors import UserError
from t2t_lite.evaluation.scores import TOKENIZATIONS, corpus_bleu, corpus_scores

CHINESE = ["我们今天去学校。", "他昨天买了一本书。"]
JAPANESE = ["私は昨日、新しい本を買いました。"]
THAI = ["ฉันรักประเทศไทย และอาหารไทย", "วันนี้อากาศดีมาก"]
KOREAN = ["나는 어제 새 책을 샀습니다.", "오늘 날씨가 아주 좋습니다."]
TEXTS, OTHERS = ["a b c d e f g", "the red house"], ["a b c d e x", "the big red house is old"]
FRENCH = ["Le café était fermé à Noël.", "Il a été élégant."]


@pytest.mark.parametrize("references", [[OTHERS], [OTHERS, TEXTS[::-1]]], ids=["one", "two"])
def test_scores_are_those_of_sacrebleu(references):
    chrf_plus_plus = functools.partial(sacrebleu.corpus_chrf, word_order=2)
    functions = {"ter": sacrebleu.corpus_ter, "bleu": sacrebleu.corpus_bleu, "chrf++": chrf_plus_plus}
    functions["chrf"] = sacrebleu.corpus_chrf
    expected = {name: function(TEXTS, references).score for name, function in functions.items()}
    found = corpus_scores(TEXTS, references, [*functions])
    assert [(name, score.score) for name, score in found.items()] == [*expected.items()]
    assert len({*expected.values()}) == 4 and corpus_bleu(TEXTS, references) == found["bleu"]
    assert corpus_scores(TEXTS, OTHERS) == corpus_scores(TEXTS, [OTHERS]), "one reference may be a list of texts"


def test_equal_texts_score_exactly_100():
    assert corpus_bleu(["The red house is old ."] * 3, ["The red house is old ."] * 3).score == 100.0


def test_case_and_tokenization_are_in_the_signature():
    cased = corpus_bleu(["The red house is OLD."], ["the red house is old."])
    uncased = corpus_bleu(["The red house is OLD."], ["the red house is old."], lowercase=True, tokenize="intl")
    assert cased.score < 100.0 == uncased.score
    assert "case:mixed|eff:no|tok:13a" in cased.signature and "version:" in cased.signature
    assert "case:lc|eff:no|tok:intl" in uncased.signature
    assert str(uncased) == f"100.00 ({uncased.signature})"


@pytest.mark.parametrize("tokenize", [name for name in TOKENIZATIONS if name[:2] in ("ja", "ko", "sp", "fl")])
def test_tokenizations_that_need_more_say_what(tokenize, tmp_path, monkeypatch):
    """Nothing is downloaded; with the packages installed the score is the answer."""
    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", str(tmp_path / "none"))
    try:
        assert corpus_bleu(["a b c d"], ["a b c d"], tokenize=tokenize).score == 100.0
    except UserError as error:
        needs = (
            "pip install 'sacrebleu[" if "mecab" in tokenize else f"curl -L --create-dirs -o {tmp_path}/none/models/"
        )
        assert needs in str(error)
    assert not (tmp_path / "none").exists()


def test_a_sentencepiece_model_that_is_there_is_used(tmp_path, monkeypatch):
    import sentencepiece

    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", str(tmp_path))
    (tmp_path / "models").mkdir()
    model = tmp_path / "models/flores200sacrebleuspm"
    model.write_bytes(b"<html>")
    with pytest.raises(UserError, match="flores200sacrebleuspm is damaged"):
        corpus_bleu(["a"], ["a"], tokenize="flores200")
    with model.open("wb") as file:
        text = iter(["the red house is old", "a green tree was new"])
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=text, model_writer=file, vocab_size=30, hard_vocab_limit=False, minloglevel=2
        )
    score = corpus_bleu(["the red house"], ["the red house"], tokenize="flores200")
    assert "tok:flores200" in score.signature


@pytest.mark.parametrize(
    ("hypotheses", "references", "options", "words"),
    [
        (["a"], ["a", "b"], {}, "1 translation but 2 references"),
        ([], [], {}, "no sentences"),
        ("a", ["a"], {}, "hypotheses: found one str"),
        (["a"], "a", {}, "references: found one str"),
        (["a"], ["a"], {"tokenize": "13b"}, "Nearest: 13a"),
        (["a"], ["a"], {"tokenize": "SPBLEU-1k"}, "Nearest: spBLEU-1K"),
    ],
)
def test_mistakes(hypotheses, references, options, words):
    with pytest.raises(UserError, match=words):
        corpus_bleu(hypotheses, references, **options)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"asian_support": True}, "ter_asian_support has no effect by itself. Add ter_normalized"),
        ({"normalised": True}, "ter=normalised: .*Nearest: normalized"),
    ],
)
def test_options_of_ter_that_mean_nothing(options, words):
    with pytest.raises(UserError, match=words):
        corpus_scores(["a"], ["a"], ["ter"], ter=options)


@pytest.mark.parametrize("metrics", [["blue"], [], ["bleu", "bleu"]])
def test_unknown_metrics(metrics):
    with pytest.raises(UserError, match="bleu, chrf"):
        corpus_scores(["a"], ["a"], metrics)


@pytest.fixture
def warnings_of(caplog):
    def call(hypotheses, references=None, metrics=("bleu",), **options):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "t2t_lite"):
            scores = corpus_scores(hypotheses, references or hypotheses, metrics, **options)
        return "\n".join(caplog.messages), scores

    return call


@pytest.mark.parametrize(
    "text, tokenize, suggested",
    [(CHINESE, "13a", "zh"), (CHINESE, "none", "zh"), (THAI, "intl", "char"), (THAI, "zh", "char")],
)
def test_a_text_without_spaces_needs_another_tokenization(warnings_of, text, tokenize, suggested):
    said, scores = warnings_of(text, tokenize=tokenize, where="hyp")
    assert scores["bleu"].score == 0.0  # of a perfect translation
    assert said.startswith("hyp: BLEU") and f"--tokenization={suggested}," in said
    said, scores = warnings_of(text, tokenize=suggested)
    assert (said, scores["bleu"].score) == ("", pytest.approx(100.0))
    assert warnings_of(text, tokenize=tokenize, where=None)[0] == ""


@pytest.mark.parametrize(
    "text", [KOREAN, FRENCH, ["Haus", "Donaudampfschifffahrt", "Straßenbahn"], ["Peking (北京) is a city."], [""]]
)
def test_text_with_spaces_and_lists_of_words_are_as_they_should_be(warnings_of, text):
    assert warnings_of(text, metrics=("bleu", "chrf", "ter"))[0] == ""


def test_words_that_something_else_separates(warnings_of):
    assert "BLEU with the tokenization 13a" in warnings_of(["▁the▁old▁house▁and▁the▁new▁one▁are▁in▁one▁street"])[0]


def test_ter_counts_characters_where_it_can(warnings_of):
    said, _ = warnings_of(CHINESE, metrics=("ter",))
    assert "TER needs spaces" in said and "--ter_normalized --ter_asian_support" in said and "BLEU or chrF" in said
    of_japanese = warnings_of(JAPANESE, ["私は今日、新しい本を買いました。"], ("ter",),
                              ter={"normalized": True, "asian_support": True})  # fmt: skip
    assert of_japanese[0] == "" and 0 < of_japanese[1]["ter"].score < 50
    said, _ = warnings_of(THAI, metrics=("ter",), ter={"normalized": True, "asian_support": True})
    assert "TER needs spaces" in said


def test_forms_of_unicode_that_never_match(warnings_of):
    decomposed = [unicodedata.normalize("NFD", line) for line in FRENCH]
    for pair in ((decomposed, FRENCH), (FRENCH, decomposed), (FRENCH, [FRENCH, decomposed])):
        assert warnings_of(*pair)[0].startswith("2 lines, such as line 1: the text and the reference use different")
    assert warnings_of([FRENCH[0], decomposed[1]], FRENCH)[0].startswith("1 line, such as line 2")
    for pair in (
        (FRENCH, FRENCH),
        (decomposed, decomposed),
        (["Il est alle.", "oui"], decomposed),
        (decomposed, ["a", "b"]),
    ):
        assert warnings_of(*pair)[0] == ""


def test_blank_lines_in_one_of_several_references(warnings_of):
    full = ["the old house is red", "the small tree is very old now"]
    said, scores = warnings_of(["the old house is red", "the small tree"], [full, ["an old house is red", " "]])
    assert said.startswith("reference 2 of 2 has 1 blank line, such as line 2.") and scores["bleu"].score == 100.0
    assert warnings_of(full, [["", full[1]], full])[0].startswith("reference 1 of 2 has 1 blank line, such as line 1.")
    assert warnings_of(["", full[1]], [["", full[1]], ["", full[1]]])[0] == ""  # of a blank source
    assert warnings_of(full, [full, ["", full[1]]], ("chrf",))[0] == ""  # which takes the best reference


def test_columns_beside_the_translation(warnings_of):
    text = ["the old house is red", "the small tree is very old now"]
    said, scores = warnings_of([f"{line}\t-0.31" for line in text], text, where="hyp")
    assert said.startswith("hyp: 2 lines with a tab") and "cut -f1" in said and scores["bleu"].score < 100
    assert warnings_of([f"{text[0]}\t", text[1]], text)[0] == ""
    tabbed = [line.replace(" ", "\t") for line in text]
    assert warnings_of(tabbed, tabbed)[0] == ""


def test_bleu_alone_warns_as_well(caplog):
    corpus_bleu(CHINESE, CHINESE)
    assert "--tokenization=zh" in caplog.text

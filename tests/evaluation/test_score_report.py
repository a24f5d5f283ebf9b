"""Reports on scores: each option through each door, scores by length, the worst sentences, paired bootstrap."""
# Nearest tests of: t2t_lite/evaluation/ter_options.py

import unicodedata

import pytest

from t2t_lite.errors import UserError
from t2t_lite.evaluation.score_report import as_text, compare, make_report, scores_by_length, worst_sentences
from t2t_lite.evaluation.scores import METRICS, corpus_bleu, corpus_scores

HYPOTHESIS = "The old man who lives here bought 3.50 Apples today! We go 我们去学校"
OF_HYPOTHESIS = "The old man, who lives here, bought 3.50 apples today. We go 我们走学校"
BASELINE = "The old man who HERE bought apples today. We go, he 我们去走"
PATHS = {"translation": "hyp", "baseline": "base", "reference": ["ref", "other"]}
LENGTHS = (3, 9, 10, 19, 61)
REFERENCES = [" ".join(f"w{i}" for i in range(length)) for length in LENGTHS]
OPTIONS = [  # metric, options, the score where it is worked out by hand: wrong words of words of the reference
    ("bleu", {}, None),
    ("bleu", {"tokenize": "char"}, None),
    ("bleu", {"tokenize": "zh"}, None),
    ("bleu", {"tokenize": "none"}, None),
    ("chrf", {}, None),
    ("chrf++", {}, None),
    ("ter", {}, 4 / 13),
    ("ter", {"ter": {"case_sensitive": True}}, 5 / 13),
    ("ter", {"ter": {"no_punct": True}}, 1 / 13),
    ("ter", {"ter": {"normalized": True}}, 4 / 16),
    ("ter", {"ter": {"normalized": True, "asian_support": True}}, 4 / 20),
]
TEXT = [f"the {'red' if i % 2 else 'green'} house number {i} is {'old' if i % 3 else 'new'}" for i in range(60)]
ONE_WORSE = ["the house" if i == 7 else line for i, line in enumerate(TEXT)]
HALF_WORSE = [line.replace("house", "tree") if i % 2 else line for i, line in enumerate(TEXT)]


@pytest.mark.parametrize(("metric", "options", "by_hand"), OPTIONS)
def test_an_option_counts_through_every_door(metric, options, by_hand):
    """Of a text of one sentence, which is a corpus, a bucket and the worst sentence."""
    title, references = METRICS[metric], [[OF_HYPOTHESIS]]
    score = corpus_scores([HYPOTHESIS], references, [metric], **options)[metric].score
    of_baseline = corpus_scores([BASELINE], references, [metric], **options)[metric].score
    assert by_hand is None or score == pytest.approx(100 * by_hand)
    texts = {"translation": [HYPOTHESIS], "baseline": [BASELINE], "source": ["x"]}
    report = make_report(
        PATHS, references, **texts, metrics=[metric], **options, by_length=True, worst=1, worst_by=metric
    )
    of_both = report["comparison"]["metrics"][title]
    assert [report["scores"][title]["score"], of_both["translation"], of_both["baseline"]] == pytest.approx(
        [score, score, of_baseline]
    )
    assert f"{title} = {score:.2f} ({report['scores'][title]['signature']})" in as_text(report)
    lengths = report["by_length"]
    assert lengths["tokenization"] == options.get("tokenize", "13a")
    assert lengths["buckets"][0]["scores"] == pytest.approx({title: score})
    assert lengths["buckets_of_baseline"][0]["scores"] == pytest.approx({title: of_baseline})
    assert report["worst"]["metric"] == title
    assert report["worst"]["sentences"][0]["score"] == pytest.approx(score)
    (worst,) = worst_sentences([HYPOTHESIS], references, 1, metric, **options)
    assert worst.score == pytest.approx(score)


def test_no_two_options_give_the_same_score():
    """So that one cannot stand for another above."""
    found = [corpus_scores([HYPOTHESIS], [OF_HYPOTHESIS], [name], **how)[name].score for name, how, _ in OPTIONS]
    assert len({f"{score:.3f}" for score in found}) == len(OPTIONS)


def test_what_a_report_has_and_how_it_is_written():
    hypotheses, sources = ["one two three four", "the end ."], ["eins zwei", "das Ende"]
    references = [["one two three for", "the end ."], ["one two four three", "an end ."]]
    base = ["one", "end"]
    report = make_report(
        PATHS, references, hypotheses, base, sources, metrics=["ter", "chrf"], variant="cased", by_length=True, worst=1
    )
    assert list(report) == ["translation", "reference", "tensor2tensor", "scores", "comparison", "by_length", "worst"]
    named = report["translation"], report["reference"], report["comparison"]["baseline"]
    assert named == ("hyp", ["ref", "other"], "base")
    assert list(report["tensor2tensor"]) == ["BLEU_cased"] and list(report["scores"]) == ["TER", "chrF2"]
    (sentence,) = report["worst"]["sentences"]
    expected = {"line": 1, "source": "eins zwei", "translation": "one two three four", "baseline": "one"}
    assert {name: sentence[name] for name in expected} == expected
    assert sentence["references"] == [references[0][0], references[1][0]]
    lines = as_text(report)
    assert lines[0] == f"BLEU_cased = {report['tensor2tensor']['BLEU_cased']:6.2f}"
    compared = report["comparison"]["metrics"]["TER"]
    row = next(row for row in map(str.split, lines) if row[0:1] == ["TER"] and "±" in row)
    of_each = [f"{compared[name]:.2f} ± {compared[f'{name}_interval']:.2f}" for name in ("baseline", "translation")]
    difference = f"{compared['translation'] - compared['baseline']:+.2f}"
    assert " ".join(row) == " ".join(["TER", *of_each, difference, f"{compared['p_value']:.4f}"])
    table = lines[lines.index("by number of words in the reference (tokenization 13a)") + 1 :]
    assert table[0].split() == ["words", "sentences", "length_ratio", "TER", "chrF2", "baseline:TER", "baseline:chrF2"]
    bucket, of_base = (report["by_length"][name][0]["scores"] for name in ("buckets", "buckets_of_baseline"))
    values = [bucket["TER"], bucket["chrF2"], of_base["TER"], of_base["chrF2"]]
    assert table[1].split() == ["0-9", "2", "1.000", *(f"{value:.2f}" for value in values)]
    title = lines.index("worst sentences by chrF2: 1")
    assert lines[title + 1] == f"line 1: chrF2 = {sentence['score']:.2f}"
    assert [line.split() for line in lines[title + 2 :]] == [
        [name, *text.split()]
        for name, text in (
            ("source", "eins zwei"),
            ("translation", "one two three four"),
            ("baseline", "one"),
            ("reference", references[0][0]),
            ("reference", references[1][0]),
        )
    ]


def test_without_more_a_report_has_scores_alone():
    report = make_report(PATHS, [["a b"]], ["a b"])
    assert list(report) == ["translation", "reference", "tensor2tensor", "scores"]
    assert list(report["tensor2tensor"]) == ["BLEU_uncased", "BLEU_cased"]
    assert list(report["scores"]) == ["sacreBLEU", "chrF2"]
    report = make_report(PATHS, [["a b"]], ["a b"], worst=1, by_length=True)
    assert {*report["worst"]["sentences"][0]} == {"line", "score", "translation", "references"}
    assert "buckets_of_baseline" not in report["by_length"]


def test_a_bucket_ends_before_its_limit():
    buckets = scores_by_length(REFERENCES, REFERENCES, ["bleu"])
    assert [(bucket.words, bucket.sentences) for bucket in buckets] == [("0-9", 2), ("10-19", 2), ("60+", 1)]
    assert [bucket.scores["sacreBLEU"] for bucket in buckets] == [100.0] * 3
    assert [bucket.words for bucket in scores_by_length(REFERENCES, REFERENCES, ["bleu"], limits=[10])] == [
        "0-9",
        "10+",
    ]


def test_a_bucket_is_a_corpus_of_its_own():
    short = [REFERENCES[0], "w0 w1 w2 w3 w4"]
    first, *others = scores_by_length([*short, *REFERENCES[2:]], REFERENCES, ["bleu"])
    assert first.scores["sacreBLEU"] == corpus_bleu(short, REFERENCES[:2]).score
    assert first.length_ratio == pytest.approx(8 / 12)
    assert [bucket.scores["sacreBLEU"] for bucket in others] == [100.0] * 2


def test_words_are_those_of_the_tokenization():
    (bucket,) = scores_by_length(["一二三四五六七八九十一二"], ["一二三四五六七八九十一二"], ["bleu"], "zh")
    assert bucket.words == "10-19"


def test_the_worst_come_first_and_equal_ones_in_order():
    references = ["the red house", "a green tree", "an old house", "a new tree"]
    hypotheses = ["the red house", "xyz", "an old mouse", "xyz"]
    found = worst_sentences(hypotheses, references, 3)
    assert [sentence.line for sentence in found] == [2, 4, 3]
    assert found[0].score == 0.0
    assert [sentence.line for sentence in worst_sentences(hypotheses, references, 3, "ter")] == [2, 4, 3]
    assert len(worst_sentences(hypotheses, references, 10, "bleu")) == 4


def test_a_sentence_that_is_too_short_for_four_words_in_a_row_can_be_right():
    (worst,) = worst_sentences(["a b"], [["a b"]], 1, "bleu")
    assert worst.score == pytest.approx(100)


def test_no_score_is_above_100():
    """sacreBLEU's BLEU of equal texts is 100.00000000000004."""
    (worst,) = worst_sentences(["a b c d"], [["a b c d"]], 1, "bleu")
    compared = compare(["x"] * 4, ["a b c d"] * 4, [["a b c d"] * 4], ["bleu"])["bleu"]
    assert worst.score == compared.translation == compared.difference == 100


def test_the_baseline_is_warned_of_by_its_name(caplog):
    text = ["Le café était fermé."]
    make_report(PATHS, [text], text, [unicodedata.normalize("NFD", text[0])], metrics=["chrf"])
    (message,) = caplog.messages
    assert message.startswith("base: 1 line, such as line 1: ")


def test_several_references():
    (worst,) = worst_sentences(["a b", "c d"], [["x y", "c d"], ["a b", "z z"]], 1)
    assert (worst.line, worst.score) == (1, 100.0)


def test_a_clear_difference_is_significant_and_one_sentence_is_not():
    (clear,) = compare(HALF_WORSE, TEXT, TEXT, ["bleu"]).values()
    assert clear.translation == pytest.approx(100.0)
    assert clear.difference == pytest.approx(100.0 - clear.baseline)
    assert clear.p_value < 0.01
    assert clear.baseline_interval > clear.translation_interval == pytest.approx(0.0, abs=1e-4)
    (chance,) = compare(ONE_WORSE, TEXT, TEXT, ["bleu"]).values()
    assert 0 < chance.difference < 5
    assert chance.p_value > 0.05


def test_a_translation_is_not_better_than_itself():
    (same,) = compare(HALF_WORSE, HALF_WORSE, TEXT, ["bleu"]).values()
    assert (same.difference, same.baseline_interval) == (0.0, same.translation_interval)
    assert same.p_value == 1.0


def test_seed_and_resamples_are_in_the_signature(monkeypatch):
    first, again = (compare(ONE_WORSE, HALF_WORSE, TEXT, ["chrf", "ter"]) for _ in range(2))
    assert first == again
    assert list(first) == ["chrf", "ter"]
    assert "|bs:1000|seed:12345|" in first["chrf"].signature
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    other = compare(ONE_WORSE, HALF_WORSE, TEXT, ["chrf"])["chrf"]
    assert "seed:7|" in other.signature
    assert other.translation_interval != first["chrf"].translation_interval
    monkeypatch.setenv("SACREBLEU_SEED", "seven")
    with pytest.raises(UserError, match="SACREBLEU_SEED=seven: expected an integer"):
        compare(ONE_WORSE, HALF_WORSE, TEXT, ["chrf"])


def test_unequal_numbers_of_sentences():
    with pytest.raises(UserError, match="2 translations but 60 references"):
        compare(["a", "b"], TEXT, TEXT)

"""t2t-bleu."""
# Nearest tests of: bin/t2t_bleu.py, bin/_setting_flags.py

import json
import re

import pytest

from t2t_lite.evaluation.score_report import as_text
from t2t_lite.evaluation.scores import METRICS, corpus_scores
from tests.integration.conftest import replaced
from tests.processes import pipe_of

REFERENCE = "Der alte Mann kauft ein rotes Auto.\nWir gehen um 3.30 Uhr nach Hause.\n"


@pytest.fixture
def bleu(call_command, tmp_path):
    """Scores a translation (text or bytes) against `reference`."""

    def bleu(translation, *flags, reference=REFERENCE):
        for name, text in (("hyp.de", translation), ("ref.de", reference)):
            (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return call_command("t2t-bleu", *replaced(["--translation=hyp.de", "--reference=ref.de"], *flags))

    return bleu


def test_it_prints_tensor2tensors_lines_and_sacrebleus_figure(call_command, tmp_path):
    (tmp_path / "hyp.de").write_text(REFERENCE.replace("Der", "der"))
    (tmp_path / "ref.de").write_text(REFERENCE)
    result = call_command("t2t-bleu", "--translation=hyp.de", "--reference", "ref.de")
    assert (result.status, result.stderr) == (0, "")
    uncased, cased, published, chrf = result.stdout.splitlines()
    assert uncased == "BLEU_uncased = 100.00"
    assert re.fullmatch(r"BLEU_cased = {1,3}\d+\.\d\d", cased)
    assert re.fullmatch(
        r"sacreBLEU = \d+\.\d\d \(nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:[\d.]+\)", published
    )
    assert re.fullmatch(r"chrF2 = \d+\.\d\d \(nrefs:1\|.*nc:6\|nw:0\|.*\)", chrf)


def test_variants_and_tokenization(bleu):
    assert [line.split(" =")[0] for line in bleu(REFERENCE, "--bleu_variant=cased").stdout.splitlines()] == [
        "BLEU_cased",
        "sacreBLEU",
        "chrF2",
    ]
    assert [line.split(" =")[0] for line in bleu(REFERENCE, "--metrics=ter,bleu").stdout.splitlines()[2:]] == [
        "TER",
        "sacreBLEU",
    ]
    assert "tok:intl" in bleu(REFERENCE, "--tokenization=intl").stdout


@pytest.mark.parametrize("ending, tokenization", [("zh", "zh"), ("zho_Hans", "zh"), ("th", "char"), ("txt", "13a")])
def test_the_tokenization_follows_the_ending_of_the_reference(call_command, tmp_path, ending, tokenization):
    text = "ฉันรักประเทศไทย\n" if ending == "th" else "我们今天去学校。\n他买了一本书。\n"
    (tmp_path / f"ref.{ending}").write_text(text)
    flags = f"--translation=ref.{ending}", f"--reference=ref.{ending}", "--bleu_variant=cased"
    result = call_command("t2t-bleu", *flags)
    assert f"|tok:{tokenization}|" in result.stdout
    assert ("warning" in result.stderr) == (tokenization == "13a") == ("sacreBLEU = 0.00" in result.stdout)
    result = call_command("t2t-bleu", *flags, "--tokenization=char")
    assert "|tok:char|" in result.stdout and "warning" not in result.stderr


@pytest.mark.parametrize(
    ("metric", "flags", "options"),
    [
        ("bleu", ["--tokenization=char"], {"tokenize": "char"}),
        ("ter", ["--ter_case_sensitive"], {"ter": {"case_sensitive": True}}),
        ("ter", ["--ter_no_punct"], {"ter": {"no_punct": True}}),
        ("ter", ["--ter_normalized"], {"ter": {"normalized": True}}),
        ("ter", ["--ter_normalized", "--ter_asian_support"], {"ter": {"normalized": True, "asian_support": True}}),
    ],
)
def test_an_option_reaches_every_part_of_the_report(bleu, metric, flags, options):
    texts = ["The old man who lives here bought 3.50 Apples! We go 我们去学校\n",
             "The old man, who lives here, bought 3.50 apples. We go 我们走学校\n"]  # fmt: skip
    asked = [f"--metrics={metric}", f"--worst_by={metric}", "--baseline=hyp.de", "--by_length", "--worst=1", "--json"]
    report = json.loads(bleu(texts[0], *asked, *flags, reference=texts[1]).stdout)
    title, score = METRICS[metric], corpus_scores(texts[:1], [texts[1:]], [metric], **options)[metric].score
    compared, lengths = report["comparison"]["metrics"][title], report["by_length"]
    assert [report["scores"][title]["score"], compared["baseline"], compared["translation"]] == pytest.approx(
        [score] * 3
    )
    for buckets in (lengths["buckets"], lengths["buckets_of_baseline"]):
        assert buckets[0]["scores"][title] == pytest.approx(score)
    assert report["worst"]["sentences"][0]["score"] == pytest.approx(score)
    assert lengths["tokenization"] == options.get("tokenize", "13a")


def test_line_ends_and_empty_translations_do_not_shift_lines(bleu):
    assert "sacreBLEU = 100.00" in bleu(REFERENCE.replace("\n", "\r\n")).stdout
    assert "sacreBLEU = 100.00" in bleu(REFERENCE.rstrip("\n")).stdout
    half = bleu("\n" + REFERENCE.splitlines()[1] + "\n")
    assert half.status == 0
    assert "sacreBLEU = 100.00" not in half.stdout


def test_a_translation_from_a_pipe_that_is_not_utf_8(bleu, assert_user_error):
    with pipe_of(b"gut\nsch\xf6n\n") as read:
        result = bleu("unused\n", f"--translation=/dev/fd/{read}")
    assert_user_error(result, "/dev/fd/", "line 2", "not UTF-8")


def test_an_empty_reference(bleu, assert_user_error):
    assert_user_error(bleu(REFERENCE, reference=""), "ref.de", "empty")


@pytest.mark.whole
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], ["--translation", "--reference"]),
        (["--translation=.", "--reference=."], [".: is a folder"]),
        (["--translation=a", "--reference=b", "--translations_dir=x"], ["--translation cannot be used with"]),
        (["--translation=a", "--reference=b", "--event_dir=x"], ["--event_dir", "--translation"]),
        (["--translations_dir=a", "--reference=b", "--worst=3"], ["--worst", "--translations_dir"]),
        (["--translations_dir=a"], ["--reference"]),
    ],
)
def test_bad_flags(call_command, assert_user_error, flags, words):
    assert_user_error(call_command("t2t-bleu", *flags), *words)


def test_options_of_metrics_that_mean_nothing(bleu, assert_user_error):
    assert_user_error(bleu(REFERENCE, "--ter_asian_support"), "--ter_asian_support has no effect", "--ter_normalized")
    assert_user_error(bleu(REFERENCE, "--worst_by=chrF"), "--worst_by=chrF", "Nearest: chrf")
    for flags in (["--ter_normalized", "--metrics=chrf", "--worst=1"], ["--worst_by=ter"]):
        assert f"{flags[0].partition('=')[0]} has no effect without" in bleu(REFERENCE, *flags).stderr
    assert not bleu(REFERENCE, "--ter_normalized", "--metrics=chrf", "--worst=1", "--worst_by=ter").stderr


def test_several_references(bleu, assert_user_error, tmp_path):
    (tmp_path / "second.de").write_text(REFERENCE.replace("rotes Auto", "Fahrrad"))
    lines = bleu(REFERENCE.replace("rotes Auto", "Fahrrad"), "--reference=ref.de,second.de").stdout.splitlines()
    assert lines[1] == "BLEU_cased = 100.00"
    assert lines[2].startswith("sacreBLEU = 100.00 (nrefs:2|")
    (tmp_path / "second.de").write_text("eine Zeile\n")
    assert_user_error(bleu(REFERENCE, "--reference=ref.de,second.de"), "second.de has 1 line, but ref.de has 2")


def test_all_that_can_be_asked_of_one_translation(bleu, tmp_path):
    """As text and as JSON; tests/evaluation/test_score_report.py has what either says."""
    (tmp_path / "base.de").write_text(REFERENCE.replace("Auto", "Haus"))
    (tmp_path / "src.en").write_text("The first line.\nThe second line.\n")
    flags = ("--baseline=base.de", "--by_length", "--worst=1", "--source=src.en")
    text = bleu(REFERENCE.replace("alte", "neue"), *flags)
    assert (text.status, text.stderr) == (0, "")
    report = json.loads(bleu(REFERENCE.replace("alte", "neue"), *flags, "--json").stdout)
    assert text.stdout.splitlines() == as_text(report) and text.stdout.count("\n\n") == 3
    assert report["worst"]["sentences"][0]["source"] == "The first line."
    assert "--source has no effect" in bleu(REFERENCE, "--source=src.en").stderr


def test_text_that_looks_tokenized_is_warned_of(bleu):
    text = "Das ist ein Haus .\n" * 101
    result = bleu(text, reference=text)
    assert result.status == 0
    assert result.stderr.count("warning") == 1
    assert "hyp.de: 101 lines end in a space and a full stop" in result.stderr


def test_what_is_shown_of_a_line_cannot_disturb_the_terminal(bleu):
    text = REFERENCE.replace("rotes", "\x1b[2Jrotes\x00\u2028")
    result = bleu(text, "--worst=2")
    assert result.status == 0
    assert not {"\x1b", "\x00", "\u2028"} & set(result.stdout)
    assert "[2Jrotes" in result.stdout


@pytest.mark.slow
def test_empty_and_very_long_lines(bleu):
    long = "wort " * 5_000 + "\n\n" + REFERENCE
    result = bleu(long, "--by_length", "--worst=4", reference=long)
    assert result.status == 0, result.stderr
    assert "sacreBLEU = 100.00" in result.stdout
    assert [line.split()[:2] for line in result.stdout.split("\n\n")[1].splitlines()[2:]] == [
        ["0-9", "3"],
        ["60+", "1"],
    ]
    blank = bleu("\n\n", "--by_length", "--worst=1", "--metrics=bleu,chrf,ter")
    assert "TER = 100.00" in blank.stdout
    assert "sacreBLEU = 0.00" in blank.stdout

"""Files of translations and references; tensor2tensor's BLEU by numbers that are worked out by hand."""

import gzip
import logging
import math
import os

import pytest

from t2t_lite.corpora import plain_text
from t2t_lite.corpora.wmt_files import SOURCE
from t2t_lite.errors import UserError
from t2t_lite.evaluation.score_files import (
    note_tensor2tensors_words,
    read_lines,
    read_references,
    read_translation,
    tensor2tensor_bleu,
    tensor2tensor_scores,
    tokens,
)
from t2t_lite.evaluation.scores import corpus_bleu


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Um 3.30, 5. oder 3:30 Uhr!", "Um 3.30 , 5 . oder 3:30 Uhr !"),  # as with "intl", like the next one
        ("$5.00 a+b (1978.", "$ 5.00 a + b ( 1978."),
        ("80 m².", "80 m² ."),  # ² is a number, but no digit: with "intl" the full stop stays
        ("Kapitel Ⅳ, Seite ½.", "Kapitel Ⅳ , Seite ½ ."),
        (r"a\b", r"a\b"),
    ],
)
def test_tokens(text, expected):
    assert tokens(text) == expected.split()


@pytest.mark.parametrize(
    "hypothesis, reference, precisions, brevity",
    [
        # Five words, of which the last one is wrong, for six.
        ("Die Wohnung hat 80 m2.", "Die Wohnung hat 80 m².", (4 / 5, 3 / 4, 2 / 3, 1 / 2), math.exp(1 - 6 / 5)),
        ("ein Haus", "ein Haus", (1, 1), 1),  # there are no longer n-grams
        ("ein Haus", "ein Baum steht", (1 / 2, 1 / 2), math.exp(1 - 3 / 2)),  # no pair of one: half as good as one
        ("v w x y z", "a b c d e", (1 / 10, 1 / 16, 1 / 24, 1 / 32), 1),
        ("", "ein Haus", (0,), 1),
        ("", "", (0,), 1),
    ],
)
def test_scores(hypothesis, reference, precisions, brevity):
    found = tensor2tensor_bleu([hypothesis], [[reference]])
    assert found == pytest.approx(100 * brevity * math.prod(precisions) ** (1 / 4))


def test_of_usual_text_it_is_sacrebleus():
    hypotheses = ["Der Zug fährt um 3.30 Uhr.", 'Sie sagt: "Ein rotes Auto!"', ""]
    references = [["Der Zug fuhr um 3.30 Uhr ab.", 'Sie sagt: "Das rote Auto!"', "nichts"], [*hypotheses[:2], "auch"]]
    for several in (references[:1], references):
        for lowercase in (False, True):
            texts = [text.upper() for text in hypotheses] if lowercase else hypotheses
            expected = corpus_bleu(texts, several, lowercase, "intl").score
            assert tensor2tensor_bleu(texts, several, lowercase) == pytest.approx(expected)


def test_which_of_tensor2tensors_scores():
    texts = ["Ein Haus ist hier"], [["ein Haus ist dort"]]
    both = tensor2tensor_scores(*texts)
    assert list(both) == ["BLEU_uncased", "BLEU_cased"] and both["BLEU_uncased"] > both["BLEU_cased"]
    for case in ("uncased", "cased"):
        assert tensor2tensor_scores(*texts, case) == {f"BLEU_{case}": both[f"BLEU_{case}"]}
    assert both["BLEU_cased"] == tensor2tensor_bleu(*texts) and both["BLEU_uncased"] == tensor2tensor_bleu(*texts, True)


def test_words_without_spaces_are_noted(caplog):
    caplog.set_level(logging.INFO, "t2t_lite")
    note_tensor2tensors_words(["the old house"])
    assert not caplog.messages
    note_tensor2tensors_words(["我们今天去学校。"])
    assert "BLEU_uncased and BLEU_cased" in caplog.text


def test_files_and_pipes(tmp_path):
    (tmp_path / "a").write_bytes(gzip.compress(b"eins\r\nzwei\n\n"))
    assert read_lines(str(tmp_path / "a")) == ["eins", "zwei", ""]
    for data in (b"one\ntwo", gzip.compress(b"one\ntwo")):
        read, write = os.pipe()
        with os.fdopen(write, "wb") as file:
            file.write(data)
        assert read_lines(f"/dev/fd/{read}", SOURCE) == ["one", "two"]
        os.close(read)


def test_a_minus_is_standard_input(monkeypatch):
    monkeypatch.setattr(plain_text, "read_lines", lambda path: [path, "one"])
    assert read_lines("-") == ["/dev/stdin", "one"]
    with pytest.raises(UserError, match=r"^standard input has 2 lines, but ref has 3"):
        read_translation("-", "ref", 3)


def test_numbers_of_lines_that_differ(tmp_path):
    paths = [str(tmp_path / name) for name in ("two", "one", "also")]
    for path, lines in zip(paths, ("a\nb\n", "c\n", "d\ne\n"), strict=True):
        with open(path, "w") as file:
            file.write(lines)
    assert read_references(paths[::2]) == [["a", "b"], ["d", "e"]]
    with pytest.raises(UserError, match=r"/one has 1 line, .*/two has 2"):
        read_references([paths[0], paths[2], paths[1]])
    assert read_translation(paths[0], "ref", 2) == ["a", "b"]
    with pytest.raises(UserError, match=r"/two has 2 lines, but ref has 3\. Try it\.$"):
        read_translation(paths[0], "ref", 3, "Try it.")

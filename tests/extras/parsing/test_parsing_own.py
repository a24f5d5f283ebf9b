"""The user's own trees: mistakes in flags and in files."""

import pytest

from t2t_lite import registry
from tests.extras.parsing.test_parsing import files, sentences  # noqa: F401
from tests.problems.own import check_bad_lines, check_damaged, check_mistakes

TREES = "".join(f"(S (NP (DT the{n}) (NN cat{n * n})) (VP (VBZ sleeps{n % 7})))\n" for n in range(60))


def test_mistakes_in_flags_are_named_before_anything_is_read(files, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    mistakes = [
        ({"train_files": []}, "missing --train_files. Expected a file of bracketed trees"),
        ({"dev_files": []}, "--dev_files"),
        ({"dev_files": ["."]}, "is a folder"),
        ({"train_files": ["a", "b"]}, "--train_files=a,b: found 2 files"),
        ({"test_files": ["none.mrg"]}, "--test_files=none.mrg: no such file"),
        ({"vocab_size": 100}, "--vocab_size=100: too small"),
    ]
    check_mistakes("parsing_english_own", files, mistakes)


def test_a_damaged_file_is_named(tmp_path):
    damaged = {"dev": "".join(sentences(5)) + "(S (NN a)\n"}
    check_damaged("parsing_english_own", "".join(sentences(60)), damaged, "dev, line 16", tmp_path)


def test_bad_lines_are_left_out(tmp_path):
    bad = b"(S (NN b\xff))\n(S (NP word x))\n"
    check_bad_lines("parsing_english_own", TREES.encode() + bad, 2, tmp_path)


def test_no_other_vocabulary_is_taken():
    with pytest.raises(TypeError, match="configure got vocab_from"):
        registry.problem("parsing_english_own").configure(vocab_from=["a.model"])

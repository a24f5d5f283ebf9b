import json
import os

import pytest

from t2t_lite.data.records import Records
from tests.data import corpus
from tests.data.stored import read_examples

OWN = ("--problem=translate_own", "--data_dir=d", "--vocab_size=320")


@pytest.fixture
def own_flags(tmp_path):
    """The flags of a small corpus, without --data_dir."""
    return [
        f"--train_files={corpus.write_corpus(tmp_path, 'train', corpus.sentence_pairs(200, 1))}",
        f"--dev_files={corpus.write_corpus(tmp_path, 'dev', corpus.sentence_pairs(20, 2))}",
    ]


def fails(result, *words):
    """Status 2; the last line on stderr is the error and names `words`; no traceback."""
    assert result.status == 2, result
    *before, last = result.stderr.strip().splitlines()
    assert last.startswith("t2t-datagen: error: ")
    assert not any("Traceback" in line for line in before)
    for word in words:
        assert str(word) in last


def test_what_it_writes_and_says(tmp_path, own_flags, call_command):
    result = call_command("t2t-datagen", *OWN, *own_flags)
    assert result.status == 0, result.stderr
    assert "written to d (200 train examples, 20 dev examples, vocabulary of 320)" in result.stderr
    assert "\r" not in result.stderr, "a moving line in a file"
    assert sorted(os.listdir(tmp_path / "d")) == [
        "problem.json",
        "translate_own-dev-00000-of-00001",
        "translate_own-manifest.json",
        "translate_own-train-00000-of-00001",
        "vocab.translate_own.320.model",
        "vocab.translate_own.320.vocab",
    ]


def test_dashes_a_reversed_name_and_a_second_run(tmp_path, own_flags, call_command):
    first = call_command("t2t-datagen", "--problem=translate_own_rev", "--data-dir=d/", "--vocab-size=320", *own_flags)
    assert first.status == 0, first.stderr
    assert "its records are those of translate_own" in first.stderr
    manifest = (tmp_path / "d" / "translate_own-manifest.json").read_bytes()
    second = call_command("t2t-datagen", *OWN, *own_flags)
    assert second.status == 0
    assert "already in d" in second.stderr
    assert "nothing to do" in second.stderr
    assert call_command("t2t-datagen", "--problem=translate_own", "--data_dir=d").status == 0
    fails(call_command("t2t-datagen", *OWN[:2], "--vocab_size=330", *own_flags), "vocab_size = 320", "vocab_size = 330")
    assert (tmp_path / "d" / "translate_own-manifest.json").read_bytes() == manifest


def test_max_cases_and_seed(tmp_path, call_command):
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        flags = ("--problem=algorithmic_reverse_decimal40", f"--data_dir={folder}", "--max_cases=50")
        assert call_command("t2t-datagen", *flags, f"--random_seed={seed}").status == 0
    name = "algorithmic_reverse_decimal40-dev-00000-of-00001"
    assert len(list(read_examples([str(tmp_path / "a" / name)]))) == 50
    a, b, c = ((tmp_path / folder / name).read_bytes() for folder in "abc")
    assert a == b != c
    manifest = json.loads((tmp_path / "a" / "algorithmic_reverse_decimal40-manifest.json").read_text())
    assert manifest["splits"]["train"]["examples"] == 50


def test_lists_of_problems(call_command):
    listed = call_command("t2t-datagen", "--problem=algorithmic_*", "--only_list").stdout.split()
    assert {"algorithmic_identity_decimal40", "algorithmic_reverse_decimal40"} <= set(listed)
    excluded = call_command("t2t-datagen", "--problem=algorithmic_*", "--exclude_problems=identity", "--only_list")
    assert excluded.stdout.split() == [name for name in listed if "identity" not in name]
    both = call_command(
        "t2t-datagen", "--problem=translate_own,algorithmic_identity_decimal40", "--only_list"
    ).stdout.split()
    assert both == ["translate_own", "algorithmic_identity_decimal40"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--data_dir=d"], ["missing --problem"]),
        (["--problem=translate_own"], ["missing --data_dir"]),
        (["--problem=translate_on", "--data_dir=d"], ["'translate_on' is not registered", "translate_own"]),
        (["--problem=algoritm*", "--data_dir=d"], ["--problem=algoritm*", "no problem begins like this"]),
        (["--problem=algorithmic_*", "--exclude_problems=a", "--data_dir=d"], ["leaves none"]),
        (["--problem=,", "--data_dir=d"], ["--problem=,: names no problem"]),
        (["--problem=algorithmic_identity_decimal40", "--data_dir=d", "--vocab_size=9"], ["--vocab_size: not for"]),
        (["--problem=translate_own", "--data_dir=d"], ["d/problem.json: no such file", "--train_files=a.en,a.de"]),
        (["--problem=translate_own", "--data_dir=d", "--num_shards=3"], ["--num_shards: not available yet"]),
        (["--problem=translate_own", "--data_dir=d", "--trainfiles=a,b"], ["unknown flag", "--train_files"]),
    ],
)
def test_mistakes_in_the_flags(tmp_path, call_command, assert_user_error, flags, words):
    assert_user_error(call_command("t2t-datagen", *flags), *words)
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("train.de", b"", ["train.de: the file is empty"]),
        ("train.de", b"eins\nzwei\n", ["train.en has 200 lines", "train.de has 2"]),
        ("dev.en", "größe\n".encode("latin1"), ["dev.en, line 1: byte 0xf6 at position 2 is not UTF-8"]),
    ],
)
def test_bad_corpora_leave_nothing(tmp_path, own_flags, call_command, name, data, words):
    (tmp_path / name).write_bytes(data)
    fails(call_command("t2t-datagen", *OWN, *own_flags), *words)
    assert os.listdir(tmp_path / "d") == []


def test_odd_lines_do_not_shift_the_pairs(tmp_path, call_command):
    """CR LF, U+2028, NUL, control characters, empty lines and 100,000 characters: each stays in its line."""
    inputs = ["one\r", "two\u2028two", "three\x00\x07", "", "x" * 100_000, "blank next", *["the end"] * 9]
    targets = ["eins", "zwei\x85zwei\r", "drei", "leer", "lang", "\x00 ", *["das Ende"] * 9]
    flags = []
    for split in ("train", "dev"):
        corpus.write_corpus(tmp_path, split, list(zip(inputs, targets, strict=True)))
        flags.append(f"--{split}_files={split}.en,{split}.de")
    result = call_command("t2t-datagen", "--problem=translate_own", "--data_dir=d", "--vocab_size=300", *flags)
    assert result.status == 0, result.stderr
    assert "2 left out (empty)" in result.stderr
    from t2t_lite import registry

    problem = registry.problem("translate_own")
    encoder = problem.feature_encoders(str(tmp_path / "d"))["inputs"]
    examples = read_examples(Records(problem, str(tmp_path / "d"), "train").paths)
    pairs = {encoder.decode(e["inputs"]): encoder.decode(e["targets"]) for e in examples}
    assert pairs == {
        "one": "eins",
        "two two": "zwei zwei",
        "three": "drei",
        "x" * 100_000: "lang",
        "the end": "das Ende",
    }


def test_a_vocabulary_that_the_text_cannot_fill(tmp_path, own_flags, call_command):
    result = call_command("t2t-datagen", "--problem=translate_own", "--data_dir=d", "--vocab_size=8000", *own_flags)
    fails(result, "8000 pieces are more than this corpus can fill", "Set --vocab_size=")
    assert os.listdir(tmp_path / "d") == []


def test_a_folder_that_cannot_be_written(tmp_path, own_flags, call_command):
    (tmp_path / "d").write_text("a file")
    fails(call_command("t2t-datagen", *OWN, *own_flags), "d: a file is in the way")
    assert (tmp_path / "d").read_text() == "a file"
    flags = ("--problem=algorithmic_identity_decimal40", "--data_dir=/sys/t2t_lite")  # nobody may write there
    fails(call_command("t2t-datagen", *flags), "/sys/t2t_lite: no permission")
    assert not os.path.exists("/sys/t2t_lite")

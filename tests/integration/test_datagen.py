"""t2t-datagen as it is typed: what it writes and says, mistakes, bad files, and a second run over its data."""

import json
import os
import re

import pytest

from t2t_lite import registry
from t2t_lite.data.folder import DataFolder
from tests.data import corpus, stored

PAIRS = list(dict.fromkeys(corpus.sentence_pairs(300)))
OWN = ("--problem=translate_own", "--data_dir=d")


@pytest.fixture
def own_flags(tmp_path):
    """The flags of a small corpus, without --data_dir."""
    return [
        f"--train_files={corpus.write_corpus(tmp_path, 'train', corpus.sentence_pairs(200, 1))}",
        f"--dev_files={corpus.write_corpus(tmp_path, 'dev', corpus.sentence_pairs(20, 2))}",
    ]


@pytest.fixture
def two_corpora(tmp_path):
    """The flag --train_files of a corpus of two files and one of a .tsv."""
    paths = corpus.write_corpus(tmp_path, "a", PAIRS[:150])
    (tmp_path / "b.tsv").write_text("".join(f"{inputs}\t{targets}\n" for inputs, targets in PAIRS[150:]))
    return f"--train_files={paths},{tmp_path / 'b.tsv'}"


@pytest.fixture
def generate(call_command):
    """Calls the command, which succeeds; returns what it says."""

    def generate(*flags):
        result = call_command("t2t-datagen", *flags)
        assert result.status == 0, result.stderr
        return result.stderr

    return generate


@pytest.fixture
def refused(call_command):
    """Calls the command, which ends with status 2 and an error in the last line, without a traceback; returns it."""

    def refused(*flags):
        result = call_command("t2t-datagen", *flags)
        assert result.status == 2 and "Traceback" not in result.stderr, result
        last = result.stderr.strip().splitlines()[-1]
        assert last.startswith("t2t-datagen: error: ")
        return last

    return refused


def pairs_of(folder, split):
    return stored.decoded(registry.problem("translate_own"), folder, split)


def manifest_of(folder):
    return json.loads((folder / "translate_own-manifest.json").read_text())


def removed_from(folder, split="train"):
    return manifest_of(folder)["splits"][split]["removed"]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_it_writes_and_says(tmp_path, own_flags, generate):
    said = generate(*OWN, "--vocab_size=320", *own_flags)
    assert "written to d (200 train examples, 20 dev examples, vocabulary of 320)" in said
    assert "\r" not in said, "a moving line in a file"
    assert sorted(os.listdir(tmp_path / "d")) == [
        "problem.json",
        "translate_own-dev-00000-of-00001",
        "translate_own-manifest.json",
        "translate_own-train-00000-of-00001",
        "vocab.translate_own.320.model",
        "vocab.translate_own.320.vocab",
    ]


def test_dashes_a_reversed_name_and_a_second_run(tmp_path, own_flags, generate, refused):
    said = generate("--problem=translate_own_rev", "--data-dir=d/", "--vocab-size=320", *own_flags)
    assert "records of translate_own" in said
    before = contents(tmp_path / "d")
    assert re.search("already in d .*nothing to do", generate(*OWN, "--vocab_size=320", *own_flags))
    generate(*OWN)
    assert re.search("vocab_size = 320.*vocab_size = 330", refused(*OWN, "--vocab_size=330", *own_flags))
    assert contents(tmp_path / "d") == before


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--data_dir=d"], ["missing --problem"]),
        (["--problem=translate_own"], ["missing --data_dir"]),
        (["--problem=translate_own", "--data_dir=d", "--num_shards=3"], ["--num_shards: "]),
        ([*OWN, "--train_files=a.en,a.de", "--held_out=many"], ["--held_out", "many"]),
        ([*OWN, "--train_files=/dev/null", "--corpus_weights=1"], ["--train_files=/dev/null"]),
    ],
)
def test_mistakes_in_the_flags(tmp_path, call_command, assert_user_error, flags, words):
    assert_user_error(call_command("t2t-datagen", *flags), *words)
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("b.tsv", b"one\teins\ntwo zwei\n", r"b\.tsv, line 2: found 1 "),
        ("a.de", b"eins\n" * 149 + b"\xff\n", r"a\.de, line 150: byte 0xff at position 0"),
    ],
)
def test_a_bad_file_among_several_leaves_nothing(tmp_path, two_corpora, refused, name, data, words):
    (tmp_path / name).write_bytes(data)
    assert re.search(words, refused(*OWN, two_corpora, "--vocab_size=310", "--filters=all"))
    assert not (tmp_path / "d").exists()


def test_odd_lines_pass_the_filters_or_are_counted(tmp_path, generate):
    """CR LF, U+2028, NUL, an empty line, one of 100,000 characters; none of them shifts the pairs."""
    inputs = ["one house\r", "two\u2028birds", "three\x00\x07 cats", "", "x" * 100_000, "\x00", "same\r"]
    targets = ["ein Haus", "zwei\x85Vögel\r", "drei Katzen", "leer", "y" * 100_000, "leer", "same"]
    inputs += [f"the end of {i}" for i in range(40)]
    targets += [f"das Ende von {i}" for i in range(40)]
    flag = f"--train_files={corpus.write_corpus(tmp_path, 'odd', list(zip(inputs, targets, strict=True)))}"
    generate(*OWN, flag, "--filters=all", "--vocab_size=320", "--held_out=2")
    pairs = pairs_of(tmp_path / "d", "train") + pairs_of(tmp_path / "d", "eval")
    assert {("one house", "ein Haus"), ("two birds", "zwei Vögel"), ("three cats", "drei Katzen")} < set(pairs)
    assert len(pairs) == 43
    removed = [removed_from(tmp_path / "d", split) for split in ("train", "eval")]
    assert {name: sum(of_split.get(name, 0) for of_split in removed) for name in removed[0]} == {
        "copied": 1, "duplicate": 0, "empty": 2, "length_ratio": 0, "mojibake": 0, "too_long": 1, "wrong_script": 0,
    }  # fmt: skip


@pytest.mark.parametrize("sizes", [["--vocab_size=9000"], ["--vocab_size=310", "--target_vocab_size=9000"]])
def test_a_vocabulary_that_the_corpora_cannot_fill(tmp_path, two_corpora, refused, sizes):
    assert re.search(rf"9000 pieces .*{sizes[-1].partition('=')[0]}=\d+", refused(*OWN, two_corpora, *sizes))
    assert not list((tmp_path / "d").glob("translate_own-*-of-*"))


def test_a_folder_that_cannot_be_written(tmp_path, own_flags, refused):
    (tmp_path / "d").write_text("a file")
    assert "d: a file is in the way" in refused(*OWN, *own_flags)
    assert (tmp_path / "d").read_text() == "a file"
    flags = ("--problem=algorithmic_identity_decimal40", "--data_dir=/sys/t2t_lite")  # nobody may write there
    assert "/sys/t2t_lite: no permission" in refused(*flags)
    assert not os.path.exists("/sys/t2t_lite")


def test_a_second_one_in_the_same_folder_is_refused(tmp_path, own_flags, generate, refused):
    (tmp_path / "d").mkdir()
    with DataFolder(registry.problem("translate_own"), str(tmp_path / "d")).lock():
        assert f"translate_own (process {os.getpid()})" in refused(*OWN, "--vocab_size=310", *own_flags)
        assert len(os.listdir(tmp_path / "d")) == 1
    generate(*OWN, "--vocab_size=310", *own_flags)
    assert not list((tmp_path / "d").glob("*.lock"))


def test_all_flags_together(tmp_path, two_corpora, generate, refused):
    flags = [
        two_corpora, "--corpus-weights=2,0.5", "--filters=all,length_ratio=4", "--held_out=20", "--vocab_size=310",
        "--target_vocab_size=320", "--user_defined_symbols=<2de>,<2en>", "--max_samples_for_vocab=200",
    ]  # fmt: skip
    said = generate(*OWN, *flags)
    assert "(--held_out=20" in said and "vocabulary of 310 and 320" in said
    train, dev = pairs_of(tmp_path / "d", "train"), pairs_of(tmp_path / "d", "eval")
    assert {train.count(pair) for pair in PAIRS[:150] if pair not in dev} == {2}
    assert {train.count(pair) for pair in PAIRS[150:] if pair not in dev} == {0, 1}
    generate(*OWN, *flags)
    generate(*OWN)
    assert "max_samples_for_vocab = 200" in refused(*OWN, *flags[:-1])
    generate(OWN[0], "--data_dir=e", two_corpora, "--vocab_from=d")
    assert manifest_of(tmp_path / "d")["vocabulary"] == manifest_of(tmp_path / "e")["vocabulary"]


def test_a_corpus_that_was_edited_is_noticed(tmp_path, generate, refused):
    """Even where the text has the same size: what is there was made of other sentences."""
    corpus.write_corpus(tmp_path, "a", PAIRS[:100])
    flags = ["--train_files=a.en,a.de", "--vocab_size=310", "--held_out=5"]
    generate(*OWN, *flags)
    before = contents(tmp_path / "d")
    assert "nothing to do" in generate(*OWN, *flags)
    text = (tmp_path / "a.en").read_text()
    os.utime(tmp_path / "a.en")  # a copy, or a touch: the text is the same
    assert "nothing to do" in generate(*OWN, *flags)
    times = os.stat(tmp_path / "a.en")
    (tmp_path / "a.en").write_text(text.replace("house", "mouse"))
    os.utime(tmp_path / "a.en", ns=(times.st_atime_ns, times.st_mtime_ns))
    for given in (flags, []):
        assert re.search(r"d contains .* train_files = .* train_files = .*a\.en", refused(*OWN, *given))
    assert contents(tmp_path / "d") == before
    (tmp_path / "a.en").unlink()  # finished data are of use without it
    assert "nothing to do" in generate(*OWN)


def test_bad_lines_are_left_out_and_counted(tmp_path, two_corpora, generate, refused):
    (tmp_path / "a.de").write_bytes((tmp_path / "a.de").read_bytes().replace(b"\n", b"\xf6\n", 3))
    with open(tmp_path / "b.tsv", "ab") as file:
        file.write(b"no tab\nb\xf6d\tx\n")
    flags = (*OWN, two_corpora, "--vocab_size=310", "--dev_files=b.tsv")
    assert re.search(r"a\.de, line 1.*--skip_bad_lines", refused(*flags))
    said = generate(*flags, "--skip_bad_lines")
    assert removed_from(tmp_path / "d") == {"bad lines": 5}
    assert removed_from(tmp_path / "d", "eval") == {"bad lines": 2}
    assert "a.de, line 2: byte 0xf6" in said and "5 left out (bad lines)" in said
    assert len(pairs_of(tmp_path / "d", "train")) == len(PAIRS) - 3
    for path in (tmp_path / "d").glob("translate_own-*"):
        path.unlink()
    generate(*OWN)  # the folder remembers it

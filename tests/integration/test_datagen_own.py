"""t2t-datagen on the user's own corpora: the flags as they are typed, and bad files among several."""

import json
import os
import re
import subprocess
import sys

import pytest

from t2t_lite import registry
from t2t_lite.data.records import Records
from tests.data import corpus
from tests.data.stored import read_examples
from tests.processes import owned

PAIRS = list(dict.fromkeys(corpus.sentence_pairs(300)))
OWN = ("--problem=translate_own", "--data_dir=d")


@pytest.fixture
def two_corpora(tmp_path):
    """The flag --train_files of a corpus of two files and one of a .tsv."""
    paths = corpus.write_corpus(tmp_path, "a", PAIRS[:150])
    (tmp_path / "b.tsv").write_text("".join(f"{inputs}\t{targets}\n" for inputs, targets in PAIRS[150:]))
    return f"--train_files={paths},{tmp_path / 'b.tsv'}"


def pairs_of(folder, split):
    problem = registry.problem("translate_own")
    encoders = problem.feature_encoders(str(folder))
    examples = read_examples(Records(problem, str(folder), split).paths)
    return [tuple(encoders[side].decode(example[side]) for side in ("inputs", "targets")) for example in examples]


def test_all_flags_together(tmp_path, two_corpora, call_command):
    flags = [
        two_corpora, "--corpus-weights=2,0.5", "--filters=all,length_ratio=4", "--held_out=20", "--vocab_size=310",
        "--target_vocab_size=320", "--user_defined_symbols=<2de>,<2en>", "--max_samples_for_vocab=200",
    ]  # fmt: skip
    result = call_command("t2t-datagen", *OWN, *flags)
    assert result.status == 0, result.stderr
    assert "pairs of the training corpora are held out for evaluation (--held_out=20" in result.stderr
    assert "vocabulary of 310 and 320" in result.stderr
    train, dev = pairs_of(tmp_path / "d", "train"), pairs_of(tmp_path / "d", "eval")
    assert {train.count(pair) for pair in PAIRS[:150] if pair not in dev} == {2}
    assert {train.count(pair) for pair in PAIRS[150:] if pair not in dev} == {0, 1}
    assert call_command("t2t-datagen", *OWN, *flags).status == 0
    assert call_command("t2t-datagen", *OWN).status == 0
    again = call_command("t2t-datagen", *OWN, *flags[:-1])
    assert again.status == 2
    assert "max_samples_for_vocab = 200" in again.stderr
    tuned = call_command("t2t-datagen", OWN[0], "--data_dir=e", two_corpora, "--vocab_from=d")
    assert tuned.status == 0, tuned.stderr
    manifests = [json.loads((tmp_path / name / "translate_own-manifest.json").read_text()) for name in "de"]
    assert manifests[0]["vocabulary"] == manifests[1]["vocabulary"]


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("b.tsv", b"one\teins\ntwo zwei\n", ["b.tsv, line 2: found 1 column. Expected 2"]),
        ("a.de", b"eins\nzwei\n", ["a.en has 150 lines", "a.de has 2"]),
        ("a.de", b"eins\n" * 149 + b"\xff\n", ["a.de, line 150: byte 0xff at position 0 is not UTF-8"]),
    ],
)
def test_a_bad_file_among_several_leaves_nothing(tmp_path, two_corpora, call_command, name, data, words):
    (tmp_path / name).write_bytes(data)
    result = call_command("t2t-datagen", *OWN, two_corpora, "--vocab_size=310", "--filters=all")
    assert result.status == 2, result
    *_, last = result.stderr.strip().splitlines()
    assert all(word in last for word in words), last
    assert os.listdir(tmp_path / "d") == []


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--corpus_weights=1"], ["--corpus_weights=1: found 1 for 2 training corpora"]),
        (["--held_out=many"], ["--held_out", "expected a whole number"]),
        (["--user_defined_symbols=\udcff"], ["'\\udcff': expected symbols without blanks"]),
    ],
)
def test_mistakes_in_the_flags(tmp_path, two_corpora, call_command, assert_user_error, flags, words):
    assert_user_error(call_command("t2t-datagen", *OWN, two_corpora, *flags), *words)
    assert not (tmp_path / "d").exists()


def test_a_folder_without_permission(tmp_path, two_corpora, call_command):
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "a.de").write_text("eins\n")
    (tmp_path / "closed").chmod(0)
    try:
        if os.access(tmp_path / "closed" / "a.de", os.R_OK):
            pytest.skip("this user may read everything")
        assert call_command("t2t-datagen", *OWN, "--train_files=a.en,closed/a.de").status == 2
    finally:
        (tmp_path / "closed").chmod(0o700)


def test_odd_lines_pass_the_filters_or_are_counted(tmp_path, call_command):
    """CR LF, U+2028, NUL, an empty line, one of 100,000 characters; none of them shifts the pairs."""
    inputs = ["one house\r", "two\u2028birds", "three\x00\x07 cats", "", "x" * 100_000, "\x00", "same\r"]
    targets = ["ein Haus", "zwei\x85Vögel\r", "drei Katzen", "leer", "y" * 100_000, "leer", "same"]
    inputs += [f"the end of {i}" for i in range(40)]
    targets += [f"das Ende von {i}" for i in range(40)]
    flag = f"--train_files={corpus.write_corpus(tmp_path, 'odd', list(zip(inputs, targets, strict=True)))}"
    result = call_command("t2t-datagen", *OWN, flag, "--filters=all", "--vocab_size=320", "--held_out=2")
    assert result.status == 0, result.stderr
    pairs = pairs_of(tmp_path / "d", "train") + pairs_of(tmp_path / "d", "eval")
    assert {("one house", "ein Haus"), ("two birds", "zwei Vögel"), ("three cats", "drei Katzen")} < set(pairs)
    assert len(pairs) == 43
    splits = json.loads((tmp_path / "d" / "translate_own-manifest.json").read_text())["splits"]
    removed = {
        name: sum(splits[split]["removed"].get(name, 0) for split in splits) for name in splits["train"]["removed"]
    }
    assert removed == {
        "copied": 1, "duplicate": 0, "empty": 2, "length_ratio": 0, "mojibake": 0, "too_long": 1, "wrong_script": 0,
    }  # fmt: skip


def test_everything_is_filtered(tmp_path, call_command):
    flag = f"--train_files={corpus.write_corpus(tmp_path, 'copies', [('a b', 'a b')] * 20)}"
    result = call_command("t2t-datagen", *OWN, flag, "--filters=copied")
    assert result.status == 2
    assert "no pair would be left to train on, with some held out: 0 different ones" in result.stderr


@pytest.mark.parametrize("sizes", [["--vocab_size=9000"], ["--vocab_size=310", "--target_vocab_size=9000"]])
def test_a_vocabulary_that_the_corpora_cannot_fill(tmp_path, two_corpora, call_command, sizes):
    result = call_command("t2t-datagen", *OWN, two_corpora, *sizes)
    assert result.status == 2
    assert "9000 pieces are more than this corpus can fill" in result.stderr
    assert re.search(rf"Set {sizes[-1].partition('=')[0]}=\d+, or use more text", result.stderr)
    assert not list((tmp_path / "d").glob("translate_own-*-of-*"))


def test_a_corpus_that_was_edited_is_noticed(tmp_path, call_command):
    """Even where the text has the same size: what is there was made of other sentences."""
    corpus.write_corpus(tmp_path, "a", PAIRS[:100])
    flags = ["--train_files=a.en,a.de", "--vocab_size=310", "--held_out=5"]
    assert call_command("t2t-datagen", *OWN, *flags).status == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "d").iterdir()}
    assert "nothing to do" in call_command("t2t-datagen", *OWN, *flags).stderr
    text = (tmp_path / "a.en").read_text()
    os.utime(tmp_path / "a.en")  # a copy, or a touch: the text is the same
    assert "nothing to do" in call_command("t2t-datagen", *OWN, *flags).stderr
    times = os.stat(tmp_path / "a.en")
    (tmp_path / "a.en").write_text(text.replace("house", "mouse"))
    os.utime(tmp_path / "a.en", ns=(times.st_atime_ns, times.st_mtime_ns))
    for given in (flags, []):
        result = call_command("t2t-datagen", *OWN, *given)
        assert result.status == 2
        assert re.search(
            r"d contains translate_own with train_files = .*you requested train_files = .*a\.en", result.stderr
        )
    assert {path.name: path.read_bytes() for path in (tmp_path / "d").iterdir()} == before
    (tmp_path / "a.en").unlink()  # finished data are of use without it
    assert "nothing to do" in call_command("t2t-datagen", *OWN).stderr


def test_data_of_an_earlier_version_are_finished(tmp_path, call_command):
    corpus.write_corpus(tmp_path, "a", PAIRS[:100])
    flags = ["--train_files=a.en,a.de", "--vocab_size=310", "--held_out=5"]
    assert call_command("t2t-datagen", *OWN, *flags).status == 0
    for name, place in (
        ("problem.json", ["files", "train"]),
        ("translate_own-manifest.json", ["request", "train_files"]),
    ):
        path = tmp_path / "d" / name
        value = found = json.loads(path.read_text())
        for key in place:
            found = found[key]
        for facts in found:
            facts.pop("changed", None)
            del facts["sha256"]
        path.write_text(json.dumps(value))
    assert "nothing to do" in call_command("t2t-datagen", *OWN, *flags).stderr
    assert "nothing to do" in call_command("t2t-datagen", *OWN).stderr


@pytest.mark.parametrize("how", ["same", "link", "copy"])
def test_evaluating_on_what_is_trained_on_is_warned_of(tmp_path, call_command, how):
    corpus.write_corpus(tmp_path, "a", PAIRS[:100])
    for side in ("en", "de"):
        source, path = tmp_path / f"a.{side}", tmp_path / f"dev.{side}"
        path.symlink_to(source) if how == "link" else path.write_bytes(source.read_bytes())
    dev = "a.en,a.de" if how == "same" else "dev.en,dev.de"
    result = call_command("t2t-datagen", *OWN, "--train_files=a.en,a.de", f"--dev_files={dev}", "--vocab_size=310")
    assert result.status == 0
    assert f"t2t-datagen: warning: --dev_files: {tmp_path}/{dev.partition(',')[0]} " in result.stderr
    assert "a training corpus: evaluations will measure what was learned by heart" in result.stderr


def test_a_second_one_in_the_same_folder_is_refused(tmp_path, two_corpora, call_command, assert_user_error):
    (tmp_path / "d").mkdir()
    lock = f"{tmp_path}/d/translate_own-manifest.json.lock"
    code = f"from t2t_lite.files.folders import held_lock\nwith held_lock({lock!r}, 'd'): print(1, flush=1); input()"
    with owned([sys.executable, "-c", code], 100, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout.readline() == b"1\n"
        result = call_command("t2t-datagen", *OWN, two_corpora, "--vocab_size=310")
        assert_user_error(result, f"d: another t2t-datagen of translate_own (process {first.pid}) is running in it")
        assert os.listdir(tmp_path / "d") == [os.path.basename(lock)]
    assert call_command("t2t-datagen", *OWN, two_corpora, "--vocab_size=310").status == 0
    assert not os.path.exists(lock)


def removed_from(folder, problem, split="train"):
    return json.loads((folder / f"{problem}-manifest.json").read_text())["splits"][split]["removed"]


def test_bad_lines_are_left_out_and_counted(tmp_path, two_corpora, call_command):
    (tmp_path / "a.de").write_bytes((tmp_path / "a.de").read_bytes().replace(b"\n", b"\xf6\n", 3))
    with open(tmp_path / "b.tsv", "ab") as file:
        file.write(b"no tab\nb\xf6d\tx\n")
    flags = (*OWN, two_corpora, "--vocab_size=310", "--dev_files=b.tsv")
    stopped = call_command("t2t-datagen", *flags)
    assert stopped.status == 2 and "a.de, line 1" in stopped.stderr and "--skip_bad_lines" in stopped.stderr
    result = call_command("t2t-datagen", *flags, "--skip_bad_lines")
    assert result.status == 0, result.stderr
    assert removed_from(tmp_path / "d", "translate_own") == {"bad lines": 5}
    assert removed_from(tmp_path / "d", "translate_own", "eval") == {"bad lines": 2}
    assert "a.de, line 2: byte 0xf6" in result.stderr and "5 left out (bad lines)" in result.stderr
    assert len(pairs_of(tmp_path / "d", "train")) == len(PAIRS) - 3
    for path in (tmp_path / "d").glob("translate_own-*"):
        path.unlink()
    again = call_command("t2t-datagen", *OWN)  # the folder remembers it
    assert again.status == 0, again.stderr


def test_tables_and_translation_memories(tmp_path, call_command):
    rows = "".join(f"{n}\t{targets}\t{inputs}\n" for n, (inputs, targets) in enumerate(PAIRS))
    (tmp_path / "a.TSV").write_text(f"id\tGerman\tEnglish\n{rows}")
    units = "".join(
        f'<tu><tuv xml:lang="DE"><seg>{targets}</seg></tuv><tuv xml:lang="en-US"><seg>{inputs}</seg></tuv></tu>'
        for inputs, targets in PAIRS[:50]
    )
    (tmp_path / "b.tmx").write_text(f"<tmx><body>{units}<tu/></body></tmx>")
    flags = [*OWN, "--train_files=a.TSV", "--dev_files=b.tmx", "--languages=en,de", "--vocab_size=310"]
    result = call_command("t2t-datagen", *flags, "--columns=English,German")
    assert result.status == 0, result.stderr
    assert sorted(pairs_of(tmp_path / "d", "train")) == sorted(PAIRS)
    assert sorted(pairs_of(tmp_path / "d", "eval")) == sorted(PAIRS[:50])
    assert removed_from(tmp_path / "d", "translate_own", "eval") == {"units without both languages": 1}
    other = call_command("t2t-datagen", *flags, "--columns=3,2", "--header")
    assert other.status == 2 and "columns = English and German" in other.stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--dev_files=dev.de,dev.en"], ["--dev_files: dev.de,dev.en go the other way than a.en,a.de. Swap"]),
        (["--test_files=x/de/dev.txt,x/en/dev.txt"], ["--test_files: x/de/dev.txt,x/en/dev.txt go the other way"]),
        (["--dev_files=a.en,./a.en"], ["--dev_files: a.en,./a.en: one file for both sides"]),
        (["--languages=de,en"], ["--train_files: a.en,a.de go the other way than --languages=de,en"]),
        (["--columns=1,2"], ["--columns, --header: for .tsv, .csv and .jsonl files alone"]),
    ],
)
def test_sides_are_compared(tmp_path, call_command, assert_user_error, flags, words):
    for name in ("a.en", "a.de", "dev.en", "dev.de", "x/en/dev.txt", "x/de/dev.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    assert_user_error(call_command("t2t-datagen", *OWN, "--train_files=a.en,a.de", *flags), *words)


def test_a_third_language_is_warned_of(tmp_path, caplog):
    for name in ("a.en", "a.de", "b.en", "b.fr", "c.src", "c.ref", "d.en-US", "d.de"):
        (tmp_path / name).write_text(f"{name}\n")
    train = [str(tmp_path / name) for name in ("a.en", "a.de")]
    for dev, warned in (("b.en b.fr", True), ("c.src c.ref", False), ("d.en-US d.de", False), ("a.en a.de", False)):
        caplog.clear()
        problem = registry.problem("translate_own")
        problem.configure(train_files=train, dev_files=[str(tmp_path / name) for name in dev.split()])
        assert ("found .fr, where the language is de" in caplog.text) == warned == bool(caplog.text)


def test_languages_may_have_several_subtags(tmp_path):
    problem = registry.problem("translate_own")
    for name in ("a.en", "a.zh-Hans-CN"):
        (tmp_path / name).write_text("x\n")
    problem.configure(train_files=[str(tmp_path / "a.en"), str(tmp_path / "a.zh-Hans-CN")], filters=["wrong_script"])
    assert problem.language_pair == ("en", "zh-Hans-CN")

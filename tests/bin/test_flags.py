"""Words of a command line that nobody would type, but programs and scripts do."""
# Nearest tests of: t2t_lite/cli/flags.py

import os

import pytest

from t2t_lite.bin import t2t_trainer
from t2t_lite.cli.flags import Flags
from tests.processes import pipe_of


def assert_one_line(err):
    assert err.count("\n") == 1 and len(err) < 5000 and "Traceback" not in err
    err.encode("utf-8")
    assert err[:-1].isprintable()


LONG = "a" * 1000, "train_steps" * 10_000, "é" * 100_000
ODD = [
    *(f"--{word}" for word in LONG), *(f"--{word}=1" for word in LONG), *LONG,
    *(f"--hparams={word}" for word in LONG), *(f"--hparams={word}=1" for word in LONG),
    "--hparams=num_heads=" + "9" * 100_000, "--hparams=" + "[" * 100_000, "--hparams=num_heads=[" + "1," * 50_000 + "]",
    "--", "---", "-", "--=", "--=x", "=", "", " ", "\0", "--\0=1", "--\n", "--no", "--nono", "--nohparams", "-x", "-1",
    "--\udcff", "--\udcff=\udcff", "\udcff", "\x1b[31m", "--\x1b[31m=1", "--hparams=\x1b]0;x\x07", "--hparams=\udcff=1",
    "--hparams==", "--hparams=,", "--hparams=,,", "--hparams=a", "--hparams=a=", "--hparams==1",
    "--hparams=num_heads==4",
    "--hparams=num_heads=4,,", "--hparams=num_heads", "--hparams=num_heads=4=5", "--hparams=num_heads=[4]",
    "--hparams=num_heads=[4", "--hparams=num_heads=4]", "--hparams=num_heads={}", "--hparams=num_heads='4'",
    "--hparams=pos=[timing]", "--hparams=attention_bias=[true]", "--hparams=num_heads[0]=1",
    "--hparams=num_heads=4;pos=emb",
    "--hparams={\"num_heads\": 4}", "--hparams=num_heads=\0", "--hparams=num_heads=4\n,x=1", "--hparams=_own=1",
    "--hparams=__class__=1", "--hparams=values=1", "--hparams=copy=1", "--hparams=١=1", "--hparams=num_heads=0x10",
    "--hparams", "--hp_num_heads", "--hp_=1", "--hp_num_heads=x", "--hp_nothing=1", "--hp_num_heads=[1]",
    "--flagfile", "--flagfile=", "--flagfile=nowhere", "--flagfile=.", "--flagfile=/dev/null/x", "--flagfile=\0",
    "--flagfile=\udcff", "--flagfile=" + "a" * 10_000, "--flagfile=/dev/zero", "--flagfile=itself", "--flagfile=one",
    "--flagfile=binary", "--flagfile=latin", "--flagfile=loop", "--flagfile=pipe", "--flagfile=odd",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "itself").write_text("--flagfile=itself\n")
    (tmp_path / "one").write_text("--flagfile=two\n")
    (tmp_path / "two").write_text("--train_steps=1\n--flagfile=one\n")
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 10)
    (tmp_path / "latin").write_bytes("--problem=café\n".encode("latin-1"))
    (tmp_path / "odd").write_text("train_steps=1\n")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


@pytest.mark.parametrize("word", ODD, ids=lambda word: ascii(word[:30]))
def test_odd_words_are_answered_in_a_line(folder, capsys, word):
    given = ["--hparams_set=transformer_tiny", "--describe", "--vocab_size=9"]
    status = t2t_trainer.main([*given, word])
    _, err = capsys.readouterr()
    if status:  # blanks and empty lists are no mistake
        assert status == 2
        assert_one_line(err)
    else:
        assert word.strip("-=, \n") in ("", "hparams", "hparams=num_heads=4")


def parsed(*argv):
    flags = Flags()
    t2t_trainer.define_flags(flags)
    flags.parse(argv)
    return flags.values


def test_a_file_of_flags(folder):
    (folder / "flags").write_text("# a comment\n\n--train_steps=7\n// another\n  --problem=a b  \n--flagfile=more\n")
    (folder / "more").write_text("--noprofile\n--hp_num_heads=4\n")
    values = parsed("--flagfile=flags", "--worker_gpu=0")
    assert (values.train_steps, values.problem, values.profile, values.worker_gpu) == (7, "a b", False, 0)
    assert values.hparams == "num_heads=4"
    with pipe_of(b"--train_steps=9\n") as read:
        assert parsed(f"--flagfile=/dev/fd/{read}").train_steps == 9

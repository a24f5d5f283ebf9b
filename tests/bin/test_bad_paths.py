"""Every path flag of every command with paths that no command can use: one line, status 1 or 2, and nothing hangs."""

import importlib
import os
import socket

import pytest

from t2t_lite.files import pipes

PATHS = {
    "unknown scheme": "foo://bucket/x",
    "s3": "s3://bucket/x",
    "name too long": "n" * 300,
    "path too long": "n/" * 3000,
    "loop": "loop",
    "below a file": "file/x",
    "not UTF-8": "caf\udce9",
    "NUL": "a\0b",
    "pipe": "pipe",
    "socket": "socket",
}
LM = ["--problem=algorithmic_reverse_decimal40", "--hparams_set=transformer_tiny"]
SERVER = ["--server=http://127.0.0.1:1", "--servable_name=x", "--retries=0"]
FLAGS = {
    "t2t_datagen": [
        ("data_dir", ["--problem=algorithmic_reverse_decimal40", "--max_cases=10"]),
        ("train_files", ["--problem=translate_own", "--data_dir=d", "--dev_files=text,text", "--languages=a,b"]),
        ("t2t_usr_dir", ["--problem=algorithmic_reverse_decimal40", "--data_dir=d"]),
    ],
    "t2t_trainer": [("data_dir", [*LM, "--output_dir=o"]), ("output_dir", [*LM, "--data_dir=d"])],
    "t2t_decoder": [
        ("output_dir", ["--decode_from_file=text"]),
        ("checkpoint_path", ["--decode_from_file=text"]),
        ("decode_from_file", ["--output_dir=o"]),
        ("score_file", ["--output_dir=o"]),
    ],
    "t2t_exporter": [("output_dir", []), ("checkpoint_path", [])],
    "t2t_attention": [("output_dir", ["--text=a"]), ("roles", ["--output_dir=o"]), ("output", ["--text=a"])],
    "t2t_avg_all": [("model_dir", []), ("output_dir", ["--model_dir=o"])],
    "t2t_bleu": [
        ("translation", ["--reference=text"]),
        ("reference", ["--translation=text"]),
        ("translations_dir", ["--reference=text"]),
    ],
    "t2t_evalb": [("gold", ["--predicted=text"]), ("predicted", ["--gold=text"])],
    "t2t_translate_all": [("model_dir", ["--source=text"]), ("source", ["--model_dir=o"])],
    "t2t_query_server": [
        ("inputs_file", SERVER),
        ("outputs_file", [*SERVER, "--inputs_file=text"]),
        ("tls_ca_file", ["--server=https://127.0.0.1:1", "--servable_name=x", "--inputs_once=a", "--retries=0"]),
    ],
}
CASES = [(command, flag, rest) for command, flags in FLAGS.items() for flag, rest in flags]


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pipes, "SECONDS_FOR_THE_OTHER_END", 0.2)
    (tmp_path / "file").write_text("x\n")
    (tmp_path / "text").write_text("a\n")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    socket.socket(socket.AF_UNIX).bind("socket")


@pytest.mark.parametrize(("command", "flag", "rest"), CASES, ids=[f"{c[0]} {c[1]}" for c in CASES])
def test_a_path_that_cannot_be_used_is_one_line(hostile, capsys, command, flag, rest):
    main, wrong = importlib.import_module(f"t2t_lite.bin.{command}").main, []
    for name, path in PATHS.items():
        capsys.readouterr()
        try:
            status = main([*rest, f"--{flag}={path}"])
        except BaseException as error:
            wrong.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
            continue
        errors = [line for line in capsys.readouterr().err.splitlines() if ": error: " in line]
        if status not in (1, 2) or len(errors) != 1 or "\0" in errors[0]:
            wrong.append(f"{name}: status {status}, {errors}")
    assert not wrong, "\n".join(wrong)

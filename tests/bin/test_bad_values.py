"""Every flag of every command with values that mean nothing: one line, status 1 or 2, never a traceback.

The flags are those that the commands declare, so that a new one is tried as well.
"""

import os
import socket

import pytest

from t2t_lite.cli import commands
from t2t_lite.files import pipes

TEXTS = ("", " ", "x" * 1000, "a\0b", "\udcff", "\n", "\x1b[31m", "[1]", "a=[1", "a=1,a=2", ",", "=", "(" * 500, "%s{}")
# Paths that no command can use, and others that some can.
UNUSABLE = ("x" * 300, "x/" * 3000, "a\0b", "caf\udce9", "loop", "file/x", "pipe", "socket", "foo://x/y", "s3://x/y")
PATHS = ("", " ", "/nonexistent/x", "\udcff", "folder", "binary", "empty", "[a-", "\n", *UNUSABLE)
VALUES = {
    "bool": ("", "x", "2", "\udcff"), "path": PATHS,
    "comma separated list of strings": (*PATHS, ",", "a,,b", "empty,empty", "binary,binary", "x," * 500),
}  # fmt: skip
# What each command needs to get past its flags. Where there is no model it ends there.
BASE = {
    "t2t_attention": ["--output_dir=run", "--text=a"],
    "t2t_avg_all": ["--model_dir=run", "--output_dir=averaged"],
    "t2t_bleu": ["--translation=text", "--reference=text"],
    "t2t_completion": ["--shell=bash"],
    "t2t_datagen": ["--problem=algorithmic_reverse_decimal40", "--max_cases=3", "--data_dir=data"],
    "t2t_decoder": ["--output_dir=run", "--decode_from_file=text"],
    "t2t_eval": ["--output_dir=run", "--data_dir=data", "--eval_timeout_mins=0"],
    "t2t_evalb": ["--gold=trees", "--predicted=trees"],
    "t2t_exporter": ["--output_dir=run"],
    "t2t_importer": ["--from=hugging_face", "--path=folder", "--output_dir=imported"],
    "t2t_insights_server": ["--output_dir=run", "--port=0"],
    "t2t_make_tf_configs": ["--workers=a:1,b:2"],
    "t2t_query_server": ["--server=http://127.0.0.1:1", "--servable_name=x", "--inputs_once=a", "--retries=0"],
    "t2t_score": ["--task=classification", "--predictions=labels", "--reference=labels", "--resamples=10"],
    "t2t_server": ["--export_dir=folder", "--port=0"],
    "t2t_trainer": [
        "--problem=algorithmic_reverse_decimal40", "--hparams_set=transformer_tiny", "--data_dir=data",
        "--output_dir=run",
    ],
    "t2t_translate_all": ["--model_dir=run", "--source=text", "--translations_dir=translations"],
}  # fmt: skip
HERE = sorted(name for name in BASE if name.replace("_", "-") in commands.paths())  # an extra may be absent
# What flags need beside or in place of that, so that their paths are looked at.
_ALONE = {
    ("t2t_attention", "roles"): ["--output_dir=run"],
    ("t2t_bleu", "translations_dir"): ["--reference=text"],
    ("t2t_datagen", "train_files"): [
        "--problem=translate_own", "--data_dir=data", "--dev_files=text,text", "--languages=a,b",
    ],
    ("t2t_decoder", "checkpoint_path"): ["--decode_from_file=text"],
    ("t2t_decoder", "score_file"): ["--output_dir=run"],
    ("t2t_exporter", "checkpoint_path"): [],
    ("t2t_query_server", "inputs_file"): ["--server=http://127.0.0.1:1", "--servable_name=x", "--retries=0"],
    ("t2t_query_server", "outputs_file"): [
        "--server=http://127.0.0.1:1", "--servable_name=x", "--retries=0", "--inputs_file=text",
    ],
    ("t2t_query_server", "tls_ca_file"): [
        "--server=https://127.0.0.1:1", "--servable_name=x", "--retries=0", "--inputs_once=a",
    ],
}  # fmt: skip
# Flags of which every path in `UNUSABLE` is a mistake. Other commands may not come to look at theirs.
READ_AT_ONCE = {
    *_ALONE, ("t2t_attention", "output"), ("t2t_attention", "output_dir"), ("t2t_avg_all", "model_dir"),
    ("t2t_avg_all", "output_dir"), ("t2t_bleu", "reference"), ("t2t_bleu", "translation"), ("t2t_datagen", "data_dir"),
    ("t2t_datagen", "t2t_usr_dir"), ("t2t_decoder", "decode_from_file"), ("t2t_decoder", "output_dir"),
    ("t2t_evalb", "gold"), ("t2t_evalb", "predicted"), ("t2t_exporter", "output_dir"), ("t2t_trainer", "data_dir"),
    ("t2t_trainer", "output_dir"), ("t2t_translate_all", "model_dir"), ("t2t_translate_all", "source"),
}  # fmt: skip


def module_of(command):
    return commands.module(command.replace("_", "-"))


def declared(command):
    flags = commands.flags_of(module_of(command))
    shown = [flag for flag in flags.shown() if flag.words != "NUMBER"]  # those: test_number_flags.py
    return [(flag.name, VALUES.get(flag.flag_type(), TEXTS)) for flag in shown]


def test_every_command_is_here():
    others = {"t2t_quickstart"}  # its flags: tests/integration/test_packaging.py
    assert {path.stem for path in commands.paths().values()} - others == {*HERE}


@pytest.mark.parametrize(
    "command, flag, values",
    [(c, *flag) for c in HERE for flag in declared(c)],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_value_without_meaning_is_one_line(tmp_path, monkeypatch, capsys, command, flag, values):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    main = module_of(command).main
    files = {
        "text": b"a\n",
        "trees": b"(S (NP (NN dog)))\n",
        "labels": b"good\ta film\nbad\tanother\n",
        "binary": bytes(range(256)) * 9,
        "empty": b"",
        "file": b"x",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    socket.socket(socket.AF_UNIX).bind("socket")
    monkeypatch.setattr(pipes, "SECONDS_FOR_THE_OTHER_END", 0.1)
    given = [word for word in _ALONE.get((command, flag), BASE[command]) if not word.startswith(f"--{flag}=")]
    for value in values:
        status = main([*given, f"--{flag}={value}"])
        said = [line for line in capsys.readouterr().err.splitlines() if ": error: " in line]
        assert status in (0, 1, 2), (value, status)
        assert len(said) == (status != 0), (value, said)
        assert all(line.isprintable() for line in said)
        assert status or value not in UNUSABLE or (command, flag) not in READ_AT_ONCE, value
        for name, content in files.items():
            assert (tmp_path / name).read_bytes() == content, (value, name)

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
# What commands need to get past their flags. Where there is no model they end there.
BASE = {command: [] for command in commands.paths()} | {
    "t2t-attention": ["--output_dir=run", "--text=a"],
    "t2t-avg-all": ["--model_dir=run", "--output_dir=averaged"],
    "t2t-bleu": ["--translation=text", "--reference=text"],
    "t2t-completion": ["--shell=bash"],
    "t2t-datagen": ["--problem=algorithmic_reverse_decimal40", "--max_cases=3", "--data_dir=data"],
    "t2t-decoder": ["--output_dir=run", "--decode_from_file=text"],
    "t2t-eval": ["--output_dir=run", "--data_dir=data", "--eval_timeout_mins=0"],
    "t2t-evalb": ["--gold=trees", "--predicted=trees"],
    "t2t-exporter": ["--output_dir=run"],
    "t2t-importer": ["--from=hugging_face", "--path=folder", "--output_dir=imported"],
    "t2t-insights-server": ["--output_dir=run", "--port=0"],
    "t2t-make-tf-configs": ["--workers=a:1,b:2"],
    "t2t-query-server": ["--server=http://127.0.0.1:1", "--servable_name=x", "--inputs_once=a", "--retries=0"],
    "t2t-score": ["--task=classification", "--predictions=labels", "--reference=labels", "--resamples=10"],
    "t2t-server": ["--export_dir=folder", "--port=0"],
    "t2t-trainer": [
        "--problem=algorithmic_reverse_decimal40", "--hparams_set=transformer_tiny", "--data_dir=data",
        "--output_dir=run",
    ],
    "t2t-translate-all": ["--model_dir=run", "--source=text", "--translations_dir=translations"],
}  # fmt: skip
# What flags need beside or in place of that, so that their paths are looked at.
_ALONE = {
    ("t2t-attention", "roles"): ["--output_dir=run"],
    ("t2t-bleu", "translations_dir"): ["--reference=text"],
    ("t2t-datagen", "train_files"): [
        "--problem=translate_own", "--data_dir=data", "--dev_files=text,text", "--languages=a,b",
    ],
    ("t2t-decoder", "checkpoint_path"): ["--decode_from_file=text"],
    ("t2t-decoder", "score_file"): ["--output_dir=run"],
    ("t2t-exporter", "checkpoint_path"): [],
    ("t2t-query-server", "inputs_file"): ["--server=http://127.0.0.1:1", "--servable_name=x", "--retries=0"],
    ("t2t-query-server", "outputs_file"): [
        "--server=http://127.0.0.1:1", "--servable_name=x", "--retries=0", "--inputs_file=text",
    ],
    ("t2t-query-server", "tls_ca_file"): [
        "--server=https://127.0.0.1:1", "--servable_name=x", "--retries=0", "--inputs_once=a",
    ],
}  # fmt: skip
# Flags of which every path in `UNUSABLE` is a mistake. Other commands may not come to look at theirs.
READ_AT_ONCE = {
    *_ALONE, ("t2t-attention", "output"), ("t2t-attention", "output_dir"), ("t2t-avg-all", "model_dir"),
    ("t2t-avg-all", "output_dir"), ("t2t-bleu", "reference"), ("t2t-bleu", "translation"), ("t2t-datagen", "data_dir"),
    ("t2t-datagen", "t2t-usr-dir"), ("t2t-decoder", "decode_from_file"), ("t2t-decoder", "output_dir"),
    ("t2t-evalb", "gold"), ("t2t-evalb", "predicted"), ("t2t-exporter", "output_dir"), ("t2t-trainer", "data_dir"),
    ("t2t-trainer", "output_dir"), ("t2t-translate-all", "model_dir"), ("t2t-translate-all", "source"),
}  # fmt: skip


def declared(command):
    shown = [
        flag for flag in commands.flags_of(commands.module(command)).shown() if flag.words != "NUMBER"
    ]  # those: test_number_flags.py
    return [(flag.name, VALUES.get(flag.flag_type(), TEXTS)) for flag in shown]


@pytest.mark.parametrize(
    "command, flag, values",
    [(c, *flag) for c in commands.paths() for flag in declared(c)],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_value_without_meaning_is_one_line(tmp_path, monkeypatch, capsys, command, flag, values):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    main = commands.module(command).main
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

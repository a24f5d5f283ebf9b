"""Every flag of every command with values that mean nothing: one line, status 1 or 2, never a traceback.

The flags are those that the commands declare, so that a new one is tried as well.
"""

import importlib
import pathlib

import pytest

from t2t_lite.bin import _app

NUMBERS = (
    "",
    "-1",
    "1.5",
    "1e30",
    "9223372036854775808",
    "1" + "0" * 400,
    "nan",
    "-inf",
    "x",
    "[1]",
    "1,2",
    "\0",
    "\udcff",
)
TEXTS = ("", " ", "x" * 1000, "a\0b", "\udcff", "\n", "\x1b[31m", "[1]", "a=[1", "a=1,a=2", ",", "=", "(" * 500, "%s{}")
PATHS = (
    "",
    " ",
    "/nonexistent/x",
    "x" * 300,
    "a\0b",
    "\udcff",
    "file/x",
    "folder",
    "binary",
    "empty",
    "foo://x",
    "[a-",
    "\n",
)
VALUES = {
    "int": NUMBERS, "float": NUMBERS, "bool": ("", "x", "2", "\udcff"), "path": PATHS,
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


def declared(command):
    flags = _app.Flags()
    importlib.import_module(f"t2t_lite.bin.{command}").define_flags(flags)
    return [(flag.name, VALUES.get(flag.flag_type(), TEXTS)) for flag in flags.shown()]


def test_every_command_is_here():
    folder = pathlib.Path(_app.__file__).parent
    becomes_a_script = {"t2t_quickstart"}  # its flags: tests/integration/test_packaging.py
    assert {path.stem for path in folder.glob("t2t_*.py")} - becomes_a_script == {*BASE}


@pytest.mark.parametrize(
    "command, flag, values",
    [(c, *flag) for c in BASE for flag in declared(c)],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_value_without_meaning_is_one_line(tmp_path, monkeypatch, capsys, command, flag, values):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    main = importlib.import_module(f"t2t_lite.bin.{command}").main
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
    for value in values:
        given = [word for word in BASE[command] if not word.startswith(f"--{flag}=")]
        status = main([*given, f"--{flag}={value}"])
        said = [line for line in capsys.readouterr().err.splitlines() if ": error: " in line]
        assert status in (0, 1, 2), (value, status)
        assert len(said) == (status != 0), (value, said)
        assert all(line.isprintable() for line in said)
        for name, content in files.items():
            assert (tmp_path / name).read_bytes() == content, (value, name)

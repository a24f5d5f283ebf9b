# Nearest tests of: bin/t2t_decoder.py

import os
import pathlib
import subprocess
import sys

import pytest

from t2t_lite.decoding.translator import Translator
from tests.processes import owned, pipe_of

FAST = "--decode_hparams=extra_length=3"
LINES = ["the red house.", "", "a tree\r", "Grün\u2028und neu", " \t", "old\x00\x01 and new"]


@pytest.fixture
def loaded(translator, monkeypatch):
    """The command finds its model loaded, and what another test has traced."""
    monkeypatch.setattr(Translator, "load", lambda *args: translator)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.en"
    path.write_bytes("\n".join(LINES).encode() + b"\n")
    return path


@pytest.mark.slow
def test_a_file_gives_a_file_of_as_many_lines(call_command, made, source, tmp_path):
    result = call_command(
        "t2t-decoder", f"--output_dir={made}", FAST, "--decode_from_file=in.en", "--decode-to-file=out.de"
    )
    assert result.status == 0 and result.stdout == ""
    assert "6 sentences" in result.stderr and "written: out.de" in result.stderr
    lines = (tmp_path / "out.de").read_bytes().decode().split("\n")
    assert len(lines) == len(LINES) + 1 and lines[-1] == ""
    assert [bool(line) for line in lines[:-1]] == [bool(line.strip()) for line in LINES]
    assert sorted(os.listdir(tmp_path)) == ["in.en", "out.de"]
    again = call_command("t2t-decoder", f"--output_dir={made}", f"{FAST},batch_size=1", "--decode_from_file=in.en",
                         "--decode_to_file=-")  # fmt: skip
    assert again.stdout.split("\n") == lines


@pytest.mark.slow
def test_what_is_open_is_read_and_written_as_it_is(call_command, loaded, made, source, tmp_path):
    """As --decode_to_file=/dev/stdout > out, and --decode_from_file=<(cat in.en), beside which no file can be."""
    args = ["t2t-decoder", f"--output_dir={made}", f"{FAST},beam_size=1"]
    with open(tmp_path / "out", "wb") as file:
        result = call_command(*args, f"--decode_from_file={source}", f"--decode_to_file=/dev/fd/{file.fileno()}")
    assert result.status == 0 and sorted(os.listdir(tmp_path)) == ["in.en", "out"], result.stderr
    with pipe_of(source.read_bytes()) as read:
        again = call_command(*args, f"--decode_from_file=/dev/fd/{read}")
    assert again.stdout == (tmp_path / "out").read_text() and again.stdout.count("\n") == len(LINES)
    assert sorted(os.listdir(tmp_path)) == ["in.en", "out"]


@pytest.mark.long
def test_standard_input_line_by_line(call_command, made, source, tmp_path):
    """Each line is answered before the next one is written; one that is no text is skipped where that is asked."""
    by_file = call_command(
        "t2t-decoder", f"--output_dir={made}", FAST, "--decode_from_file=in.en", "--decode_to_file=-"
    )
    command = [pathlib.Path(sys.executable).with_name("t2t-decoder"), f"--output_dir={made}", FAST, "--on_error=skip"]
    pipe = subprocess.PIPE
    with owned(command, 300, stdin=pipe, stdout=pipe, stderr=pipe, cwd=tmp_path) as process:
        answers = []
        for line in source.read_bytes().split(b"\n")[:-1]:
            process.stdin.write(line + b"\n")
            process.stdin.flush()
            answers.append(process.stdout.readline())
        rest, errors = process.communicate(b"\xff\nold", timeout=60)
    assert process.returncode == 0 and b"".join(answers).decode() == by_file.stdout
    assert rest.startswith(b"\n") and rest.count(b"\n") == 2
    assert "standard input, line 7: byte 0xff" in errors.decode() and "1 line skipped" in errors.decode()


def test_an_empty_file_gives_an_empty_file(call_command, loaded, made, tmp_path):
    (tmp_path / "none").write_bytes(b"")
    result = call_command("t2t-decoder", f"--output_dir={made}", "--decode_from_file=none", "--decode_to_file=out",
                          "--decode_reference=none")  # fmt: skip
    assert (tmp_path / "out").read_bytes() == b""
    assert result.status == 0 and "BLEU" not in result.stderr


@pytest.mark.slow
def test_flags_of_the_training_may_be_repeated(eager, call_command, made, source):
    result = call_command("t2t-decoder", f"--output_dir={made}", f"{FAST},beam_size=1", "--problem=translate_own",
                          "--model=transformer", "--hparams_set=transformer_tiny", "--hparams=num_heads=2",
                          f"--data_dir={made}", "--worker_gpu=1", "--decode_from_file=in.en",
                          "--decode_to_file=out")  # fmt: skip
    assert result.status == 0, result.stderr


@pytest.mark.parametrize(
    "flags, words",
    [
        (["--hparams=num_heads=4"], ["num_heads=4", "num_heads=2"]),
        (["--score_file=x", "--decode_from_file="], ["--score_file", "x", "no such file"]),
        (["--score_file=in.en", "--decode_from_file=", "--mbr=chrf"], ["--mbr", "--score_file"]),
        (["--decode_from_file=bad"], ["bad, line 2", "UTF-8"]),
        (["--decode_reference=bad.ref"], ["bad.ref", "1 line", "6"]),
    ],
)
def test_mistakes(call_command, assert_user_error, made, source, tmp_path, flags, words):
    (tmp_path / "bad").write_bytes(b"good\n\xff\n")
    (tmp_path / "bad.ref").write_bytes(b"one\n")
    before = sorted(os.listdir(tmp_path))
    args = {f.split("=")[0]: f for f in [f"--output_dir={made}", "--decode_from_file=in.en", "--decode_to_file=out"]}
    args |= {f.split("=")[0]: f for f in flags}
    assert_user_error(call_command("t2t-decoder", *args.values()), *words)
    assert sorted(os.listdir(tmp_path)) == before


def test_no_model_is_named(call_command, assert_user_error, source):
    assert_user_error(call_command("t2t-decoder", "--decode_from_file=in.en"), "--output_dir")


@pytest.mark.slow
def test_bfloat16_where_the_cpu_is_slow_in_it_is_float32(eager, call_command, made, source, monkeypatch):
    source.write_text("old\n")
    command = ["t2t-decoder", f"--output_dir={made}", f"{FAST},beam_size=1"]
    command += [f"--decode_from_file={source}", "--decode_to_file=-"]
    expected = call_command(*command)
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    result = call_command(*command, "--compute_dtype=bfloat16", "--logical_cpus=2")
    assert result.stdout == expected.stdout
    assert result.stderr.count("Using float32.") == 1

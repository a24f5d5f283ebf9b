"""t2t-decoder as a process that is killed, on several devices, and with several checkpoints."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from t2t_lite.decoding.command.job import DecodingJob
from tests.decoding.runs import SENTENCES

# Kills itself in its third write, when the lines are in the file and the record does not know of them.
KILLED = """
import os, signal, sys
from t2t_lite.bin import t2t_decoder
from t2t_lite.decoding.command.job import DecodingJob
from t2t_lite.files import resumable
DecodingJob.chunk = 8
written = []
def write_json(path, value, write=resumable.files.write_json):
    written.append(path)
    if len(written) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    write(path, value)
resumable.files.write_json = write_json
sys.exit(t2t_decoder.main())
"""
SETTINGS = "--decode_hparams=extra_length=3,beam_size=2,return_beams=true,write_beam_scores=true"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in"
    path.write_text("".join(f"{line}\n" for line in SENTENCES[:30]))
    return path


@pytest.mark.long
def test_a_killed_command_goes_on_and_ends_in_the_same_bytes(call_command, made, source, tmp_path, monkeypatch):
    args = [f"--output_dir={made}", "--decode_from_file=in", SETTINGS]
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *args, "--decode_to_file=out"], cwd=tmp_path, timeout=300, capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert sorted(os.listdir(tmp_path)) == ["in", "out.t2t_lite_incomplete", "out.t2t_lite_incomplete.json"]
    assert (tmp_path / "out.t2t_lite_incomplete").read_text().count("\n") == 24  # of which 16 are on record
    monkeypatch.setattr(DecodingJob, "chunk", 8)
    result = call_command("t2t-decoder", *args, "--decode_to_file=out")
    assert result.status == 0 and "resuming after 16 lines" in result.stderr and "30 of 30" in result.stderr
    call_command("t2t-decoder", *args, "--decode_to_file=whole")
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["in", "out", "whole"]


@pytest.mark.long
def test_two_devices_give_what_one_gives(call_command, made, source, tmp_path):
    args = ["t2t-decoder", f"--output_dir={made}", "--decode_from_file=in", SETTINGS]
    result = call_command(*args, "--logical_cpus=2", "--decode_to_file=two")
    assert result.status == 0 and "2 logical CPU replicas" in result.stderr
    result = call_command(*args, "--worker_gpu=1", "--decode_to_file=one")
    assert "no GPU is visible" in result.stderr
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_more_gpus_than_there_are(call_command, assert_user_error, made, source):
    result = call_command("t2t-decoder", f"--output_dir={made}", "--decode_from_file=in", "--worker_gpu=2")
    assert_user_error(result, "--worker_gpu=2", "0 GPUs are visible")


@pytest.mark.parametrize("name", ["--output_dir=a,b", "--checkpoint_path=a,b", "--checkpoint_path=a,b/model.ckpt-100"])
def test_a_comma_may_be_of_a_name(call_command, made, tmp_path, name):
    shutil.copytree(made, tmp_path / "a,b")
    (tmp_path / "none").write_text("")
    result = call_command("t2t-decoder", name, "--decode_from_file=none", "--decode_to_file=out")
    assert result.status == 0, result.stderr

"""t2t-decoder as a process that is killed, on several devices, and with several checkpoints."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

from t2t_lite.decoding.command.job import DecodingJob
from tests.decoding.runs import SENTENCES, make_run

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


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"), steps=(100, 200), seed=10)


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


@pytest.mark.long
def test_several_checkpoints_are_an_ensemble(call_command, made, source, tmp_path):
    one, two = (f"{made}/model.ckpt-{step}" for step in (100, 200))
    outputs = {}
    for name, paths in (("one", one), ("same", f"{one},{one}"), ("both", f"{one},{two}")):
        result = call_command("t2t-decoder", f"--checkpoint_path={paths}", "--decode_from_file=in", SETTINGS,
                              f"--decode_to_file={name}", "--keep_timestamp")  # fmt: skip
        assert result.status == 0, result.stderr
        outputs[name] = (tmp_path / name).read_text()
    texts = {name: [line.split("\t")[0] for line in text.split("\n")] for name, text in outputs.items()}
    assert texts["one"] == texts["same"] and outputs["both"] != outputs["one"]
    stamp = os.stat(f"{two}.index").st_mtime
    assert os.stat(tmp_path / "both").st_mtime == stamp


@pytest.mark.parametrize("name", ["--output_dir=a,b", "--checkpoint_path=a,b", "--checkpoint_path=a,b/model.ckpt-100"])
def test_a_comma_may_be_of_a_name(call_command, made, tmp_path, name):
    shutil.copytree(made, tmp_path / "a,b")
    (tmp_path / "none").write_text("")
    result = call_command("t2t-decoder", name, "--decode_from_file=none", "--decode_to_file=out")
    assert result.status == 0, result.stderr


def test_a_checkpoint_that_is_cut_off(call_command, assert_user_error, made, source, tmp_path):
    run = shutil.copytree(made, tmp_path / "run")
    data = run / "model.ckpt-200.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-5000])
    result = call_command("t2t-decoder", "--output_dir=run", "--decode_from_file=in", "--decode_to_file=out")
    assert_user_error(result, "model.ckpt-200", "damaged")
    assert sorted(os.listdir(tmp_path)) == ["in", "run"]


def test_no_permission(call_command, made, source, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may do everything")
    source.chmod(0)
    result = call_command("t2t-decoder", f"--output_dir={made}", "--decode_from_file=in", "--decode_to_file=out")
    assert result.status == 2 and "no permission" in result.stderr

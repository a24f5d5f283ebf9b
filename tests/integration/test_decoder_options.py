"""What t2t-decoder can do with a file beyond translating it: one model for all tests, loaded and traced once."""
# Nearest tests of: t2t_lite/decoding/command/decode_files.py, t2t_lite/decoding/command/decode_records.py
# Nearest tests of: t2t_lite/decoding/command/tuning.py, t2t_lite/decoding/command/job.py

import os
import shutil

import pytest

from t2t_lite.decoding.translator import Translator
from t2t_lite.runs.opening import open_runs
from t2t_lite.settings.config import parse_assignments
from tests.decoding.runs import SENTENCES

LINES = ["the red house.", "", "a tree was new.", "old", "Grün und neu", "the red house."]


@pytest.fixture
def decode(call_command, made, translator, tmp_path, monkeypatch):
    """Calls t2t-decoder on `in` with settings that are quick; returns its result and the lines of `out`."""
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    monkeypatch.setattr(Translator, "load", lambda *args: translator)

    def run(*args, hparams="", status=0):
        settings = {"extra_length": "3", "beam_size": "3"} | parse_assignments(hparams, "")
        wanted = {"--output_dir": made, "--decode_from_file": "in", "--decode_to_file": "out",
                  "--decode_hparams": ",".join(f"{name}={value}" for name, value in settings.items())}  # fmt: skip
        for arg in args:
            name, _, value = arg.partition("=")
            wanted[name] = value
        result = call_command(
            "t2t-decoder", *(f"{name}={value}" for name, value in wanted.items() if value is not None)
        )
        assert result.status == status, result.stderr
        path = tmp_path / (wanted["--decode_to_file"] or "nothing")
        return result, path.read_text(encoding="utf-8").split("\n")[:-1] if path.is_file() else None

    return run


@pytest.mark.slow
def test_records_of_the_problem(decode, made, tmp_path, translator):
    data = made.parent / "data"
    flags = ["--decode_from_file=", "--problem=translate_own", f"--data_dir={data}"]
    result, _ = decode(*flags, "--decode_to_file=dev", "--keep_timestamp=true", hparams="num_samples=7")
    base = "dev.transformer.transformer_tiny.translate_own.beam3.alpha0.6"
    files = {name: (tmp_path / f"{base}.{name}").read_text().splitlines() for name in ("inputs", "targets", "decodes")}
    assert "7 dev examples" in result.stderr and "sacreBLEU = " in result.stderr
    assert set(files["inputs"]) <= set(SENTENCES) and files["targets"] == files["inputs"]  # the run's data are so
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in files["inputs"]))
    assert decode()[1] == files["decodes"]
    stamp = (made / "model.ckpt-200.index").stat().st_mtime
    assert (tmp_path / f"{base}.decodes").stat().st_mtime == stamp
    result, _ = decode(*flags, "--eval_use_test_set=true", status=2)
    assert "translate_own-test-" in result.stderr


def test_other_delimiters(decode, tmp_path):
    _, whole = decode()
    (tmp_path / "in").write_text("|".join(LINES[:4]) + "|\n")
    decode(hparams="delimiter=|")
    assert (tmp_path / "out").read_text() == "".join(f"{line}|" for line in whole[:4])


@pytest.mark.slow
def test_the_model_is_looked_up_once(decode, made, tmp_path, translator, monkeypatch):
    """Beside a running trainer, a newer checkpoint may appear at any time."""
    run = shutil.copytree(made, tmp_path / "run")
    os.utime(run / "model.ckpt-200.index", (1000, 1000))

    def load(paths, data_dir, *_):
        shutil.copy(run / "model.ckpt-200.index", run / "model.ckpt-300.index")
        os.remove(run / "hparams.json")
        assert [run.path for path in paths for run in open_runs(path)] == [f"{run}/model.ckpt-200"]
        return translator

    monkeypatch.setattr(Translator, "load", load)
    decode(f"--output_dir={run}", "--keep_timestamp=true")
    assert os.stat(tmp_path / "out").st_mtime == 1000


@pytest.mark.long
def test_a_beam_larger_than_the_vocabulary(decode, translator):
    size = translator.encoders["targets"].vocab_size
    _, lines = decode(hparams=f"extra_length=1,beam_size={size + 50},n_best={size}")
    assert len(lines) == len(LINES) and all(len(line.split("\t")) > 1 for line in lines if line)


def test_a_full_disk(decode):
    result, _ = decode("--decode_to_file=/dev/full", status=1)
    assert "the disk is full" in result.stderr and "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_grid_of_settings_on_a_dev_set(decode, made, tmp_path):
    result, _ = decode("--tune=beam_size=1", "--decode_from_file=", "--decode_to_file=",
                       f"--data_dir={made.parent / 'data'}", hparams="num_samples=3")  # fmt: skip
    assert "best: --decode_hparams=beam_size=1" in result.stdout and "3 sentences" in result.stderr
    result, _ = decode("--tune=beam=1", "--decode_from_file=", "--decode_to_file=", f"--data_dir={made}", status=2)
    assert "--tune: 'beam=1'" in result.stderr

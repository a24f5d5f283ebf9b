"""t2t-avg-all on checkpoints whose mean is worked out by hand."""

import os
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.runs.run_config import read_run_config, write_run_config

CONFIG = {
    "format": 1,
    "problem": "algorithmic_identity_decimal40",
    "model": "transformer",
    "hparams_set": "transformer_tiny",
    "vocab_size": 12,
    "target_vocab_size": None,
    "vocabulary_sha256": {},
    "usr_dir": "",
    "hparams": {"hidden_size": 8},
}


@pytest.fixture
def model_dir(tmp_path):
    """A run directory; `save(step, weight, time)` adds a checkpoint whose weights are all `weight`."""
    folder = tmp_path / "run"
    folder.mkdir()
    write_run_config(str(folder), CONFIG)
    (folder / "flags.txt").write_text("--train_steps=5\n")
    os.utime(folder / "flags.txt", (1000, 1000))
    return folder


@pytest.fixture
def save(model_dir):
    def save(step, weight, seconds=None, dtype="float32", shape=(2,), folder=model_dir):
        values = {
            "model": tf.train.Checkpoint(kernel=tf.Variable(tf.fill(shape, tf.cast(weight, dtype)))),
            "optimizer": tf.train.Checkpoint(moment=tf.Variable([float(step)])),
            "step": tf.Variable(step, dtype=tf.int64),
        }
        tf.train.Checkpoint(**values).write(str(folder / f"model.ckpt-{step}"))
        seconds = seconds or 2000 + step
        os.utime(folder / f"model.ckpt-{step}.index", (seconds, seconds))

    return save


def weights(prefix):
    """Returns {name: array} of the variables in a checkpoint."""
    reader = tf.train.load_checkpoint(str(prefix))
    names = [name for name in reader.get_variable_to_shape_map() if name.endswith("VARIABLE_VALUE")]
    return {name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE"): reader.get_tensor(name) for name in names}


def test_each_average_is_the_mean_of_the_last_n(call_command, model_dir, save, tmp_path):
    for step, weight in ((900, 1.0), (1000, 2.0), (1100, 4.0), (10000, 9.0)):  # 10000 is not between 1000 and 1100
        save(step, weight)
    result = call_command("t2t-avg-all", "--model_dir=run", "--n=3", "--output_dir=averaged")
    assert result.status == 0, result.stderr
    assert result.stdout.splitlines() == ["averaged/model.ckpt-1100", "averaged/model.ckpt-10000"]
    assert sorted(p.name for p in (tmp_path / "averaged").glob("*.index")) == [
        "model.ckpt-10000.index",
        "model.ckpt-1100.index",
    ]
    for step, mean in ((1100, 7 / 3), (10000, 5.0)):
        found = weights(tmp_path / f"averaged/model.ckpt-{step}")
        np.testing.assert_allclose(found["model/kernel"], [mean, mean], rtol=1e-6)
        assert found["step"] == step
        assert not [name for name in found if name.startswith("optimizer")]


def test_the_folder_is_complete_and_keeps_times(call_command, model_dir, save, tmp_path):
    for step in (1, 2):
        save(step, float(step))
    assert call_command("t2t-avg-all", "--model_dir=run", "--n=2").status == 0
    averaged = tmp_path / "avg"  # the default, as in tensor2tensor
    assert read_run_config(str(averaged)) == read_run_config(str(model_dir))
    assert (averaged / "flags.txt").read_text() == "--train_steps=5\n"
    assert (averaged / "flags.txt").stat().st_mtime == 1000
    assert (averaged / "model.ckpt-2.index").stat().st_mtime == 2002


def test_weights_keep_their_type(call_command, save, tmp_path):
    for step in (1, 2):
        save(step, float(step), dtype="bfloat16")
    assert call_command("t2t-avg-all", "--model_dir=run", "--n=2").status == 0
    kernel = weights(tmp_path / "avg/model.ckpt-2")["model/kernel"]
    assert kernel.dtype == tf.bfloat16.as_numpy_dtype
    assert kernel.astype("float32").tolist() == [1.5, 1.5]


def test_min_steps_leaves_earlier_ones_out(call_command, save, tmp_path):
    for step in (1, 2, 3):
        save(step, float(step))
    result = call_command("t2t-avg-all", "--model_dir=run", "--n=2", "--min_steps=2")
    assert result.stdout.splitlines() == ["avg/model.ckpt-3"]


def test_home_folder_is_expanded_before_anything_is_made(call_command, save, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    save(1, 1.0)
    assert call_command("t2t-avg-all", "--model_dir=~/run", "--n=1", "--output_dir=~/mean").status == 0
    assert (tmp_path / "mean/model.ckpt-1.index").exists()
    assert not (tmp_path / "~").exists()


def test_running_again_gives_the_same(call_command, save, tmp_path):
    save(1, 1.0)
    for _ in range(2):
        assert call_command("t2t-avg-all", "--model_dir=run", "--n=1").status == 0
    assert weights(tmp_path / "avg/model.ckpt-1")["model/kernel"].tolist() == [1.0, 1.0]


def test_mixed_runs_are_noticed(call_command, save):
    save(1000, 1.0, seconds=5000)
    save(2000, 2.0, seconds=4000)  # left from an earlier run
    result = call_command("t2t-avg-all", "--model_dir=run", "--n=2")
    assert "warning: model.ckpt-2000 is older than model.ckpt-1000" in result.stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], ["--model_dir"]),
        (["--model_dir=nowhere"], ["--model_dir=nowhere", "no such folder"]),
        (["--model_dir=run", "--n=3"], ["2 checkpoints", "--n=3"]),
        (["--model_dir=run", "--n=2", "--min_steps=2"], ["1 checkpoint from step 2", "--n=2"]),
        (["--model_dir=run", "--n=0"], ["--n=0", "from 1 to"]),
        (["--model_dir=run", "--n=2", "--output_dir=run/"], ["--output_dir=run/", "overwrite"]),
    ],
)
def test_mistakes_leave_nothing_behind(call_command, assert_user_error, save, tmp_path, flags, words):
    save(1, 1.0)
    save(2, 2.0)
    before = sorted(pathlib.Path(tmp_path).rglob("*"))
    assert_user_error(call_command("t2t-avg-all", *flags), *words)
    assert sorted(pathlib.Path(tmp_path).rglob("*")) == before


def test_a_folder_without_settings(call_command, assert_user_error, model_dir, save):
    save(1, 1.0)
    (model_dir / "hparams.json").unlink()
    assert_user_error(call_command("t2t-avg-all", "--model_dir=run", "--n=1"), "no hparams.json")


def test_averages_of_another_run_are_not_mixed_with(call_command, assert_user_error, save, tmp_path):
    save(1, 1.0)
    (tmp_path / "avg").mkdir()
    write_run_config(str(tmp_path / "avg"), {**CONFIG, "hparams": {"hidden_size": 16}})
    assert_user_error(call_command("t2t-avg-all", "--model_dir=run", "--n=1"), "--output_dir=avg/", "another run")


def test_averages_of_another_n_are_not_mixed_with(call_command, assert_user_error, save, tmp_path):
    """They would have the same times as these, and so pass for them: t2t-eval and others skip what they have seen."""
    for step in (1, 2, 3):
        save(step, float(step))
    assert call_command("t2t-avg-all", "--model_dir=run", "--n=2").status == 0
    before = {path: path.read_bytes() for path in (tmp_path / "avg").iterdir()}
    result = call_command("t2t-avg-all", "--model_dir=run", "--n=1")
    assert_user_error(result, "--n=1", "--output_dir=avg/ holds averages of 2 checkpoints", "another --output_dir")
    assert {path: path.read_bytes() for path in (tmp_path / "avg").iterdir()} == before
    assert call_command("t2t-avg-all", "--model_dir=run", "--n=2", "--min_steps=2").status == 0
    (tmp_path / "avg" / "averages.json").unlink()  # as earlier versions leave it
    assert call_command("t2t-avg-all", "--model_dir=run", "--n=2").status == 0


@pytest.mark.parametrize("folder", ["other", "other/best"])
def test_a_trainers_own_checkpoints_are_not_overwritten(call_command, assert_user_error, save, tmp_path, folder):
    save(10, 1.0)
    (tmp_path / "other" / "best").mkdir(parents=True)
    (tmp_path / "other" / "train.log").write_text("")
    assert_user_error(
        call_command("t2t-avg-all", "--model_dir=run", "--n=1", f"--output_dir={folder}"), folder, "another"
    )
    assert os.listdir(tmp_path / "other" / "best") == []


@pytest.mark.parametrize("existing", [None, "hparams.json", "note"])
def test_a_failure_leaves_the_folder_as_it_was(call_command, assert_user_error, save, model_dir, tmp_path, existing):
    save(1, 1.0)
    save(2, float("nan"))
    if existing:
        (tmp_path / "avg").mkdir()
        (tmp_path / "avg" / existing).write_bytes((model_dir / "hparams.json").read_bytes())
    before = sorted(tmp_path.rglob("*"))
    assert_user_error(call_command("t2t-avg-all", "--model_dir=run", "--n=2"), "model.ckpt-2: kernel: 2 of 2 numbers")
    assert sorted(tmp_path.rglob("*")) == before


def test_checkpoints_of_other_shapes(call_command, assert_user_error, save):
    save(1, 1.0)
    save(2, 1.0, shape=(3,))
    assert_user_error(call_command("t2t-avg-all", "--model_dir=run", "--n=2"), "model.ckpt-2", "kernel", "[2]", "[3]")


def test_truncated_checkpoint(call_command, assert_user_error, model_dir, save):
    save(1, 1.0)
    save(2, 2.0)
    (data,) = model_dir.glob("model.ckpt-1.data-*")
    data.write_bytes(data.read_bytes()[:3])
    assert_user_error(call_command("t2t-avg-all", "--model_dir=run", "--n=2"), "model.ckpt-1")


@pytest.mark.parametrize("name", ["run/flags.txt", "avg/flags.txt", "avg/averages.json", "avg/model.ckpt-1.index"])
def test_a_folder_in_the_place_of_a_file(call_command, assert_user_error, model_dir, save, tmp_path, name):
    save(1, 1.0)
    (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / name).mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    assert_user_error(call_command("t2t-avg-all", "--model_dir=run", "--n=1"), f"{name}: is a folder. Expected a file")
    assert sorted(tmp_path.rglob("*")) == before

"""t2t-avg-all on checkpoints whose mean is worked out by hand; test_checkpoints.py has the averages themselves."""

# Nearest tests of: bin/t2t_avg_all.py

import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

from t2t_lite.files import resumable
from t2t_lite.runs import checkpoints, run_config
from t2t_lite.runs.run_config import read_run_config, write_run_config
from tests.integration.conftest import replaced

CONFIG = {
    "format": 1, "problem": "algorithmic_identity_decimal40", "model": "transformer", "hparams_set": "transformer_tiny",
    "vocab_size": 12, "target_vocab_size": None, "vocabulary_sha256": {}, "usr_dir": "", "hparams": {"hidden_size": 8},
}  # fmt: skip


@pytest.fixture
def model_dir(tmp_path):
    """A run without checkpoints."""
    folder = tmp_path / "run"
    folder.mkdir()
    write_run_config(str(folder), CONFIG)
    (folder / "flags.txt").write_text("--train_steps=5\n")
    os.utime(folder / "flags.txt", (1000, 1000))
    return folder


@pytest.fixture
def save(model_dir):
    """Adds a checkpoint whose two weights are `weight`, written at 2000 + step seconds."""

    def save(step, weight, seconds=None):
        model = tf.train.Checkpoint(kernel=tf.Variable(tf.fill((2,), float(weight))))
        path = str(model_dir / f"model.ckpt-{step}")
        tf.train.Checkpoint(model=model, step=tf.Variable(step, dtype=tf.int64)).write(path)
        os.utime(f"{path}.index", (seconds or 2000 + step,) * 2)

    return save


@pytest.fixture
def average(call_command):
    """Calls the command on the run, with an n and further flags."""
    return lambda n, *flags: call_command("t2t-avg-all", *replaced(["--model_dir=run", f"--n={n}"], *flags))


def kernel(path):
    return tf.train.load_checkpoint(str(path)).get_tensor("model/kernel/.ATTRIBUTES/VARIABLE_VALUE").tolist()


def test_each_average_is_the_mean_of_the_last_n(average, save, tmp_path):
    for step, weight in ((900, 1.0), (1000, 2.0), (1100, 4.0), (10000, 9.0)):  # 10000 is not between 1000 and 1100
        save(step, weight)
    result = average(3, "--output_dir=averaged")
    assert result.status == 0, result.stderr
    assert result.stdout.splitlines() == ["averaged/model.ckpt-1100", "averaged/model.ckpt-10000"]
    said = [line.partition("averaged ")[2] for line in result.stderr.splitlines()]
    assert said == ["3 checkpoints, steps 900 to 1100", "3 checkpoints, steps 1000 to 10000"]
    found = {path.stem: kernel(path.with_suffix("")) for path in (tmp_path / "averaged").glob("*.index")}
    means = {"model.ckpt-1100": [7 / 3] * 2, "model.ckpt-10000": [5.0] * 2}
    assert found.keys() == means.keys()
    for name, mean in means.items():
        np.testing.assert_allclose(found[name], mean, rtol=1e-6)


def test_the_folder_is_complete_and_keeps_times(average, model_dir, save, tmp_path, monkeypatch):
    """Also when the command runs again; the home folder is expanded before anything is made."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for step in (1, 2):
        save(step, step)
    for _ in range(2):
        assert average(2, "--model_dir=~/run").status == 0
    averaged = tmp_path / "avg"  # the default, as in tensor2tensor
    assert read_run_config(str(averaged)) == read_run_config(str(model_dir))
    assert (averaged / "flags.txt").read_text() == "--train_steps=5\n"
    assert (averaged / "flags.txt").stat().st_mtime == 1000
    assert (averaged / "model.ckpt-2.index").stat().st_mtime == 2002
    assert kernel(averaged / "model.ckpt-2") == [1.5, 1.5] and not (tmp_path / "~").exists()


def test_the_users_folder_of_the_run_is_imported_unless_it_is_given(average, save, model_dir, tmp_path, monkeypatch):
    imported = []
    monkeypatch.setattr(
        run_config, "import_usr_dir", lambda folder, config: imported.append((folder, config["usr_dir"]))
    )
    write_run_config(str(model_dir), CONFIG | {"usr_dir": str(tmp_path / "gone")})
    save(1, 1)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").touch()
    assert average(1, "--t2t_usr_dir=mine", "--output_dir=a").status == 0 and not imported
    assert average(1, "--output_dir=b").status == 0 and imported == [("run", str(tmp_path / "gone"))]


@pytest.mark.parametrize(("second", "is_older"), [(4998, True), (4999, False), (5000, False)])
def test_a_checkpoint_that_is_older_than_the_one_before_is_noticed(average, save, second, is_older):
    """Copies of one folder are made within a second."""
    save(1000, 1.0, seconds=5000)
    save(2000, 2.0, seconds=second)
    assert ("warning: model.ckpt-2000 is older than model.ckpt-1000" in average(2).stderr) == is_older


def test_it_waits_for_the_next_checkpoint_and_leaves_out_what_was_deleted(average, save, model_dir, clock, monkeypatch):
    for step in (1, 2, 3):
        save(step, step)
    asleep = clock.sleep

    def train_on(seconds):
        asleep(seconds)
        if len(clock.sleeps) == 2:
            save(4, 4), save(5, 5)
            (model_dir / "model.ckpt-3.index").unlink()

    monkeypatch.setattr(resumable.time, "sleep", train_on)
    result = average(2, "--wait_minutes=2", "--min_steps=2")
    assert result.stdout.splitlines() == ["avg/model.ckpt-3", "avg/model.ckpt-5"]
    assert "no average for step 4: the trainer has deleted model.ckpt-3" in result.stderr
    assert sum(clock.sleeps[2:]) >= 120, "the wait begins again with each checkpoint"


def test_it_leaves_out_what_is_deleted_while_it_reads(average, save, model_dir, monkeypatch):
    def open_checkpoint(path, opened=checkpoints.open_checkpoint):
        (model_dir / "model.ckpt-1.index").unlink(missing_ok=True)
        return opened(path)

    for step in (1, 2, 3):
        save(step, step)
    monkeypatch.setattr(checkpoints, "open_checkpoint", open_checkpoint)
    result = average(2)
    assert result.stdout.splitlines() == ["avg/model.ckpt-3"]
    assert "no average for step 2: the trainer has deleted model.ckpt-1" in result.stderr


def _spoil_second(folder):
    path = folder / "run" / "model.ckpt-2.data-00000-of-00001"
    path.write_bytes(path.read_bytes()[:3])


def _place(name):
    def place(folder):
        path = folder / name
        path.unlink(missing_ok=True)
        path.mkdir(parents=True)

    return place


def _averages(**config):
    def write(folder):
        (folder / "avg").mkdir()
        write_run_config(str(folder / "avg"), CONFIG | config)

    return write


def _averages_of_three(folder):
    _averages()(folder)
    (folder / "avg" / "averages.json").write_text('{"n": 3}')


def _average_of_step_three(folder):
    _averages()(folder)
    (folder / "avg" / "model.ckpt-3.index").write_text("")


def _of_trainer(name):
    def write(folder):
        (folder / "other" / "best").mkdir(parents=True)
        (folder / "other" / name).write_text("")

    return write


REFUSED = {  # {what: (what is there, beside checkpoints of steps 1 and 2; flags; what is said)}
    "no flag": (None, ["--model_dir="], ["--model_dir"]),
    "too few steps": (None, ["--min_steps=2"], ["1 checkpoint from step 2", "--n=2"]),
    "another run": (_averages(hparams={"hidden_size": 16}), [], ["--output_dir=avg/", "another run"]),
    "another n": (_averages_of_three, [], ["--n=2", "--output_dir=avg/ holds averages of 3 checkpoints"]),
    "a later average": (_average_of_step_three, [], ["--output_dir=avg/", "of step 3", "run is of step 2"]),
    "a trainer's folder": (_of_trainer("train.log"), ["--output_dir=other"], ["--output_dir=other"]),
    "a trainer's best": (_of_trainer("train.log"), ["--output_dir=other/best"], ["--output_dir=other/best"]),
    "damaged": (_spoil_second, [], ["model.ckpt-2"]),
    "damaged, in a folder that is there": (lambda f: [_averages()(f), _spoil_second(f)], [], ["model.ckpt-2"]),
    **{
        f"a folder {name}": (_place(name), [], [f"{name}: is a folder"])
        for name in ("run/flags.txt", "avg/flags.txt", "avg/averages.json", "avg/model.ckpt-2.index")
    },
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_mistakes_leave_everything_as_it_was(average, assert_user_error, save, tmp_path, what):
    make, flags, words = REFUSED[what]
    save(1, 1.0), save(2, 2.0)
    if make:
        make(tmp_path)
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    assert_user_error(average(2, *flags), *words)
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before


def test_what_is_not_mistaken_for_another(average, save, tmp_path):
    """Averages of an earlier version, which has no averages.json and fewer settings; a folder `best` of no trainer."""
    save(1, 1.0), save(2, 2.0)
    (tmp_path / "avg").mkdir()
    write_run_config(str(tmp_path / "avg"), {name: value for name, value in CONFIG.items() if name != "extras"})
    assert average(2).status == average(2, "--min_steps=1").status == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "train.log").write_text("")
    shutil.copytree(tmp_path / "avg", tmp_path / "other" / "avg")
    assert average(2, "--output_dir=other/avg").status == average(2, "--output_dir=best").status == 0


def test_a_run_that_continues_with_other_flags_is_still_the_same(average, model_dir, save, tmp_path):
    for step in (1, 2, 3):
        save(step, step)
        write_run_config(str(model_dir), CONFIG | {"plan": {"train_steps": step}} if step > 1 else CONFIG)
        result = average(1)
        assert result.status == 0, result.stderr
    assert read_run_config(str(tmp_path / "avg"))["plan"] == {"train_steps": 3}
    assert kernel(tmp_path / "avg" / "model.ckpt-3") == [3.0, 3.0]

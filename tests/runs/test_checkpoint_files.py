"""Checkpoints are found by what is there; the list `checkpoint` is a help, no more."""

import os

import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.runs import checkpoint_files as files


def make(folder, *names):
    """Makes empty files; "6" stands for those of the whole checkpoint of step 6."""
    folder.mkdir(exist_ok=True)
    for name in names:
        whole = [f"model.ckpt-{name}.index", f"model.ckpt-{name}.data-00000-of-00001"] if name.isdigit() else [name]
        for file in whole:
            (folder / file).write_bytes(b"")
    return str(folder)


def test_they_are_ordered_by_step_and_need_an_index(tmp_path):
    run = make(
        tmp_path / "run", "900", "1000", "model.ckpt-2000.data-00000-of-00001", "model.ckpt-x.index", "m-9.index"
    )
    assert list(map(os.path.basename, files.list_checkpoints(run))) == ["model.ckpt-900", "model.ckpt-1000"]
    assert files.newest_checkpoint(run) == os.path.join(run, "model.ckpt-1000")
    assert files.list_checkpoints(str(tmp_path / "nowhere")) == []
    assert files.newest_checkpoint(make(tmp_path / "empty")) is None


def test_a_step_that_is_too_large_to_count_is_named(tmp_path):
    run = make(tmp_path / "run", "900", f"{2**63 - 1}", "model.ckpt-٣.index")
    assert list(map(files.checkpoint_step, files.list_checkpoints(run))) == [900, 2**63 - 1]
    make(tmp_path / "large", f"{2**63}")
    for find in (files.list_checkpoints, files.newest_checkpoint):
        with pytest.raises(UserError, match=rf"model.ckpt-{2**63}: step {2**63} .* 9,223,372,"):
            find(str(tmp_path / "large"))


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (["6"], ""),
        (["model.ckpt-6.index"], "a data file"),
        (["model.ckpt-6.data-00000-of-00001"], "its index"),
        (["model.ckpt-6.index", "model.ckpt-6.data-00001-of-00002"], "a data file"),
        (["model.ckpt-6.index", "model.ckpt-6.data-00000-of-00002", "model.ckpt-6.data-00001-of-00002"], ""),
        (["model.ckpt-6.index", "model.ckpt-60.data-00000-of-00001"], "a data file"),
    ],
)
def test_what_a_checkpoint_lacks(tmp_path, names, missing):
    assert files.missing_parts(os.path.join(make(tmp_path / "run", *names), "model.ckpt-6")) == missing


def test_a_list_comes_back_and_tensorflow_reads_it(tmp_path):
    times = {"model.ckpt-3": 1.5e9, "model.ckpt-6": 1.5e9 + 0.1}
    files.write_list(str(tmp_path), times, 12.25)
    assert files.read_list(str(tmp_path)) == (times, 12.25, "model.ckpt-6")
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == str(tmp_path / "model.ckpt-6")
    assert list(map(os.path.basename, state.all_model_checkpoint_paths)) == list(times)
    assert list(state.all_model_checkpoint_timestamps) == list(times.values())
    files.write_list(str(tmp_path), times)
    assert files.read_list(str(tmp_path)).last_preserved == 0.0
    for lines, expected in {
        "last_preserved_timestamp: 12.5": ({"model.ckpt-3": 12.5, "model.ckpt-6": 12.5}, 12.5, ""),
        'model_checkpoint_path: "/a/m-9"': ({"model.ckpt-3": 0.0, "model.ckpt-6": 0.0}, 0.0, "m-9"),
        "last_preserved_timestamp: 1.2.3": ({"model.ckpt-3": 0.0, "model.ckpt-6": 0.0}, 0.0, ""),
    }.items():
        names = "".join(f'all_model_checkpoint_paths: "{name}"\n' for name in times)
        (tmp_path / "checkpoint").write_text(f"{names}{lines}\n")
        assert files.read_list(str(tmp_path)) == expected


def test_tensorflows_list_is_read(tmp_path):
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(x=tf.Variable(1)), str(tmp_path), 5, checkpoint_name="model.ckpt"
    )
    manager.save(3), manager.save(6)
    listed = files.read_list(str(tmp_path))
    assert list(listed.times) == ["model.ckpt-3", "model.ckpt-6"] and listed.newest == "model.ckpt-6"
    assert 1e9 < listed.last_preserved < min(listed.times.values())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff\xfe binary",
        b'model_checkpoint_path: "/other/run/model.ckpt-99"\n',
        b'model_checkpoint_path: "mod',
    ],
    ids=["empty", "binary", "another folder", "cut off"],
)
def test_no_list_leads_astray(tmp_path, content):
    run = make(tmp_path / "run", "3", "6")
    (tmp_path / "run" / "checkpoint").write_bytes(content)
    assert files.newest_checkpoint(run) == os.path.join(run, "model.ckpt-6")
    files.check_can_be_placed(run, has_settings=True, saved_before=True)


def test_other_names_are_taken_from_the_list(tmp_path):
    run = make(tmp_path / "run", "averaged.ckpt-0.index")
    (tmp_path / "run" / "checkpoint").write_text('model_checkpoint_path: "/old/averaged.ckpt-0"\n')
    assert files.newest_checkpoint(run) == os.path.join(run, "averaged.ckpt-0")
    (tmp_path / "run" / "averaged.ckpt-0.index").unlink()
    assert files.newest_checkpoint(run) is None


def test_files_of_unfinished_saves_are_not_parts(tmp_path):
    run = make(tmp_path / "run", "6", "model.ckpt-9_temp", "model.ckpt-9.index.tempstate12", "model.ckpt", "other-6")
    whole = ["model.ckpt", "model.ckpt-6.data-00000-of-00001", "model.ckpt-6.index"]
    assert files.parts_of_checkpoints(run) == whole


@pytest.mark.parametrize(
    ("names", "listed", "has_settings", "saved_before", "words"),
    [
        (["3"], "", False, True, ["holds model.ckpt-3.data-00000-of-00001, model.ckpt-3.index", "no hparams.json"]),
        (["3", "6"], "", False, None, ["model.ckpt-6.data-00000-of-00001 and 1 more, but", "no hparams.json"]),
        (["3", "model.ckpt-6.index"], "", False, None, ["model.ckpt-3.index, model.ckpt-6.index, but"]),
        (["model.ckpt-3.index"], "", True, True, ["holds model.ckpt-3.index", "no complete checkpoint"]),
        (["model.ckpt-3.data-00000-of-00001"], "", True, True, ["model.ckpt-3.data", "no complete checkpoint"]),
        (["model.ckpt-3.data-00000-of-00001"], "", True, None, ["no complete checkpoint"]),
        ([], "model.ckpt-3", True, True, ["holds no checkpoint", "'checkpoint' names model.ckpt-3"]),
    ],
)
def test_what_cannot_be_placed_is_not_overwritten(tmp_path, names, listed, has_settings, saved_before, words):
    run = make(tmp_path / "run", *names)
    if listed:
        files.write_list(run, {listed: 1.0})
    with pytest.raises(UserError) as error:
        files.check_can_be_placed(run, has_settings, saved_before)
    for word in (run, *words):
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("names", "saved_before"),
    [
        ([], None),
        (["hparams.json", "train.log"], False),
        (["3", "6", "model.ckpt-9.data-00000-of-00001"], True),  # the save of step 9 was killed
        (["model.ckpt-3.data-00000-of-00001"], False),  # the first save of all was killed
        (["model.ckpt-3_temp", "model.ckpt-3.index.tempstate123"], False),
    ],
)
def test_what_a_run_may_find(tmp_path, names, saved_before):
    files.check_can_be_placed(make(tmp_path / "run", *names), True, saved_before)

"""What a run does with data, checkpoints, disks and numbers that fail: a message, nothing lost, nothing begun."""

# Nearest tests of: t2t_lite/training/trainer.py, t2t_lite/training/run_context.py

import shutil
from types import SimpleNamespace

import pytest
import tensorflow as tf

from t2t_lite.errors import UserError
from t2t_lite.training import trainer as trainer_module
from tests.training.runs import HPARAMS, PROBLEM, assert_same, checkpoints, log, small_trainer, state, trainer

pytestmark = pytest.mark.slow  # of whole runs


@pytest.fixture(scope="module")
def whole(data_dir, tmp_path_factory):
    """A run of seven steps without a break, with checkpoints of steps 3, 6 and 7."""
    folder = tmp_path_factory.mktemp("whole")
    small_trainer(data_dir, folder, flags_text="--first\n").train(7)
    return folder


REFUSED = {
    "too long": ({"hparams": f"{HPARAMS},max_length=1"}, r"none of the 120 training examples .*max_length=1 "),
    "beyond the learned positions": (
        {"hparams": f"{HPARAMS},pos=emb,max_position=100", "model": "transformer"},
        "max_length=256: the model's position table has room for 100 ids",
    ),
    "weights in float16": (
        {"hparams": f"{HPARAMS},dtype_policy=float16"}, "^dtype_policy=float16: .*Expected mixed_float16, which"
    ),
    "a metric that is not evaluated": (
        {"best_checkpoint_metric": "bleu", "evaluates": True},
        "--best_checkpoint_metric=bleu: not a metric .* Expected one of loss",
    ),
    "a search of the first evaluation": ({"evaluates": True, "search": {"beam_size": 0}}, "beam_size=0"),
    "no data": ({"data_dir": "."}, "t2t-datagen --problem=algorithmic_reverse_decimal40"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_before_anything_is_written(data_dir, tmp_path, changes, words):
    with pytest.raises(UserError, match=words):
        trainer(**{"data_dir": data_dir, "output_dir": tmp_path / "run", "model": "runs_small", **changes}).train(3)
    assert not (tmp_path / "run").exists()


@pytest.fixture
def own_data(data_dir, tmp_path):
    """A copy of the data whose first training shard `damage` changes in its middle; `mend` takes that back."""
    folder = tmp_path / "data"
    shutil.copytree(data_dir, folder)
    shard = folder / f"{PROBLEM}-train-00000-of-00010"
    whole = shard.read_bytes()
    middle = len(whole) // 2

    def damage():
        shard.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])

    return SimpleNamespace(folder=str(folder), shard=shard, damage=damage, mend=lambda: shard.write_bytes(whole))


@pytest.mark.long
def test_damage_met_while_training(own_data, whole, tmp_path, monkeypatch):
    """It is named; the checkpoints before it are whole; one that has it in its buffer is told from a bad file."""
    run = tmp_path / "run"
    small_trainer(own_data.folder, run).train(3)
    with monkeypatch.context() as patch:
        patch.setattr(trainer_module, "announce", lambda *_: own_data.damage())  # after all that is checked before
        with pytest.raises(UserError, match=rf"{own_data.shard}: damaged or not a file of records.*Delete it and run"):
            small_trainer(own_data.folder, run, local_eval_frequency=5).train(300)
    own_data.mend()
    with pytest.raises(UserError, match=r"is intact now.*the newest checkpoint contains the damaged data"):
        small_trainer(own_data.folder, run).train(300)
    for name in checkpoints(run)[1:]:
        for path in run.glob(f"{name}.*"):
            path.unlink()
    small_trainer(own_data.folder, run).train(7)
    assert_same(state(run, 7), state(whole, 7))


@pytest.mark.parametrize(("split", "change"), [("train", "cut off"), ("dev", "cut off"), ("dev", "damaged")])
def test_a_shard_that_is_not_whole_is_named_before_anything_is_written(own_data, tmp_path, split, change):
    (shard,) = own_data.shard.parent.glob(f"*-{split}-00000-*")
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 255
    shard.write_bytes(shard.read_bytes()[:-1] if change == "cut off" else data)
    words = r"has [\d,]+ bytes, .* [\d,]+ " if change == "cut off" else "damaged or not a file of rec"
    with pytest.raises(UserError, match=f"{shard}: {words}"):
        small_trainer(own_data.folder, tmp_path / "run", evaluates=split == "dev").train(3)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["checkpoint", "best/model.ckpt-3.index"])
def test_a_folder_in_the_place_of_a_file_is_found_before_the_training(data_dir, tmp_path, name):
    (tmp_path / name).mkdir(parents=True)
    with pytest.raises(UserError, match=rf"{name}: is a folder\. Expected a file"):
        small_trainer(data_dir, tmp_path, flags_text="--x=1\n").check()
    assert len([*tmp_path.rglob("*")]) == len(name.split("/"))


@pytest.fixture
def run(whole, tmp_path):
    """The run as it was after step 6, which a test may damage."""
    folder = shutil.copytree(whole, tmp_path / "run")
    for path in folder.glob("model.ckpt-7.*"):
        path.unlink()
    (folder / "checkpoint").write_text(
        'model_checkpoint_path: "model.ckpt-6"\n'
        'all_model_checkpoint_paths: "model.ckpt-3"\nall_model_checkpoint_paths: "model.ckpt-6"\n'
    )
    return folder


def contents(folder):
    """{path: bytes} of all that is in a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_newest_whole_one_is_resumed_and_the_others_are_counted(data_dir, whole, run, caplog):
    (run / "checkpoint").unlink()
    (run / "model.ckpt-6.data-00000-of-00001").unlink()
    small_trainer(data_dir, run, keep_checkpoint_max=2, local_eval_frequency=2).train(7)
    assert "model.ckpt-6: a data file is missing" in caplog.text
    assert [line["checkpoint"] for line in log(run, "resume")] == ["model.ckpt-3"]
    assert_same(state(run, 7), state(whole, 7))
    assert checkpoints(run) == ["model.ckpt-6", "model.ckpt-7"]  # of 3, 4, 6 and 7
    assert (run / "damaged-model.ckpt-6.index").exists()
    assert tf.train.latest_checkpoint(str(run)) == str(run / "model.ckpt-7")
    assert not (run / ".lock").exists()


UNFIT = {  # {what: (a file that is lost, its new content, what is said, changed hyperparameters)}
    "no settings": ("hparams.json", None, "model.ckpt-3.data-00000-of-00001.* no hparams.json", ""),
    "a log of another kind": ("train.log", '{"event": "progress", "step": "three"}\n', "train.log: line 1: 'step'", ""),
    "another optimizer": (None, None, r"ema_decay: 0\.0 -> 0\.9", ",ema_decay=0.9"),  # tests/runs/test_directory.py
}


@pytest.mark.parametrize("what", UNFIT)
def test_a_run_that_is_refused_is_left_as_it_is(data_dir, run, what):
    name, content, words, hparams = UNFIT[what]
    if name:
        (run / name).write_text(content) if content else (run / name).unlink()
    before = contents(run)
    with pytest.raises(UserError, match=f"{run}.*{words}"):
        small_trainer(data_dir, run, HPARAMS + hparams, flags_text="--second\n").train(9)
    assert contents(run) == before

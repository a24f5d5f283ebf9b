"""What t2t-trainer takes over from an earlier run in its folder."""

# Nearest tests of: bin/trainer/training_run.py, bin/trainer/training_flags.py

import json

import pytest

from t2t_lite.bin import t2t_trainer
from t2t_lite.bin.trainer import training_run
from t2t_lite.cli.commands import flags_of
from t2t_lite.runs.directory import model_name
from t2t_lite.settings.config import HParams
from t2t_lite.training.settings import EarlyStopping
from tests.bin.conftest import CONFIG


def test_an_earlier_run_remembers_its_settings(call, recorded, tmp_path):
    (tmp_path / "hparams.json").write_text(json.dumps(CONFIG))
    assert call("--data_dir=d", f"--output_dir={tmp_path}", "--train_steps=9")[0] == 0
    assert recorded[0]["problem"] == "algorithmic_reverse_decimal40"
    assert recorded[0]["hparams"] == HParams.from_dict(CONFIG["hparams"])
    recorded.clear()
    assert call("--data_dir=d", f"--output_dir={tmp_path}", "--hparams=num_heads=2")[0] == 0
    assert (recorded[0]["hparams"].hidden_size, recorded[0]["hparams"].num_heads) == (24, 2)


def test_an_earlier_run_remembers_what_it_was_asked_to_do(call, recorded, tmp_path, monkeypatch):
    plan = {
        "train_steps": 16, "schedule": "train_eval_and_decode", "keep_checkpoint_max": 3, "logical_cpus": 2,
        "best_checkpoint_metric": "loss", "eval_early_stopping_steps": 7, "eval_throttle_seconds": 0.5,
        "search": {"beam_size": 2, "alpha": 0.5}, "deterministic": False, "intra_op_parallelism_threads": 1,
        "output_dir": "elsewhere",
    }  # fmt: skip
    threads = []
    monkeypatch.setattr("tensorflow.config.threading.set_intra_op_parallelism_threads", threads.append)
    (tmp_path / "hparams.json").write_text(json.dumps(CONFIG | {"plan": plan}))
    short = "--data_dir=d", f"--output_dir={tmp_path}"
    status, _, err = call(*short, "--keep_checkpoint_max=5")
    assert status == 0, err
    arguments, train = recorded
    assert train == ("train", 16) and threads == [1]
    assert (arguments["keep_checkpoint_max"], arguments["best_checkpoint_metric"]) == (5, "loss")
    assert (arguments["early_stopping"], arguments["eval_throttle_seconds"]) == (EarlyStopping(7), 0.5)
    assert arguments["search"] == {"beam_size": 2, "alpha": 0.5} and arguments["translate_all"]
    assert (arguments["logical_cpus"], arguments["deterministic"]) == (2, False)
    assert arguments["also_asked"] == {"intra_op_parallelism_threads": 1}
    assert arguments["output_dir"] == str(tmp_path), "not from the file"
    recorded.clear()
    assert call(*short, "--eval_early_stopping_steps=0")[0] == 0 and recorded[0]["early_stopping"].steps == 0
    recorded.clear()
    assert call(*short, "--worker_gpu=0", "--schedule=test")[0] == 0
    assert (recorded[0]["logical_cpus"], recorded[0]["remembers"]) == (0, False)
    assert "--train_steps" not in err


@pytest.mark.parametrize(
    ("plan", "flags", "words"),
    [
        ({"train_steps": -1}, [], ["hparams.json: --train_steps=-1: expected a whole number from 0"]),
        ({"train_steps": []}, [], ["hparams.json", "'train_steps'", "found []"]),
        (
            {"schedule": "train"},
            ["--eval_early_stopping_steps=5"],
            ["--eval_early_stopping_steps: ", "--schedule=train "],
        ),
    ],
)
def test_a_plan_that_is_none_is_an_error(call, recorded, tmp_path, plan, flags, words):
    (tmp_path / "hparams.json").write_text(json.dumps(CONFIG | {"plan": plan}))
    status, _, err = call("--data_dir=d", f"--output_dir={tmp_path}", *flags)
    assert status == 2 and err.count("\n") == 1 and not recorded
    for word in words:
        assert word in err


def test_the_users_folder_of_a_run_is_imported_again(call, recorded, tmp_path):
    (tmp_path / "my_registered_things").mkdir()
    (tmp_path / "my_registered_things/__init__.py").write_text("raise ValueError('imported')\n")
    config = {**CONFIG, "usr_dir": str(tmp_path / "my_registered_things")}
    (tmp_path / "run").mkdir()  # beside it: a folder inside of the run may have come with it, and is not run
    (tmp_path / "run/hparams.json").write_text(json.dumps(config))
    status, _, err = call("--data_dir=d", f"--output_dir={tmp_path / 'run'}")
    assert status == 2
    assert "my_registered_things/__init__.py, line 1: ValueError: imported" in err


def test_a_run_that_begins_with_anothers_model_knows_the_users_folder(call, recorded, tmp_path):
    folder, trained = tmp_path / "my_warm_things", tmp_path / "trained"
    folder.mkdir(), trained.mkdir()
    (folder / "__init__.py").write_text(
        "from t2t_lite import models, registry\n\n\n"
        "@registry.register_model\nclass MyWarmModel(models.Transformer):\n    pass\n"
    )
    config = {**CONFIG, "model": "my_warm_model", "usr_dir": str(folder)}
    (trained / "hparams.json").write_text(json.dumps(config))
    (trained / "model.ckpt-1.index").touch()
    flags = "--data_dir=d", f"--output_dir={tmp_path / 'new'}", "--problem=algorithmic_reverse_decimal40"
    status, _, err = call(*flags, f"--warm_start_from={trained}")
    assert status == 0, err
    assert (recorded[0]["model"], recorded[0]["usr_dir"]) == ("my_warm_model", str(folder))


def test_the_model_of_a_task_is_logged_once(tmp_path, caplog):
    flags = flags_of(t2t_trainer)
    words = "--problem=languagemodel_own", "--model=transformer", "--hparams_set=transformer_lm_tiny", "--generate_data"
    flags.parse([*words, "--data_dir=d", f"--output_dir={tmp_path}"])
    caplog.set_level("INFO", "t2t_lite")
    training_run.check_run(flags.values)
    assert model_name(flags.values.model, flags.values.problem) == "transformer_lm"  # as `make_trainer` does
    assert caplog.messages == ["languagemodel_own has the task language_model, so the model is transformer_lm"]

"""What t2t-trainer hands to the Trainer."""

# Nearest tests of: bin/t2t_trainer.py, bin/trainer/training_flags.py, bin/trainer/training_run.py
# Nearest tests of: bin/trainer/training_modes.py, bin/trainer/idle_flags.py

import dataclasses
import sys
import types

import pytest

from t2t_lite.bin import t2t_trainer
from t2t_lite.bin.trainer import training_modes
from t2t_lite.data import named_problems
from t2t_lite.errors import Failure
from t2t_lite.training import checkpoint_evaluation
from t2t_lite.training.settings import (
    CheckpointSettings,
    DeviceSettings,
    EarlyStopping,
    EvaluationSettings,
    LogSettings,
)
from t2t_lite.training.trainer import Trainer
from tests.bin.conftest import REQUIRED


def test_flags_reach_the_trainer(call, recorded, tmp_path):
    flags = f"--output_dir={tmp_path}", "--train-steps=7", "--hparams=hidden_size=8,num_heads=2", "--random_seed=5"
    status, _, err = call(*REQUIRED, *flags)
    assert status == 0, err
    arguments, train = recorded
    assert train == ("train", 7)
    names = ("problem", "model", "hparams_set")
    assert [arguments[name] for name in names] == ["algorithmic_identity_decimal40", "transformer", "transformer_tiny"]
    hparams = arguments["hparams"]
    assert (hparams.hidden_size, hparams.num_heads, hparams.random_seed, hparams.filter_size) == (8, 2, 5, 512)
    assert "--train_steps=7\n" in arguments["flags_text"]
    assert "eval_steps" not in arguments["flags_text"]


@pytest.mark.parametrize(
    ("flag", "argument", "value"),
    [
        ("--worker_gpu=0", "worker_gpu", 0),
        ("--logical_cpus=3", "logical_cpus", 3),
        ("--local_eval_frequency=7", "local_eval_frequency", 7),
        ("--eval_steps=8", "eval_steps", 8),
        ("--eval_throttle_seconds=9", "eval_throttle_seconds", 9),
        ("--decode_hparams=alpha=1", "search", {"alpha": 1.0}),
        ("--schedule=train_eval_and_decode", "translate_all", True),
        ("--eval_early_stopping_steps=5", "early_stopping", EarlyStopping(5)),
        ("--eval_early_stopping_metric=bleu", "early_stopping", EarlyStopping(None, "bleu")),
        ("--eval_early_stopping_metric_delta=3", "early_stopping", EarlyStopping(None, "loss", 3.0)),
        ("--eval_early_stopping_metric_minimize", "early_stopping", EarlyStopping(None, "loss", 0.1, True)),
        ("--noeval_early_stopping_metric_minimize", "early_stopping", EarlyStopping(None, "loss", 0.1, False)),
        ("--best_checkpoint_metric=none", "best_checkpoint_metric", "none"),
        ("--profile", "profile", True),
        ("--dbgprofile", "profile", True),
        ("--nodeterministic", "deterministic", False),
        ("--save_checkpoints_secs=11", "save_checkpoints_secs", 11),
        ("--keep_checkpoint_max=12", "keep_checkpoint_max", 12),
        ("--keep_checkpoint_every_n_hours=13", "keep_checkpoint_every_n_hours", 13),
        ("--log_step_count_steps=14", "log_step_count_steps", 14),
        ("--allow_hparams_change", "allow_hparams_change", True),
        ("--hparams=gradient_accumulation_steps=2", "keep_batches_a_step", False),
        ("--warm_start_from=other", "warm_start_from", "other"),
    ],
)
def test_a_flag_reaches_its_argument_and_no_other(call, recorded, tmp_path, flag, argument, value):
    """What is not given is as the Trainer itself has it."""
    defaults = {field.name: field.default for field in dataclasses.fields(Trainer)}
    for settings in (EvaluationSettings, CheckpointSettings, DeviceSettings, LogSettings):
        defaults.update(vars(settings()))
    assert call(*REQUIRED, f"--output_dir={tmp_path}", flag)[0] == 0
    arguments, train = recorded
    assert train == ("train", 250_000)
    assert arguments[argument] == value != defaults[argument] and arguments["inexact"] == []
    given = {"problem", "model", "hparams", "hparams_set", "data_dir", "output_dir", "flags_text", "inexact", argument}
    assert {name: arguments[name] for name in arguments.keys() - given} == {
        name: defaults[name] for name in arguments.keys() - given
    }


def test_threads_make_a_run_inexact(recorded, tmp_path, call, monkeypatch):
    monkeypatch.setattr("tensorflow.config.threading.set_intra_op_parallelism_threads", lambda count: None)
    assert call(*REQUIRED, f"--output_dir={tmp_path}", "--intra_op_parallelism_threads=2")[0] == 0
    (why,) = recorded[0]["inexact"]
    assert "--intra_op_parallelism_threads" in why


def test_schedules_that_train(call, recorded, tmp_path):
    found = {}
    for schedule in ("continuous_train_and_eval", "train_and_evaluate", "train", "train_eval_and_decode", "test"):
        recorded.clear()
        flags = f"--output_dir={tmp_path}", f"--schedule={schedule}", "--train_steps=9", "--eval_steps=4"
        assert call(*REQUIRED, *flags)[0] == 0
        arguments, (_, steps) = recorded
        names = ("evaluation", "translate_all", "eval_steps")
        found[schedule] = (*(arguments.get(name, "given") for name in names), steps)
    assert found == {
        "continuous_train_and_eval": ("given", False, 4, 9),
        "train_and_evaluate": ("given", False, 4, 9),
        "train": (None, "given", "given", 9),
        "train_eval_and_decode": ("given", True, 4, 9),
        "test": ("given", False, 1, 1),
    }


@pytest.mark.parametrize(
    ("schedule", "split", "once"),
    [
        ("evaluate", "eval", True),
        ("evaluate_on_train_data", "train", True),
        ("continuous_eval", "eval", False),
        ("continuous_eval_on_train_data", "train", False),
    ],
)
def test_schedules_that_evaluate(call, monkeypatch, tmp_path, schedule, split, once):
    """With the other flags as t2t-eval has them, whose function it is: test_eval.py."""
    calls = []

    class Recorder:
        def __init__(self, *arguments):
            calls.append(arguments)

        def newest(self):
            return {"loss": 1.5, "bleu": 20.0}

        def follow(self, timeout):
            calls.append(timeout)
            yield "run/model.ckpt-3", {"loss": 1.5, "bleu": 20.0}

    monkeypatch.setattr(checkpoint_evaluation, "CheckpointEvaluation", Recorder)
    (tmp_path / "model.ckpt-3.index").touch()
    flags = f"--output_dir={tmp_path}", "--data_dir=d", f"--schedule={schedule}", "--eval_steps=4"
    status, out, _ = call(*flags, "--eval_timeout_mins=2")
    assert status == 0
    output_dir, data_dir, given_split, settings, _ = calls[0]
    assert (output_dir, data_dir, given_split, settings.eval_steps) == (str(tmp_path), "d", split, 4)
    assert out == ("loss = 1.5000\nbleu = 20.0000\n" if once else "run/model.ckpt-3  loss = 1.5000  bleu = 20.0000\n")
    assert calls[1:] == ([] if once else [120.0])


def test_the_tokenization_is_a_hyperparameter_which_a_run_remembers(call, recorded, tmp_path):
    flags = *REQUIRED, f"--output_dir={tmp_path}", "--tokenization=char"
    assert call(*flags, "--hparams=hidden_size=16")[0] == 0
    assert (recorded[0]["hparams"].eval_tokenization, recorded[0]["hparams"].hidden_size) == ("char", 16)
    status, _, err = call(*flags, "--hparams=eval_tokenization=zh")
    assert status == 2 and "'eval_tokenization' is given twice" in err


def test_mixed_precision_is_a_hyperparameter(call, recorded, tmp_path):
    flags = f"--output_dir={tmp_path}", "--gpu_automatic_mixed_precision"
    assert call(*REQUIRED, *flags)[0] == 0
    assert recorded[0]["hparams"].dtype_policy == "mixed_bfloat16"
    status, _, err = call(*REQUIRED, *flags, "--hparams=dtype_policy=float32")
    assert status == 2 and "contradicts dtype_policy" in err


def test_data_are_generated_before_training(call, recorded, monkeypatch, tmp_path):
    monkeypatch.setattr(named_problems, "generate_problems", lambda *args: recorded.append(args))
    folders = f"--output_dir={tmp_path / 'run'}", "--tmp_dir=downloads", "--generate_data"
    assert call(*REQUIRED, *folders)[0] == 0
    assert recorded[1] == (["algorithmic_identity_decimal40"], "d", "downloads")
    assert recorded[2][0] == "train"


def test_nothing_is_trained_when_data_cannot_be_generated(call, recorded, tmp_path):
    (tmp_path / "file").touch()
    status, _, err = call(*REQUIRED, f"--output_dir={tmp_path}", "--generate_data", f"--tmp_dir={tmp_path}/file")
    assert status == 2 and f"{tmp_path}/file" in err
    assert len(recorded) == 1


@pytest.mark.parametrize(
    ("flags", "ended_by", "was_signalled", "printed"),
    [
        ([], "train_steps", False, ""),
        (["--export_saved_model"], "train_steps", False, "run/export/best/1\n"),
        (["--export_saved_model"], "early_stopping", True, "run/export/best/1\n"),
        (["--export_saved_model"], "signal", True, ""),
    ],
)
def test_the_best_model_is_exported_unless_a_signal_ended_the_run(
    call, recorded, monkeypatch, tmp_path, flags, ended_by, was_signalled, printed
):
    from t2t_lite.export import by_task, saved_model
    from t2t_lite.training.trainer import Trainer

    monkeypatch.setattr(by_task, "check", lambda *given: None)
    monkeypatch.setattr(saved_model, "export_best", lambda output_dir: "run/export/best/1")
    monkeypatch.setattr(Trainer, "was_signalled", was_signalled)
    train = Trainer.train
    monkeypatch.setattr(Trainer, "train", lambda self, steps: [train(self, steps), setattr(self, "ended_by", ended_by)])
    run, returned = training_modes.train_run, []
    monkeypatch.setattr(training_modes, "train_run", lambda *given: returned.append(run(*given)))
    assert call(*REQUIRED, f"--output_dir={tmp_path / 'one'}", *flags)[:2] == (0, printed)
    assert returned == ["signal" if was_signalled else ended_by]
    assert recorded[0]["also_asked"] == ({"export_saved_model": True} if flags else None)


def test_on_several_machines_a_failure_ends_the_process_at_once(monkeypatch, capsys):
    """TensorFlow's shutdown would wait for machines that may be gone."""
    ended = []
    monkeypatch.setenv("TF_CONFIG", "{")
    monkeypatch.setattr("sys.argv", ["t2t-trainer", *REQUIRED])
    monkeypatch.setattr("os._exit", lambda status: ended.append(status) or sys.exit(status))
    monkeypatch.setattr(t2t_trainer, "run", lambda flags: 1 / 0 if ended else shut(flags))

    def shut(flags):
        raise Failure(f"{flags.problem}: the disk is full")

    monkeypatch.setattr(
        t2t_trainer._app, "main", lambda name, define, what, argv, check: what(types.SimpleNamespace(problem="p"))
    )
    with pytest.raises(SystemExit):
        t2t_trainer.main()
    assert ended == [1] and "t2t-trainer: error: p: the disk is full" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        t2t_trainer.main()
    monkeypatch.delenv("TF_CONFIG")
    with pytest.raises(ZeroDivisionError):
        t2t_trainer.main()


@pytest.mark.parametrize(
    ("flags", "warning"),
    [
        (["--eval_early_stopping_metric=bleu"], "metric has no effect without --eval_early_stopping_steps"),
        (["--eval_early_stopping_metric_delta=3", "--eval_early_stopping_steps=0"], "delta has no effect without"),
        (["--eval_early_stopping_metric=bleu", "--eval_early_stopping_steps=5"], None),
        (["--eval_early_stopping_steps=0"], None),
        (["--xla_shapes=4"], "--xla_shapes has no effect without --xla_compile"),
        (["--xla_shapes=4", "--xla_compile"], None),
        (["--best_checkpoint_metric=bleu", "--schedule=train"], "metric has no effect with --schedule=train"),
        (["--best_checkpoint_metric=bleu"], None),
        (["--schedule=train"], None),
    ],
)
def test_a_flag_that_another_flag_leaves_idle_is_named(flags, warning, call, recorded, tmp_path):
    status, _, err = call(*REQUIRED, f"--output_dir={tmp_path}", *flags)
    assert status == 0, err
    assert err.count("has no effect") == bool(warning)
    assert (warning or "") in err


def test_a_setting_that_the_problem_does_not_read_is_named(call, tmp_path):
    """Here before the error that the data are missing."""
    flags = (
        "--problem=sentiment_imdb",
        "--hparams_set=bert_tiny",
        "--hparams=eval_beam_size=8",
        f"--data_dir={tmp_path}",
    )
    status, _, err = call(*flags, f"--output_dir={tmp_path / 'run'}")
    assert status == 2
    assert "--hparams: eval_beam_size has no effect on sentiment_imdb: its evaluations do not decode outputs." in err

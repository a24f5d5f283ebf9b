"""What t2t-trainer answers before it imports TensorFlow, and what it hands to the Trainer."""

import dataclasses
import json
from types import SimpleNamespace

import pytest

from t2t_lite.config import HParams
from t2t_lite.data import named_problems
from t2t_lite.training import checkpoint_evaluation
from t2t_lite.training import trainer as trainer_module
from t2t_lite.training.settings import (
    CheckpointSettings,
    DeviceSettings,
    EarlyStopping,
    EvaluationSettings,
    LogSettings,
)
from t2t_lite.training.trainer import Trainer


@pytest.fixture
def recorded(monkeypatch):
    """Replaces the Trainer by one that notes its arguments and what was asked of it."""

    calls = []

    class Recorder:
        was_signalled = False

        def __init__(self, **arguments):
            self.__dict__.update(arguments)
            for settings in ("evaluation", "checkpoints", "devices", "log"):
                arguments.update(vars(arguments.pop(settings) or SimpleNamespace(evaluation=None)))
            calls.append(arguments)

        def train(self, train_steps):
            calls.append(("train", train_steps))
            self.ended_by = "train_steps"

    monkeypatch.setattr(trainer_module, "Trainer", Recorder)
    return calls


REQUIRED = ("--problem=algorithmic_identity_decimal40", "--hparams_set=transformer_tiny", "--data_dir=d")


@pytest.mark.parametrize(
    ("argv", "words"),
    {
        "nothing": ([], ["--data_dir", "--output_dir", "--problem", "--hparams_set"]),
        "no folder of the run": (REQUIRED, ["missing --output_dir"]),
        "no set": (["--problem=p", "--data_dir=d", "--output_dir=nowhere"], ["missing --hparams_set"]),
        "unknown schedule": (["--schedule=trian"], ["--schedule=trian", "Nearest: train", "continuous_train_and_eval"]),
        "a decoder's schedule": (
            ["--schedule=decode", "--output_dir=run", "--decode_from_file=a.en"],
            ["--schedule=decode", "Type instead: t2t-decoder --output_dir=run --decode_from_file=a.en"],
        ),
        "a decoder's schedule that follows": (
            ["--schedule=continuous_decode_from_file", "--output_dir=run"],
            ["for c in run/model.ckpt-*.index; do t2t-decoder --checkpoint_path=${c%.index} --decode_from_file=FILE"],
        ),
        "parameter servers": (["--schedule=run_std_server"], ["no parameter servers", "t2t-make-tf-configs"]),
        "a decoder's flag": (["--decode_from_file=a.en"], ["Type instead: t2t-decoder", "--decode_from_file=a.en"]),
        "the test set while training": (
            ["--eval_use_test_set"],
            ["not with training, only with --schedule"],
        ),
        "early stopping": (["--eval_early_stopping_steps=0"], ["--eval_early_stopping_steps=0", "from 1 to"]),
        "early stopping without evaluations": (
            [*REQUIRED, "--output_dir=d", "--schedule=train", "--eval_early_stopping_steps=5"],
            ["--eval_early_stopping_steps: needs evaluations"],
        ),
        "seeds that are no numbers": (["--random_seeds=1,x"], ["--random_seeds=x", "expected a whole number"]),
        "one seed": ([*REQUIRED, "--output_dir=d", "--random_seeds=7"], ["two or more different", "--random_seed."]),
        "the same seed twice": ([*REQUIRED, "--output_dir=d", "--random_seeds=7,8,7"], ["--random_seeds=7,8,7"]),
        "seeds and a seed": (
            [*REQUIRED, "--output_dir=d", "--random_seeds=1,2", "--random_seed=3"],
            ["--random_seed: not with --random_seeds"],
        ),
        "seeds without evaluations": (
            [*REQUIRED, "--output_dir=d", "--random_seeds=1,2", "--schedule=train"],
            ["not --schedule=train."],
        ),
        "a search's flag without a search": (
            ["--autotune_max_trials=3"],
            ["not with training, only with --hp"],
        ),
        "a search and seeds": (
            [*REQUIRED, "--output_dir=d", "--hparams_range=x", "--random_seeds=1,2"],
            ["--random_seeds: not with --hparams_range", "--autotune_seeds=N"],
        ),
        "a search without evaluations": (
            [*REQUIRED, "--output_dir=d", "--hparams_range=x", "--schedule=train"],
            ["needs runs that are trained and evaluated, not --schedule=train"],
        ),
        "a search in a bucket": (
            [*REQUIRED, "--output_dir=gs://bucket/search", "--hparams_range=x"],
            ["gs://bucket/search", "Expected a local folder"],
        ),
        "a search that exports": (
            [*REQUIRED, "--output_dir=d", "--hparams_range=x", "--export_saved_model"],
            ["Export the best trial by t2t-exporter"],
        ),
        "a spread over one seed": (["--autotune_seeds=1"], ["--autotune_seeds=1", "from 2 to 1,000, or 0"]),
        "a value that is missing": ([*REQUIRED, "--output_dir=d", "--hp_num_heads"], ["num_heads"]),
        "no such flag": (["--problems=x"], ["--problems", "--problem"]),
        "a size without --describe": (
            [*REQUIRED, "--output_dir=d", "--vocab_size=9"],
            ["--vocab_size: not with training, only with --describe"],
        ),
        "nothing to describe": (["--describe", "--output_dir=nowhere"], ["missing --hparams_set"]),
        "no vocabulary": (["--describe", "--vocab_size=0"], ["--vocab_size=0", "from 1 to"]),
        "steps": (["--train_steps=-1"], ["--train_steps=-1", "from 0 to"]),
    }.values(),
)
def test_mistakes_are_one_line(call, argv, words):
    status, out, err = call(*argv)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--problem=algorithmic_identity_decimal4"], ["algorithmic_identity_decimal40"]),
        (["--model=transformr"], ["'transformr'", "Nearest: transformer"]),
        (["--hparams_set=transformer_tyni"], ["Nearest: transformer_tiny"]),
        (["--hparams=num_head=2"], ["'num_head'", "Nearest: num_heads"]),
        (["--hparams=num_heads=two"], ["num_heads=two", "expected a whole number"]),
    ],
)
@pytest.mark.parametrize("describe", [[], ["--describe"]], ids=["train", "describe"])
def test_unknown_names_are_answered_with_the_nearest(call, recorded, tmp_path, argv, words, describe):
    given = [word for word in REQUIRED if word.split("=")[0] != argv[0].split("=")[0]]
    status, out, err = call(*given, f"--output_dir={tmp_path / 'run'}", *argv, *describe)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    for word in words:
        assert word in err
    assert not (tmp_path / "run").exists()


def test_flags_reach_the_trainer(call, recorded, tmp_path):
    status, _, err = call(
        *REQUIRED, f"--output_dir={tmp_path}", "--train-steps=7", "--local_eval_frequency=3", "--logical_cpus=2",
        "--keep_checkpoint_max=4", "--hparams=hidden_size=8,num_heads=2", "--random_seed=5", "--worker_gpu=0",
    )  # fmt: skip
    assert status == 0, err
    arguments, train = recorded
    assert train == ("train", 7)
    assert arguments["problem"] == "algorithmic_identity_decimal40"
    assert arguments["model"] == "transformer"
    assert arguments["hparams_set"] == "transformer_tiny"
    assert (arguments["hparams"].hidden_size, arguments["hparams"].num_heads) == (8, 2)
    assert arguments["hparams"].random_seed == 5
    assert arguments["hparams"].filter_size == 512
    assert (arguments["local_eval_frequency"], arguments["keep_checkpoint_max"]) == (3, 4)
    assert (arguments["logical_cpus"], arguments["worker_gpu"]) == (2, 0)
    assert "evaluation" not in arguments, "it evaluates"
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
    assert arguments[argument] == value != defaults[argument]
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
    flags = f"--output_dir={tmp_path}", "--data_dir=d", f"--schedule={schedule}"
    status, out, _ = call(
        *flags, "--eval_steps=4", "--eval_stride=3", "--decode_hparams=alpha=1,beam_size=2", "--eval_timeout_mins=2",
        "--hparams=eval_beam_size=7", "--tokenization=zh",
    )  # fmt: skip
    assert status == 0
    output_dir, data_dir, given_split, eval_steps, change_hparams, search, eval_stride = calls[0]
    assert change_hparams(HParams()) == HParams(eval_beam_size=7, eval_tokenization="zh")
    assert (output_dir, data_dir, given_split, eval_steps) == (str(tmp_path), "d", split, 4)
    assert search == {"alpha": 1.0, "beam_size": 2} and eval_stride == 3
    assert out == ("loss = 1.5000\nbleu = 20.0000\n" if once else "run/model.ckpt-3  loss = 1.5000  bleu = 20.0000\n")
    assert calls[1:] == ([] if once else [120.0])
    calls.clear()
    if not once:
        call(*flags, "--eval_timeout_mins=-1")
        assert calls[1] == float("inf")


def test_flags_of_evaluations_reach_the_trainer(call, recorded, tmp_path):
    status, _, err = call(
        *REQUIRED, f"--output_dir={tmp_path}", "--eval_early_stopping_steps=50", "--eval_early_stopping_metric=bleu",
        "--eval_early_stopping_metric_delta=0.5", "--eval_throttle_seconds=7", "--best_checkpoint_metric=loss",
        "--keep_checkpoint_max=0", "--dbgprofile", "--nodeterministic", "--intra_op_parallelism_threads=0",
    )  # fmt: skip
    assert status == 0, err
    arguments = recorded[0]
    assert arguments["early_stopping"] == EarlyStopping(50, "bleu", 0.5, None)
    assert (arguments["eval_throttle_seconds"], arguments["best_checkpoint_metric"]) == (7, "loss")
    assert (arguments["keep_checkpoint_max"], arguments["profile"], arguments["deterministic"]) == (0, True, False)
    assert arguments["inexact"] == []


def test_the_tokenization_is_a_hyperparameter_which_a_run_remembers(call, recorded, tmp_path):
    flags = *REQUIRED, f"--output_dir={tmp_path}", "--tokenization=char"
    assert call(*flags, "--hparams=hidden_size=16")[0] == 0
    assert (recorded[0]["hparams"].eval_tokenization, recorded[0]["hparams"].hidden_size) == ("char", 16)
    for flag, words in (
        ("--hparams=eval_tokenization=zh", "'eval_tokenization' is given twice"),
        ("--tokenization=zh", "--tokenization: given twice"),
    ):
        status, _, err = call(*flags, flag)
        assert status == 2 and words in err
    status, _, err = call(*flags[:-1], "--tokenization=chinese")
    assert status == 2 and "--tokenization=chinese: unknown tokenization" in err


def test_hp_pairs_change_hyperparameters(call, recorded, tmp_path):
    flags = f"--output_dir={tmp_path}", "--hp_num_heads", "8", "--hparams=hidden_size=16"
    assert call(*REQUIRED, *flags, "--hp_filter_size=9")[0] == 0
    hparams = recorded[0]["hparams"]
    assert (hparams.num_heads, hparams.hidden_size, hparams.filter_size) == (8, 16, 9)
    status, _, err = call(*REQUIRED, *flags[:1], "--hp_num_head", "8")
    assert status == 2 and "Nearest: num_heads" in err


def test_mixed_precision_is_a_hyperparameter(call, recorded, tmp_path):
    flags = f"--output_dir={tmp_path}", "--gpu_automatic_mixed_precision"
    assert call(*REQUIRED, *flags)[0] == 0
    assert recorded[0]["hparams"].dtype_policy == "mixed_bfloat16"
    status, _, err = call(*REQUIRED, *flags, "--hparams=dtype_policy=float32")
    assert status == 2 and "another dtype_policy" in err


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--tfdbg", "enable_check_numerics"),
        ("--log_device_placement", "set_log_device_placement"),
        ("--enable_graph_rewriter", "rewrites its graphs by itself"),
        ("--worker_gpu_memory_fraction=0.5", "as needed"),
        ("--gpu_order=1 0", "CUDA_VISIBLE_DEVICES"),
        ("--eval_run_autoregressive", "really translated"),
    ],
)
def test_flags_that_something_else_replaces(call, recorded, tmp_path, flag, words):
    status, _, err = call(*REQUIRED, f"--output_dir={tmp_path}", flag)
    assert status == 0
    assert err.count("\n") == 1 and "has no effect" in err and words in err


CONFIG = {
    "format": 1,
    "problem": "algorithmic_reverse_decimal40",
    "model": "transformer",
    "hparams_set": "transformer_tiny",
    "vocab_size": 12,
    "target_vocab_size": None,
    "vocabulary_sha256": {},
    "usr_dir": "",
    "hparams": {"hidden_size": 24},
}


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
    assert call(*short, "--worker_gpu=0", "--schedule=test")[0] == 0
    assert (recorded[0]["logical_cpus"], recorded[0]["remembers"]) == (0, False)
    assert "--train_steps" not in err


@pytest.mark.parametrize(
    ("plan", "flags", "words"),
    [
        ({"train_steps": -1}, [], ["hparams.json: --train_steps=-1: expected a whole number from 0"]),
        ({"train_steps": []}, [], ["hparams.json", "'train_steps'", "found []"]),
        ({"schedule": "train"}, ["--eval_early_stopping_steps=5"], ["needs evaluations, and --schedule=train"]),
    ],
)
def test_a_plan_that_is_none_is_an_error(call, recorded, tmp_path, plan, flags, words):
    (tmp_path / "hparams.json").write_text(json.dumps(CONFIG | {"plan": plan}))
    status, _, err = call("--data_dir=d", f"--output_dir={tmp_path}", *flags)
    assert status == 2 and err.count("\n") == 1 and not recorded
    for word in words:
        assert word in err


def test_a_run_that_does_not_say_for_how_long_is_told(call, recorded, tmp_path):
    (tmp_path / "hparams.json").write_text(json.dumps(CONFIG))
    _, _, err = call("--data_dir=d", f"--output_dir={tmp_path}")
    assert "hparams.json: does not say for how long the run was to train: train_steps=250,000, the default" in err
    assert "does not say" not in call("--data_dir=d", f"--output_dir={tmp_path}", "--train_steps=9")[2]


def test_the_users_folder_of_a_run_is_imported_again(call, recorded, tmp_path):
    (tmp_path / "my_registered_things").mkdir()
    (tmp_path / "my_registered_things/__init__.py").write_text("raise ValueError('imported')\n")
    config = {**CONFIG, "usr_dir": str(tmp_path / "my_registered_things")}
    (tmp_path / "run").mkdir()  # beside it: a folder inside of the run may have come with it, and is not run
    (tmp_path / "run/hparams.json").write_text(json.dumps(config))
    status, _, err = call("--data_dir=d", f"--output_dir={tmp_path / 'run'}")
    assert status == 2
    assert "my_registered_things/__init__.py, line 1: ValueError: imported" in err


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


def test_the_curves_of_a_run_as_a_picture(call, tmp_path):
    (tmp_path / "train.log").write_text(json.dumps({"event": "progress", "step": 1, "loss": 2.0}) + "\n")
    assert call(f"--summary={tmp_path}")[:2] == (0, f"{tmp_path}/curves.png\n")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert call(f"--summary={tmp_path},{tmp_path}")[:2] == (0, f"{tmp_path}/curves.png\n{tmp_path}/bars.png\n")
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")
    status, _, stderr = call(f"--summary={tmp_path}/nowhere")
    assert status == 2
    assert "train.log: no such file" in stderr

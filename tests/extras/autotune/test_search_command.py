"""t2t-trainer --hparams_range: ordinary runs, a table, the winner's spread over seeds, and answers to mistakes."""

import json
import os
import shlex
import shutil
import signal
import statistics
import sys

import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.bin import t2t_trainer
from t2t_lite.errors import Failure
from t2t_lite.extras.autotune import search_command as autotune
from t2t_lite.extras.autotune import workers
from t2t_lite.runs.log import RunLog
from t2t_lite.training.trainer import Trainer
from tests.integration.conftest import replaced
from tests.training.runs import EXAMPLES, PROBLEM, SIZES, assert_same, log, small_trainer, state

SEARCH = "--hparams_range=tiny_range"


@registry.register_ranged_hparams
def tiny_range(rhp):
    rhp.set_float("learning_rate_constant", 0.5, 5.0, scale=rhp.LOG_SCALE)
    rhp.set_discrete("optimizer_adam_beta2", [0.9, 0.98])


@registry.register_ranged_hparams
def wrong_range(rhp):
    rhp.set_float("label_smothing", 0.0, 0.1)


@registry.register_ranged_hparams
def range_without_effect(rhp):
    rhp.set_int("learning_rate_decay_steps", 10, 100)
    rhp.set_categorical("optimizer", ["adam", "adafactor"])
    rhp.set_float("optimizer_adafactor_beta1", 0.0, 0.9)


@registry.register_ranged_hparams
def range_of_another_model(rhp):
    rhp.set_int("num_decoder_layers", 1, 4)


@pytest.fixture
def command(data_dir, tmp_path, capsys):
    """Searches by t2t-trainer with runs of four steps; returns its exit status and what it printed."""

    def call(*flags, folder="search"):
        usual = [
            f"--problem={PROBLEM}", "--model=runs_small", "--hparams_set=transformer_tiny", f"--data_dir={data_dir}",
            f"--output_dir={tmp_path / folder}", f"--hparams={SIZES},eval_decode_examples=0",
            "--train_steps=4", "--local_eval_frequency=2",
        ]  # fmt: skip
        status = t2t_trainer.main(replaced(usual, *flags))
        return status, *capsys.readouterr()

    return call


def test_the_objective_may_depend_on_the_data(command, tmp_path):
    """Only tags of entities have entity_f1, and the data folder knows the tags."""
    words = [f"{a}{b}" for a in ("ka", "li", "mo", "nu", "pe") for b in ("red", "tin", "sol", "vag", "wub")]
    (tmp_path / "a.conll").write_text("".join(f"{word} {tag}\n" for word in words for tag in ("O", "B-PER")))
    problem = registry.problem("tag_own")
    problem.configure([str(tmp_path / "a.conll")], [str(tmp_path / "a.conll")], vocab_size=300)
    problem.generate_data(str(tmp_path), str(tmp_path))
    flags = "--problem=tag_own", f"--data_dir={tmp_path}", "--model=transformer_encoder", "--hparams_set=bert_tiny"
    status, _, err = command(SEARCH, *flags, "--hparams=hidden_size=8", "--autotune_objective=entity_f")
    assert (status, "Expected one of loss, perplexity, token_accuracy, entity_f1." in err) == (2, True), err


@pytest.mark.long
@pytest.mark.slow  # six runs
def test_a_search_trains_ordinary_runs_and_the_winner_again(command, tmp_path):
    flags = "--hparams_range=tiny_range", "--random_seed=7"
    status, out, err = command(*flags, "--autotune_max_trials=2", "--autotune_seeds=0")
    assert status == 0, err
    assert "seeds" not in json.loads((tmp_path / "search" / "tuning.json").read_text())
    before = log(tmp_path / "search" / "trial-1")

    objective = f"--autotune_objective=metrics-{PROBLEM}/neg_log_perplexity"
    status, out, err = command(
        *flags, objective, "--autotune_maximize", "--autotune_max_trials=3", "--autotune_seeds=2"
    )
    assert status == 0, err
    assert log(tmp_path / "search" / "trial-1") == before, "it was complete"
    folders = [tmp_path / "search" / f"trial-{number}" for number in range(3)]
    found = json.loads((tmp_path / "search" / "tuning.json").read_text())
    for folder, trial in zip(folders, found["trials"], strict=True):
        values = json.loads((folder / "hparams.json").read_text())["hparams"]
        assert trial["hparams"] == {name: values[name] for name in ("learning_rate_constant", "optimizer_adam_beta2")}
        best = min(log(folder, "evaluation"), key=lambda line: line["loss"])
        assert (trial["state"], trial["value"], trial["best_step"]) == ("complete", best["loss"], best["step"])
        assert values["random_seed"] == 7
    order = sorted(found["trials"], key=lambda trial: trial["value"])
    assert found["objective"] == {"metric": "loss", "maximize": False}
    assert found["winner"]["trial"] == order[0]["trial"]

    seeds = tmp_path / "search" / f"{order[0]['trial']}-seeds"
    losses = [min(line["loss"] for line in log(seeds / f"seed_{seed}", "evaluation")) for seed in (1, 2)]
    assert found["seeds"]["mean"]["loss"] == pytest.approx(statistics.mean(losses))
    assert found["seeds"]["standard_deviation"]["loss"] == pytest.approx(statistics.stdev(losses))
    lines = out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == [trial["trial"].removeprefix("trial-") for trial in order]
    assert f"{order[0]['value']:.4f}" in lines[1] and lines[4] == f"best: {tmp_path / 'search' / order[0]['trial']}"
    assert f"standard deviation {statistics.stdev(losses):.4f}" in out

    program, *words = shlex.split(found["winner"]["command"])
    assert (program, found["winner"]["command"] in out) == ("t2t-trainer", True)
    assert t2t_trainer.main(words) == 0
    again = tmp_path / "search" / f"{order[0]['trial']}-again"
    assert_same(state(again, 4), state(tmp_path / "search" / order[0]["trial"], 4))


@pytest.mark.slow
def test_the_printed_command_keeps_the_best_model_of_the_same_metric(command, monkeypatch):
    kept = []

    def train(self, train_steps):
        kept.append(self.evaluation.best_checkpoint_metric)
        self.was_signalled, self.ended_by = False, "train_steps"
        os.makedirs(self.output_dir)
        RunLog(self.output_dir).write("evaluation", 4, loss=1.0, token_accuracy=0.5)

    monkeypatch.setattr(Trainer, "train", train)
    objective = f"--autotune_objective=metrics-{PROBLEM}/token_accuracy"
    flags = objective, "--autotune_maximize", "--autotune_max_trials=1", "--autotune_seeds=0"
    status, out, err = command("--hparams_range=tiny_range", *flags)
    assert status == 0, err
    words = shlex.split(out.splitlines()[-1].partition("for longer: ")[2])
    assert f"--best_checkpoint_metric={kept[0]}" in words and kept == ["token_accuracy"]


def test_what_all_trials_of_a_search_share(command, monkeypatch):
    """Facts of the study, each from its flag: another value refuses to go on."""
    shared = {
        "train_steps": 8, "local_eval_frequency": 4, "eval_steps": 7, "eval_throttle_seconds": 11,
        "decode_hparams": "beam_size=3", "eval_early_stopping_steps": 13, "eval_early_stopping_metric_delta": 0.25,
        "eval_early_stopping_metric": "token_accuracy", "logical_cpus": 2, "worker_gpu": 2,
    }  # fmt: skip
    studies = []

    def study(*arguments):
        studies.append(arguments)
        raise Failure("enough.")

    monkeypatch.setattr("t2t_lite.extras.autotune.study.Study", study)
    flags = [f"--{name}={value}" for name, value in shared.items()]
    status, _, err = command(SEARCH, "--random_seed=7", *flags)
    assert status == 1, err
    ((_, ranges, objective, facts, train_steps, seed),) = studies
    assert {name: facts[name] for name in shared} == shared and {"warm_start_from", "eval_stride"} <= {*facts}
    assert (train_steps, seed, objective.metric, facts["objective"]) == (8, 7, "loss", "loss")
    assert facts["ranges"] == {name: each.facts() for name, each in ranges.ranges.items()} and len(facts["ranges"]) == 2
    assert (facts["problem"], facts["model"], facts["hparams_set"]) == (PROBLEM, "runs_small", "transformer_tiny")
    assert facts["hparams_range"] == "tiny_range" and {*facts["records_sha256"]} == {"train", "eval"}
    assert facts["hparams"]["random_seed"] == 7 and facts["translate_all"] is False


def test_a_range_that_would_change_nothing_is_named(command, monkeypatch):
    def study(*arguments):
        raise Failure("enough.")

    monkeypatch.setattr("t2t_lite.extras.autotune.study.Study", study)
    status, _, err = command("--hparams_range=range_without_effect")
    assert status == 1, err
    assert "--hparams_range=range_without_effect: learning_rate_decay_steps has no effect with learning_rate_sch" in err
    assert err.count("no effect") == 1, "of optimizer_adafactor_beta1 some trials have an effect"


@pytest.mark.slow
def test_a_search_is_not_continued_with_other_records(command, data_dir, tmp_path):
    flags = "--hparams_range=tiny_range", "--autotune_seeds=0", "--train_steps=1", "--autotune_max_trials=1"
    moved = shutil.copytree(data_dir, tmp_path / "data")
    status, _, err = command(*flags, f"--data_dir={moved}")
    assert status == 0, err
    problem = registry.problem(PROBLEM)
    problem.max_cases = EXAMPLES // 2
    problem.generate_data(str(tmp_path / "other"), str(tmp_path))
    status, _, err = command(*flags, f"--data_dir={tmp_path / 'other'}")
    assert status == 2 and "this search was begun with records_sha256={'eval': '" in err
    assert command(*flags)[0] == 0, "the same records, elsewhere"


@pytest.mark.parametrize(("ended", "status"), [(True, 7), (False, 0)], ids=["all trials", "a signal"])
def test_processes_side_by_side(command, monkeypatch, tmp_path, ended, status):
    """Several train trials without further seeds; then one trains these and writes the report."""
    calls = []
    monkeypatch.setattr(workers, "run_workers", lambda *arguments: calls.append(arguments) or ended)
    monkeypatch.setattr(workers, "run_alone", lambda *arguments: calls.append(arguments) or 7)
    flags = "--hparams_range=tiny_range", "--autotune_parallel_trials=3", "--autotune_max_trials=5"
    assert command(*flags, "--autotune_seeds=4", "--logical_cpus=2", "--worker_gpu=2")[0] == status
    (together, shares, folder), *rest = calls
    assert shares == [None] * 3 and folder == str(tmp_path / "search") and len(rest) == ended
    assert together[:3] == [sys.executable, "-m", "t2t_lite.bin.t2t_trainer"]
    given = {"--hparams_range=tiny_range", "--autotune_parallel_trials=1", "--autotune_max_trials=5", "--train_steps=4"}
    assert given | {"--autotune_seeds=0"} <= {*together} and f"--hparams={SIZES},eval_decode_examples=0" in together
    assert all(given | {"--autotune_seeds=4"} <= {*alone} for (alone,) in rest)


@pytest.mark.parametrize(
    ("flag", "shares"), [("--worker_gpu=2", ["4,5", "6,7", "8,9"]), ("--logical_cpus=2", [None] * 3)]
)
def test_gpus_of_each_process(command, monkeypatch, flag, shares):
    """Six, of which the environment has chosen the numbers; computing on the CPU, none."""
    calls = []
    monkeypatch.setattr(autotune, "_checked", lambda flags: (None, None, None))
    monkeypatch.setattr(workers, "run_workers", lambda *arguments: calls.append(arguments))
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind] * 6)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6, ,7,8,9")
    assert command(SEARCH, "--autotune_parallel_trials=3", flag)[0] == 0 and calls[0][1] == shares


@pytest.mark.long  # four runs, and two processes
def test_trials_are_trained_side_by_side(data_dir, tmp_path, capfd):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text(
        "import tests.extras.autotune.test_search_command"
    )  # its range and model
    status = t2t_trainer.main(
        [f"--t2t_usr_dir={tmp_path / 'mine'}", f"--problem={PROBLEM}", "--model=runs_small",
         "--hparams_set=transformer_tiny", f"--data_dir={data_dir}", f"--output_dir={tmp_path / 'search'}",
         f"--hparams={SIZES}", "--hp_eval_decode_examples=0", "--train_steps=2", "--local_eval_frequency=2",
         "--hparams_range=tiny_range", "--autotune_parallel_trials=2", "--autotune_max_trials=2", "--autotune_seeds=2"]
    )  # fmt: skip
    assert status == 0, capfd.readouterr().err
    found = json.loads((tmp_path / "search" / "tuning.json").read_text())
    first, second = found["trials"]
    assert first["state"] == second["state"] == "complete" and first["hparams"] != second["hparams"]
    assert found["seeds"]["standard_deviation"]["loss"] > 0
    for worker in (1, 2):
        assert "step 2/2" in (tmp_path / "search" / f"worker-{worker}.log").read_text()


@pytest.mark.slow
def test_a_signal_in_the_last_evaluation_is_noticed(data_dir, tmp_path):
    def stop_when(evaluations):
        if evaluations:
            os.kill(os.getpid(), signal.SIGTERM)

    more = {"evaluates": True, "local_eval_frequency": 2, "stop_when": stop_when}
    one = small_trainer(data_dir, tmp_path / "run", f"{SIZES},eval_decode_examples=0", **more)
    one.train(2)
    assert (one.ended_by, one.was_signalled) == ("train_steps", True)


MISTAKES = {
    "a misprint": (["--hparams_range=tiny_rang"], ["'tiny_rang'", "Nearest: tiny_range"]),
    "no hyperparameter": (["--hparams_range=wrong_range"], ["wrong_range: 'label_smothing'", "label_smoothing"]),
    "one that is fixed": ([SEARCH, "--hp_learning_rate_constant=2"], ["--hparams: learning_rate_constant", SEARCH]),
    "another model's": (["--hparams_range=range_of_another_model", "--model=transformer_lm", "--hparams=batch_size=64"],
                        ["--hparams_range=range_of_another_model: num_decoder_layers", "TransformerLM"]),
    "no metric, side by side": ([SEARCH, "--autotune_parallel_trials=2", "--autotune_objective=x/token_acuracy"],
                                ["--autotune_objective=x/token_acuracy", "Nearest: token_accuracy"]),
}  # fmt: skip


@pytest.mark.parametrize(("flags", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_one_line_and_write_nothing(command, tmp_path, flags, words):
    status, out, err = command(*flags)
    assert (status, out) == (2, "")
    assert err.splitlines()[-1].startswith("t2t-trainer: error: ")
    for word in words:
        assert word in err
    assert not (tmp_path / "search").exists()


def test_without_optuna(command, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    status, _, err = command("--hparams_range=tiny_range")
    assert status == 2 and "pip install 't2t_lite[tune]'" in err
    assert not (tmp_path / "search").exists()


def test_the_folder_of_a_run_is_not_that_of_a_search_nor_the_other_way_round(command, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "hparams.json").write_text("{}")
    status, _, err = command("--hparams_range=tiny_range", folder="run")
    assert status == 2 and "--output_dir=" in err
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "study.journal").write_text("")
    status, _, err = command()
    assert status == 2 and "is the folder of a search" in err
    (tmp_path / "other" / "tuning.json").mkdir(parents=True)
    status, _, err = command(SEARCH, folder="other")
    assert status == 2 and "tuning.json: is a folder" in err and len([*(tmp_path / "other").rglob("*")]) == 1

"""One command trains a run for each seed, and says what they reach, their mean and their spread."""

import json

import numpy as np
import pytest

from t2t_lite.bin import t2t_trainer
from t2t_lite.errors import UserError
from t2t_lite.extras.seeds.repeated_seeds import as_text, summarize, train_seeds
from t2t_lite.runs.log import RunLog
from tests.training.runs import PROBLEM, SIZES, assert_same, checkpoints, log, state

METRICS = ("loss", "perplexity", "token_accuracy")


@pytest.fixture
def command(data_dir, tmp_path, capsys):
    """Trains six steps by t2t-trainer; returns its exit status and what it printed."""

    def call(folder, *flags):
        status = t2t_trainer.main(
            [f"--problem={PROBLEM}", "--model=runs_small", "--hparams_set=transformer_tiny", f"--data_dir={data_dir}",
             f"--output_dir={tmp_path / folder}", f"--hparams={SIZES},eval_decode_examples=0",
             "--train_steps=6", "--local_eval_frequency=2", *flags]
        )  # fmt: skip
        return status, capsys.readouterr().out

    return call


@pytest.mark.long  # four runs
def test_each_run_is_that_of_its_seed_alone_and_the_table_has_mean_and_deviation(command, tmp_path):
    status, out = command("runs", "--random_seeds=1,2,3")
    assert status == 0
    assert command("alone", "--random_seed=2")[0] == 0
    assert_same(state(tmp_path / "runs" / "seed_2", 6), state(tmp_path / "alone", 6))

    folders = [tmp_path / "runs" / f"seed_{seed}" for seed in (1, 2, 3)]
    best = [min(log(folder, "evaluation"), key=lambda line: line["loss"]) for folder in folders]
    summary = json.loads((tmp_path / "runs" / "seeds.json").read_text())
    assert [run["step"] for run in summary["runs"]] == [line["step"] for line in best]
    values = {name: [line[name] for line in best] for name in METRICS}
    assert len({*values["loss"]}) == 3
    for name in METRICS:
        np.testing.assert_allclose(summary["mean"][name], np.mean(values[name]))
        np.testing.assert_allclose(summary["standard_deviation"][name], np.std(values[name], ddof=1))
    head, *rows, mean, deviation = [line.split() for line in out.splitlines()]
    at = head.index("loss")
    assert [row[at] for row in rows] == [f"{loss:.4f}" for loss in values["loss"]]
    assert (mean[at - 1], deviation[at - 1]) == (  # there is no step in these
        f"{np.mean(values['loss']):.4f}", f"{np.std(values['loss'], ddof=1):.4f}"
    )  # fmt: skip

    before = log(folders[0])
    assert command("runs", "--random_seeds=1,2,3") == (0, out)
    assert [line["event"] for line in log(folders[0])[len(before) :]] == ["resume", "end"]
    assert command("runs/seed_1", "--random_seeds=1,2")[0] == 2
    assert checkpoints(folders[0])[-1] == "model.ckpt-6"


def test_a_summary_is_of_each_runs_best_or_last_evaluation(tmp_path):
    """One of three runs has kept its best model, and one has no second metric."""
    folders = {seed: str(tmp_path / str(seed)) for seed in (1, 2, 3)}
    for seed, losses in zip(folders, ([9.0, 1.0], [2.0, 9.0], [9.0, 6.0]), strict=True):
        (tmp_path / str(seed) / "best").mkdir(parents=True)
        for step, loss in zip((3, 6), losses, strict=True):
            more = {} if seed == 3 else {"bleu": 5.0}
            RunLog(folders[seed]).write("evaluation", step, split="dev", loss=loss, **more)
    (tmp_path / "2" / "best" / "model.ckpt-3.index").touch()
    found = summarize(folders)
    runs = [(run["random_seed"], run["step"], run["loss"]) for run in found["runs"]]
    assert runs == [(1, 6, 1.0), (2, 3, 2.0), (3, 6, 6.0)]
    assert found["mean"] == {"loss": pytest.approx(3)}
    assert found["standard_deviation"] == {"loss": pytest.approx(((2**2 + 1**2 + 3**2) / (3 - 1)) ** 0.5)}
    assert [line.split() for line in as_text(found).splitlines()] == [
        ["random_seed", "step", "loss"], ["1", "6", "1.0000"], ["2", "3", "2.0000"], ["3", "6", "6.0000"],
        ["mean", "3.0000"], ["deviation", "2.6458"],
    ]  # fmt: skip


def test_after_a_signal_no_other_run_begins(tmp_path):
    begun = []

    def train(output_dir, seed):
        begun.append((output_dir, seed))
        return "signal" if seed == 5 else "train_steps"

    assert train_seeds([4, 5, 6], str(tmp_path), train) is None
    assert begun == [(str(tmp_path / "seed_4"), 4), (str(tmp_path / "seed_5"), 5)]
    assert not (tmp_path / "seeds.json").exists()


def test_a_summary_of_all_runs_is_written_and_given(tmp_path):
    def train(output_dir, seed):
        (tmp_path / f"seed_{seed}").mkdir()
        RunLog(output_dir).write("evaluation", 1000, split="dev", loss=float(seed))
        return "early_stopping"

    summary = train_seeds([4, 7], str(tmp_path), train)
    assert summary == json.loads((tmp_path / "seeds.json").read_text()) and summary["mean"] == {"loss": 5.5}
    assert "1,000" in as_text(summary)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "seed_4").write_text("")
    with pytest.raises(UserError, match="seed_4: is a file"):
        train_seeds([4, 7], str(tmp_path / "other"), train)

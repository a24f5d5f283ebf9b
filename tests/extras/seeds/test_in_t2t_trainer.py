"""t2t-trainer --random_seeds: what it refuses before TensorFlow is imported, and when it starts no further run."""

import json

import pytest

from tests.bin.conftest import CONFIG, REQUIRED

SEEDS = [*REQUIRED, "--output_dir=d", "--random_seeds=1,2"]
MISTAKES = {
    "no numbers": (["--random_seeds=1,x"], ["--random_seeds=x", "expected a whole number"]),
    "one seed": ([*REQUIRED, "--output_dir=d", "--random_seeds=7"], ["several different seeds", "--random_seed."]),
    "the same seed twice": ([*REQUIRED, "--output_dir=d", "--random_seeds=7,8,7"], ["--random_seeds=7,8,7"]),
    "seeds and a seed": ([*SEEDS, "--random_seed=3"], ["--random_seed cannot be used with --random_seeds"]),
    "no evaluations": ([*SEEDS, "--schedule=train"], ["not --schedule=train."]),
    "a run": ([*REQUIRED, "--output_dir=RUN", "--random_seeds=1,2"], ["--random_seeds=1,2: --output_dir=", "already"]),
}


@pytest.mark.parametrize(("argv", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_one_line(call, tmp_path, argv, words):
    """RUN is the folder of a run."""
    (tmp_path / "hparams.json").write_text(json.dumps(CONFIG))
    status, out, err = call(*(word.replace("=RUN", f"={tmp_path}") for word in argv))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    for word in words:
        assert word in err


def test_several_runs_use_one_machine(call, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{}")
    status, _, err = call(*SEEDS)
    assert status == 2 and "--random_seeds=1,2: " in err and "Unset TF_CONFIG" in err


def test_a_folder_in_the_place_of_the_summary_is_refused_before_training(call, recorded, tmp_path):
    (tmp_path / "seeds.json").mkdir()
    status, _, err = call(*REQUIRED, f"--output_dir={tmp_path}", "--random_seeds=1,2")
    assert status == 2 and "seeds.json: is a folder. Expected a file" in err and recorded == []


@pytest.mark.parametrize("export", [[], ["--export_saved_model"]], ids=["no export", "exports"])
@pytest.mark.parametrize("was_signalled", [False, True])
def test_after_a_signal_no_further_run_starts(call, recorded, monkeypatch, tmp_path, export, was_signalled):
    """Even after one that came when the last step was done."""
    from t2t_lite.export import by_task, saved_model
    from t2t_lite.training.trainer import Trainer

    monkeypatch.setattr(by_task, "check", lambda *given: None)
    monkeypatch.setattr(saved_model, "export_best", lambda output_dir: "run/export/best/1")
    monkeypatch.setattr(Trainer, "was_signalled", was_signalled)
    summary = {"mean": {}, "runs": [], "standard_deviation": {}}
    monkeypatch.setattr("t2t_lite.extras.seeds.repeated_seeds.summarize", lambda runs: summary)
    status, _, err = call(*REQUIRED, f"--output_dir={tmp_path}", "--random_seeds=1,2", *export)
    assert status == 0, err
    assert [given["output_dir"][-6:] for given in recorded[::2]] == ["seed_1", "seed_2"][: 1 if was_signalled else 2]

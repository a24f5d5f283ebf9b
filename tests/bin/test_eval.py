"""What t2t-eval hands on, and what it prints."""
# Nearest tests of: bin/t2t_eval.py

import math

import pytest

from t2t_lite.bin import t2t_eval
from t2t_lite.settings.config import HParams
from t2t_lite.training import checkpoint_evaluation, distribution


@pytest.fixture
def evaluate(monkeypatch, tmp_path, capsys):
    """Function of words -> (arguments of the evaluation, seconds that it waits, what was done with GPUs, output)."""
    calls, waits, gpus = [], [], []

    class Recorder:
        def __init__(self, *arguments):
            calls.append(arguments)

        def follow(self, seconds):
            waits.append(seconds)
            return [("model.ckpt-5", {"loss": 1.23456, "bleu": 20.0}), ("model.ckpt-9", {"loss": 1.0})]

    monkeypatch.setattr(checkpoint_evaluation, "CheckpointEvaluation", Recorder)
    for name in ("hide_gpus", "gpus_as_needed"):
        monkeypatch.setattr(distribution, name, lambda name=name: gpus.append(name))

    def call(*words):
        assert t2t_eval.main([f"--output_dir={tmp_path}", "--data_dir=d", *words]) == 0
        return calls.pop(), waits.pop(), gpus.pop(), capsys.readouterr()

    return call


def test_by_default(evaluate, tmp_path):
    (output_dir, data_dir, split, settings, change), seconds, gpus, printed = evaluate()
    assert (output_dir, data_dir, split) == (str(tmp_path), "d", "eval")
    assert (settings.eval_steps, settings.eval_stride, settings.search) == (0, None, None) or not settings.search
    assert change(HParams()) == HParams()
    assert (seconds, gpus, printed.err) == (240 * 60, "gpus_as_needed", "")
    assert printed.out.splitlines() == ["model.ckpt-5  loss = 1.2346  bleu = 20.0000", "model.ckpt-9  loss = 1.0000"]


def test_every_flag_reaches_the_evaluation(evaluate):
    (_, _, split, settings, change), seconds, gpus, printed = evaluate(
        "--eval_use_test_set", "--eval_steps=4", "--eval_stride=3", "--decode_hparams=alpha=1,beam_size=2",
        "--hparams=eval_beam_size=7", "--tokenization=zh", "--eval_timeout_mins=2", "--worker_gpu=0", "--train_steps=5",
    )  # fmt: skip
    assert (split, settings.eval_steps, settings.eval_stride) == ("test", 4, 3)
    assert settings.search == {"alpha": 1.0, "beam_size": 2}
    assert change(HParams()) == HParams(eval_beam_size=7, eval_tokenization="zh")
    assert (seconds, gpus) == (120, "hide_gpus") and "--train_steps has no effect" in printed.err
    _, seconds, _, printed = evaluate("--eval_timeout_mins=-1", "--worker_gpu=2")
    assert seconds == math.inf and "--worker_gpu=2: " in printed.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data_dir=d"], "missing --output_dir"),
        (["--output_dir=o"], "missing --data_dir"),
        (["--output_dir=o", "--data_dir=d", "--tokenization=13b"], "--tokenization=13b"),
    ],
)
def test_mistakes(capsys, words, message):
    assert t2t_eval.main(words) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and message in err

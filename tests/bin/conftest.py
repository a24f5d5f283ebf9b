"""What the tests of t2t-trainer share."""

from types import SimpleNamespace

import pytest

from t2t_lite.bin import t2t_trainer
from t2t_lite.bin.trainer import training_modes

REQUIRED = ("--problem=algorithmic_identity_decimal40", "--hparams_set=transformer_tiny", "--data_dir=d")

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


@pytest.fixture
def call(capsys):
    def call(*argv):
        status = t2t_trainer.main(argv)
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def recorded(monkeypatch):
    """Replaces the Trainer by one that notes its arguments and what was asked of it."""
    from t2t_lite.training import trainer as trainer_module

    monkeypatch.setattr(training_modes, "check_run", lambda flags: None)  # of folders that are not there
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

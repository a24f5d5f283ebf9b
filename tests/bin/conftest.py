"""What the tests of t2t-trainer share."""

import pytest

from t2t_lite.bin import t2t_trainer


@pytest.fixture
def call(capsys):
    def call(*argv):
        status = t2t_trainer.main(argv)
        return status, *capsys.readouterr()

    return call

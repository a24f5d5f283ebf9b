"""Inputs that benchmarks share: they are made once."""

import pytest

from benchmarks.harness import work
from t2t_lite.errors import UserError


def test_an_input_is_made_once_and_only_for_the_same_command(tmp_path):
    folder = tmp_path / "data"
    for _ in range(2):
        work.once(folder, "python", "-c", f"import os; os.mkdir({str(folder)!r})")  # fails if the folder is there
    with pytest.raises(UserError, match="data: made by another command"):
        work.once(folder, "python", "-c", "other texts")
    for _ in range(2):  # a command that failed counts as not run
        with pytest.raises(RuntimeError, match="run: python failed with exit status 3"):
            work.once(tmp_path / "run", "python", "-c", "raise SystemExit(3)")

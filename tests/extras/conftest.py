"""Fixtures of the core that tests of extras use as well; leaves out tests that need a missing extra."""

import functools
import os
import pathlib
import re

from t2t_lite.process.lazy import extras

if os.environ["KERAS_BACKEND"] == "tensorflow":  # the tests that run on other backends use no fixture
    from tests.bin.conftest import call, recorded
    from tests.decoding.conftest import lm_run_dir, run_dir
    from tests.export.conftest import c_program
    from tests.integration.conftest import (
        assert_user_error,
        attention_folder,
        attention_run,
        call_command,
        exports,
        run_command,
        standard_input,
        start,
        translators,
    )
    from tests.training.conftest import data_dir, runs_on_the_same_records_share_their_streams

_IMPORT = re.compile(r"^from (t2t_lite|tests)\.extras\.(\w+)(?:\.(\w+))? import", re.MULTILINE)
__all__ = (
    "assert_user_error",
    "attention_folder",
    "attention_run",
    "c_program",
    "call",
    "call_command",
    "data_dir",
    "exports",
    "lm_run_dir",
    "recorded",
    "run_command",
    "run_dir",
    "runs_on_the_same_records_share_their_streams",
    "standard_input",
    "start",
    "translators",
)


def pytest_ignore_collect(collection_path):
    """Leaves out the tests of an extra that import another extra, if that is missing."""
    return True if collection_path.suffix == ".py" and _used(collection_path) - {*extras()} else None


@functools.cache
def _used(path):
    """Returns the names of the extras that a file imports, and of those that its imports need."""
    used, here = set(), pathlib.Path(__file__).parent
    for package, name, module in _IMPORT.findall(path.read_text("utf-8")):
        if package == "tests" and (here / f"{name}.py").is_file():  # a helper that all extras share
            continue
        folder = extras().get(name) if package == "t2t_lite" else here / name
        other = folder and folder / f"{module}.py"
        used |= {name} | (_used(other) if other and other.is_file() and other != path else set())
    return used

"""Fixtures of the core's tests that those of extras use, too."""

from tests.bin.conftest import call, recorded
from tests.decoding.conftest import lm_run_dir, run_dir
from tests.export.conftest import c_program
from tests.integration.conftest import (
    assert_user_error,
    call_command,
    exports,
    run_command,
    standard_input,
    start,
    translators,
)
from tests.training.conftest import data_dir, runs_on_the_same_records_share_their_streams

__all__ = (
    "assert_user_error",
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

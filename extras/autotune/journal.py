"""Optuna's journal: a log file of a study, to which several processes append."""

import contextlib
import logging
import os

from t2t_lite.errors import UserError, first_line, needs
from t2t_lite.files.file_errors import translated

# What Optuna raises for lines that it has not written.
_OF_DAMAGED_LINES = (ValueError, LookupError, AttributeError, TypeError, AssertionError, RecursionError)


def open_journal(path):
    """Opens or creates a journal; a last line that was truncated by a kill is removed.

    Args:
        path: str, a local file.

    Returns:
        (the module optuna, its `JournalStorage`).

    Raises:
        UserError: Optuna is not installed, or the file is not one of its journals.
    """
    optuna = import_optuna()
    path = os.path.abspath(path)  # Optuna's lock is a link to it, which must be valid in its own folder
    journal = optuna.storages.journal
    try:
        with translated(path, "write"), contextlib.ExitStack() as stack:
            lock = journal.JournalFileSymlinkLock(path)
            lock.acquire()
            stack.callback(lock.release)
            backend = journal.JournalFileBackend(path)
            _remove_truncated_line(path)  # Optuna would append to it
        return optuna, journal.JournalStorage(backend)
    except _OF_DAMAGED_LINES as error:
        raise UserError(
            f"{path}: is not a journal of Optuna: {first_line(error)}. Expected that of an earlier search, or none. "
            "Move it away, or choose another --output_dir."
        ) from error


def import_optuna():
    """Returns the module optuna, which logs only warnings. Raises `UserError` if it is not installed."""
    with needs("Optuna", "tune", "--hparams_range"):
        import optuna
        import optuna.storages.journal
    optuna.logging.set_verbosity(logging.WARNING)
    return optuna


def _remove_truncated_line(path):
    with open(path, "rb+") as file:
        content = file.read()
        if content and not content.startswith(b'{"op_code":'):
            raise ValueError("its first line is another one")
        if not content.endswith(b"\n"):
            file.truncate(content.rfind(b"\n") + 1)

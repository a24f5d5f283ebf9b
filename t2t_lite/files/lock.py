"""Locks that allow one process at a time to use a local folder or a file."""

import contextlib
import os
import time

from t2t_lite.errors import UserError
from t2t_lite.files import is_remote, lock_file, read_bytes
from t2t_lite.files.file_errors import translated


@contextlib.contextmanager
def held_lock(path, what):
    """Context manager that holds the lock `path`, a local file that is removed afterwards.

    Args:
        path: str; on a remote file system, which has no locks, nothing is locked.
        what: str, for the message, such as "data: another t2t-datagen".

    Raises:
        UserError: another process holds the lock, or the file cannot be written.
    """
    if is_remote(path):
        yield
        return
    with translated(path, "write"):
        lock = _lock(path)
    if lock is None:
        owner = b""
        with contextlib.suppress(OSError, UserError):  # the other process may have just ended
            owner = read_bytes(path)
        owner = owner.decode(errors="replace").strip() or "unknown"
        raise UserError(f"{what} (process {owner}) is running in it. Wait for it, stop it, or choose another folder.")
    with lock:
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # Windows does not remove open files
                os.remove(path)


@contextlib.contextmanager
def waiting_lock(path):
    """Context manager that waits for the lock `path`, a local file that is left behind."""
    while (lock := lock_file(path)) is None:
        time.sleep(0.05)
    with lock:
        yield


def _lock(path):
    """Returns `lock_file(path)` of the existing file, not of one that its last owner has just removed."""
    while True:
        lock = lock_file(path)
        if lock is None:
            return None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock.fileno()), os.stat(path)):
                return lock
        lock.close()

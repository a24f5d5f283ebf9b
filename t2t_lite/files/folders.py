"""Provides folders that appear only when they are complete, and lock files that one process at a time can hold."""

import contextlib
import functools
import os
import tempfile

from t2t_lite.errors import LOGGER, Failure, UserError, first_line
from t2t_lite.files import INCOMPLETE, NoLocks, check_is_no_file, list_files, lock_file, make_folder, read_bytes
from t2t_lite.files.file_errors import is_tensorflows, translated
from t2t_lite.files.file_system import copy, exists, is_folder, is_remote, list_names, make_folders, remove, rename
from t2t_lite.files.pipes import written_path


def check_new(path):
    """Raises `UserError` unless the folder `path` is missing or empty, so that nothing is overwritten."""
    path = str(path)
    with translated(path, "write"):
        if not exists(path):
            make_folders(path)
            remove(path)
        elif not is_folder(path):
            raise UserError(f"{path}: is a file. Expected a new folder.")
        elif list_names(path):
            raise UserError(f"{path}: already contains files. Choose a new folder, or empty this folder.")


def check_kinds(folder, of_files=(), of_folders=()):
    """Raises `UserError` if there is a folder where a command will write a file, or a file where a folder is needed.

    Args:
        folder: str, a folder that may be missing.
        of_files: regular expressions of names in the folder that must be files.
        of_folders: regular expressions of names that must be folders.
    """
    check_is_no_file(folder)
    for patterns, is_right, kind, expected in (
        (of_files, lambda path: not is_folder(path), "a folder", "a file to which the command can write"),
        (of_folders, is_folder, "a file", "a folder to which the command can write"),
    ):
        for path in list_files(folder, "|".join(patterns)) if patterns else ():
            if not is_right(path):
                raise UserError(f"{path}: is {kind}. Expected {expected}. Rename it, or choose another folder.")


@contextlib.contextmanager
def new_folder(path):
    """Context manager that yields an empty folder and renames it to `path`, or removes it after an error.

    Args:
        path: str, a new or empty folder on any file system that `tf.io.gfile` supports. If it is a link, the folder to
            which it leads is written.

    Raises:
        UserError: `path` is not empty, another process is writing it, or its parent cannot be written.
        Failure: writing failed; nothing is left behind.
    """
    path = written_path(str(path).rstrip("/"))
    temporary = path + INCOMPLETE
    with held_lock(f"{path}.lock", f"{path}: another process"):
        check_new(path)
        with translated(path, "write"):
            if exists(temporary):  # left behind by a killed command
                remove(temporary)
            make_folders(temporary)
        try:
            yield temporary
            if is_folder(path):  # remove the empty folder, since a rename would move the new folder into it
                remove(path)
            rename(temporary, path)
        except BaseException as error:
            remove(temporary)
            if isinstance(error, OSError) or is_tensorflows(error):
                raise Failure(f"{path}: could not be written: {first_line(error)}") from error
            raise


@contextlib.contextmanager
def restored_on_failure(folder):
    """Context manager that, after an error, removes what was added to a folder, or the folder itself if it is new."""
    was_there, old_paths = is_folder(folder), {*list_files(folder, ".*")}
    try:
        yield
    except BaseException:
        for path in {*list_files(folder, ".*")} - old_paths:
            remove(path)
        if not was_there and is_folder(folder):
            remove(folder)
        raise


def write_folder(path, write):
    """Creates a `new_folder` with the files that `write(local folder)` writes, and returns `path`."""
    with new_folder(path) as folder:
        if is_remote(folder):
            with tempfile.TemporaryDirectory() as local:
                write(local)
                for name in os.listdir(local):
                    copy(os.path.join(local, name), os.path.join(folder, name))
        else:
            write(folder)
    return str(path).rstrip("/")


def write_file(folder, name, data):
    """Writes bytes to a file in a local folder, and creates the subfolder if `name` contains one."""
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


@contextlib.contextmanager
def held_lock(path, subject):
    """Context manager that creates the folder of the lock file `path` and holds the lock, which is removed afterwards.

    On exit, folders that were created for the lock and are still empty are removed as well.

    Args:
        path: str. A remote path is not locked, since remote file systems do not have locks. On a local file system
            without locks, a warning says so.
        subject: str, the subject of the error message, such as "data: another t2t-datagen".

    Raises:
        UserError: another process holds the lock, or the file cannot be written.
    """
    folder = os.path.dirname(path) or "."
    if is_remote(path):
        make_folder(folder)
        yield
        return
    with _without_new_empty(folder):
        make_folder(folder)
        with _held_local_lock(path, subject):
            yield


@contextlib.contextmanager
def _without_new_empty(folder):
    """Context manager that, on exit, removes a local folder and those of its parents that are new and empty."""
    new, folder = [], os.path.abspath(folder)
    while not os.path.exists(folder):
        new.append(folder)
        folder = os.path.dirname(folder)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # a folder is not empty, or was never created
            for folder in new:
                os.rmdir(folder)


@contextlib.contextmanager
def _held_local_lock(path, subject):
    with translated(path, "write"):
        lock = _lock(path)
    if lock is None:
        owner = b""
        with contextlib.suppress(OSError, UserError):  # the other process may just have removed the file
            owner = read_bytes(path)
        owner = owner.decode(errors="replace").strip() or "unknown"
        raise UserError(
            f"{subject} (process {owner}) is using this folder. Wait for the process, stop it, or choose another "
            "folder."
        )
    try:
        with translated(path, "write"):
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows cannot remove open files
            os.remove(path)
        with contextlib.suppress(OSError):  # on a full disk, closing the file fails again
            lock.close()


def _lock(path):
    """Returns `lock_file(path)`, retrying if the previous owner has just removed the locked file.

    If the file system does not support locks, the file is returned without a lock.
    """
    while True:
        try:
            lock = lock_file(path)
        except NoLocks:
            _warn_without_locks(os.path.dirname(path) or ".")
            return open(path, "a")
        if lock is None:
            return None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock.fileno()), os.stat(path)):
                return lock
        lock.close()


@functools.cache
def _warn_without_locks(folder):
    LOGGER.warning(
        f"{folder}: this file system does not support locks, so a second command that writes here would not be "
        "noticed. Run only one at a time."
    )

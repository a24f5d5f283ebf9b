"""Folders that appear only when they are complete."""

import contextlib
import os
import tempfile

from t2t_lite.errors import Failure, UserError, first_line
from t2t_lite.files import INCOMPLETE, list_files
from t2t_lite.files.file_errors import is_tensorflows, translated
from t2t_lite.files.file_system import copy, exists, is_folder, is_remote, list_names, make_folders, remove, rename


def check_new(path):
    """Raises `UserError` unless the folder `path` can be created or is empty, so that nothing is overwritten."""
    path = str(path)
    with translated(path, "write"):
        if not exists(path):
            make_folders(path)
            remove(path)
        elif not is_folder(path):
            raise UserError(f"{path}: is a file. Expected a new folder.")
        elif list_names(path):
            raise UserError(f"{path}: holds files already. Choose a new folder, or empty this one.")


@contextlib.contextmanager
def new_folder(path):
    """Context manager of an empty folder to fill, which is renamed to `path` at the end, or removed after an error.

    Args:
        path: str, a new or empty folder on any file system that `tf.io.gfile` knows.

    Raises:
        UserError: `path` is not empty, or its parent cannot be written.
        Failure: writing failed; nothing is left behind.
    """
    path = str(path).rstrip("/")
    check_new(path)
    temporary = path + INCOMPLETE
    with translated(path, "write"):
        if exists(temporary):  # left by a killed command
            remove(temporary)
        make_folders(temporary)
    try:
        yield temporary
        if is_folder(path):  # empty; a rename would move the new folder into it
            remove(path)
        rename(temporary, path)
    except BaseException as error:
        remove(temporary)
        if isinstance(error, OSError) or is_tensorflows(error):
            raise Failure(f"{path}: could not be written: {first_line(error)}") from error
        raise


@contextlib.contextmanager
def restored_on_failure(folder):
    """Context manager that, after an error, removes what was added to a folder, and a folder that did not exist."""
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
    """Creates a `new_folder` by a function that writes files into an empty local folder; returns `path`."""
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
    """Writes bytes into a local folder of `write_folder`."""
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)

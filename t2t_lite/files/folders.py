"""Folders that appear when all in them is written."""

import os
import tempfile

import tensorflow as tf

from t2t_lite.errors import Failure, UserError
from t2t_lite.files import INCOMPLETE


def check_new(path):
    """Raises `UserError` where `path` is a file, or a folder that holds something: nothing is written over."""
    path = str(path)
    if tf.io.gfile.isdir(path):
        if tf.io.gfile.listdir(path):
            raise UserError(f"{path}: holds files already. Choose a new folder, or empty this one.")
    elif tf.io.gfile.exists(path):
        raise UserError(f"{path}: is a file. Expected a new folder.")


def write_folder(path, write):
    """Makes a folder of what a function writes; under a temporary name, until all is there.

    Args:
        path: str, a new or empty folder; any file system that `tf.io.gfile` knows.
        write: function that is given an empty local folder to write files into.

    Returns:
        `path`.

    Raises:
        UserError: `path` holds something, or its parent cannot be written.
        Failure: writing failed; nothing is left behind.
    """
    path = str(path).rstrip("/")
    check_new(path)
    temporary = path + INCOMPLETE
    try:
        tf.io.gfile.makedirs(os.path.dirname(path) or ".")
        if tf.io.gfile.exists(temporary):
            tf.io.gfile.rmtree(temporary)
        tf.io.gfile.makedirs(temporary)
    except (tf.errors.OpError, OSError) as error:
        raise UserError(f"{path}: cannot be written: {_first_line(error)} Choose another folder.") from None
    try:
        if "://" in path:
            with tempfile.TemporaryDirectory() as local:
                write(local)
                for name in os.listdir(local):
                    tf.io.gfile.copy(os.path.join(local, name), os.path.join(temporary, name))
        else:
            write(temporary)
        if tf.io.gfile.isdir(path):  # an empty one, in which a rename would put it
            tf.io.gfile.rmtree(path)
        tf.io.gfile.rename(temporary, path)
    except BaseException as error:
        tf.io.gfile.rmtree(temporary)
        if isinstance(error, tf.errors.OpError | OSError):
            raise Failure(f"{path}: could not be written: {_first_line(error)}") from error
        raise
    return path


def write_file(folder, name, data):
    """Writes bytes into a local folder of `write_folder`."""
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def _first_line(error):
    text = (getattr(error, "strerror", None) or getattr(error, "message", None) or str(error)).strip()
    return (text.splitlines()[0] if text else type(error).__name__).rstrip(".") + "."

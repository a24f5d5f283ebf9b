"""Numbered folders of exports, as TensorFlow Serving watches them: each appears when all of it is written."""

import os
import re

import tensorflow as tf

from t2t_lite.errors import Failure, UserError
from t2t_lite.files import INCOMPLETE


def write_version(export_dir, write):
    """Makes `<export_dir>/<highest number + 1>`, the first one 1.

    Args:
        export_dir: str, made if need be.
        write: function of a temporary folder's path, which it makes and fills. The folder then gets its number; its
            name until then is no number, so that a server does not look at it.

    Returns:
        str, the path of the numbered folder.

    Raises:
        UserError: `export_dir` cannot be written.
        Failure: writing failed; nothing is left behind.
    """
    try:
        tf.io.gfile.makedirs(export_dir)
        names = [name.rstrip("/") for name in tf.io.gfile.listdir(export_dir)]
    except tf.errors.OpError as error:
        raise UserError(f"{export_dir}: not a folder that can be written: {str(error).splitlines()[0]}") from None
    version = max((int(name) for name in names if re.fullmatch(r"\d+", name)), default=0) + 1
    path = os.path.join(export_dir, str(version))
    temporary = os.path.join(export_dir, f"{version}{INCOMPLETE}")
    try:
        _remove(temporary)  # of an export that was killed
        write(temporary)
        tf.io.gfile.rename(temporary, path)
    except (tf.errors.OpError, OSError) as error:
        _remove(temporary)
        raise Failure(f"{path}: could not be written: {str(error).splitlines()[0]}") from error
    except BaseException:  # interrupted, too
        _remove(temporary)
        raise
    return path


def _remove(folder):
    if tf.io.gfile.exists(folder):
        tf.io.gfile.rmtree(folder)

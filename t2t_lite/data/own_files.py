"""The user's files from which records are generated: which they are, and whether they have changed."""

import os

from t2t_lite import files
from t2t_lite.data.splits import DatasetSplit
from t2t_lite.errors import UserError
from t2t_lite.files.file_system import file_sha256

FLAGS = {DatasetSplit.TRAIN: "train_files", DatasetSplit.EVAL: "dev_files", DatasetSplit.TEST: "test_files"}


def with_content(facts, recorded):
    """Returns {"path", "bytes", "sha256", "changed"} of a corpus as it is now.

    The file is read only if its size or times differ from those in `recorded`, so an edit that changes neither is not
    detected. Data of earlier versions have no SHA-256; for these only the size is compared.
    """
    path = facts["path"]
    if not files.exists(path):  # finished data can be used without it
        return facts
    if files.is_remote(path):
        import tensorflow as tf

        size, times = files.size(path), [tf.io.gfile.stat(path).mtime_nsec]
    else:
        stat = os.stat(path)
        size, times = stat.st_size, [stat.st_mtime_ns, stat.st_ctime_ns]
    if recorded.get("bytes") == size and recorded.get("changed", times) == times:
        return recorded
    return {"path": path, "bytes": size, "sha256": file_sha256(path, size, *times), "changed": times}


def describe_files(split, paths):
    """Returns [{"path", "bytes"}, …] for the files that a flag names. Raises `UserError` if one is not a file."""

    flag = f"--{FLAGS[split]}={','.join(paths)}"
    for path in paths:
        if not files.exists(path):
            raise UserError(f"{flag}: no such file: {path}. Check the path.")
        if files.is_folder(path):
            raise UserError(f"{flag}: {path} is a folder. Expected a file.")
    return [{"path": path, "bytes": files.size(path)} for path in map(full_path, paths)]


def full_path(path):
    """Returns a path that is valid in every folder."""
    return path.rstrip("/") if files.is_remote(path) else os.path.abspath(path)

"""Converts errors of Python and TensorFlow about a path to one-line messages.

This module can be imported without TensorFlow.
"""

import contextlib
import errno
import os
import re

from t2t_lite.errors import GRAPH_NODE, Failure, MissingFile, UserError, first_line

_LONGEST_SHOWN = 200
_READ, _WRITE = "read", "write"
# Messages for the operating system's errors; {do} is "read" or "write".
_MISTAKES = {
    errno.EACCES: "no permission to {do} here. Choose another path or change its permissions.",
    errno.EPERM: "no permission to {do} here. Choose another path or change its permissions.",
    errno.EROFS: "the file system is read-only. Choose another folder.",
    errno.EISDIR: "is a folder. Expected a file.",
    errno.ENOTDIR: "a file is in the way where a folder is expected. Check the path.",
    errno.EEXIST: "already exists. Choose another path.",
    errno.ENOTEMPTY: "this folder is not empty. Choose another folder.",
    errno.ELOOP: "is a link that leads back to itself. Check the link's target.",
    errno.ENAMETOOLONG: "the name is too long for the file system. Choose a shorter name.",
    errno.ENXIO: "is a socket, or a device that does not exist. Expected a file.",
    errno.ENODEV: "is a device that does not exist. Expected a file.",
    errno.ESPIPE: "is a pipe, which does not support seeking. Expected a file.",
    errno.ETXTBSY: "is a running program. Choose another path.",
    errno.EBADF: "was opened in a mode that does not permit {do} operations. Choose another path.",
    errno.EBUSY: "is in use. Choose another path.",
    errno.EXDEV: "is on another file system. Choose another path.",
}
_FAILURES = {
    errno.ENOSPC: "the disk is full. Free some space and run the same command again.",
    errno.EDQUOT: "the disk quota is used up. Free some space and run the same command again.",
    errno.EFBIG: "the file would exceed the largest size allowed here. Check `ulimit -f`, or choose another disk.",
    errno.EIO: "the disk or the device reports an error. Check the device, or copy the file again.",
    errno.EMFILE: "too many files are open. Raise the limit (`ulimit -n`) and run the same command again.",
    errno.ENFILE: "too many files are open on this machine. Run the same command again later.",
    errno.ESTALE: "the network file system has lost the file. Run the same command again.",
    getattr(errno, "EREMOTEIO", None): "the network file system does not respond. Run the same command again.",  # Linux
}
_MISSING = {
    _READ: "no such file. Check the path.",
    _WRITE: "cannot be written: its folder does not exist. Create the folder, or choose another path.",
}
_CODES = {os.strerror(code): code for code in (*_MISTAKES, *_FAILURES, errno.ENOENT) if code is not None}
# Matches the end of TensorFlow's messages for system errors: "<path>; No such file or directory".
_SYSTEM_ERROR = re.compile(
    r"(?:^|\}\} )((?:(?!\}\} )[^\n])*?); (" + "|".join(map(re.escape, _CODES)) + r")(?=$|\n| \[Op:)"
)
_SCHEME = re.compile(r"File system scheme '([^']*)' not implemented \(file: '(.*?)'\)", re.DOTALL)
_OTHERS = (
    (re.compile(r"Could not find directory (.*)"), errno.ENOENT),
    (re.compile(r"(.*) is not a directory$"), errno.ENOTDIR),
    (re.compile(r"cannot create directory with same name as an existing file"), errno.ENOTDIR),
)


def shown_path(path):
    """Formats a path for messages: escapes unprintable characters and shortens a long path."""
    path = os.fspath(path)
    path = path if isinstance(path, str) else os.fsdecode(path)
    path = path if path.isprintable() and path else repr(path)[1:-1] or "''"
    return path if len(path) <= _LONGEST_SHOWN else f"{path[:100]}…{path[-60:]}"


def check_name(path):
    """Returns the path. Raises `UserError` if the path contains a NUL byte or is not valid UTF-8."""
    if "\0" in path:
        raise UserError(
            f"{shown_path(path)}: the path contains a NUL byte, which is not allowed in file names. Check the path."
        )
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        raise UserError(
            f"{shown_path(path)}: the name is not UTF-8. Rename the file, or choose another path."
        ) from None
    return path


def check_scheme(path):
    """Raises `UserError` if TensorFlow does not support the file system of an address such as s3://bucket/file."""
    scheme, is_address, _ = path.partition("://")
    if not is_address or not scheme or "/" in scheme:
        return
    import tensorflow as tf

    if scheme not in tf.io.gfile.get_registered_schemes():
        raise _unknown_scheme(scheme, path)


@contextlib.contextmanager
def translated(path, doing=_READ):
    """Context manager that converts errors about a path to `UserError` or `Failure`; other errors pass unchanged.

    Args:
        path: str, as the user typed it.
        doing: "read" or "write".
    """
    check_name(path)
    try:
        yield
    except Exception as error:
        translation = explain(error, path, doing)
        if translation is None:
            raise
        raise translation from None


def explain(error, path=None, doing=_READ):
    """Converts an error about a path to a `UserError` or `Failure`; returns None for any other error.

    Args:
        error: an exception of Python or TensorFlow.
        path: str, or None for the path that the error names.
        doing: "read" or "write".
    """
    text = str(error)
    if isinstance(error, UserError | Failure):
        return None
    if isinstance(error, OSError) and error.errno is not None:
        return _error_of_code(error.errno, _name_in(error) if path is None else path, doing)
    if isinstance(error, UnicodeEncodeError) and "surrogates" in text:
        return UserError(f"{shown_path(path or error.object)}: the name is not UTF-8. Choose another path.")
    if isinstance(error, ValueError) and "embedded null" in text:
        return UserError(
            f"{shown_path(path or 'a path')}: contains a NUL byte, which is not allowed in file names. Check the path."
        )
    return _error_of_tensorflow(error, text, path, doing) if is_tensorflows(error) else None


def is_tensorflows(error):
    """Returns whether an error is a `tf.errors.OpError`, without importing TensorFlow."""
    return any(kind.__name__ == "OpError" and "tensorflow" in kind.__module__ for kind in type(error).__mro__)


def _name_in(error):
    name = error.filename2 or error.filename
    return os.fsdecode(name) if isinstance(name, str | bytes) else None


def _error_of_code(code, path, doing):
    where = f"{shown_path(path)}: " if path is not None else ""
    if code == errno.ENOENT and where:
        return MissingFile(where + _MISSING[doing])
    if code in _MISTAKES and (where or code in (errno.EACCES, errno.EPERM, errno.EROFS)):
        return UserError(where + _MISTAKES[code].format(do=doing))
    return Failure(where + _FAILURES[code]) if code in _FAILURES else None


def _error_of_tensorflow(error, text, path, doing):
    if match := _SCHEME.search(text):
        return _unknown_scheme(match[1], path or match[2])
    if match := _SYSTEM_ERROR.search(text):
        return _error_of_code(_CODES[match[2]], match[1] if path is None else path, doing)
    text = GRAPH_NODE.sub("", text)
    for pattern, code in _OTHERS:
        if match := pattern.search(text):
            return _error_of_code(code, path or (match[1] if pattern.groups else None), doing)
    if "executing an HTTP request" in text:
        where = f"{shown_path(path)}: " if path else ""
        return Failure(f"{where}the network file system does not respond: {first_line(error)}")
    if path is None or error.op is not None:
        return None
    if type(error).__name__ == "NotFoundError":
        return MissingFile(f"{shown_path(path)}: {_MISSING[doing]}")
    return UserError(f"{shown_path(path)}: cannot be {'read' if doing == _READ else 'written'}: {first_line(error)}")


def _unknown_scheme(scheme, path):
    advice = {
        "s3": "s3:// needs the package tensorflow-io, which a module in --t2t_usr_dir must import",
        "hdfs": "hdfs:// needs the package tensorflow-io, which a module in --t2t_usr_dir must import",
        "http": "download the file first",
        "https": "download the file first",
    }.get(scheme, f"to use {scheme}://, import in --t2t_usr_dir a package that adds it to TensorFlow")
    return UserError(
        f"{shown_path(path)}: TensorFlow has no file system {shown_path(scheme)}://. Expected a local path or gs://; "
        f"{advice}."
    )

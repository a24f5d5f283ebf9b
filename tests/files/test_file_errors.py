"""Whatever is wrong with a path, Python's and TensorFlow's words for it become one sentence that names it."""
# Nearest tests of: t2t_lite/files/__init__.py, t2t_lite/files/folders.py

import errno
import os
import re
import socket

import pytest
import tensorflow as tf

from t2t_lite import files
from t2t_lite.decoding.command import text_files
from t2t_lite.errors import Failure, MissingFile, UserError
from t2t_lite.files import file_errors
from t2t_lite.files.folders import held_lock, write_folder
from t2t_lite.files.resumable import ResumableFiles

GFILE = tf.io.gfile


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A folder with one of each that is no ordinary file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    socket.socket(socket.AF_UNIX).bind("socket")
    return tmp_path


READ = {
    "absent": "absent: no such file",
    "dangling": "dangling: no such file",
    "absent/file": "absent/file: no such file",
    "": "no such file",
    "folder": "folder: is a folder. Expected a file",
    "file/file": "file/file: a file is in the way where a folder is expected",
    "loop": "loop: is a link that leads back to itself",
    "n" * 300: "nnn: the name is too long",
    "n/" * 3000: "too long",
    "pipe": "pipe: is a pipe. Expected a regular file",
    "socket": "socket: is a socket. Expected a regular file",
    "/dev/zero": "/dev/zero: is a device. Expected a regular file",
    "foo://bucket/file": "foo://bucket/file: TensorFlow has no file system foo://. Expected a local path",
    "s3://bucket/file": "s3:// needs the package tensorflow-io",
    "https://host/file": "download the file first",
    "a\0b": r"a\\x00b: the path contains a NUL byte",
    "caf\udce9": r"caf\\udce9: the name is not UTF-8",
}


@pytest.mark.parametrize("path", READ, ids=lambda path: repr(path)[:20])
def test_reading(hostile, path):
    for read in (files.read_bytes, files.read_json):
        with pytest.raises(UserError, match=READ[path]) as raised:
            read(path)
        assert "\n" not in str(raised.value) and len(str(raised.value)) < 500


WRITE = {
    "absent/file": "absent/file: cannot be written: its folder does not exist",
    "folder": "folder: is a folder",
    "file/file": "file/file: a file is in the way where a folder is expected",
    "n" * 250: "too long",  # with the ending of what is not finished
    "foo://bucket/file": "no file system foo://",
    "a\0b": "NUL byte",
    "caf\udce9": "not UTF-8",
    "/proc/none": "/proc/none: ",
}


def _enter(context):
    with context:
        pass


WRITERS = {
    "bytes": lambda path: files.write_bytes(path, b"x"),
    "JSON": lambda path: files.write_json(path, {}),
    "output": lambda path: _enter(text_files.output_file(path)),
    "resumable outputs": lambda path: ResumableFiles([path], {}),
    "lock": lambda path: _enter(held_lock(path, "x")),
}
# Commands refuse the others where they are typed. The names of locks are this package's, and their folders are created.
ONLY = {"resumable outputs": ("absent/file", "folder", "file/file", "/proc/none"), "lock": ("folder", "/proc/none")}


@pytest.mark.parametrize("path", WRITE, ids=lambda path: repr(path)[:20])
@pytest.mark.parametrize("writer", WRITERS)
def test_writing(hostile, path, writer):
    if path not in ONLY.get(writer, WRITE):
        return
    before = sorted(os.listdir())
    with pytest.raises(UserError, match=WRITE[path]):
        WRITERS[writer](path)
    assert sorted(os.listdir()) == before


FOLDERS = {"file": "in the way|is a file", "file/folder": "in the way", "loop": "in the way", "n" * 300: "too long",
           "foo://b/x": "no file system foo", "a\0b": "NUL", "caf\udce9": "not UTF-8", "pipe": "in the way",
           "/proc/none": "/proc/none"}  # fmt: skip


@pytest.mark.parametrize("path", FOLDERS, ids=lambda path: repr(path)[:20])
def test_making_a_folder(hostile, path):
    with pytest.raises(UserError, match=FOLDERS[path]):
        files.make_folder(path)
    if path.startswith("file"):
        with pytest.raises(UserError, match=FOLDERS[path]):
            write_folder(path, lambda folder: None)


# What TensorFlow itself raises, here by its own readers, which checkpoints and records go through.
OF_TENSORFLOW = {
    "absent": "absent: no such file",
    "folder": "folder: is a folder",
    "file/file": "file/file: a file is in the way",
    "loop": "loop: is a link",
    "n" * 300: "too long",
    "socket": "socket: is a socket",
    "foo://b/x": "no file system foo",
}


@pytest.mark.parametrize("path", OF_TENSORFLOW, ids=lambda path: path[:20])
@pytest.mark.parametrize("read", [lambda path: GFILE.GFile(path, "rb").read(), tf.io.read_file], ids=["file", "op"])
def test_tensorflows_errors_name_the_path(hostile, path, read):
    with pytest.raises(tf.errors.OpError) as raised:
        read(path)
    explained = file_errors.explain(raised.value)
    assert isinstance(explained, UserError) and OF_TENSORFLOW[path] in str(explained)
    with pytest.raises(UserError, match=path[:4]), file_errors.translated(path):
        read(path)


# What is said of the system's errors: (whose mistake it is, a word that no other one has).
CODES = {
    errno.EACCES: (UserError, "no permission to write"), errno.EPERM: (UserError, "no permission to write"),
    errno.EROFS: (UserError, "read-only"), errno.EISDIR: (UserError, "is a folder"),
    errno.ENOTDIR: (UserError, "in the way"), errno.EEXIST: (UserError, "already exists"),
    errno.ENOTEMPTY: (UserError, "not empty"), errno.ELOOP: (UserError, "back to itself"),
    errno.ENAMETOOLONG: (UserError, "shorter"), errno.ENXIO: (UserError, "is a socket"),
    errno.ENODEV: (UserError, "is a device"), errno.ESPIPE: (UserError, "is a pipe"),
    errno.ETXTBSY: (UserError, "is a running"), errno.EBADF: (UserError, "write operations"),
    errno.EBUSY: (UserError, "in use"), errno.EXDEV: (UserError, "on another file system"),
    errno.ENOENT: (MissingFile, "its folder does not exist"), errno.ENOSPC: (Failure, "disk is full"),
    errno.EDQUOT: (Failure, "quota"), errno.EFBIG: (Failure, "ulimit -f"), errno.EIO: (Failure, "reports an error"),
    errno.EMFILE: (Failure, "ulimit -n"), errno.ENFILE: (Failure, "on this machine"),
    errno.ESTALE: (Failure, "lost the file"), errno.EREMOTEIO: (Failure, "does not respond"),
}  # fmt: skip


@pytest.mark.parametrize("code", CODES, ids=errno.errorcode.get)
def test_every_error_of_the_system_has_its_words_from_python_and_from_tensorflow(code):
    kind, words = CODES[code]
    of_python = OSError(code, os.strerror(code), "a.t2t_lite_incomplete")
    of_tensorflow = tf.errors.UnknownError(None, None, f"a.t2t_lite_incomplete; {os.strerror(code)}")
    for error in (of_python, of_tensorflow):
        for path, named in (("typed", "typed"), (None, "a.t2t_lite_incomplete")):
            explained = file_errors.explain(error, path, "write")
            assert type(explained) is kind and re.fullmatch(f"{re.escape(named)}: .*{words}.*", str(explained))
    reading = str(file_errors.explain(of_python, "x"))
    assert ("to read" in reading) == ("to write" in words) and ("no such file" in reading) == (code == errno.ENOENT)
    bare = file_errors.explain(OSError(code, os.strerror(code)))
    assert (bare is not None) == (kind is Failure or code in (errno.EACCES, errno.EPERM, errno.EROFS))


def test_an_error_of_two_paths_names_the_second_one():
    error = OSError(errno.EACCES, "Permission denied", b"one", None, "tw\udce9")
    assert str(file_errors.explain(error)).startswith(r"tw\udce9: no permission to read")
    error = OSError(errno.EACCES, "Permission denied", b"one")
    assert str(file_errors.explain(error)).startswith("one: ")


def test_paths_in_messages_are_printable_and_short():
    for path, shown in {"a b": "a b", "": "''", "a\nb": r"a\nb", b"\xff": r"\udcff", "x" * 200: "x" * 200}.items():
        assert file_errors.shown_path(path) == shown
    assert file_errors.shown_path("a" * 101 + "b" * 100) == f"{'a' * 100}…{'b' * 60}"


def test_where_in_a_graph_an_error_was_raised_is_left_out():
    node = "{{function_node __wrapped__CreateSummaryFileWriter_device_/job:localhost/device:CPU:0}} "
    end = " [Op:CreateSummaryFileWriter] name: "
    for text, message in (
        ("run {a}/eval; Permission denied", "run {a}/eval: no permission to write here. Choose another path or change"),
        ("run is not a directory", "run: a file is in the way"),
    ):
        error = tf.errors.FailedPreconditionError(None, None, f"{node}{text}{end}")
        assert str(file_errors.explain(error, doing="write")).startswith(message)
    error = tf.errors.UnavailableError(None, None, "Error executing an HTTP request: code 0")
    assert isinstance(file_errors.explain(error, "gs://a/b"), Failure)
    assert str(file_errors.explain(error, "gs://a/b")).startswith("gs://a/b: the network file system does not respond")
    error = tf.errors.NotFoundError(None, None, "x")
    assert isinstance(file_errors.explain(error, "run", "write"), MissingFile)
    error = tf.errors.FailedPreconditionError(None, None, f"{node}out of luck{end}")
    assert str(file_errors.explain(error, "run")) == "run: cannot be read: out of luck"
    assert str(file_errors.explain(error, "run", "write")) == "run: cannot be written: out of luck"


@pytest.mark.parametrize(
    "error",
    [
        BrokenPipeError(errno.EPIPE, "Broken pipe"),
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        ValueError("a bug"),
        TypeError("a bug"),
        tf.errors.InvalidArgumentError(None, None, "Incompatible shapes: [2] vs. [3]"),
        tf.errors.NotFoundError(None, None, "Key layer/kernel not found in checkpoint"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_is_about_something_else_passes(error):
    assert file_errors.explain(error) is None


def test_an_error_of_an_operation_in_a_graph_is_not_the_files():
    """As where what was read of it is checked."""
    with tf.Graph().as_default():
        error = tf.errors.InvalidArgumentError(None, tf.no_op(), "an id is too large")
    assert file_errors.explain(error, "run") is None


def test_check_scheme():
    for path in ("a/b", "gs://bucket/x", "ram://x", "a/b://c", "://x", ""):
        file_errors.check_scheme(path)
    with pytest.raises(UserError, match="no file system hdfs"):
        file_errors.check_scheme("hdfs://x")

"""The wrapper of all commands: flags, messages, exit statuses."""
# Nearest tests of: t2t_lite/cli/flags.py, t2t_lite/cli/commands.py, t2t_lite/cli/console.py

import errno
import logging
import os
import subprocess
import sys

import pytest

from t2t_lite.bin import _app
from t2t_lite.errors import Failure, UserError


def define_flags(flags):
    flags.DEFINE_string("problem", None, "Name of the problem.")
    flags.DEFINE_path("data_dir", None, "Folder of records.")
    flags.DEFINE_path("output_dir", "here", "Folder of the run.")
    flags.DEFINE_paths("files", [], "Corpus.")
    flags.DEFINE_integer("train_steps", 100, "Steps.", 1, 1000)
    flags.DEFINE_bool("reuse", True, "Use what is there.")
    flags.DEFINE_enum("variant", "both", ["cased", "both"], "Which.")
    _app.define_tf1_flags(flags)


@pytest.fixture
def call(capsys):
    """Calls a command with these words; returns (status, what `run` saw or None, stdout, stderr)."""

    def call(*argv, does=lambda flags: None, **options):
        seen = []

        def run(flags):
            seen.append(flags)
            return does(flags)

        run.__module__ = __name__
        status = _app.main("t2t-x", define_flags, run, argv, tensorflow=False, **options)
        return status, seen[0] if seen else None, *capsys.readouterr()

    return call


def test_calls_in_one_process_do_not_see_each_other(call):
    call("--train_steps=7")
    assert call()[1].train_steps == 100


def test_an_unknown_flag_and_a_stray_word_are_answered_with_the_nearest_flag(call):
    for word, nearest in (("--train-step=3", "--train_steps"), ("problem=x", "--problem")):
        status, _, _, err = call(word)
        assert status == 2 and f"Nearest: {nearest}" in err


def test_flags_of_tpus_and_tensorflow_1_are_accepted_with_a_line_each(call):
    status, flags, _, err = call("--use_tpu=false", "--job-dir=gs://x", "--ps_replicas=0", "--sync")
    assert status == 0
    assert flags is not None
    assert [line.split(" has no effect")[0] for line in err.splitlines()] == [
        "t2t-x: warning: --sync",
        "t2t-x: warning: --use_tpu",
        "t2t-x: warning: --job_dir",
        "t2t-x: warning: --ps_replicas",
    ]


def test_help_lists_the_commands_own_flags_with_defaults(call):
    status, flags, out, _ = call("--help")
    assert (status, flags) == (0, None)
    assert out.startswith(f"t2t-x: {__doc__}")
    assert "--train_steps=NUMBER\n      Steps. From 1 to 1,000. Default: 100.\n" in out
    assert "--variant=cased|both\n      Which. Default: both.\n" in out
    assert "--[no]reuse" in out
    for hidden in ("use_tpu", "flagfile"):
        assert hidden not in out


def raising(error):
    def run(flags):
        raise error

    return run


class OpError(Exception):
    """Named like TensorFlow's, which the wrapper recognizes without importing TensorFlow."""

    __module__ = "tensorflow.errors"
    op = None


class ResourceExhaustedError(OpError):
    pass


@pytest.mark.parametrize(
    ("error", "status", "words"),
    {
        "user": (UserError("corpus.en, line 3: not UTF-8."), 2, "corpus.en, line 3: not UTF-8."),
        "several lines": (UserError("one\ntwo"), 2, "one two"),
        "failure": (Failure("worker 3 is gone."), 1, "worker 3 is gone."),
        "disk full": (OSError(errno.ENOSPC, "No space left on device", "/d/x"), 1, "/d/x: the disk is full."),
        "disk full in TensorFlow": (
            ResourceExhaustedError("/d/x; No space left on device"),
            1,
            "/d/x: the disk is full.",
        ),
        "memory": (ResourceExhaustedError("OOM when allocating tensor"), 1, "out of memory"),
        "permission": (PermissionError(errno.EACCES, "Permission denied", "/root/x"), 2, "/root/x: no permission"),
    }.values(),
)
def test_errors_are_one_line_with_their_status(call, error, status, words):
    found, _, out, err = call(does=raising(error))
    assert (found, out) == (status, "")
    assert err.startswith("t2t-x: error: ")
    assert err.count("\n") == 1
    assert words in err


def test_bugs_keep_their_traceback(call):
    with pytest.raises(ZeroDivisionError):
        call(does=lambda flags: 1 / 0)


def test_interrupt_is_status_130_without_traceback(call):
    status, _, _, err = call(does=raising(KeyboardInterrupt()))
    assert status == 130
    assert "Traceback" not in err


def test_status_of_the_command_is_passed_on(call):
    assert call(does=lambda flags: 3)[0] == 3


def test_library_messages_go_to_stderr_once(call, monkeypatch):
    def does(flags):
        # What any library does to us that calls logging.info().
        monkeypatch.setattr(logging.root, "handlers", [logging.StreamHandler(sys.stderr)])
        logging.getLogger("t2t_lite").info("step 100")
        logging.getLogger("t2t_lite.training").warning("no GPU")
        print("result")

    _, _, out, err = call(does=does)
    assert out == "result\n"
    assert err == "step 100\nt2t-x: warning: no GPU\n"


PRINTS = """
import sys
from t2t_lite.bin import _app
def run(flags):
    for _ in range(10000):
        print("line")
sys.exit(_app.main("t2t-x", lambda flags: None, run, [], tensorflow=False))
"""


def test_reader_that_goes_away_is_no_error():
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "$0" | head -1; exit ${{PIPESTATUS[0]}}', PRINTS],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout, done.stderr) == (141, "line\n", "")


def test_output_is_utf8_in_any_locale():
    code = """import sys
from t2t_lite.bin import _app
sys.exit(_app.main('t2t-x', lambda flags: None, lambda flags: print('Tür – 戸'), [], tensorflow=False))"""
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, timeout=300)
    assert done.stdout == "Tür – 戸\n".encode(), done.stderr

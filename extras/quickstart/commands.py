"""Runs installed commands one after the other, each shown as it could be typed."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig

from t2t_lite.errors import Failure, UserError
from t2t_lite.process.stop_signal import stop_on_signal

SCRIPTS = os.path.dirname(sys.executable)
_FOLDERS = (SCRIPTS, sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath))
_AGAIN = "Run it again: it continues where it was."


def step(title):
    """Prints the title of the commands that follow."""
    print(f"\n== {title}", flush=True)


def run(*words, is_captured=False):
    """Prints a command and runs it; returns what it prints, if that is captured, which is then printed, too.

    Commands are those of this Python's environment. The first signal to stop is passed on, and the command ends in its
    own time: the trainer saves a checkpoint first. A second one stops both at once.

    Raises:
        UserError: the command refused its input; it has said why.
        Failure: it failed or was stopped.
    """
    print(f"$ {shlex.join(words)}", flush=True)
    env = {**os.environ, "PATH": os.pathsep.join(_FOLDERS)}
    output = subprocess.PIPE if is_captured else None
    child = None
    ask = lambda: child and child.send_signal(signal.SIGTERM)  # noqa: E731
    with stop_on_signal(then=ask, at_second=ask) as stopped:
        # In a process group of its own: else a terminal would send it Ctrl-C, too, and two signals stop it at once.
        child = subprocess.Popen(words, env=env, stdout=output, text=True, process_group=0)
        printed, _ = child.communicate()
    if is_captured:
        print(printed, end="", flush=True)
    if stopped.is_set():
        print(f"quickstart: stopped. {_AGAIN}", file=sys.stderr)
        raise KeyboardInterrupt
    if child.returncode == 2:
        raise UserError(f"stopped at {words[0]}, whose message says what to change. {_AGAIN}")
    if child.returncode:
        raise Failure(f"stopped at {words[0]}, exit status {child.returncode}. {_AGAIN}")
    return printed


def is_newer(path, source):
    """Returns whether a file exists and was made after another one; says so."""
    made = os.path.exists(path) and os.path.getmtime(path) >= os.path.getmtime(source)
    if made:
        print(f"{path} is there.", flush=True)
    return made


def export(model, export_dir, checkpoint):
    """Exports the model of a folder as `<export_dir>/1`, unless the export there is newer than a file of the model."""
    if not is_newer(os.path.join(export_dir, "1", "saved_model.pb"), checkpoint):
        shutil.rmtree(export_dir, ignore_errors=True)
        run("t2t-exporter", f"--output_dir={model}", f"--export_dir={export_dir}")

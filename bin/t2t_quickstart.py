"""Does the whole job on the embedded phrasebook: data, a small Transformer, translations, BLEU, a SavedModel.

    t2t-quickstart                               # about ten minutes on two CPU cores

It prints the commands that it runs, and writes to --output_dir. What is there is used again, so a run that was stopped
continues; to begin anew, delete the folder.
"""

import os
import shutil
import signal
import sys
import sysconfig

from t2t_lite.bin import _app
from t2t_lite.errors import Failure, UserError
from t2t_lite.modes import require
from t2t_lite.ranges import COUNT, Range

_STEPS = Range(1, COUNT.most)
_SCRIPT = os.path.join(os.path.dirname(__file__), "quickstart.sh")


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_path("output_dir", "quickstart", "Folder to write to.")
    flags.DEFINE_integer("train_steps", 1500, "Steps of training.", limits=_STEPS)
    flags.DEFINE_integer(
        "local_eval_frequency", 150, "Steps between checkpoints, the last five of which are averaged.", limits=_STEPS
    )


def check(flags):
    """Raises `UserError` without a folder, or if the export of something else would be replaced."""
    require(flags, "output_dir")
    export, train = (os.path.join(flags.output_dir, name) for name in ("export", "train"))
    if os.path.exists(export) and not os.path.exists(train):
        raise UserError(
            f"--output_dir={flags.output_dir}: has an export/ without the train/ that it comes from. Expected a new "
            "folder, or one that t2t-quickstart has made."
        )


def run(flags):
    """Replaces this process by the script, with this Python and its commands first in the PATH."""
    if not (bash := shutil.which("bash")):
        raise Failure("bash: not found in PATH. The quickstart is a script for it; install bash.")
    folders = [os.path.dirname(sys.executable), sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)]
    words = [flags.output_dir, str(flags.train_steps), str(flags.local_eval_frequency)]
    sys.stdout.flush()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, which child processes inherit
    os.execve(bash, [bash, _SCRIPT, *words], {**os.environ, "PATH": os.pathsep.join(folders), "PYTHON": sys.executable})


main = _app.command("t2t-quickstart", define_flags, run, check, tensorflow=False)


if __name__ == "__main__":
    sys.exit(main())

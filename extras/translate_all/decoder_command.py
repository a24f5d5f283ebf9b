"""t2t-translate-all's --decoder_command: the user's own command translates each checkpoint, as in tensor2tensor."""

import logging
import re
import shlex
import subprocess

from t2t_lite.errors import Failure, UserError

DEFAULT = "t2t-decoder {params}"  # tensor2tensor's default; here this process translates instead
_LOGGER = logging.getLogger("t2t_lite")


def check(template):
    """Raises `UserError` for a template without {params} or with any other field."""
    other = re.search(r"\{(FLAGS|model)\.[^}]*\}", template)
    if "{params}" not in template or other:
        found = f"{other[0]} is not filled in" if other else "holds no {params}"
        raise UserError(
            f"--decoder_command: {found}. Expected {{params}} where t2t-decoder's flags belong: 'srun {DEFAULT}'."
        )


def translate(template, checkpoint, source, path, options, folders):
    """Runs the command through the shell.

    Args:
        template: str, --decoder_command.
        checkpoint: path without suffix.
        source, path: paths of what to translate and of the translation.
        options: dict of beam_size and alpha; None leaves an option out.
        folders: {flag: path} of further flags; None leaves a flag out.

    Raises:
        Failure: the exit status is not 0.
    """
    settings = ",".join(f"{name}={value}" for name, value in options.items() if value is not None)
    params = {
        "checkpoint_path": checkpoint,
        "decode_from_file": source,
        "decode_to_file": path,
        **({"decode_hparams": settings} if settings else {}),
        **{name: value for name, value in folders.items() if value},
    }
    words = [*(f"--{name}={value}" for name, value in params.items()), "--keep_timestamp"]
    command = template.replace("{params}", shlex.join(words))
    _LOGGER.info(command)
    status = subprocess.run(command, shell=True).returncode  # the template is a shell command by design
    if status:
        raise Failure(f"--decoder_command: exit status {status} of: {command}")

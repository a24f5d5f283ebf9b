"""Runs a user-supplied decoder command for each checkpoint, as in tensor2tensor (--decoder_command)."""

import re
import shlex
import subprocess

from t2t_lite.errors import LOGGER, Failure, UserError

DEFAULT = "t2t-decoder {params}"  # tensor2tensor's default; with it, this process itself translates


def check(template):
    """Raises `UserError` if a template lacks {params} or has another field."""
    other = re.search(r"\{(FLAGS|model)\.[^}]*\}", template)
    if "{params}" not in template or other:
        fault = f"{other[0]} is not supported" if other else "{params} is missing"
        raise UserError(f"--decoder_command: {fault}. Expected {{params}} for t2t-decoder's flags: 'srun {DEFAULT}'.")


def translate(template, checkpoint, source, path, options, folders):
    """Runs the command in a shell, with the flags of t2t-decoder for one checkpoint.

    Args:
        template: str, --decoder_command.
        checkpoint: path without suffix.
        source, path: paths of the source text and of the translation.
        options: dict with beam_size and alpha; an option that is None is omitted.
        folders: {flag: path}, other flags with paths; a flag whose path is None is omitted.

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
    LOGGER.info(command)
    status = subprocess.run(command, shell=True).returncode  # the template is a shell command by design
    if status:
        raise Failure(f"--decoder_command failed with exit status {status}: {command}")

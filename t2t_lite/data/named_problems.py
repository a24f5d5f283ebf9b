"""Generates the data of problems by name."""

import fnmatch
import inspect
import logging
import os
import random

import numpy as np

from t2t_lite import files, registry
from t2t_lite.data.generation_settings import GenerationSettings
from t2t_lite.errors import UserError, nearest

_LOGGER = logging.getLogger("t2t_lite")


def select_problems(patterns, excluded=(), keeps_suffix=False):
    """Returns the full names of problems, a list of str.

    Args:
        patterns: str, comma-separated names, or prefixes ending in *.
        excluded: list of str; problems whose names contain one of them are excluded.
        keeps_suffix: bool, whether to keep `_rev` and `_copy`, which use the records of the base problem.

    Raises:
        UserError: a problem does not exist, or none is left.
    """
    registered, names = registry.list_problems(), []
    for word in filter(None, (word.strip() for word in patterns.split(","))):
        if keeps_suffix and not word.endswith("*"):
            names.append(registry.problem(word).full_name)
            continue
        base = registry.problem(word).name if not word.endswith("*") else word
        if base != word and base == base.rstrip("*"):
            _LOGGER.info(f"{word}: its records are those of {base}; training reads them as {word[len(base) :]} says")
        matches = fnmatch.filter(registered, base)
        if not matches:
            raise UserError(
                f"--problem={word}: no problem begins like this. {nearest(word.rstrip('*'), registered)}".strip()
            )
        names += [name for name in matches if name not in names]
    if not names:
        raise UserError(f"--problem={patterns}: names no problem. Expected one or several, with commas between them.")
    names = [name for name in names if not any(part in name for part in excluded)]
    if not names:
        raise UserError(f"--problem={patterns}: --exclude_problems={','.join(excluded)} leaves none of them.")
    return names


def generate_problems(names, data_dir, tmp_dir, arguments=None, settings=None, attributes=None):
    """Generates the data of problems, one after the other.

    Args:
        names: list of str.
        data_dir, tmp_dir: paths of the folders for records and downloads.
        arguments: dict of arguments for the problems' `configure`, such as the user's files; {} or None: no call.
        settings: GenerationSettings; None: the defaults.
        attributes: {name: value}, further attributes of the problems, such as `Problem.write_shards`.

    Raises:
        UserError: a problem does not accept the arguments, or its generation raises it.
    """
    for name in names:  # so that mistakes are reported before any work
        problem = registry.problem(name)
        accepted = getattr(problem, "flags", ())
        if not accepted and hasattr(problem, "configure"):
            accepted = inspect.signature(problem.configure).parameters
        if wrong := [f"--{argument}" for argument in arguments or () if argument not in accepted]:
            only = f"Expected {', '.join(f'--{name}' for name in accepted)}." if accepted else "It brings its own data."
            raise UserError(f"{', '.join(wrong)}: not for --problem={problem.name}. {only}")
    settings = settings or GenerationSettings()
    for name in names:
        # For user problems that use the global generators; reseeded for each, so that the order does not matter.
        random.seed(settings.random_seed)
        np.random.seed(settings.random_seed % 2**32)
        problem = registry.problem(name)
        vars(problem).update(vars(settings), **attributes or {})
        problem.num_workers = settings.num_workers or os.cpu_count() or 1
        if arguments:
            problem.configure(**arguments)
        files.make_folder(tmp_dir)
        problem.generate_data(data_dir, tmp_dir)

"""Generates the data of named problems with shared settings, and builds the equivalent t2t-datagen command."""

import dataclasses
import fnmatch
import os
import random
import shlex

from t2t_lite import files, registry
from t2t_lite.errors import LOGGER, UserError, nearest
from t2t_lite.settings.ranges import COUNT, SEED, Range, setting

# The number of processes is limited, because each process needs about 600 MB of memory.
_WORKERS = Range(1, max(16, 2 * (os.cpu_count() or 1)))


@dataclasses.dataclass(frozen=True)
class GenerationSettings:
    """Settings that are flags of t2t-datagen and attributes of `Problem`."""

    max_cases: int = setting(
        0,
        limits=COUNT,
        meaning="Largest number of samples to read per split, such as pairs; for texts that are divided into rows, "
        "pieces of about 1000 characters. 0: no limit.",
    )
    skip_bad_lines: bool = setting(
        False, meaning="Skip and count unreadable lines, for example lines that are not UTF-8 or lack a column."
    )
    random_seed: int = setting(
        429459, limits=SEED, meaning="Seed for all random numbers; the same seed gives the same files."
    )
    num_workers: int | None = setting(
        None, limits=_WORKERS, meaning="Number of processes that encode samples; default: one per core."
    )


def select_problems(patterns, excluded=(), keeps_suffix=False):
    """Resolves comma-separated problem names and prefixes into a list of full names.

    Args:
        patterns: str, comma-separated names, or prefixes ending in *.
        excluded: list of str; a problem is excluded if its name contains one of these strings.
        keeps_suffix: bool, whether to keep the suffixes `_rev` and `_copy`, which do not affect the records.

    Raises:
        UserError: a problem does not exist, or no problem is selected.
    """
    registered, names = registry.list_problems(), []
    for word in filter(None, map(str.strip, patterns.split(","))):
        if word.endswith("*"):
            matches = fnmatch.filter(registered, word)
            if not matches:
                hint = nearest(word.rstrip("*"), registered)
                raise UserError(f"--problem={word}: no problem has this prefix. {hint}".strip())
        else:
            problem = registry.problem(word)
            matches = [problem.full_name if keeps_suffix else problem.name]
            if not keeps_suffix and word != problem.name:
                suffix = word.removeprefix(problem.name)
                LOGGER.info(f"{word}: uses the records of {problem.name}; training applies {suffix} when it reads them")
        names += [name for name in matches if name not in names]
    selected = [name for name in names if not any(part in name for part in excluded)]
    if not selected:
        unnamed = "no problem is named. Expected one or more names of problems, separated by commas"
        all_excluded = f"--exclude_problems={','.join(excluded)} excludes all of them"
        raise UserError(f"--problem={patterns}: {all_excluded if names else unnamed}.")
    return selected


def generate_problems(names, data_dir, tmp_dir, arguments=None, attributes=None):
    """Generates the data of problems, one after the other.

    Args:
        names: list of str.
        data_dir, tmp_dir: paths of the folders for records and downloads.
        arguments: dict of arguments for the problems' `configure`, such as the user's files; if {} or None, `configure`
            is not called.
        attributes: {name: value}, attributes to set on the problems, such as `Problem.write_shards` and the
            `GenerationSettings` that the user chose. Other settings keep the values that a problem's class gives them.

    Raises:
        UserError: a problem does not accept the arguments, or its generation fails.
    """
    for name in names:  # all names are checked first, so that mistakes are reported before any data is generated
        problem = registry.problem(name)
        accepted = getattr(problem, "flags", ())
        if wrong := [f"--{argument}" for argument in arguments or () if argument not in accepted]:
            only = (
                f"Expected {', '.join(f'--{name}' for name in accepted)}."
                if accepted
                else "The problem's class determines its data and vocabulary (docs/data.md, A problem of your own)."
            )
            raise UserError(f"{', '.join(wrong)}: not available for --problem={problem.name}. {only}")
    import numpy as np  # NumPy is imported late, since `t2t-datagen --help` needs only the settings

    for name in names:
        problem = registry.problem(name)
        vars(problem).update({"num_workers": _count_cores(), **(attributes or {})})
        # The global generators are seeded for users' problems that sample from them. They are seeded before each
        # problem, so that the order of the problems does not matter.
        random.seed(problem.random_seed)
        np.random.seed(problem.random_seed % 2**32)
        if arguments:
            problem.configure(**arguments)
        files.make_folder(tmp_dir)
        problem.generate_data(data_dir, tmp_dir)


def _count_cores():
    """Returns the number of cores that this process may use, which a cluster's scheduler or a container may limit."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def datagen_command(problem, data_dir):
    """Returns a command line of t2t-datagen, quoted for a shell, with all flags that the problem needs."""
    usr_dir = registry.usr_dir_of(type(problem))
    words = ["t2t-datagen", f"--problem={problem.name}"]
    words += getattr(problem, "example_flags", "").split()  # shows placeholders for the user's files
    words += [f"--data_dir={data_dir}", *([f"--t2t_usr_dir={usr_dir}"] if usr_dir else [])]
    return shlex.join(words)


def with_vocabulary_of(problem, folder):
    """Returns how to generate a problem's data with the vocabulary of a run's `folder`, for a message."""
    if "vocab_from" in getattr(problem, "flags", ()):
        return f"t2t-datagen --vocab_from={shlex.quote(folder)}"
    return f"copy {shlex.quote(folder)}/vocab.* into an empty --data_dir, then run t2t-datagen"

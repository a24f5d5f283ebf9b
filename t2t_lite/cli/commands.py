"""The commands: found in the folders of their modules, `bin/` and those of extras, not listed.

An extra adds to a command by a module `in_<command>.py`, such as in_t2t_trainer.py, which may have

    HELP                    str, paragraphs that --help shows below those of the command
    define_flags(flags)     declares flags, as a command does
    check(flags)            raises `UserError` for mistakes in them, after the command's own check
    MODES                   {key: Mode}, what the command does instead: see `t2t_lite.cli.modes.all_modes`

It adds to what is no command in the same way: see `t2t_lite.data.generation`.
"""

import functools
import importlib
import logging

from t2t_lite.cli.flags import Flags
from t2t_lite.cli.usr_dirs import explain_import_error, import_usr_dir
from t2t_lite.errors import UserError
from t2t_lite.process.extras import PACKAGE, extras, packages
from t2t_lite.process.lazy import module_paths

_BIN = "t2t_lite.bin"  # by its name, for the library imports no command


def _modules():
    """Returns {command: (its package, pathlib.Path of its module)}, in order of their names."""
    found = {
        name.replace("_", "-"): (package, path)
        for package in (_BIN, *packages())
        for name, path in module_paths(package).items()
        if name.startswith("t2t_")
    }
    return dict(sorted(found.items()))


def paths():
    """Returns {command: pathlib.Path of its module}, in order of their names, such as t2t-trainer; imports none."""
    return {name: path for name, (_, path) in _modules().items()}


def module(name):
    """Returns the module of a command, imported; TensorFlow is not."""
    package, path = _modules()[name]
    return importlib.import_module(f"{package}.{path.stem}")


def module_of_user(name, usr_dir):
    """Returns the module `t2t_<name>.py` of a `--t2t_usr_dir`, imported; None if there is none.

    Raises:
        UserError: the folder, or the module, cannot be imported.
    """
    package, stem = import_usr_dir(usr_dir), name.replace("-", "_")
    if not package or stem not in module_paths(package):
        return None
    try:
        return importlib.import_module(f"{package}.{stem}")
    except Exception as error:
        why = explain_import_error(error, module_paths(package)[stem].parent)
        raise UserError(f"--t2t_usr_dir={usr_dir}: {why}") from error


def modules():
    """Returns {command: its module}, in order of their names."""
    return {name: module(name) for name in paths()}


@functools.cache
def parts(name):
    """Returns the modules `in_<name>.py` of extras, imported; one that is broken is left out, with a warning.

    Args:
        name: str, of a command, such as "t2t-trainer", or of something else that extras add to.
    """
    stem, found = f"in_{name.replace('-', '_')}", []
    for extra, folder in extras().items():
        if (folder / f"{stem}.py").is_file():
            try:
                found.append(importlib.import_module(f"{PACKAGE}.{extra}.{stem}"))
            except Exception as error:
                why = explain_import_error(error, folder)
                logging.getLogger("t2t_lite").warning(f"{name}: the extra {extra!r} cannot be used: {why}")
    return found


def additions(name, attribute):
    """Returns what the parts of extras have under the name of an attribute; [] if none has it."""
    return [getattr(part, attribute) for part in parts(name) if hasattr(part, attribute)]


def flags_of(command):
    """Returns the `Flags` that a command, a module, declares, and extras with it."""
    flags = Flags()
    for define in (command.define_flags, *additions(command.__name__.rpartition(".")[2], "define_flags")):
        define(flags)
    return flags


def description(name, docstring):
    """Returns the docstring of a command, and the help of what extras add to it, as one text."""
    return "\n\n".join(text.strip() for text in (docstring or "", *additions(name, "HELP")))

"""The commands: found in the folders of their modules, `bin/` and those of extras, not listed."""

import functools
import importlib
import logging

from t2t_lite.cli.flags import Flags
from t2t_lite.cli.usr_dirs import explain_import_error, import_of_extra, import_usr_dir
from t2t_lite.errors import UserError
from t2t_lite.process.extras import packages
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
def parts(command):
    """Returns the modules `in_<command>.py` of extras, imported: what they add to a command of the core.

    Each has `define_flags(flags)` and a docstring for the command's --help. Where its flags ask for another thing to be
    done it has `MODES`, {name: Mode}. For t2t-exporter, `KEPT_SETTINGS` are the settings of searches that a format
    keeps: {(format, class that answers, such as "Translator"): names}. One that is broken is left out, with a warning.
    """
    name, modules = f"in_{command.replace('-', '_')}", []
    for package in packages():
        if name in module_paths(package):
            module, why = import_of_extra(f"{package}.{name}")
            modules += [module] if module else []
            if why:
                logging.getLogger("t2t_lite").warning(f"{command}: {why}")
    return modules


def modes(command, own):
    """Returns {name: Mode} of a command: those of extras, then its own."""
    return {name: mode for part in parts(command) for name, mode in getattr(part, "MODES", {}).items()} | own


def flags_of(command):
    """Returns the `Flags` that a command, a module, declares, with those of extras."""
    flags = Flags()
    define_all(command.__name__.rpartition(".")[2], command.define_flags, flags)
    return flags


def define_all(command, define, flags):
    """Declares the flags of a command by its function, and those that extras add."""
    define(flags)
    for part in parts(command):
        part.define_flags(flags)


def description(command, docstring):
    """Returns what --help says of a command: its docstring, and those of its parts, as one text."""
    return "\n\n".join(text.strip() for text in (docstring or "", *(part.__doc__ or "" for part in parts(command))))

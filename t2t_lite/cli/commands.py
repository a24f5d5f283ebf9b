"""Finds the commands in `bin/` and in the extras, and checks a command's flags against its modes."""

import functools
import importlib
import typing
from collections.abc import Callable, Mapping
from textwrap import indent
from types import MappingProxyType

from t2t_lite.cli.flags import Flags
from t2t_lite.cli.usr_dirs import explain_import_error, import_of_extra, import_usr_dir
from t2t_lite.errors import LOGGER, UserError
from t2t_lite.process.lazy import module_paths, packages

_BIN = "t2t_lite.bin"  # the package's name as a str, since the library must not import commands


def _modules():
    """Returns {command: (its package, pathlib.Path of its module)}, sorted by name."""
    modules = {
        name.replace("_", "-"): (package, path)
        for package in (_BIN, *packages())
        for name, path in module_paths(package).items()
        if name.startswith("t2t_")
    }
    return dict(sorted(modules.items()))


def paths():
    """Returns {command, such as "t2t-trainer": pathlib.Path of its module}, sorted by name, without imports."""
    return {name: path for name, (_, path) in _modules().items()}


def module(name):
    """Imports and returns the module of a command, without TensorFlow."""
    package, path = _modules()[name]
    return importlib.import_module(f"{package}.{path.stem}")


def module_of_user(name, usr_dir):
    """Imports and returns the module `t2t_<name>.py` of a `--t2t_usr_dir`, or returns None if there is no such module.

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
    """Imports the modules of all commands and returns {command: its module}, sorted by name."""
    return {name: module(name) for name in paths()}


@functools.cache
def parts(command):
    """Imports and returns the extras' modules `in_<command>.py`, each of which extends a core command.

    Each module has a function `define_flags(flags)` and a docstring, which --help of the command shows. If the flags of
    an extra select a new mode, its module also has `MODES`, {name: Mode}. A broken module is left out, with a warning.
    """
    name, modules = f"in_{command.replace('-', '_')}", []
    for package in packages():
        if name in module_paths(package):
            module, why = import_of_extra(f"{package}.{name}")
            modules += [module] if module else []
            if why:
                LOGGER.warning(f"{command}: {why}")
    return modules


def modes(command, own):
    """Returns the modes of a command, {name: Mode}: modes of extras first, then the command's own modes."""
    return {name: mode for part in parts(command) for name, mode in getattr(part, "MODES", {}).items()} | own


def flags_of(command):
    """Returns the `Flags` that the module of a command, and the extras that extend it, declare."""
    flags = Flags()
    define_all(command.__name__.rpartition(".")[2], command.define_flags, flags)
    return flags


def define_all(command, define, flags):
    """Declares the flags of a command, including the flags that extras add to it."""
    define(flags)
    for part in parts(command):
        part.define_flags(flags)


def description(command, docstring):
    """Returns the description of a command for --help, which joins the docstrings of the command and of its extras.

    Paragraphs that begin with the command are indented, since ruff removes the indentation that all lines share.
    """
    text = "\n\n".join(text.strip() for text in (docstring or "", *(part.__doc__ or "" for part in parts(command))))
    paragraphs = text.split("\n\n")
    return "\n\n".join(indent(one, "    ") if one.startswith(f"{command} --") else one for one in paragraphs)


class Mode(typing.NamedTuple):
    """A mode of a command, which is one of the tasks that the command can do.

    Attributes:
        name: str, what a user types to select the mode, for messages.
        reads: names of the flags that this mode reads and at least one other mode does not.
        needs: names of the flags that this mode requires.
        run: function that performs the task; the command passes the same arguments to all of its modes.
        instead: {name of a flag that the mode does not read: str, advice on what to do instead}.
        selected_by: function of the flags that returns whether the flags select this mode.
        check: function of the flags that raises `UserError` for mistakes that can be found without heavy imports.
        others: None, or a function that checks the flags when a different mode is selected.
        keeps: for a format of t2t-exporter, {name of an answerer class: names of the search settings kept in the
            export}.
    """

    name: str
    reads: tuple = ()
    needs: tuple = ()
    run: Callable | None = None
    instead: Mapping = MappingProxyType({})
    selected_by: Callable | None = None
    check: Callable | None = None
    others: Callable | None = None
    keeps: Mapping = MappingProxyType({})


def chosen_mode(flags, modes):
    """Returns the first of `modes`, {key: Mode}, that the flags select, or else the last mode, the default."""
    *others, usual = modes.values()
    return next((mode for mode in others if mode.selected_by(flags)), usual)


def check_mode(flags, mode, modes):
    """Raises `UserError` for flags that only other modes read, and for missing flags that this mode needs.

    Args:
        flags: absl's FlagValues.
        mode: the Mode that the flags select.
        modes: {key: Mode}, all modes of the command.
    """
    other_flags = {name for other in modes.values() for name in other.reads} - {*mode.reads}
    if unread := [name for name in flags if name in other_flags and _asks(flags[name])]:
        readers = [other.name for other in modes.values() if {*unread} <= {*other.reads}]
        is_mode = any(f"--{name}" in readers for name in unread)
        only = f", only with {' or '.join(readers)}" if readers and not is_mode else ""
        instead = [f" {mode.instead[name]}" for name in unread if name in mode.instead]
        names = ", ".join(f"--{name}" for name in unread)
        it = "it" if len(unread) == 1 else "them"
        raise UserError(f"{names} cannot be used with {mode.name}{only}. Remove {it}.{''.join(instead)}")
    require(flags, *mode.needs)


def require(flags, *names):
    """Raises `UserError` if any of the named flags has no value; the message explains the missing flags."""
    missing = [f"--{name} ({flags[name].help.rstrip('.')})" for name in names if flags[name].value in (None, "", [])]
    if missing:
        *others, last = missing
        raise UserError(f"missing {', '.join(others)}{' and ' if others else ''}{last}.")


def _asks(flag):
    """Returns whether a flag is given with a value that has an effect; --flag= and --noflag have none."""
    return flag.present and flag.value not in ("", [], None) and bool(flag.value or flag.value != flag.default)

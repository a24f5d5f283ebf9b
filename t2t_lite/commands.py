"""The commands: found in the folder of their modules, not listed."""

import importlib

from t2t_lite.flags import Flags
from t2t_lite.lazy import module_paths

_BIN = "t2t_lite.bin"  # by its name, for the library imports no command


def paths():
    """Returns {command: pathlib.Path of its module}, in order of their names, such as t2t-trainer; imports none."""
    return {name.replace("_", "-"): path for name, path in module_paths(_BIN).items() if name.startswith("t2t_")}


def module(name):
    """Returns the module of a command, imported; TensorFlow is not."""
    return importlib.import_module(f"{_BIN}.{paths()[name].stem}")


def modules():
    """Returns {command: its module}, in order of their names."""
    return {name: module(name) for name in paths()}


def flags_of(command):
    """Returns the `Flags` that a command, a module, declares."""
    flags = Flags()
    command.define_flags(flags)
    return flags

"""The commands: found in the folders of their modules, `bin/` and those of extras, not listed."""

import importlib

from t2t_lite.cli.flags import Flags
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


def modules():
    """Returns {command: its module}, in order of their names."""
    return {name: module(name) for name in paths()}


def flags_of(command):
    """Returns the `Flags` that a command, a module, declares."""
    flags = Flags()
    command.define_flags(flags)
    return flags

"""Lets Keras load `.keras` files with classes from this package, which are imported only when a file needs them.

Keras finds a class by its registered name, and a class is registered when its module is imported. Importing all these
modules together with the package would also import Keras, which takes seconds, even for commands that only print their
help. So a stand-in is registered for each class once Keras has been imported. Importing the module later replaces the
stand-in with the class.
"""

import importlib
import os
import pathlib
import re
import sys

from t2t_lite.process.lazy import PACKAGE, ImportHook, extras

_REGISTERED = re.compile(r'^@keras\.saving\.register_keras_serializable\("(\w+)"\)\n(?:@.*\n)*class (\w+)', re.M)


def modules():
    """Returns {registered name of a Keras class: its module}, found in the sources without importing them."""
    roots = {"t2t_lite": pathlib.Path(__file__).parents[1], **{f"{PACKAGE}.{n}": p for n, p in extras().items()}}
    paths = (
        (package, root, pathlib.Path(folder, name))
        for package, root in roots.items()
        for folder, _, names in os.walk(root)
        for name in names
        if name.endswith(".py")
    )
    return {
        f"{of}>{name}": ".".join((package, *path.relative_to(root).with_suffix("").parts))
        for package, root, path in sorted(paths)
        for of, name in _REGISTERED.findall(path.read_text(encoding="utf-8"))
    }


class _StandIn:
    """A stand-in for a registered class, which imports the class when Keras needs it."""

    def __init__(self, module, name):
        self.module = module
        self.name = name

    def from_config(self, config):
        """Imports the class and returns an instance of the class."""
        return getattr(importlib.import_module(self.module), self.name).from_config(config)


def register():
    """Registers stand-ins for this package's Keras classes, now or as soon as Keras has been imported."""
    if "keras" in sys.modules and hasattr(sys.modules["keras"], "saving"):
        _register_stand_ins()
    else:
        sys.meta_path.insert(0, ImportHook("keras", _import_and_register))


def _import_and_register(exec_module, module):
    exec_module(module)
    _register_stand_ins()


def _register_stand_ins():
    objects = sys.modules["keras"].saving.get_custom_objects()
    for name, module in modules().items():
        objects.setdefault(name, _StandIn(module, name.partition(">")[2]))

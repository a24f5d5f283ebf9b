"""Lets Keras open `.keras` files that hold classes of this package, which are imported only when a file asks for one.

Keras finds a class by the name under which it is registered, and that happens when its module is imported. Importing
them all with the package would import Keras with it: seconds, for commands that may only print their help. So what is
registered at first is a stand-in, as soon as Keras itself is there; the module puts the class in its place.
"""

import importlib
import os
import pathlib
import re
import sys

from t2t_lite.process.lazy import PACKAGE, ImportHook, extras

_REGISTERED = re.compile(r'^@keras\.saving\.register_keras_serializable\("(\w+)"\)\n(?:@.*\n)*class (\w+)', re.M)


def modules():
    """Returns {registered name of a class that Keras can store: its module}, by the sources; imports none."""
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
    """Creates instances of its class, which it imports when needed."""

    def __init__(self, module, name):
        self.module = module
        self.name = name

    def from_config(self, config):
        """Returns an instance of the class."""
        return getattr(importlib.import_module(self.module), self.name).from_config(config)


def register():
    """Registers stand-ins, now or as soon as Keras has been imported."""
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

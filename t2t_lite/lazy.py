"""Packages whose public names are imported from their modules when they are first used."""

import importlib


def lazy_names(package, modules):
    """Returns the `__getattr__` and `__dir__` of a package.

    Args:
        package: str, its name.
        modules: {public name: the module that defines it, in full}.
    """

    def get(name):
        if name in modules:
            return getattr(importlib.import_module(modules[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted({*vars(importlib.import_module(package)), *modules})

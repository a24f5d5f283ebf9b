"""Extras: the folders of optional features in `t2t_lite.extras`, found, not listed; none is imported for it."""

import functools

from t2t_lite.process.lazy import module_paths

PACKAGE = "t2t_lite.extras"


@functools.cache
def extras():
    """Returns {name of an extra: pathlib.Path of its folder}, in order of their names."""
    return {name: path.parent for name, path in module_paths(PACKAGE).items() if path.stem == "__init__"}


def packages():
    """Returns the names of the extras' packages."""
    return [f"{PACKAGE}.{name}" for name in extras()]


def extra_of(module):
    """Returns the name of the extra that has a module, by the module's name; "" for one of the core or of a user."""
    return module.removeprefix(f"{PACKAGE}.").split(".")[0] if module.startswith(f"{PACKAGE}.") else ""

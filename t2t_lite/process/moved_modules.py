"""Lets the old names of modules that moved into an extra or another folder of the core be imported.

`t2t_lite.serving.client` is `t2t_lite.extras.query_client.client` now. A module that is not in its old place is looked
up by its name; merged_modules.tsv lists the modules that became a part of another one.
"""

import functools
import importlib
import importlib.abc
import importlib.util
import pathlib
import sys
import types

from t2t_lite.process.lazy import PACKAGE, extras, module_paths, packages

_FOLDERS = ("t2t_lite.settings", "t2t_lite.cli", "t2t_lite.process")  # of what was at the top


def new_name(name):
    """Returns today's name of a module or package such as "t2t_lite.serving.client", or None if it is gone."""
    root, _, inside = name.partition(".")
    *parents, last = inside.split(".")
    if name in _merged():
        return _merged()[name]
    if root != "t2t_lite" or not last or name.startswith(PACKAGE):
        return None
    modules = _modules_of_today(parents, last)
    if last in extras() and not (parents and modules):
        return f"{PACKAGE}.{last}"
    return next(iter(modules), None)


def _modules_of_today(parents, last):
    """Returns the names of modules in extras or in the core's folders that used to be in one of these parents."""
    words = [f"{parents[-1]}_{last}", last] if parents else [last]
    places = packages() if parents else _FOLDERS
    known = {f"{place}.{name}" for place in places for name in module_paths(place)} | _merged().keys()
    names = [f"{place}.{word}" for word in words for place in places]
    return [_merged().get(name, name) for name in names if name in known]


@functools.cache
def _merged():
    """Returns {name of a removed module: name of the module that has its contents}."""
    lines = pathlib.Path(__file__).with_name("merged_modules.tsv").read_text(encoding="utf-8").splitlines()
    merged = dict(line.split("\t") for line in lines)
    return {old: merged.get(new, new) for old, new in merged.items()}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Comes last: it is asked for modules that no other finder knows."""

    def find_spec(self, fullname, path=None, target=None):
        """Returns the specification of a module that has moved; None for every other one."""
        if (new := new_name(fullname)) is None:
            return None
        is_package = new.count(".") == 2 and new.startswith(PACKAGE)
        is_package = is_package or any(old.startswith(f"{fullname}.") for old in _merged())  # it was one
        return importlib.util.spec_from_loader(fullname, self, origin=new, is_package=is_package)

    def exec_module(self, module):
        """Puts the module that stands elsewhere now in its place; a package only forwards, for its modules moved."""
        new = importlib.import_module(module.__spec__.origin)
        if module.__spec__.submodule_search_locations is None:
            sys.modules[module.__name__] = new
        else:
            module.__getattr__ = types.MethodType(getattr, new)


def find_moved_modules():
    """Installs the finder."""
    sys.meta_path.append(_Finder())

"""Lets programs import modules by their old names after these modules have moved to an extra or another folder.

For example, `t2t_lite.serving.client` is now `t2t_lite.extras.query_client.client`. A module
that no longer exists under its old name is found by the last part of the name. merged_modules.tsv lists the modules
that were merged into other modules.
"""

import functools
import importlib
import importlib.abc
import importlib.util
import pathlib
import sys
import types

from t2t_lite.process.lazy import PACKAGE, extras, module_paths, packages

_FOLDERS = ("t2t_lite.settings", "t2t_lite.cli", "t2t_lite.process")  # for modules formerly in t2t_lite itself


def new_name(name):
    """Returns the current name of a module such as "t2t_lite.serving.client", or None if it no longer exists."""
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
    """Returns the possible current names, in extras or `_FOLDERS`, of the module with an old name."""
    words = [f"{parents[-1]}_{last}", last] if parents else [last]
    places = packages() if parents else _FOLDERS
    known = {f"{place}.{name}" for place in places for name in module_paths(place)} | _merged().keys()
    names = [f"{place}.{word}" for word in words for place in places]
    return [_merged().get(name, name) for name in names if name in known]


@functools.cache
def _merged():
    """Returns {name of a removed module: name of the module that now has its contents}."""
    lines = pathlib.Path(__file__).with_name("merged_modules.tsv").read_text(encoding="utf-8").splitlines()
    merged = dict(line.split("\t") for line in lines)
    return {old: merged.get(new, new) for old, new in merged.items()}


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The import finder for moved modules, which Python only uses for modules that no other finder knows."""

    def find_spec(self, fullname, path=None, target=None):
        """Returns the import spec of a moved module, or None for other modules."""
        if (new := new_name(fullname)) is None:
            return None
        is_package = new.count(".") == 2 and new.startswith(PACKAGE)
        is_package = is_package or any(old.startswith(f"{fullname}.") for old in _merged())  # formerly a package
        return importlib.util.spec_from_loader(fullname, self, origin=new, is_package=is_package)

    def exec_module(self, module):
        """Replaces the old module with the moved module; an old package only forwards attributes to the new package."""
        new = importlib.import_module(module.__spec__.origin)
        if module.__spec__.submodule_search_locations is None:
            sys.modules[module.__name__] = new
        else:
            module.__getattr__ = types.MethodType(getattr, new)


def find_moved_modules():
    """Installs the import finder for moved modules."""
    sys.meta_path.append(_Finder())

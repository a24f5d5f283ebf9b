"""Lets programs import modules by their old names after these modules have moved or were merged into other modules.

moved_modules.tsv lists the modules of 0.1.0 that have another name today. For example, `t2t_lite.serving.client` is now
`t2t_lite.extras.query_client.client`.
"""

import functools
import importlib
import importlib.abc
import importlib.util
import pathlib
import sys
import types


@functools.cache
def moved():
    """Returns {old name of a module or package: its current name}."""
    lines = pathlib.Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The import finder for moved modules, which Python only uses for modules that no other finder knows."""

    def find_spec(self, fullname, path=None, target=None):
        """Returns the import spec of a moved module, or None for other modules."""
        if fullname not in moved():
            return None
        is_package = any(old.startswith(f"{fullname}.") for old in moved())
        return importlib.util.spec_from_loader(fullname, self, is_package=is_package)

    def exec_module(self, module):
        """Replaces the old module with the moved module; an old package only forwards attributes to the new package."""
        new = importlib.import_module(moved()[module.__name__])
        if module.__spec__.submodule_search_locations is None:
            sys.modules[module.__name__] = new
        else:
            module.__getattr__ = types.MethodType(getattr, new)


def find_moved_modules():
    """Installs the import finder for moved modules."""
    sys.meta_path.append(_Finder())

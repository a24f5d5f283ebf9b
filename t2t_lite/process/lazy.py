"""Lazy imports: finds modules and extras without importing them, imports names on first use, and hooks imports."""

import ast
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import pkgutil
import sys
import threading
import types

PACKAGE = "t2t_lite.extras"


@functools.cache
def module_paths(package):
    """Returns {name: pathlib.Path of the source file} for modules directly in a package, without importing them."""
    paths = {}
    for module in pkgutil.iter_modules(_folders(package)):
        path = pathlib.Path(module.module_finder.path, module.name)
        paths[module.name] = (path / "__init__" if module.ispkg else path).with_suffix(".py")
    return paths


def _folders(package):
    """Returns the source folders of a package, if possible without importing its parent package."""
    parent = package.rpartition(".")[0]
    spec = importlib.machinery.PathFinder.find_spec(package, _folders(parent)) if parent else None
    return (spec or importlib.util.find_spec(package)).submodule_search_locations


def lazy_names(package, others=None):
    """Returns the `__getattr__`, `__dir__` and `__all__` for a package that lists its names in `__init__.pyi`.

    Type checkers also read `__init__.pyi`, so they see the same names as Python.

    Args:
        package: str, the name of the package.
        others: the package's `__getattr__` for names that are not in `__init__.pyi`, or None.
    """
    stub = pathlib.Path(sys.modules[package].__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    modules = {alias.name: node.module for node in imports for alias in node.names}

    def get(name):
        if name not in modules and others:
            return others(name)
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(modules[name])
        if modules[name] == package or not hasattr(module, name):
            return importlib.import_module(f"{modules[name]}.{name}")
        return getattr(module, name)

    return get, lambda: sorted({*vars(importlib.import_module(package)), *modules}), sorted(modules)


class ImportHook(importlib.abc.MetaPathFinder):
    """An import hook that calls a function when a module is first imported; insert it at the start of `sys.meta_path`.

    Args:
        name: str, the name of the module.
        run: function that takes (exec_module, module) and must call exec_module(module).
        when_used: bool, whether the module is executed when one of its attributes is first used, instead of when it is
            imported.
    """

    def __init__(self, name, run, when_used=False):
        self._name = name
        self._run = run
        self._when_used = when_used

    def find_spec(self, fullname, path=None, target=None):
        """Returns the import spec of the hooked module, or None for other modules."""
        if fullname != self._name:
            return None
        others = sys.meta_path[sys.meta_path.index(self) + 1 :]
        specs = (finder.find_spec(fullname, path, target) for finder in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = functools.partial(self._run, spec.loader.exec_module)
            spec.loader.exec_module = functools.partial(_postpone, execute) if self._when_used else execute
        return spec


def _postpone(execute, module):
    """Postpones the execution of a package until it is used or one of its submodules is imported."""
    state = {"_execute": execute, "_lock": threading.RLock(), "_own_path": module.__path__}
    del module.__path__
    vars(module).update(state)
    module.__class__ = _PostponedModule


class _PostponedModule(types.ModuleType):
    """A module whose code is executed when an attribute that it does not have yet is accessed.

    Python's `importlib.util.LazyLoader` is similar, but it also executes a module that is imported a second time, and
    lets other threads see a partly executed module.
    """

    def __getattr__(self, name):
        with self._lock:
            if "__path__" in vars(self) and type(self) is _PostponedModule:  # while the module's code is being executed
                raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} yet")
            if type(self) is _PostponedModule:
                self.__path__ = self._own_path
                try:
                    self._execute(self)
                except BaseException:
                    del self.__path__
                    raise
                self.__class__ = types.ModuleType
        return getattr(self, name)


@functools.cache
def extras():
    """Returns {name of an extra: pathlib.Path of its folder}, ordered by name."""
    return {name: path.parent for name, path in module_paths(PACKAGE).items() if path.stem == "__init__"}


def packages():
    """Returns the names of the extras' packages."""
    return [f"{PACKAGE}.{name}" for name in extras()]


def extra_of(module):
    """Returns the name of the extra that a module belongs to, or "" for other modules."""
    return module.removeprefix(f"{PACKAGE}.").split(".")[0] if module.startswith(f"{PACKAGE}.") else ""

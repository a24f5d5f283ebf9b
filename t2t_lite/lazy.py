"""Packages whose modules are found, and whose public names are imported, when they are first used."""

import ast
import importlib
import importlib.util
import pathlib
import pkgutil
import sys


def module_paths(package):
    """Returns {name: pathlib.Path of the source} of the modules directly in a package; imports none of them."""
    paths = {}
    for module in pkgutil.iter_modules(importlib.util.find_spec(package).submodule_search_locations):
        path = pathlib.Path(module.module_finder.path, module.name)
        paths[module.name] = (path / "__init__" if module.ispkg else path).with_suffix(".py")
    return paths


def lazy_names(package):
    """Returns the `__getattr__`, `__dir__` and `__all__` of a package whose names its `__init__.pyi` imports.

    Type checkers read that file in place of the package, so that both see the same names.

    Args:
        package: str, its name.
    """
    stub = pathlib.Path(sys.modules[package].__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    modules = {alias.name: node.module for node in imports for alias in node.names}

    def get(name):
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if modules[name] == package:
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(modules[name]), name)

    return get, lambda: sorted({*vars(importlib.import_module(package)), *modules}), sorted(modules)

"""Finds the modules that register models, problems and other entries, by searching sources without importing them."""

import functools
import importlib
import re

from t2t_lite.process.lazy import module_paths, packages


def modules_of(decorator, package=None):
    """Returns the modules of a core package, and of the extras, in which the name of a decorator occurs.

    Args:
        decorator: str, a regular expression.
        package: str, or None if only extras use the decorator.
    """
    return modules_with(rf"{decorator}\b", *filter(None, [package]), *packages())


def modules_by_name(decorator, package=None):
    """Returns {registered name: list of the modules that register this name}; each list should have only one module.

    The source may give the name, as in `@registry.register_family("openai-gpt")`. Otherwise the name is that of the
    module. For the arguments see `modules_of`.
    """
    modules = {}
    pattern = re.compile(rf'^@(?:registry\.)?{decorator}\b(?:\("(.+?)"\))?', re.MULTILINE)
    for module in modules_of(decorator, package):
        for name in pattern.findall(_source_of(module)):
            modules.setdefault(name or module.rpartition(".")[2], []).append(module)
    return modules


def may_be_declared(name):
    """Returns whether models or layers in this package may declare a hyperparameter with this name."""
    return bool(modules_with(f'"{re.escape(name)}": ', "t2t_lite.models", "t2t_lite.layers", *packages()))


def names_in_extras(package, word):
    """Returns a `__getattr__` that finds classes and functions in modules of extras whose sources contain `word`.

    With this function, a core package provides names such as `t2t_lite.models.XLNet` without naming any extra.
    """

    def get(name):
        for module in [] if name.startswith("_") else modules_with(rf"^(class|def) {re.escape(name)}\b", *packages()):
            if re.search(rf"\b{word}\b", _source_of(module)):
                return getattr(importlib.import_module(module), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get


def modules_with(pattern, *packages):
    """Searches the modules directly in packages for a pattern; returns those that match. ^ is the start of a line."""
    compiled = re.compile(pattern, re.MULTILINE)
    return [
        f"{package}.{name}"
        for package in packages
        for name, path in module_paths(package).items()
        if compiled.search(_source(path))
    ]


def _source_of(module):
    package, _, name = module.rpartition(".")
    return _source(module_paths(package)[name])


@functools.cache
def _source(path):
    return path.read_text(encoding="utf-8")

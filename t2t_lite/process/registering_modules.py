"""Finds the modules that register models, problems and other entries, by searching sources without importing them."""

import functools
import importlib
import re

from t2t_lite.process.lazy import module_paths, packages

_PACKAGES = {  # {kind: (package of the built-in entries, or "" if only extras have entries, name of the decorator)}
    "models": ("t2t_lite.models", "register_model"),
    "hparams": ("t2t_lite.hparams", "register_hparams"),
    "metrics": ("t2t_lite.evaluation", "register_metric"),
    "ranged hparams": ("t2t_lite.hparams", "register_ranged_hparams"),
    "problems": ("t2t_lite.problems", "register_problem"),
    "own settings": ("t2t_lite.problems", "(declare|explain)_settings"),
    "tasks": ("t2t_lite.tasks", "register_task"),
    "scores": ("t2t_lite.layers", "register_score"),
    "patterns": ("t2t_lite.layers", "register_pattern"),
    "feed-forward layers": ("t2t_lite.layers", "register_feed_forward"),
    "families": ("", "register_family"),
    "vocabularies": ("", "register_vocabulary"),
    "folder parts": ("", "register_folder_part"),
    "encoders": ("t2t_lite.text.published", "register_encoder"),
    "export formats": ("", "register_export_format"),
    "export files": ("t2t_lite.export", "register_export_file"),
    "catalogs": ("", "register_catalog"),
    "batches": ("t2t_lite.data", "register_batches"),
    "tellers": ("t2t_lite.decoding", "register_teller"),
    "self-attention layers": ("t2t_lite.layers", "register_self_attention"),
}


def modules_of(kind):
    """Returns the modules that register built-in entries of a kind (such as models), or [] for an unknown kind."""
    if kind not in _PACKAGES:
        return []
    package, word = _PACKAGES[kind]
    return modules_with(rf"{word}\b", *filter(None, [package]), *packages())


def modules_by_name(kind):
    """Returns {registered name: list of the modules that register this name}; each list should have only one module.

    The source may give the name, as in `@registry.register_family("openai-gpt")`. Otherwise the name is that of the
    module.
    """
    found = {}
    for module in modules_of(kind):
        decorator = rf'^@(?:registry\.)?{_PACKAGES[kind][1]}\b(?:\("(.+?)"\))?'
        for name in re.findall(decorator, _source_of(module), re.MULTILINE):
            found.setdefault(name or module.rpartition(".")[2], []).append(module)
    return found


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

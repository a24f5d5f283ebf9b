"""Which modules register something, told by their sources: none is imported for it."""

import os
import pathlib
import re

from t2t_lite.lazy import module_paths

_PACKAGES = {  # of what is built in, and the word by which their modules register it
    "models": ("t2t_lite.models", "register_model"),
    "hparams": ("t2t_lite.hparams", "register_hparams"),
    "metrics": ("t2t_lite.evaluation", "register_metric"),
    "ranged hparams": ("t2t_lite.hparams", "register_ranged_hparams"),
    "problems": ("t2t_lite.problems", "register_problem"),
    "tasks": ("t2t_lite.tasks", "register_task"),
    "scores": ("t2t_lite.layers.scores", "register_score"),
    "patterns": ("t2t_lite.layers.patterns", "register_pattern"),
    "feed-forward layers": ("t2t_lite.layers", "register_feed_forward"),
}


def modules_of(kind):
    """Returns the names of the modules that register what is built in of a kind; [] for kinds that nothing is of."""
    if kind not in _PACKAGES:
        return []
    package, word = _PACKAGES[kind]
    return [f"{package}.{name}" for name in _modules_with(package, rf"\b{word}\b")]


def hint_of_baselines(name):
    """Returns what registers a model or a set of the baselines, which are a `--t2t_usr_dir`; "" if it is none."""
    pattern = rf'^(@register_model\("|def ){re.escape(str(name))}("\)|\(\))'
    found = _modules_with("t2t_lite.baselines", pattern)
    return "It is one of the baselines: add --t2t_usr_dir=t2t_lite.baselines." if found else ""


def may_be_declared(name):
    """Returns whether models of this package, or their layers, may have a hyperparameter of this name of their own."""
    root = pathlib.Path(__file__).parent
    found = [place for folder in ("models", "layers") for place in os.walk(root / folder)]
    paths = [pathlib.Path(where, file) for where, _, files in found for file in files if file.endswith(".py")]
    return any(f'"{name}": ' in path.read_text(encoding="utf-8") for path in paths)


def _modules_with(package, pattern):
    """Returns the names of the modules directly in a package whose source matches a pattern; ^ begins any line."""
    paths = module_paths(package).items()
    return [name for name, path in paths if re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)]

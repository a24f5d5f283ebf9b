"""Imports the folders in which users register problems, models and hyperparameter sets (`--t2t_usr_dir`)."""

import contextlib
import importlib
import importlib.util
import pathlib
import re
import shlex
import sys
import traceback
import types

from t2t_lite.errors import UserError, shown
from t2t_lite.process.lazy import extra_of, extras
from t2t_lite.settings.tensor2tensor_names import module_answer

# A shell command that ports a folder from tensor2tensor; docs/coming_from_tensor2tensor.md explains it.
PORT = (
    "sed -i -E -e 's/\\btensor2tensor\\.(data_generators|layers|models|utils)\\b/t2t_lite.extras.tensor2tensor/' "
    "-e 's/^( *from) tensor2tensor\\b/\\1 t2t_lite.extras.tensor2tensor/' "
    "-e 's/^( *import tensorflow) as tf\\b/\\1.compat.v1 as tf/' {folder}/*.py"
)
_IMPORTED = {}  # {name of the imported package: the flag's value}


def import_usr_dir(path: str | None) -> str | None:
    """Imports a user's folder so that its registrations appear (`--t2t_usr_dir`).

    Args:
        path: a folder with an `__init__.py`, or the name of an installed package, such as "ours.problems". "" and None
            have no effect. Neither does a folder that has already been imported, even under a different name.

    Returns:
        The name of the imported package, or None.

    Raises:
        UserError: the folder or its `__init__.py` is missing, another module has the folder's name, or the import
            fails.
    """
    is_extra = path in ("baselines", "t2t_lite.baselines") and not pathlib.Path(path).is_dir()
    if not path or is_extra:  # the baselines are now an extra
        return None
    try:
        folder = ((is_package_name(path) and _package_folder(path)) or pathlib.Path(path).expanduser()).resolve()
        is_package = (folder / "__init__.py").is_file()
    except (OSError, RuntimeError, ValueError):
        raise UserError(
            f"--t2t_usr_dir={shown(path)}: invalid path: it is too long, or its symbolic links form a loop."
        ) from None
    if not is_package:
        raise UserError(
            f"--t2t_usr_dir={path}: no {folder / '__init__.py'}. Expected a folder with an __init__.py, or the name of "
            "an installed package, such as ours.problems."
        )
    if "." in folder.name:
        raise UserError(
            f"--t2t_usr_dir={path}: Python cannot import a folder named {folder.name!r}. Expected one without a dot, "
            f"such as {folder.name.replace('.', '_')}."
        )
    modules = [module for module in [*sys.modules.values()] if isinstance(module, types.ModuleType)]
    # vars(module) might import TensorFlow
    namespaces = [object.__getattribute__(module, "__dict__") for module in modules]
    names = {one.get("__file__"): one["__name__"] for one in namespaces}
    if name := names.get(str(folder / "__init__.py")):  # under another name, it would register everything twice
        return importlib.import_module(name).__name__  # waits if another thread is importing it
    sys.path.insert(0, str(folder.parent))
    try:
        module = importlib.import_module(path if is_package_name(path) else folder.name)
    except BaseException as error:  # any error, even sys.exit(0), after which the command would end silently
        frames = _frames_in(folder, error)
        if isinstance(error, KeyboardInterrupt) and not (frames and (frames[-1].line or "").startswith("raise")):
            raise  # the user pressed Ctrl+C
        raise UserError(f"--t2t_usr_dir={path}: {explain_import_error(error, folder)}") from error
    finally:
        sys.path.remove(str(folder.parent))
    _IMPORTED[module.__name__] = path
    if pathlib.Path(module.__file__ or "").resolve().parent != folder:
        raise UserError(
            f"--t2t_usr_dir={path}: another Python module is named {folder.name!r}: {module.__file__}. Rename the "
            "folder."
        )
    return module.__name__


def usr_dir_of(registered):
    """Returns the `--t2t_usr_dir` (as typed) that registers a class or function, or ""."""
    module = registered.__module__
    return next((path for name, path in _IMPORTED.items() if f"{module}.".startswith(f"{name}.")), "")


def import_paths():
    """Returns the folders that another process must add to `sys.path` to import the users' folders by name."""
    return [str(pathlib.Path(path).expanduser().resolve().parent) for path in {*_IMPORTED.values()}]


def is_package_name(path: str) -> bool:
    """Returns whether a `--t2t_usr_dir` is a dotted package name, such as ours.problems, instead of a folder."""
    return re.fullmatch(r"\w+(\.\w+)+", path) is not None


def _package_folder(name):
    """Returns the folder of an installed package, or None if the package is not installed."""
    with contextlib.suppress(ModuleNotFoundError):  # the parent package, which `find_spec` imports, is missing
        spec = importlib.util.find_spec(name)
        return spec and spec.origin and pathlib.Path(spec.origin).parent


def import_of_extra(module):
    """Imports a module and returns (module, ""). If it belongs to a broken extra, returns (None, a sentence why)."""
    try:
        return importlib.import_module(module), ""
    except Exception as error:
        if not (extra := extra_of(module)):
            raise
        return None, f"the extra {extra!r} cannot be used: {explain_import_error(error, extras()[extra])}"


def _frames_in(folder, error):
    return [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(f"{folder}/")]


def explain_import_error(error, folder):
    """Returns where an error occurred while a user's or an extra's folder was imported, and the error's message."""
    frames = _frames_in(folder, error)
    where = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else str(folder / "__init__.py")
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{error.filename}, line {error.lineno}" if error.lineno else error.filename
    if isinstance(error, SystemExit):
        return (
            f"{where}: exits with status {error.code} when it is imported. Expected a module that only defines and "
            "registers things. Put program code under if __name__ == '__main__'."
        )
    text = str(error).splitlines()[0] if str(error) else "no reason given"
    advice = ""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").split(".")[0] == "tensor2tensor":
        folder = shlex.quote(str(pathlib.Path(frames[-1].filename).parent if frames else folder))
        advice = (
            ". t2t_lite has these modules under other names, listed in docs/coming_from_tensor2tensor.md. This "
            f"command ports a folder: {PORT.format(folder=folder)}"
        )
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("t2t_lite.extras.tensor2tensor."):
        text = module_answer(error.name.split(".")[3])
    kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
    return f"{where}: {kind}{text}{advice}"

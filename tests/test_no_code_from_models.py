"""Nothing that can run code of a file's is called anywhere in the package."""

import ast
import pathlib

import pytest

import t2t_lite

PACKAGE = pathlib.Path(t2t_lite.__file__).parent
REPOSITORY = PACKAGE.parent
FOLDERS = ("t2t_lite", "extras", "bin", "problems", "hparams")
SOURCES = sorted(path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.py"))
MODULES = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "marshal",
    "shelve",
    "yaml",
    "runpy",
    "code",
}
BUILT_IN = {"eval", "exec", "compile", "__import__", "execfile"}
# Functions that load what may hold code.
ATTRIBUTES = {"load_model", "unsafe_load", "full_load", "full_load_all", "unpickle", "read_pickle"}
# Built-in modules by constant names, and the folder that the user names; packages by constant names.


def findings(source):
    """Returns (line, what) of everything that can run what a file holds."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, a.name) for a in node.names if a.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            found.append((node.lineno, node.module))
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            is_plain = isinstance(node.func, ast.Name)
            keywords = {k.arg: k.value for k in node.keywords}
            is_torch = name == "load" and getattr(getattr(node.func, "value", None), "id", "") == "torch"
            is_torch = is_torch and getattr(keywords.get("weights_only"), "value", None) is not True
            if is_torch or (is_plain and name in BUILT_IN) or name in ATTRIBUTES:
                found.append((node.lineno, name))
            for word, safe in (("allow_pickle", False), ("safe_mode", True)):
                if word in keywords and getattr(keywords[word], "value", None) is not safe:
                    found.append((node.lineno, word))
    return found


def relative(path):
    return path.relative_to(REPOSITORY).as_posix()


@pytest.mark.slow
def test_no_module_runs_what_files_hold():
    assert len(SOURCES) > 150
    found = {relative(path): findings(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert {name: where for name, where in found.items() if where} == {}


def test_modules_are_imported_by_name_in_one_place():
    """`importlib` with a name from a file would be code as well."""
    users = {relative(path) for path in SOURCES if "importlib.import_module" in path.read_text(encoding="utf-8")}
    # Names that they hold, or of files beside them.
    ours = {f"process/{name}.py" for name in ("lazy", "keras_files", "moved_modules", "registering_modules")}
    ours |= {"cli/commands.py", "cli/usr_dirs.py", "evaluation/answer_scores.py"}
    assert users <= {"extras/tensor2tensor/__init__.py"} | {f"t2t_lite/{name}" for name in ours}, users


@pytest.mark.parametrize(
    "bad",
    [
        "import pickle", "from marshal import loads", "import yaml", "eval(x)", "exec(x)",
        "np.load(f, allow_pickle=True)", "torch.load(f)", "torch.load(f, weights_only=False)",
        "keras.models.load_model(p)", "keras.saving.load_model(p, safe_mode=False)", "__import__(x)",
        "compile(text, name, 'exec')",
    ],
)  # fmt: skip
def test_it_would_be_seen(bad):
    assert findings(f"def f():\n    {bad}\n")

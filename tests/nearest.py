"""Names the tests that are nearest to a module, which fail first when it breaks.

python tests/nearest.py t2t_lite/data/batching.py    # the test files, one per line
python tests/nearest.py --missing [data extras/music]  # the modules, all or those of some folders, that have none

The tests of t2t_lite/data/batching.py are in tests/data/test_batching.py; those of bin/, problems/, hparams/ and
extras/music/ in the folders of these names in tests/. A test file that tests other modules as well names them in a
comment:

# Nearest tests of: t2t_lite/data/splits.py, t2t_lite/data/facts.py
"""

import ast
import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[1]
FOLDERS = ("t2t_lite", "bin", "problems", "hparams", "extras")
_NAMES_OTHERS = re.compile(r"^# Nearest tests of: (.*)$", re.MULTILINE)


def modules():
    """Returns the paths of all modules of the package that have code: strings, relative to the repository, sorted."""
    paths = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return sorted(str(path.relative_to(ROOT)) for path in paths if path.name != "__init__.py" or _has_code(path))


def _has_code(path):
    """Returns whether a package's own file does more than to document and to import."""
    statements = (ast.FunctionDef, ast.ClassDef, ast.For, ast.If, ast.With)
    return any(isinstance(node, statements) for node in ast.parse(path.read_text()).body)


def own_file(module):
    """Returns the path of the test file with a module's name, whether or not it exists."""
    path = pathlib.PurePath(module)
    folder = path.parent.relative_to("t2t_lite") if path.parts[0] == "t2t_lite" else path.parent
    name = path.parent.name if path.name == "__init__.py" else path.stem.lstrip("_")
    return str("tests" / folder / f"test_{name}.py")


@functools.cache
def named_files():
    """Returns {module: [test files whose comment names it]}."""
    files = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for names in _NAMES_OTHERS.findall(path.read_text()):
            for module in re.split(r",\s*", names.strip().rstrip(",")):
                files.setdefault(module, []).append(str(path.relative_to(ROOT)))
    return files


def nearest(module):
    """Returns the test files nearest to a module, its own file first; [] where there are none.

    :param str module: the module's path, relative to the repository
    """
    own = own_file(module)
    return [own] * (ROOT / own).exists() + [path for path in named_files().get(module, []) if path != own]


def main(arguments):
    """Prints them; returns the exit status: 1 where there are none."""
    if arguments[:1] == ["--missing"]:
        folders = [f"{folder.strip('/')}/" for folder in arguments[1:]]
        missing = [name for name in modules() if not nearest(name)]
        print(*(name for name in missing if not folders or any(folder in name for folder in folders)), sep="\n")
        return bool(missing)
    names = [path for module in arguments for path in nearest(module)]
    print(*dict.fromkeys(names), sep="\n")
    return not names


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

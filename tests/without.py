"""Tries the package without an extra, or without any: make without EXTRA=music, make without EXTRA=all.

python tests/without.py music             # lint, the fast tests and the quickstart of what is left
python tests/without.py all               # lint, all of make test's tests and the quickstart
python tests/without.py music --briefly   # lint, all names, and whether the tests can be collected: half a minute

The files that git knows, but for the folders, tests, pages and benchmarks of the extra and of those that need it, are
copied into a folder of their own and installed there, beside the packages of this environment.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import venv

ROOT = pathlib.Path(__file__).parents[1]
ALL = "all"
_PLACES = ("extras/{}/", "tests/extras/{}/", "docs/extras/{}.md", "benchmarks/extras/{}/")


def names():
    """Returns the names of the extras."""
    return sorted(path.parent.name for path in ROOT.glob("extras/*/__init__.py"))


def copy(extra, folder):
    """Copies what is left without an extra, and those that cannot be without it, into a folder.

    Raises:
        ValueError: there is no such extra.
    """
    left_out = names() if extra == ALL else [extra, *_users(extra)]
    if unknown := {*left_out} - {*names()}:
        raise ValueError(f"EXTRA={', '.join(unknown)}: no such extra. Expected all, or one of {', '.join(names())}.")
    prefixes = tuple(place.format(name) for name in left_out for place in _PLACES)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if not name.startswith(prefixes) and (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def _users(extra):
    """Returns the names of the extras with a module that imports an extra at its top: they cannot be without it."""
    line = f"\nfrom t2t_lite.extras.{extra}"
    users = {path.parent.name for path in ROOT.glob("extras/*/*.py") if re.search(rf"{line}\b", path.read_text())}
    return sorted(users - {extra})


def install(folder):
    """Installs the copy into an environment of its own, which sees this one's packages; returns its Python."""
    venv.create(folder / ".venv", symlinks=True)
    python = folder / ".venv/bin/python"
    packages = next(path for path in map(pathlib.Path, sys.path) if path.name == "site-packages")
    (own,) = folder.glob(".venv/lib/python*/site-packages")
    (own / "others.pth").write_text(f"{packages}\n")
    run(folder, sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps",
        "--no-build-isolation", "--editable", folder)  # fmt: skip
    return python


def run(folder, *words):
    """Runs a program there; raises `CalledProcessError` where it fails."""
    print("$", *words, flush=True)
    subprocess.run([str(word) for word in words], cwd=folder, check=True, env={**os.environ, "T2T_WITHOUT": "some"})


def lint(extra, folder):
    """Copies and installs, lints and lists all names; returns the Python. Raises `CalledProcessError` at a failure."""
    copy(extra, folder)
    python = install(folder)
    run(folder, python, "-m", "ruff", "check", "--no-cache", "--quiet", ".")
    run(
        folder,
        "make",
        "--no-print-directory",
        "imports",
        f"LINT_IMPORTS={pathlib.Path(sys.executable).with_name('lint-imports')}",
    )
    run(folder, python, "-m", "t2t_lite", "trainer", "--registry_help")
    return python


def check(extra, folder, briefly=False):
    """Lints, then runs tests and quickstart; briefly: only collects the tests. Raises `CalledProcessError`."""
    pytest = [lint(extra, folder), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    if briefly:
        return run(folder, *pytest, "--collect-only", "-qq")
    parallel = ["-n", "2", "--dist", "loadfile", "--no-loadscope-reorder"]
    run(folder, *pytest, *parallel, "-m", "not long" if extra == ALL else "not slow and not long")
    if (folder / "extras/quickstart").exists():
        run(folder, folder / ".venv/bin/t2t-quickstart")
    return None


def main(words):
    """Does what the command line says; returns the exit status."""
    extras = [word for word in words if not word.startswith("--")]
    if len(extras) != 1:
        print(f"make without: expected EXTRA=all, or EXTRA= one of {', '.join(names())}.", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(extras[0], pathlib.Path(folder).resolve(), "--briefly" in words)
        except ValueError as error:
            print(f"make without: {error}", file=sys.stderr)
            return 2
        except subprocess.CalledProcessError as error:
            print(f"without {extras[0]}: FAILED, status {error.returncode}: {error.cmd[0]} …", file=sys.stderr)
            return 1
    print(f"without {extras[0]}: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Finds packages and commands in the folders; every folder of extras/ is an extra. Everything else is in setup.cfg."""

import pathlib

from setuptools import setup

ROOT = pathlib.Path(__file__).parent
FOLDERS = {"t2t_lite": "t2t_lite", **{f"t2t_lite.{name}": name for name in ("bin", "extras", "hparams", "problems")}}


def packages():
    """Returns {package: its folder}: those of `FOLDERS` and all packages in them."""
    return {
        ".".join((package, *path.relative_to(ROOT / folder).parts)): str(path.relative_to(ROOT))
        for package, folder in FOLDERS.items()
        for path in sorted(p.parent for p in (ROOT / folder).rglob("__init__.py"))
    }


def commands():
    """Returns the scripts: each `t2t_<name>.py` of bin/ or of an extra has a `main`."""
    modules = {path.stem: f"t2t_lite.{path.parent.relative_to(ROOT)}".replace("/", ".")
               for path in (*ROOT.glob("bin/t2t_*.py"), *ROOT.glob("extras/*/t2t_*.py"))}  # fmt: skip
    return [f"{name.replace('_', '-')} = {package}.{name}:main" for name, package in sorted(modules.items())]


FOUND = packages()
setup(packages=list(FOUND), package_dir=FOUND, entry_points={"console_scripts": commands()})

"""Runs any command as `python -m t2t_lite NAME`, for machines where the t2t-… commands are not on the path.

python -m t2t_lite                        # lists the commands
python -m t2t_lite trainer --help         # same as t2t-trainer --help
python -m t2t_lite mine --t2t_usr_dir=D   # the `main` of D/t2t_mine.py
"""

import argparse
import ast
import sys

import t2t_lite
from t2t_lite.cli import commands
from t2t_lite.errors import UserError, nearest, printable, shown

_PREFIX = "t2t-"


def main(argv=None):
    """Runs the command named by the first word, with or without t2t-, and returns its exit status.

    Without a word, the commands are listed. An unknown word is an error with status 2.
    """
    is_script, argv = argv is None, sys.argv[1:] if argv is None else list(argv)
    if not argv or argv[0] in ("--help", "-h", "help"):
        print(_help())
        return 0
    if argv[0] in ("--version", "-V", "version"):
        print(f"t2t_lite {t2t_lite.__version__}")
        return 0
    paths, module = commands.paths(), None
    name = _PREFIX + argv[0].removeprefix(_PREFIX).removeprefix("t2t_").replace("_", "-")
    if name not in paths:
        try:
            module = commands.module_of_user(name, _usr_dir(argv))
            close = nearest(name, paths, end=" ")
            message = f"{shown(argv[0])} is not a command. {close}List all commands: python -m t2t_lite"
        except UserError as error:
            message = str(error)
        if not module:
            print(f"t2t_lite: error: {printable(message)}", file=sys.stderr)
            return 2
    if is_script:  # the command reads its arguments as if run by its own script; in a cluster, it may end this process
        sys.argv = [name, *argv[1:]]
    return (module or commands.module(name)).main(None if is_script else argv[1:])


def _usr_dir(argv):
    """Returns the value of --t2t_usr_dir, or None."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--t2t_usr_dir", "--t2t-usr-dir", nargs="?")
    return parser.parse_known_args(argv)[0].t2t_usr_dir


def _help():
    paths = commands.paths()
    width = max(map(len, paths))
    lines = [
        f"t2t_lite {t2t_lite.__version__}. Commands, each with --help (`t2t-trainer` or `python -m t2t_lite trainer`):",
        "",
    ]
    for name, path in paths.items():
        does = ast.get_docstring(ast.parse(path.read_text("utf-8"))).partition("\n")[0]
        lines.append(f"  {name:{width}}  {does}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

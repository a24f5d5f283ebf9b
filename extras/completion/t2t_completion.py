"""Prints a script that lets the shell complete flags, their values, file names and registered names.

t2t-completion --shell=fish | source         # in ~/.config/fish/config.fish
eval "$(t2t-completion --shell=bash)"        # in ~/.bashrc
eval "$(t2t-completion --shell=zsh)"         # in ~/.zshrc, after compinit
"""

import sys

from t2t_lite.bin import _app
from t2t_lite.cli.commands import require
from t2t_lite.extras.completion import completion


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_enum("shell", None, completion.SHELLS, "The shell for which to print the script.")


def check(flags):
    """Raises `UserError` if --shell is missing."""
    require(flags, "shell")


def run(flags):
    """Prints the script."""
    from t2t_lite.cli import commands

    tables = {name: commands.flags_of(module).shown() for name, module in commands.modules().items()}
    print(completion.script(flags.shell, tables))


main = _app.command("t2t-completion", define_flags, run, check, tensorflow=False)


if __name__ == "__main__":
    sys.exit(main())

"""The names of all commands' modules, with those of extras."""

from t2t_lite.cli import commands

COMMANDS = [path.stem for path in commands.paths().values()]

"""The command that makes a problem's data, for messages."""

import shlex

from t2t_lite import registry


def datagen_command(problem, data_dir):
    """Returns a command line of t2t-datagen, quoted for a shell, with all flags that the problem needs."""
    usr_dir = registry.usr_dir_of(type(problem))
    words = ["t2t-datagen", f"--problem={problem.name}"]
    words += getattr(problem, "example_flags", "").split()  # names of files that only the user knows
    words += [f"--data_dir={data_dir}", *([f"--t2t_usr_dir={usr_dir}"] if usr_dir else [])]
    return shlex.join(words)

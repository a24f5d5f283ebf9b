"""Links in the place of files to write: what a process has open, such as /dev/stdout, and links to files."""

import os
import re

_DESCRIPTORS = re.compile(r"/proc/([0-9]+)(?:/task/[0-9]+)?/fd")
_MOST_LINKS = 40  # as in Linux


def descriptor(path):
    """Returns what a path names of what processes have open: /dev/stdout, /dev/fd/3, or a link to one.

    Returns:
        (id of the process, number of the descriptor), or None for any other path.
    """
    for _ in range(_MOST_LINKS):
        if not os.path.islink(path):  # a descriptor is a link as well, to what is open
            return None
        folder, name = os.path.split(path)
        folder = os.path.realpath(folder)
        if found := _DESCRIPTORS.fullmatch(folder):
            return int(found[1]), int(name)
        path = os.path.join(folder, os.readlink(path))
    return None


def written_path(path):
    """Returns the path under which a file is written: the file that a link leads to, so that the link stays."""
    return os.path.realpath(path) if os.path.islink(path) and not descriptor(path) else path

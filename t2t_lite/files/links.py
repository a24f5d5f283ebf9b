"""Output paths that are links: to open descriptors of a process, such as /dev/stdout, and to files."""

import os
import re

_DESCRIPTORS = re.compile(r"/proc/([0-9]+)(?:/task/[0-9]+)?/fd")
_MOST_LINKS = 40  # as in Linux


def descriptor(path):
    """Returns the open descriptor of a process that a path names: /dev/stdout, /dev/fd/3, or a link to one.

    Returns:
        (id of the process, number of the descriptor), or None for any other path.
    """
    for _ in range(_MOST_LINKS):
        if not os.path.islink(path):  # a descriptor is a link as well
            return None
        folder, name = os.path.split(path)
        folder = os.path.realpath(folder)
        if match := _DESCRIPTORS.fullmatch(folder):
            return int(match[1]), int(name)
        path = os.path.join(folder, os.readlink(path))
    return None


def written_path(path):
    """Returns the path under which a file is written: the target of a link, so that the link remains."""
    return os.path.realpath(path) if os.path.islink(path) and not descriptor(path) else path

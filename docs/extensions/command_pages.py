"""Generates a page per command, from the same docstring and flags as its --help.

The pages are written to docs/commands/ when the build begins.
"""

import pathlib
import re

from t2t_lite.cli import commands

FOLDER = pathlib.Path(__file__).parents[1] / "commands"
INDEX = """Commands
========

Flags are given as ``--name=value`` or ``--name value``, switches as ``--name`` or ``--noname``; in names, dashes and
underscores are interchangeable. ``--flagfile=FILE`` reads flags from a file, one per line. ``--help`` prints the
contents of these pages. Exit statuses: 0 success, 1 failure, 2 invalid flags or input, 130 interrupted, 141 the reader
of the output has exited.

:doc:`t2t-completion` explains how to let bash, zsh or fish complete flags, file names and registered names.

"""


def page(name, module):
    """Returns the page of one command, in reStructuredText."""
    blocks = [f"{name}\n{'=' * len(name)}", *map(_block, commands.description(name, module.__doc__).split("\n\n"))]
    blocks += ["Flags\n-----", f".. program:: {name}"]
    for flag in commands.flags_of(module).shown():
        usage = f"--{flag.name}, --no{flag.name}" if flag.words is None else flag.usage
        blocks.append(f".. option:: {usage}\n\n   {_text(flag.description)}")
    return "\n\n".join(blocks) + "\n"


def _block(paragraph):
    """Returns a paragraph of a docstring: text, or commands if it is indented."""
    if paragraph.startswith("    "):
        return f".. code-block:: bash\n\n{paragraph}"
    return _text(paragraph)


def _text(words):
    """Returns text with flags and back-quoted words as code."""
    parts = re.split(r"(`[^`]+`|--\w[\w-]*(?:=[^\s,;:)]*[^\s,;:.)])?)", words)
    return "".join(f"``{part.strip('`')}``" if i % 2 else re.sub(r"([\\`*_|<>])", r"\\\1", part)
                   for i, part in enumerate(parts))  # fmt: skip


def write_pages(app):
    """Writes the pages and their index; unchanged files keep their modification time."""
    modules = commands.modules()
    pages = {name: page(name, module) for name, module in modules.items()}
    lines = [INDEX, ".. list-table::\n   :widths: 25 75\n\n"]
    for name, module in modules.items():
        lines.append(f"   * - :doc:`{name}`\n     - {_text(module.__doc__.splitlines()[0])}\n")
    lines += ["\n.. toctree::\n   :hidden:\n\n", *(f"   {name}\n" for name in pages)]
    FOLDER.mkdir(exist_ok=True)
    for name, text in {**pages, "index": "".join(lines)}.items():
        path = FOLDER / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in FOLDER.glob("*.rst"):
        if path.stem not in {*pages, "index"}:
            path.unlink()


def setup(app):
    """Registers the extension."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True}

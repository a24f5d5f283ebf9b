"""The table of flags in docs/extras/serving.md. Its commands and programs are run by tests/docs/test_pages.py."""

import pathlib
import re

from t2t_lite.cli import commands

PAGE = pathlib.Path(__file__).parents[3] / "docs/extras/serving.md"


def test_the_commands_flags():
    """Every flag of the command's table is one of its own, and none is left out, unless it stands in the text."""
    page = PAGE.read_text(encoding="utf-8")
    start = page.index("| `--export_dir` |")
    table = page[start : page.index("\n\n", start)]
    named = [name for line in table.splitlines() for name in re.findall(r"`--(\w+)`", line.split("|")[1])]
    flags = {flag.name for flag in commands.flags_of(commands.module("t2t-server")).shown()}
    assert len({*named}) == len(named) and {*named} <= flags
    assert all(f"--{name}=" in page for name in flags - {*named})

"""The tables of flags in docs/serving.md. Its commands and programs are run by test_pages.py."""

import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "serving.md"


@pytest.mark.parametrize(
    ("command", "first", "others"), [("t2t-query-server", "server", {"protocol"}), ("t2t-server", "export_dir", set())]
)
def test_the_commands_flags(command, first, others):
    """Every flag of the command's table is one of its own, and none is left out; `others` stand in the text."""
    from t2t_lite.cli import commands

    flags = commands.flags_of(commands.module(command))
    page = PAGE.read_text()
    start = [found.start() for found in re.finditer(rf"\| `--{first}` \|", page)][-1 if command == "t2t-server" else 0]
    table = page[start : page.index("\n\n", start)]
    named = [name for line in table.splitlines() for name in re.findall(r"`--(\w+)`", line.split("|")[1])]
    assert sorted(named) == sorted({flag.name for flag in flags.shown()} - others)
    assert all(f"--{name}=" in page for name in others)

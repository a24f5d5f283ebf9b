"""The tables of flags on the pages of extras: each flag is there once, with its default."""
# Nearest tests of: extras/serving/t2t_server.py, extras/query_client/t2t_query_server.py
# Nearest tests of: extras/autotune/in_t2t_trainer.py

import pathlib
import re

import pytest

from t2t_lite.cli import commands
from t2t_lite.process.lazy import extras

PAGES = pathlib.Path(__file__).parents[2] / "docs/extras"
TABLES = {  # the page, which is the extra's; its table's first flag; the command, and the beginning of its flags' names
    "serving": ("--export_dir", "t2t-server", ""),
    "query_client": ("--server", "t2t-query-server", ""),
    "autotune": ("--autotune_objective", "t2t-trainer", "autotune_"),
}
# In the text, or a column of its own.
_DEFAULT = re.compile(r"\(default: `?(\d[\d,.]*|\w+)(?: MiB)?`?[),;.]|\|\s*([\d,.]+)\s*\|")


@pytest.mark.parametrize("name", [name for name in TABLES if name in extras()])
def test_each_flag_is_there_with_its_default(name):
    """Those that are left out of the table stand in the text."""
    first, command, prefix = TABLES[name]
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    start = page.index(f"| `{first}` |")
    rows = page[start : page.index("\n\n", start)].splitlines()
    named = [re.findall(r"`--(\w+)`", row.split("|")[1]) for row in rows]
    flags = {flag.name: flag.value for flag in commands.flags_of(commands.module(command)).shown()}
    of_table = [flag for names in named for flag in names]
    others = {flag for flag in flags if flag.startswith(prefix)} - {*of_table}
    assert len(of_table) == len({*of_table}) and {*of_table} <= {*flags}
    assert all(f"--{flag}=" in page for flag in others)
    told = {names[0]: found for names, row in zip(named, rows, strict=True) if (found := _DEFAULT.search(row))}
    assert len(told) >= 3
    for flag, found in told.items():
        default = (found[1] or found[2]).replace(",", "")
        if default[0].isdigit():
            assert flags[flag] == float(default) * (2**20 if "MiB" in found[0] else 1), flag
        elif default not in ("the", "none"):
            assert flags[flag] == default, flag

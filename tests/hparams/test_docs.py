"""docs/hparams_sets.md: the table is what `make docs` writes, and the names it says are not here are not."""

import pathlib
import re
import runpy

import pytest

from t2t_lite import registry
from t2t_lite.config import HParams

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "hparams_sets.md").read_text(encoding="utf-8")

_BUILT_IN = ("transformer_", "gpt", "attention_", "bert_", "roberta_", "albert_", "ernie_")  # tests register others


def section(title):
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.mark.slow
def test_the_tables_are_fresh():
    made = runpy.run_path(str(DOCS / "make_hparams_sets.py"))
    for name in made["PARTS"]:
        text = (DOCS / name).read_text(encoding="utf-8")
        assert made["page"](name) == text, f"docs/{name} is not what `make docs` writes"


def test_the_tables_have_every_set():
    tables = "".join(map(section, ("All sets", "Sets of language models", "Sets of encoders")))
    named = re.findall(r"^\| `(\w+)` \|", tables, re.MULTILINE)
    assert sorted(named) == [n for n in registry.list_hparams() if n.startswith(_BUILT_IN)]


@pytest.mark.parametrize("column", [0, 2], ids=["tensor2tensor", "here"])
def test_names_are_declared_where_the_page_says(column):
    """The first column names what is not declared here, the third what is there instead."""
    rows = re.findall(r"^\|( `.*)\|$", section("tensor2tensor's hyperparameters that are not here"), re.MULTILINE)
    cells = [row.split("|")[column] for row in rows]
    assert len(cells) > 20
    assert "learning_rate" in cells[0]
    declared = {name: name in HParams() for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    known_words = {"learning_rate"}  # the third column explains by it
    assert {name for name, found in declared.items() if found != (column == 2)} <= known_words

"""The page about the architecture, and its picture, name files that exist."""

import pathlib
import re
import runpy

from t2t_lite.process.lazy import extras

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_the_architecture_names_files_that_exist():
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = [name for name in re.findall(r"`([\w/]+(?:/|\.py))`", page) if "NAME" not in name]
    assert len(named) > 50
    named = [name for name in named if name.split("/")[0] != "extras" or name.split("/")[1] in extras()]
    assert [name for name in named if not (ROOT / name).exists() and not (ROOT / "t2t_lite" / name).exists()] == []


def test_the_picture_is_what_its_script_draws_of_files_that_exist():
    made = runpy.run_path(str(DOCS / "make_architecture.py"))
    assert made["PICTURE"].read_text(encoding="utf-8") == made["draw"]().svg()
    named = [name for lane in made["LANES"] for names, _ in lane[2] for name in names.split(", ")]
    assert [name for name in named if not (ROOT / "t2t_lite" / name).exists()] == []


def test_the_picture_of_the_extras_is_what_its_script_draws():
    made = runpy.run_path(str(DOCS / "make_architecture.py"))
    drawn, kept = made["extras_drawn"]().svg(), made["EXTRAS"].read_text(encoding="utf-8")
    if {*re.findall(r">(\w+)<", drawn)} == {*re.findall(r">(\w+)<", kept)}:  # else one has been taken out
        assert drawn == kept
    assert all(f">{name}<" in kept for name in extras())

"""The notebook: its text is examples/translate.py, and it runs from the first cell to the last."""

import json
import os
import pathlib
import re
import sys

import jupytext
import pytest
from nbclient import NotebookClient

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
NOTEBOOK = EXAMPLES / "translate.ipynb"
MOST_BYTES = 200_000


@pytest.fixture(scope="module")
def notebook():
    return jupytext.read(NOTEBOOK)


def test_the_notebook_is_its_text(notebook):
    text = jupytext.read(EXAMPLES / "translate.py")
    made = [(cell.cell_type, cell.source, cell.metadata.get("tags")) for cell in text.cells]
    assert made == [(cell.cell_type, cell.source, cell.metadata.get("tags")) for cell in notebook.cells], (
        "type: jupytext --update --to ipynb examples/translate.py"
    )
    assert NOTEBOOK.stat().st_size < MOST_BYTES


def test_nothing_in_it_works_only_here(notebook):
    """Colab has the notebook alone: no file beside it is read, and the package comes with the first cell."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert "find_spec" in code[0] and "import t2t_lite" not in code[0]
    assert not re.search(r"""["'](/|\.\./|~)""", "\n".join(code))
    pages = [link for cell in notebook.cells for link in re.findall(r"\]\((\.\./[^)#]+)", cell.source)]
    assert pages and all((EXAMPLES / page).exists() for page in pages)
    assert notebook.cells[0].source.count("colab.research.google.com") == 2


@pytest.mark.long  # makes the phrasebook's records, and trains two steps, in a process of its own
def test_it_runs(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("T2T_LITE_STEPS", "2")
    # The kernel's process is to import this tree's packages.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [*sys.path, os.environ.get("PYTHONPATH")])))
    done = NotebookClient(
        notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()

    outputs = [output for cell in done.cells for output in cell.get("outputs", [])]
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    assert kinds.count("image/png") >= 2, "curves and weights"
    assert kinds.count("image/svg+xml") >= 2, "attention as heat maps and lines"
    (table,) = [output["data"]["text/markdown"] for output in outputs if "text/markdown" in output.get("data", {})]
    assert table.count("\n") == 1 + 10, "ten translations beside their references"
    printed = "".join(output.get("text", "") for output in outputs)
    assert re.search(r"BLEU of 100 sentences: [\d.]+ \(nrefs:1\|", printed)
    assert "Error" not in printed
    assert (
        json.loads((tmp_path / "phrasebook/train/hparams.json").read_text())["problem"] == "translate_ende_phrasebook"
    )

"""The best evaluations of runs as bars, next to table 3; t2t-trainer --summary."""

# Nearest tests of: extras/pictures/in_t2t_trainer.py

import json
import math
import xml.etree.ElementTree as ElementTree

import pytest

from t2t_lite import registry
from t2t_lite.extras.pictures.run_bars import TABLE_3, best_evaluations, draw_bars
from tests.bin.conftest import CONFIG
from tests.extras.pictures.run_logs import progress, write_log


def evaluation(step, loss, **metrics):
    return {"event": "evaluation", "step": step, "loss": loss, "perplexity": math.exp(min(loss, 80)), **metrics}


def texts(path):
    """The texts of an SVG by matplotlib, which keeps each in a comment."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    return [element.text.strip() for element in ElementTree.parse(path, parser).iter(ElementTree.Comment)]


# Vaswani et al. (2017), table 3, row by row: what differs from the base, perplexity and BLEU on newstest2013.
PUBLISHED = """
base_v1 4.92 25.8   h1 5.29 24.9   h4 5.00 25.5   h16 4.91 25.8   h32 5.01 25.4   k128 5.16 25.1   k256 5.01 25.4
l2 6.11 23.7   l4 5.19 25.3   l8 4.88 25.5   hs256 5.75 24.5   hs1024 4.66 26.0   ff1024 5.12 25.4   ff4096 4.75 26.2
dr0 5.77 24.6   dr2 4.95 25.5   ls0 4.67 25.3   ls2 5.47 25.7   learned_positions 4.92 25.7   big_v1 4.33 26.4
"""


def test_every_row_of_the_paper_is_a_set():
    rows = [row.split() for row in PUBLISHED.replace("\n", "   ").split("   ") if row.strip()]
    assert {f"transformer_{name}": (float(perplexity), float(bleu)) for name, perplexity, bleu in rows} == TABLE_3
    assert {*TABLE_3} <= {*registry.list_hparams()}


def test_the_best_of_each_measure(tmp_path):
    lines = (
        progress(5, 9.0),
        evaluation(10, loss=2.0, bleu=12.0),
        evaluation(20, loss=1.5, bleu=11.0),
        evaluation(30, loss=1.7),
    )
    assert best_evaluations(write_log(tmp_path / "run", *lines)) == (math.exp(1.5), 12.0)
    assert best_evaluations(write_log(tmp_path / "other", progress(5, 9.0))) == (None, None)
    assert best_evaluations(write_log(tmp_path / "diverged", evaluation(10, loss=1e4))) == (math.exp(80), None)
    squared = {"event": "evaluation", "step": 10, "loss": 0.1}  # of a regression, which has no perplexity
    assert best_evaluations(write_log(tmp_path / "numbers", squared)) == (None, None)


def test_bars_have_the_numbers_of_runs_and_paper(tmp_path):
    runs = [
        write_log(tmp_path / "rare", progress(5, 9.0), evaluation(10, loss=math.log(7), bleu=12.34)),
        write_log(tmp_path / "plain", progress(5, 9.0)),
    ]
    (tmp_path / "rare" / "hparams.json").write_text(json.dumps({**CONFIG, "hparams_set": "transformer_h1"}))
    draw_bars(str(tmp_path / "a.svg"), runs)
    shown = texts(tmp_path / "a.svg")
    assert {"rare", "plain", "7.00", "5.29", "12.3", "24.9", "best evaluation", "the paper's table 3"} <= {*shown}


def test_bars_of_runs_without_bleu_have_a_legend(tmp_path):
    draw_bars(str(tmp_path / "a.svg"), [write_log(tmp_path / "a", evaluation(10, loss=1.0))])
    assert "best evaluation" in texts(tmp_path / "a.svg")


@pytest.mark.slow
def test_the_curves_of_a_run_as_a_picture(call, tmp_path):
    (tmp_path / "train.log").write_text(json.dumps({"event": "progress", "step": 1, "loss": 2.0}) + "\n")
    assert call(f"--summary={tmp_path}")[:2] == (0, f"{tmp_path}/curves.png\n")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert call(f"--summary={tmp_path},{tmp_path}")[:2] == (0, f"{tmp_path}/curves.png\n{tmp_path}/bars.png\n")
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")
    status, _, stderr = call(f"--summary={tmp_path}/nowhere")
    assert status == 2
    assert "train.log: no such file" in stderr


def test_a_list_of_runs_has_no_empty_part(call):
    status, _, err = call("--summary=a,,b")
    assert status == 2 and "--summary=a,,b" in err

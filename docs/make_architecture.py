"""Draws the pictures of docs/architecture.md, docs/images/architecture.svg and extras.svg: part of `make docs`."""

import ast
import pathlib
import re
import textwrap

from t2t_lite.process.lazy import extras
from t2t_lite.visualization.drawing import COLORS, INK, Drawing

PICTURE = pathlib.Path(__file__).parent / "images" / "architecture.svg"
EXTRAS = PICTURE.with_name("extras.svg")
WIDTH, LEFT, BOX, FILE, GAP = 800, 16, 172, 150, 26
LANE, BETWEEN, HEAD = 104, 34, 34
ROW = 26
GREY = "#6b7280"

# For each lane: its command with a description; three files or folders with their purpose; the outputs.
LANES = (
    (
        "t2t-datagen",
        "text files become records",
        (
            ("corpora/", "lines, pairs, filters"),
            ("text/", "vocabulary; text → ids"),
            ("data/generation.py", "shuffled shards"),
        ),
        ("data_dir", "records, vocabulary"),
    ),
    (
        "t2t-trainer",
        "records become a model",
        (
            ("data/batching.py", "ids [rows, length]"),
            ("models/, layers/", "logits [rows, length, V]"),
            ("training/train_step.py", "loss, gradients, update"),
        ),
        ("output_dir", "checkpoints, settings"),
    ),
    (
        "t2t-decoder",
        "a sentence becomes its translation",
        (
            ("runs/opening.py", "folder → model"),
            ("decoding/translator.py", "text → ids, ids → text"),
            ("decoding/search/", "beams of ids"),
        ),
        ("translation.de", "one line per line"),
    ),
    (
        "t2t-bleu",
        "translations become a score",
        (
            ("evaluation/score_files.py", "lines and references"),
            ("evaluation/scores.py", "BLEU, chrF, TER"),
            ("evaluation/score_report.py", "significance, worst lines"),
        ),
        ("a score", "with its signature"),
    ),
    (
        "t2t-exporter",
        "the model answers without this package",
        (
            ("export/signatures.py", "text → text in a graph"),
            ("export/saved_model.py", "versions, warm-up"),
            ("export/formats.py", "other toolkits"),
        ),
        ("answers", "JSON or gRPC"),
    ),
)


def draw():
    """Returns the picture."""
    height = len(LANES) * (LANE + BETWEEN) - BETWEEN + 2 * LEFT
    drawing = Drawing(WIDTH, height, "How a sentence flows through the files of t2t_lite")
    for i, (command, what, boxes, file) in enumerate(LANES):
        top, color = LEFT + i * (LANE + BETWEEN), COLORS[i]
        drawing.rectangle(LEFT, top, WIDTH - 2 * LEFT - 16, LANE, color, 0.08)
        drawing.rectangle(LEFT, top, 5, LANE, color)
        drawing.text(LEFT + 18, top + 19, command, None, bold=True, size=14)
        drawing.text(WIDTH - LEFT - 28, top + 19, what, None, anchor="right", color=GREY, size=13)
        for n, (name, does) in enumerate(boxes):
            x = LEFT + 16 + n * (BOX + GAP)
            drawing.rectangle(x, top + HEAD, BOX, LANE - HEAD - 12, color, 0.3)
            drawing.text(x + BOX / 2, top + HEAD + 20, name, None, anchor="middle", bold=True, size=12)
            drawing.text(x + BOX / 2, top + HEAD + 40, does, None, anchor="middle", size=12)
            _arrow(drawing, x + BOX, x + BOX + GAP, top + HEAD + 29)
        x = LEFT + 16 + 3 * (BOX + GAP)
        drawing.rectangle(x, top + HEAD, FILE - 20, LANE - HEAD - 12, "#ffffff")
        for y in (top + HEAD, top + LANE - 12):
            drawing.line(x, y, x + FILE - 20, y, GREY)
        for end in (x, x + FILE - 20):
            drawing.line(end, top + HEAD, end, top + LANE - 12, GREY)
        drawing.text(x + FILE / 2 - 10, top + HEAD + 20, file[0], None, anchor="middle", bold=True, size=12)
        drawing.text(x + FILE / 2 - 10, top + HEAD + 40, file[1], None, anchor="middle", size=11)
    for source, target in ((0, 1), (1, 2), (2, 3)):
        _elbow(drawing, source, target)
    _elbow(drawing, 1, 4, around=True)
    return drawing


def _arrow(drawing, x1, x2, y):
    drawing.line(x1 + 3, y, x2 - 8, y, INK)
    drawing.text(x2 - 2, y, "▶", anchor="right", size=10)


def _elbow(drawing, source, target, around=False):
    """Draws a line from a lane's output to the first box of another lane, around the lanes between."""
    begin_top, end_top = (LEFT + i * (LANE + BETWEEN) for i in (source, target))
    file, edge = LEFT + 16 + 3 * (BOX + GAP), LEFT - 10
    above, end = end_top - BETWEEN / 2, end_top + HEAD + 29
    if around:
        begin, level = WIDTH - 16, begin_top + LANE - 32
        drawing.line(file + FILE - 20, level, begin, level, INK)
    else:
        begin, level = file + FILE / 2 - 10, begin_top + LANE - 12
    drawing.line(begin, level, begin, above, INK)
    drawing.line(begin, above, edge, above, INK)
    drawing.line(edge, above, edge, end, INK)
    drawing.line(edge, end, LEFT + 8, end, INK)
    drawing.text(LEFT + 15, end, "▶", anchor="right", size=10)


# What an extra adds, by the word that registers it in a module or by the name of the module's file.
ADDS = {
    "problems": r"^@(registry\.)?register_problem\b",
    "models": r"^@(registry\.)?register_model\b",
    "sets": r"^@(registry\.)?register_hparams\b",
    "tasks": r"^@(registry\.)?register_task\b",
    "attention": r"^@(registry\.)?register_(score|pattern|self_attention)\b",
    "families": r"\bregister_family\b",
}


def extras_drawn():
    """Returns the picture of the extras: a line per folder, with its description and the names that it adds."""
    lines = [(name, *_facts(path)) for name, path in extras().items()]
    drawing = Drawing(WIDTH, len(lines) * ROW + 2 * LEFT, "The extras of t2t_lite")
    for i, (name, adds, what) in enumerate(lines):
        top = LEFT + i * ROW
        drawing.rectangle(LEFT, top, WIDTH - 2 * LEFT, ROW - 4, COLORS[i % 2], 0.1)
        drawing.text(LEFT + 10, top + 15, name, None, bold=True, size=12)
        drawing.text(LEFT + 160, top + 15, what, None, size=12)
        drawing.text(WIDTH - LEFT - 10, top + 15, adds, None, anchor="right", color=GREY, size=11)
    return drawing


def _facts(folder):
    """Returns the names that the modules of a folder add, and the beginning of its docstring."""
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))}
    adds = [
        word for word, pattern in ADDS.items() if any(re.search(pattern, s, re.MULTILINE) for s in sources.values())
    ]
    adds += [path.stem.replace("_", "-") for path in sources if path.stem.startswith("t2t_")]
    adds += [f"in {path.stem[3:].replace('_', '-')}" for path in sources if path.stem.startswith("in_t2t_")]
    first = ast.get_docstring(ast.parse(sources[folder / "__init__.py"])).partition("\n")[0]
    what = re.sub(r"^[\w -=]{,40}: ", "", first)  # the part before a colon repeats the name
    return ", ".join(adds), textwrap.shorten(what, 64, placeholder=" …")


if __name__ == "__main__":
    PICTURE.write_text(draw().svg(), encoding="utf-8")
    EXTRAS.write_text(extras_drawn().svg(), encoding="utf-8")

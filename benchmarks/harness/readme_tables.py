"""README's two tables of results, made from the stored results: scores on public data, and speed beside its peers."""

import re

from benchmarks.harness import record
from t2t_lite.errors import UserError

# The rows of the table of speed: benchmark, case, side, what is measured, beside what.
SPEED_ROWS = (
    ("training", "base, float32", "torch", "training, float32", "PyTorch `nn.Transformer`"),
    ("training", "base, float32", "marian", "", "Hugging Face Marian"),
    ("decoding", "base, batch 32", "hf", "beam 4, batch 32", "Hugging Face `generate`"),
    ("decoding", "base, batch 32", "ct2", "", "CTranslate2, float32, one batch at a time (its default)"),
    ("decoding", "base, batch 32", "ct2_async", "", "CTranslate2, float32, two batches at a time, as t2t_lite"),
)
_FIGURE = "tokens_per_second"


def with_tables(text, results):
    """Returns README's text with both tables made anew; a table is found by its first column's heading.

    Args:
        text: str.
        results: list of (Path of the folder, Result), the newest of a name first.

    Raises:
        UserError: the text has no such table.
    """
    for table in (quality_table(results), speed_table(results)):
        head = table.split(" |")[0]
        text, count = re.subn(rf"(?m)^{re.escape(head)} .*\n(\|.*\n)+", lambda _, new=table: new, text, count=1)
        if not count:
            raise UserError(f"README.md: has no table that begins with {head!r}.")
    return text


def quality_table(results):
    """Returns the table of scores: a row for the newest result of each name that has a score."""
    lines, seen = ["| data | model | hardware | time | score |", "|---|---|---|--:|---|"], set()
    for path, result in results:
        if result.quality and result.name not in seen:
            seen.add(result.name)
            q = result.quality
            data = f"[{q['data']}](benchmarks/results/{path.name}) {q['part']}"
            cells = data, q["model"], f"{result.machine['cores']} CPU cores", q["time"], q["score"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def speed_table(results):
    """Returns the table of speed: how many times as fast as its peers t2t_lite is, one column per kind of processor."""
    newest = {}
    for path, result in results:
        for measurement in result.measurements:
            if measurement["figure"] == _FIGURE:
                for side, ratio in measurement["ratios"].items():
                    key = result.name, measurement["case"], side
                    newest.setdefault(key, {}).setdefault(record.cpu_name(result), (path.name, ratio["median"]))
    cpus = sorted({cpu for row in SPEED_ROWS for cpu in newest.get(row[:3], {})})
    lines = [
        f"| speed of t2t_lite relative to a peer, base model, 2 CPU cores | peer | {' | '.join(cpus)} |",
        f"|---|---|{'--:|' * len(cpus)}",
    ]
    for *key, text, beside in SPEED_ROWS:
        found = newest.get(tuple(key), {})
        if found and text:
            text = f"[{text}](benchmarks/results/{next(iter(found.values()))[0]})"
        cells = [f"{found[cpu][1]:.2f}" if cpu in found else "" for cpu in cpus]
        lines.append(f"| {text} | {beside} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"

"""README's two tables of results, made from the stored results: scores on public data, and speed beside its peers."""

import re

from benchmarks.harness import record
from t2t_lite.errors import UserError

# The rows of the table of speed: benchmark, case, side, what is measured, beside what.
SPEED_ROWS = (
    ("training", "base, float32", "torch", "training", "PyTorch `nn.Transformer`"),
    ("training", "base, float32", "marian", "", "Hugging Face Marian"),
    ("decoding", "base, batch 32", "hf", "beam 4, batch 32", "Hugging Face `generate`"),
    ("decoding", "base, batch 32", "ct2", "", "CTranslate2, one batch at a time (its default)"),
    ("decoding", "base, batch 32", "ct2_async", "", "CTranslate2, two batches at a time, as t2t_lite"),
)
_FIGURES = "tokens_per_second", "sentences_per_second"
# The same on a card, by the row: case and side of the benchmark "gpu".
_ON_A_CARD = {
    SPEED_ROWS[0][:3]: ("gpu", "train base, 782 x 32 tokens, bfloat16", "peer"),
    SPEED_ROWS[2][:3]: ("gpu", "beam 4 of base, batch 32, bfloat16", "peer"),
}


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
    lines, names = ["| data | model | hardware | time | score |", "|---|---|---|--:|---|"], set()
    for path, result in results:
        if result.quality and result.name not in names:
            names.add(result.name)
            q = result.quality
            data = f"[{q['data']}](benchmarks/results/{path.name}) {q['part']}"
            cells = data, q["model"], f"{result.machine['cores']} CPU cores", q["time"], q["score"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def speed_table(results):
    """Returns the table of speed: how many times as fast as its peers t2t_lite is, a column per processor and card."""
    newest = {}
    for path, result in results:
        for measurement in result.measurements:
            if measurement["figure"] in _FIGURES:
                for side, ratio in measurement["ratios"].items():
                    key = result.name, measurement["case"], side
                    newest.setdefault(key, {}).setdefault(_hardware(result), (path.name, ratio["median"]))
    ratios = {row[:3]: {**newest.get(row[:3], {}), **newest.get(_ON_A_CARD.get(row[:3]), {})} for row in SPEED_ROWS}
    hardware = sorted(
        {name for by_hardware in ratios.values() for name in by_hardware},
        key=lambda name: (" cores" not in name, name),
    )
    lines = [
        f"| speed of t2t_lite relative to a peer, base model | peer | {' | '.join(hardware)} |",
        f"|---|---|{'--:|' * len(hardware)}",
    ]
    for *key, text, beside in SPEED_ROWS:
        by_hardware = ratios[tuple(key)]
        if by_hardware and text:
            text = f"[{text}](benchmarks/results/{next(iter(by_hardware.values()))[0]})"
        cells = [f"{by_hardware[name][1]:.2f}" if name in by_hardware else "" for name in hardware]
        lines.append(f"| {text} | {beside} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _hardware(result):
    """Returns the heading of a column: processor, or card with the result's page."""
    if card := result.machine.get("card"):
        return f"[{card}](benchmarks/results/gpu_{result.date}), bfloat16"
    return f"{result.machine['cores']} cores {record.cpu_name(result)}, float32"

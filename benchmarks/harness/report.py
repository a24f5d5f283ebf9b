"""Writes the folder of each result with its page, and the index of all results, benchmarks/results/README.md.

python -m benchmarks.harness.report    # rewrites the index and README's table from the JSON files
"""

import os
import pathlib
import re
import sys

from benchmarks.harness import plot, readme_table, record
from t2t_lite import files
from t2t_lite.errors import UserError

README = record.REPOSITORY / "README.md"


def read_all(folder=record.RESULTS):
    """Reads all results, a list of (path of the folder, Result), sorted by name and with the newest first."""
    results = [(path.parent, record.read_result(path)) for path in sorted(pathlib.Path(folder).glob("*/result*.json"))]
    newest_first = sorted(results, key=lambda entry: (entry[1].date, _number(entry[0].name)), reverse=True)
    return sorted(newest_first, key=lambda entry: entry[1].name)


def write_result(result, folder=record.RESULTS):
    """Writes a result with its page and picture; returns the path of its new folder.

    Args:
        result: Result.
        folder: str or Path, the folder of all results.

    Raises:
        UserError: the result has no command or no figures, or the folder cannot be written.
    """
    from t2t_lite.files.folders import write_folder  # not at the top, because this import needs TensorFlow

    contents = {record.FILE: result.to_json().encode(), "README.md": page(result).encode()}
    picture = plot.draw(result)
    if picture:
        contents["plot.png"] = picture

    def write(path):
        for name, content in contents.items():
            pathlib.Path(path, name).write_bytes(content)

    return write_folder(new_folder(result.name, folder, result.date), write)


def new_folder(name, folder=record.RESULTS, date=None):
    """Returns an unused path for a new result's folder; `date` is today by default."""
    stem, number = f"{name}_{date or record.today()}", 1
    while os.path.exists(path := os.path.join(folder, stem if number == 1 else f"{stem}_{number}")):
        number += 1
    return path


def write_index(folder=record.RESULTS, readme=README):
    """Writes the index of results, and README's table unless `readme` is None."""
    results = read_all(folder)
    files.write_bytes(str(pathlib.Path(folder, "README.md")), index(results).encode())
    if readme is None:
        return
    text = readme.read_text(encoding="utf-8")
    files.write_bytes(str(readme), readme_table.with_table(text, results).encode())


def page(result):
    """Returns the page of a result as Markdown."""
    parts = [f"# {result.title}", _facts(result), f"```bash\n{result.command}\n```", tables(result)]
    if plot.draws(result):
        parts.append("![The same as a picture](plot.png)")
    parts += [_missing(result), *result.notes]
    if any(len(spread["turns"]) > 1 for m in result.measurements for spread in m["sides"].values()):
        parts.append(
            "Medians (lowest – highest turn). The sides take turns; ratios are medians over neighbouring turns. "
            "Every turn is in `result.json`."
        )
    return "\n\n".join(part for part in parts if part) + "\n"


def tables(result):
    """Returns a result's tables: one for each group of sides, and one for each figure recorded over time."""
    groups = {}
    for measurement in result.measurements:
        groups.setdefault(tuple(measurement["sides"]), []).append(measurement)
    parts = [_table(result, sides, group) for sides, group in groups.items()]
    return "\n\n".join([*parts, *(_growth_table(result, growth) for growth in result.growth)])


def index(results):
    """Returns the index page: the newest result of each benchmark with tables, then links to older results."""
    parts = [
        "# Results",
        "Written by `make bench` from the `result.json` of each folder; do not edit it. `make bench BENCH=decoding` "
        "measures one benchmark, and `BENCH_FLAGS=--quick` tries small sizes. Each folder has the command as typed, "
        "every turn, and notes. A result is for the commit that it names; it is not measured again at each commit.",
    ]
    older, cpus = [], {}
    for path, result in results:
        cpu = record.cpu_name(result)
        if cpu in cpus.setdefault(result.name, []):
            older.append(f"* [{path.name}]({path.name}): {result.title}; {cpu}, {result.date}")
            continue
        title = f"## {result.name}: {result.title}" if not cpus[result.name] else f"### On {cpu}"
        cpus[result.name].append(cpu)
        command = f"```bash\n{result.command}\n```"
        q = result.quality
        score = [f"{q['data']} {q['part']}: **{q['score']}**; {q['model']}, {q['time']}."] if q else []
        parts += [
            title,
            f"[{path.name}]({path.name}). {_facts(result)}",
            command,
            *score,
            tables(result),
            _missing(result),
        ]
    if older:
        parts.append("## Older results")
        parts.append("\n".join(older))
    return "\n\n".join(part for part in parts if part) + "\n"


def _facts(result):
    m = result.machine
    where = f"{m['cores']} cores" + ("" if m["cpu"] == "unknown" else f" of {m['cpu']}")
    if "memory_gb" in m:
        where += f", {m['memory_gb']} GB"
    if "card" in m:
        where += f", {m['card']} (driver, memory, clock: {m['driver']})"
    if "load" in m:
        where += f", load {m['load']:g} at the start"
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    took = f" It took {result.seconds:,} s." if result.seconds else ""
    return f"{result.date}, commit {result.commit}; {where}{f'; {versions}' if versions else ''}.{took}"


def _missing(result):
    return "\n".join(
        f"* {result.labels.get(side, side)} was not measured: {why}." for side, why in result.missing.items()
    )


def _table(result, sides, measurements):
    names = [result.labels.get(side, side) for side in sides]
    compared = [side for side in sides[1:] if any(side in m["ratios"] for m in measurements)]
    over = [f"{names[0]} / {result.labels.get(side, side)}" for side in compared]
    lines = ["| " + " | ".join(["", "", *names, *over]) + " |", "|---|---|" + "--:|" * (len(sides) + len(compared))]
    for m in measurements:
        cells = [_cell(m["sides"][side]) for side in sides]
        cells += [f"**{_cell(m['ratios'][side])}**" if side in m["ratios"] else "" for side in compared]
        name = record.FIGURES[m["figure"]][0] + record.better(m["figure"])
        lines.append("| " + " | ".join([m["case"], name, *cells]) + " |")
    return "\n".join(lines)


def _cell(spread):
    if spread["low"] == spread["high"]:
        return record.shown(spread["median"])
    return f"{record.shown(spread['median'])} ({record.shown(spread['low'])} – {record.shown(spread['high'])})"


def _growth_table(result, growth):
    name, x = record.FIGURES[growth["figure"]][0], growth["x"]
    head = (
        f"{growth['case']}: {name}",
        x,
        "first",
        "last",
        f"slope of the later half, per 1,000 {x}",
        "rise over that half",
    )
    lines = [f"| {' | '.join(head)} |", "|---|---|--:|--:|--:|--:|"]
    for side, points in growth["sides"].items():
        first, last = record.shown(points["y"][0]), record.shown(points["y"][-1])
        ends = f"{points['x'][0]:,} to {points['x'][-1]:,} | {first} | {last}"
        rise = f"{record.rounded(1000 * points['slope']):g} | {points['later']:+.1%}"
        lines.append(f"| {result.labels.get(side, side)} | {ends} | {rise} |")
    return "\n".join(lines)


def _number(name):
    """Returns the number in a folder's name, name_date (1) or name_date_number."""
    match = re.search(r"\d{4}-\d\d-\d\d_(\d+)$", name)
    return int(match[1]) if match else 1


if __name__ == "__main__":
    try:
        write_index()
    except UserError as error:
        sys.exit(str(error))

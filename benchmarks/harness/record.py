"""Stores the result of a benchmark as JSON: figures by side and turn, the command, the commit and the machine.

A result is a folder, `<name>_<date>/`, with `result.json`, a page and a picture (`report.py`). The folder is created
only when the result is complete, and is never overwritten. The folder of a second result from the same day gets a
number.
"""

import dataclasses
import datetime
import importlib.metadata
import json
import math
import os
import pathlib
import platform
import re
import shlex
import statistics
import subprocess
import sys

from t2t_lite import files
from t2t_lite.errors import UserError

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BENCHMARKS = REPOSITORY / "benchmarks"
RESULTS = BENCHMARKS / "results"
FILE = "result.json"

# The figures: name with unit, and whether more is better (None: neither).
FIGURES = {
    "tokens_per_second": ("tokens per second", True),
    "tokens_per_cpu_second": ("tokens per second of CPU time", True),
    "sentences_per_second": ("sentences per second", True),
    "sentences_per_cpu_second": ("sentences per second of CPU time", True),
    "pairs_per_second": ("pairs per second", True),
    "seconds": ("seconds", False),
    "cpu_seconds": ("seconds of CPU time", False),
    "milliseconds": ("milliseconds", False),
    "cpu_ms_per_token": ("milliseconds of CPU time per token", False),
    "median_ms": ("milliseconds, median", False),
    "p95_ms": ("milliseconds, 95th percentile", False),
    "p99_ms": ("milliseconds, 99th percentile", False),
    "ready_seconds": ("seconds until warm: start, imports, model, first pass", False),
    "peak_mb": ("peak memory, MB", False),
    "imported_mb": ("memory after the imports, MB", False),
    "loaded_mb": ("memory with the model loaded, MB", False),
    "resident_mb": ("memory, MB", False),
    "peak_main_mb": ("peak memory of the main process, MB", False),
    "peak_worker_mb": ("peak memory of a worker, MB", False),
    "disk_mb": ("size on disk, MB", False),
    "over_minimum": ("memory over the arithmetic minimum", False),
    "exponent": ("exponent of time against length", False),
    "size_exponent": ("exponent of time against size", False),
    "sequential_operations": ("products that wait for each other", False),
    "path_length": ("products between the first position and the last", False),
    "memory_exponent": ("exponent of memory against length", False),
    "fill": ("share of cells that are not padding", True),
    "shapes": ("different shapes", None),
    "bleu": ("BLEU", True),
    "dev_bleu": ("BLEU on the development set", True),
    "alpha": ("alpha", None),
    "perplexity": ("perplexity per piece", False),
    "next_digit_right": ("share of digits that are right, given those before", True),
    "digits_right": ("share of digits at their place, by greedy search", True),
    "sequences_right": ("share of sequences without a mistake", True),
    "ponder_steps": ("steps per output position", None),
    "nats_per_piece": ("nats per piece", False),
    "parameters": ("weights", None),
    "steps": ("steps", None),
    "training_flops": ("operations of training", None),
    "nats_per_character": ("nats per character", False),
    "nats_per_note": ("nats per note", False),
    "bits_per_dim": ("bits per pixel", False),
    "accuracy": ("accuracy, %", True),
    "same_outputs": ("outputs equal to the first side's, %", True),
    "wrong": ("wrong answers", False),
    "gflops_per_cpu_second": ("GFLOP per second of CPU time", True),
    "share": ("share of the time", None),
    "share_of_peak": ("share of the card's peak", True),
    "waiting": ("share of the time that waits for data", False),
    "peak_gb": ("peak memory of the card, GB", False),
    "kills": ("kills", None),
    "differing_variables": ("variables not bit for bit equal", False),
    "differing_evaluations": ("evaluations that differ", False),
}
_WITHOUT_RATIOS = (
    "alpha", "bleu", "dev_bleu", "digits_right", "exponent", "fill", "kills", "memory_exponent", "next_digit_right",
    "parameters", "path_length", "perplexity", "ponder_steps", "same_outputs", "sequences_right",
    "sequential_operations", "shapes", "share", "size_exponent", "steps", "training_flops", "waiting", "wrong",
)  # fmt: skip
_PACKAGES = "t2t_lite", "tensorflow", "keras", "tensorflow-text", "torch", "transformers", "ctranslate2", "numpy"
# Files that benchmarks write. A change of such a file does not count as a change of the code.
_NOT_CODE = ":!README.md", ":!benchmarks/results"


@dataclasses.dataclass
class Result:
    """One benchmark's result on one machine.

    Attributes:
        name: str, the benchmark's name, such as "decoding".
        title: str, one line.
        command: str, the command as typed in the repository's root, one or several lines.
        commit: str, with "+" if code was not committed; "unknown" if the commit was not recorded.
        date: str, YYYY-MM-DD.
        machine: {"cpu", "cores", "memory_gb", "load", "system"}.
        versions: {package: version}.
        labels: {side: name in tables}.
        measurements: list of {"case", "figure" of `FIGURES`, "sides": {side: spread}, "ratios": {other side: spread}};
            a spread is {"median", "low", "high", "turns"}; a ratio is the first side's figure divided by the other
            side's.
        growth: list of {"case", "figure", "x", "sides": {side: {"x", "y", "slope", "later"}}}: see `add_growth`.
        missing: {side: why the side was not measured}.
        notes: list of str, sentences for the page.
        quality: {"data", "part", "model", "time", "score"} or None: a row of README's table of scores.
    """

    name: str
    title: str
    command: str
    commit: str = "unknown"
    date: str = ""
    machine: dict = dataclasses.field(default_factory=dict)
    versions: dict = dataclasses.field(default_factory=dict)
    labels: dict = dataclasses.field(default_factory=dict)
    measurements: list = dataclasses.field(default_factory=list)
    growth: list = dataclasses.field(default_factory=list)
    missing: dict = dataclasses.field(default_factory=dict)
    notes: list = dataclasses.field(default_factory=list)
    quality: dict | None = None
    seconds: float | None = None

    def add(self, case, figure, sides):
        """Adds a measurement, with ratios of neighbouring turns.

        Args:
            case: str, what was measured, such as "batch 32".
            figure: str, a key of `FIGURES`.
            sides: {side: list of floats, one per turn}. Ratios divide the first side's figure by each other
                side's, for the turns that both sides have.
        """
        if figure not in FIGURES:
            raise ValueError(f"{figure!r} is not in FIGURES")
        first, *others = sides
        ratios = {}
        for side in others:
            pairs = [(a, b) for a, b in zip(sides[first], sides[side], strict=False) if b]
            if pairs and figure not in _WITHOUT_RATIOS:
                ratios[side] = spread([a / b for a, b in pairs])
        spreads = {side: spread(turns) for side, turns in sides.items()}
        self.measurements.append({"case": case, "figure": figure, "sides": spreads, "ratios": ratios})

    def add_turns(self, case, turns):
        """Adds a measurement for each figure in `turns`, {side: [{figure: float} of each turn]}."""
        names = {name: None for figures in turns.values() for name in (figures[0] if figures else {})}
        for name in names:
            self.add(case, name, {side: [f[name] for f in figures] for side, figures in turns.items() if figures})

    def add_same_outputs(self, case, outputs):
        """Adds the percentage of each side's outputs, {side: list of str}, that equal the first side's."""
        first = outputs[next(iter(outputs))]
        same = {side: [100 * statistics.mean(map(str.__eq__, first, lines))] for side, lines in outputs.items()}
        self.add(case, "same_outputs", same)

    def add_growth(self, case, figure, x, sides):
        """Adds a figure that is recorded over steps or requests.

        Three things are stored: the points; the slope (per unit of x) of the least-squares line through their second
        half; and `later`, the rise of this line over the second half, divided by the median of that half.

        Args:
            case: str.
            figure: str, a key of `FIGURES`.
            x: str, the quantity on the x axis, such as "steps".
            sides: {side: list of (x, y)}, with at least four points.
        """
        lines = {}
        for side, points in sides.items():
            half = points[len(points) // 2 :]
            xs, ys = zip(*half, strict=True)
            slope = statistics.linear_regression(xs, ys).slope
            later = slope * (xs[-1] - xs[0]) / statistics.median(ys)
            every_x, every_y = zip(*points, strict=True)
            lines[side] = {"x": list(every_x), "y": [rounded(y) for y in every_y]}
            lines[side] |= {"slope": rounded(slope), "later": rounded(later)}
        self.growth.append({"case": case, "figure": figure, "x": x, "sides": lines})

    def check(self):
        """Raises `UserError` unless the result has a command and figures."""
        if not self.command.strip():
            raise UserError(f"{self.name}: has no command, so it cannot be repeated. Nothing was written.")
        if not (self.measurements or self.growth or self.quality):
            raise UserError(f"{self.name}: has no figures. Nothing was written.")

    def to_json(self):
        """Returns the text of `result.json`. Raises `UserError` in the cases of `check`."""
        self.check()
        fields = {name: value for name, value in dataclasses.asdict(self).items() if value not in (None, {}, [])}
        return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"


def exponent(numbers):
    """Returns the exponent with which figures, {number: figure}, grow: the slope of a line through the logarithms."""
    x, y = [math.log(n) for n in numbers], [math.log(max(value, 1e-9)) for value in numbers.values()]
    return round(statistics.linear_regression(x, y).slope, 3)


def new_result(name, title, labels, argv=None):
    """Creates an empty Result with this program's command, machine and commit."""
    return Result(
        name, title, command_line(sys.orig_argv if argv is None else argv), commit(),
        today(), machine(), versions(), dict(labels),
    )  # fmt: skip


def today():
    """Returns the current date in UTC, YYYY-MM-DD."""
    return datetime.datetime.now(datetime.UTC).date().isoformat()


def read_result(path):
    """Reads a Result from `result.json`. Raises `UserError` if the file is not valid."""
    fields = files.read_json(str(path))
    unknown = set(fields) - {field.name for field in dataclasses.fields(Result)}
    if unknown or not {"name", "title", "command"} <= set(fields):
        raise UserError(f"{path}: not a benchmark result. Expected name, title and command; unknown fields: {unknown}.")
    result = Result(**fields)
    result.check()
    return result


def cpu_name(result):
    """Returns the maker and family of a result's processor, such as "Intel Xeon"."""
    words = re.sub(r"\((R|TM|r|tm)\)", "", result.machine.get("cpu", "unknown")).split()
    return " ".join(words[:2])


def spread(turns):
    """Summarizes figures, one per turn, as {"median", "low", "high", "turns"}."""
    turns = [float(turn) for turn in turns]
    summary = {"median": statistics.median(turns), "low": min(turns), "high": max(turns)}
    return {**{name: rounded(value) for name, value in summary.items()}, "turns": [rounded(turn) for turn in turns]}


def rounded(value):
    """Rounds a number to four significant digits, or to an integer if it is 1,000 or more."""
    value = float(f"{value:.4g}") if abs(value) < 1000 else round(value)
    return int(value) if value == int(value) else value


LARGE = 1e9  # larger numbers are shown with a power of ten


def shown(value):
    """Formats a figure for tables: with three significant digits, from 1,000 on as 12,345, from 1e9 on as 1.23e9."""
    if abs(value) >= LARGE:
        digits, power = f"{value:.2e}".split("e")
        return f"{digits}e{int(power)}"
    if abs(value) >= 1000 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def better(figure):
    """Returns " (more is better)", " (less is better)" or ""."""
    return {True: " (more is better)", False: " (less is better)", None: ""}[FIGURES[figure][1]]


def command_line(argv):
    """Returns a command as one would type it in the repository's root, without the interpreter's folder.

    Args:
        argv: list of str, such as `sys.orig_argv`.
    """
    if not argv:
        return ""
    words = []
    for word in argv[1:]:
        inside = os.path.isabs(word) and pathlib.Path(word).resolve().is_relative_to(REPOSITORY)
        words.append(str(pathlib.Path(word).resolve().relative_to(REPOSITORY)) if inside else word)
    return shlex.join([os.path.basename(argv[0]), *words])


def commit():
    """Returns the commit's short hash, with "+" if the code has changed, or "unknown" outside a Git repository."""

    def git(*words):
        process = subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True)
        return process.stdout.strip() if process.returncode == 0 else None

    try:
        short_hash = git("rev-parse", "--short", "HEAD")
        differences = git("status", "--porcelain", "--", ".", *_NOT_CODE)
    except FileNotFoundError:
        return "unknown"
    return f"{short_hash}{'+' if differences else ''}" if short_hash else "unknown"


def machine():
    """Describes the machine; `load` is the average of the last minute."""
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory / 1e9),
        "load": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
    }


def versions():
    """Returns {package: version} for Python and the installed packages among `_PACKAGES`."""
    by_package = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            by_package[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return by_package

"""The result of `benchmarks/gpu.py`, written again after each section: figures, checks, kernels."""

import json
import os
import pathlib
import re

from benchmarks.harness import plot, record, report

TITLE = "First contact with a GPU"
LABELS = {
    "ours": "t2t_lite",
    "peer": "PyTorch, Hugging Face",
    "deterministic": "t2t_lite, deterministic",
    "command_buffers": "t2t_lite, command buffers",
    "triton": "t2t_lite, Triton's products",
    "uncompiled": "t2t_lite, without XLA",
    "jax": "t2t_lite's layers, jax.jit",
}
_KERNELS = 25  # on the page; all that were read are in result.json's neighbour


class Page:
    """What has been found so far, and the folder that it is written to.

    Args:
        folder: str.

    Attributes:
        is_right: bool, whether every check passed.
    """

    def __init__(self, folder):
        self.folder = folder
        self.result = record.new_result("gpu", TITLE, LABELS)
        self.checks, self.profiles, self.is_right = [], {}, True
        self._flops = {}

    def describe(self, card, said, driver):
        """Notes the card, its driver, and versions."""
        self.result.machine |= {"card": card, "driver": driver}
        for side in said.values():
            self.result.versions |= {n: v for n, v in side.items() if n in ("torch", "transformers", "cuda") and v}

    def leave_out(self, what, why):
        """Notes what was not measured."""
        self.result.missing[what] = why

    def check(self, title, found):
        """Notes a check, which answered with "ok" and "says", or "error"."""
        self.checks.append((title, bool(found.get("ok")), found.get("says") or found.get("error", "")))
        self.is_right &= bool(found.get("ok"))
        if "placement" in found:
            self.profiles[f"placement, {title}"] = found["placement"]

    @property
    def nothing_works(self):
        """Whether steps of training were tried, and none worked."""
        steps = [ok for title, ok, _ in self.checks if title.startswith("step")]
        return bool(steps) and not any(steps)

    def add_case(self, case, turns, said, peak, prefix=""):
        """Adds the figures of a case.

        Args:
            case: of `cases`.
            turns: {side: [answers to "turn"]}.
            said: {side: answer to "warm"}.
            peak: float, the card's operations per second, or None.
            prefix: str, of the case's title.
        """
        title = f"{prefix}{case.title}"
        unit = "sentences" if case.work == "translate" else "tokens"
        add = self.result.add
        add(title, f"{unit}_per_second", {s: [t[unit] / t["seconds"] for t in found] for s, found in turns.items()})
        if case.work == "train" and peak and (flops := self.flops_of(case, said)):
            shares = {s: [case.steps * flops / t["seconds"] / peak for t in found] for s, found in turns.items()}
            add(title, "share_of_peak", shares)
        if any("waiting" in t for found in turns.values() for t in found):
            add(title, "waiting", {s: [t["waiting"] for t in f] for s, f in turns.items() if "waiting" in f[0]})
        add(title, "peak_gb", {s: [t["peak_gb"] for t in found] for s, found in turns.items()})
        add(
            title,
            "ready_seconds",
            {s: [one["ready_seconds"]] for s, one in said.items() if "ready_seconds" in one},
        )

    def flops_of(self, case, said):
        """Returns the operations of a step of training, which our side counts; None before it did."""
        if flops := said.get("ours", {}).get("flops"):
            self._flops[case] = flops
        return self._flops.get(case)

    def add_profile(self, what, title, found):
        """Adds the kernels or the placement of a case."""
        self.profiles[f"{what}, {title}"] = found

    def write(self, seconds):
        """Writes all that has been found."""
        self.result.seconds = round(seconds)
        os.makedirs(self.folder, exist_ok=True)
        folder = pathlib.Path(self.folder)
        (folder / "profiles.json").write_text(json.dumps({"checks": self.checks, **self.profiles}, indent=1), "utf-8")
        self.result.notes = [text for text in (self._checks(), *self._kernels(), *self._placements()) if text]
        if not self.result.measurements:
            return
        (folder / record.FILE).write_text(self.result.to_json(), "utf-8")
        (folder / "README.md").write_text(report.page(self.result), "utf-8")
        if picture := plot.draw(self.result):
            (folder / "plot.png").write_bytes(picture)

    def _checks(self):
        if not self.checks:
            return ""
        lines = [f"| {title} | {'yes' if ok else '**no**'} | {says} |" for title, ok, says in self.checks]
        return "\n".join(["## Does it work?", "", "| check | passed | figures |", "|---|---|---|", *lines])

    def _kernels(self):
        for title, found in self.profiles.items():
            if not title.startswith("kernels") or not found.get("kernels"):
                continue
            rows = [f"| `{name[:90]}` | {ms:.3f} | {times:g} |" for name, ms, times in found["kernels"][:_KERNELS]]
            copies = ", ".join(f"{name} {count:g}" for name, count in found["copies"].items()) or "none"
            head = f"{found['milliseconds']:.2f} ms per step, a kernel runs in {found['busy']:.1%} of it."
            if gaps := found.get("gaps"):
                longest = ", ".join(f"{name}: {ms:.2f} ms" for name, ms, _ in gaps[:3])
                head += f" {found['launches']:,} launches; the longest gaps per step: {longest}."
            yield "\n".join([
                f"## {title[0].upper()}{title[1:]}", "", f"{head} Copies per step: {copies}.", "",
                "| kernel | ms per step | times |", "|---|--:|--:|", *rows,
            ])  # fmt: skip

    def _placements(self):
        for title, found in self.profiles.items():
            if not title.startswith("placement") or not found.get("device"):
                continue
            host, crossings = (
                ", ".join(f"`{name}` {count}" for name, count in found[what].items()) or "none"
                for what in ("host", "crossings")
            )
            yield f"{title[0].upper()}{title[1:]}. Operations on the host: {host}. Tensors that cross: {crossings}."


def two_checks(found):
    """Returns the two checks of `works.run`, or its error for both."""
    return {name: found.get(name, found) for name in ("resumed", "export")}


def first_match(path, pattern):
    """Returns the first line of a log that has a pattern, without what logging puts before it; or ""."""
    with open(path, errors="replace") as file:
        for line in file:
            if re.search(pattern, line):
                return line.strip().partition("] ")[2] or line.strip()
    return ""

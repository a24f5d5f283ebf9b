"""Writes the result of `benchmarks/gpu.py` after each section: its figures, checks and kernels."""

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
_KERNELS = 25  # number of kernels that the page lists; profiles.json lists all


class Page:
    """Collects results and writes them to a folder.

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

    def describe(self, card, hellos, driver):
        """Records the GPU, its driver, and the versions."""
        self.result.machine |= {"card": card, "driver": driver}
        for side in hellos.values():
            self.result.versions |= {n: v for n, v in side.items() if n in ("torch", "transformers", "cuda") and v}

    def leave_out(self, what, why):
        """Records that something was not measured, and why."""
        self.result.missing[what] = why

    def check(self, title, answer):
        """Records the answer of a check, which has the items "ok" and "says", or the item "error"."""
        self.checks.append((title, bool(answer.get("ok")), answer.get("says") or answer.get("error", "")))
        self.is_right &= bool(answer.get("ok"))
        if "placement" in answer:
            self.profiles[f"placement, {title}"] = answer["placement"]

    @property
    def nothing_works(self):
        """Whether training steps were tried and none worked."""
        steps = [ok for title, ok, _ in self.checks if title.startswith("step")]
        return bool(steps) and not any(steps)

    def add_case(self, case, turns, warm_answers, peak, prefix=""):
        """Adds the figures of a case.

        Args:
            case: a case of `benchmarks.card.cases`.
            turns: {side: [answers to "turn"]}.
            warm_answers: {side: answer to "warm"}.
            peak: float, the GPU's peak performance in operations per second, or None.
            prefix: str, prefix of the case's title.
        """
        title = f"{prefix}{case.title}"
        unit = "sentences" if case.work == "translate" else "tokens"
        add = self.result.add
        add(title, f"{unit}_per_second", {s: [t[unit] / t["seconds"] for t in answers] for s, answers in turns.items()})
        if case.work == "train" and peak and (flops := self.flops_of(case, warm_answers)):
            shares = {s: [case.steps * flops / t["seconds"] / peak for t in answers] for s, answers in turns.items()}
            add(title, "share_of_peak", shares)
        if any("waiting" in t for answers in turns.values() for t in answers):
            add(title, "waiting", {s: [t["waiting"] for t in f] for s, f in turns.items() if "waiting" in f[0]})
        add(title, "peak_gb", {s: [t["peak_gb"] for t in answers] for s, answers in turns.items()})
        add(
            title,
            "ready_seconds",
            {s: [answer["ready_seconds"]] for s, answer in warm_answers.items() if "ready_seconds" in answer},
        )

    def flops_of(self, case, warm_answers):
        """Returns the number of operations in a training step as counted by our side, or None if not yet counted."""
        if flops := warm_answers.get("ours", {}).get("flops"):
            self._flops[case] = flops
        return self._flops.get(case)

    def add_profile(self, what, title, profile):
        """Adds a case's kernels, or the placement of its operations, to the profiles."""
        self.profiles[f"{what}, {title}"] = profile

    def write(self, seconds):
        """Writes all results so far to the folder."""
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
        for title, profile in self.profiles.items():
            if not title.startswith("kernels") or not profile.get("kernels"):
                continue
            rows = [f"| `{name[:90]}` | {ms:.3f} | {times:g} |" for name, ms, times in profile["kernels"][:_KERNELS]]
            copies = ", ".join(f"{name} {count:g}" for name, count in profile["copies"].items()) or "none"
            head = f"{profile['milliseconds']:.2f} ms per step; kernels run in {profile['busy']:.1%} of this time."
            if gaps := profile.get("gaps"):
                longest = ", ".join(f"{name}: {ms:.2f} ms" for name, ms, _ in gaps[:3])
                head += f" {profile['launches']:,} launches; the longest gaps per step: {longest}."
            yield "\n".join([
                f"## {title[0].upper()}{title[1:]}", "", f"{head} Copies per step: {copies}.", "",
                "| kernel | ms per step | times |", "|---|--:|--:|", *rows,
            ])  # fmt: skip

    def _placements(self):
        for title, profile in self.profiles.items():
            if not title.startswith("placement") or not profile.get("device"):
                continue
            host, crossings = (
                ", ".join(f"`{name}` {count}" for name, count in profile[what].items()) or "none"
                for what in ("host", "crossings")
            )
            yield f"{title[0].upper()}{title[1:]}. Operations on the host: {host}. Tensors copied: {crossings}."


def two_checks(answer):
    """Returns the two checks of `works.run`; if it failed, both checks have its error."""
    return {name: answer.get(name, answer) for name in ("resumed", "export")}


def first_match(path, pattern):
    """Returns the first line of a log that matches a pattern, without the logging prefix; or ""."""
    with open(path, errors="replace") as file:
        for line in file:
            if re.search(pattern, line):
                return line.strip().partition("] ")[2] or line.strip()
    return ""

"""Runs a run's evaluations, shows and logs them, and reads them from the log."""

import logging
import time

from t2t_lite.runs.log import lineage
from t2t_lite.training.evaluation import metrics_of

_LOGGER = logging.getLogger("t2t_lite")
_SHOWN = 5  # translations, in TensorBoard


class Evaluations:
    """Evaluates at given steps, and keeps the results in the log, with those of earlier processes.

    Args:
        log: RunLog.
        make_evaluator: function that returns an `Evaluator`; called by `prepare`, or at the first evaluation.
        folder: str, run name in TensorBoard.
        name: str, what is evaluated, for the line on stderr.
        on_texts: function of (step, list of (input, output, reference)), or None.
    """

    def __init__(self, log, make_evaluator, folder="eval", name="evaluation", on_texts=None):
        self._log = log
        self._make_evaluator = make_evaluator
        self._evaluator = None
        self._folder = folder
        self._name = name
        self._on_texts = on_texts

    def prepare(self):
        """Creates the evaluator. Raises `UserError` if no evaluation is possible: damaged records, invalid settings."""
        self._evaluator = self._evaluator or self._make_evaluator()

    def evaluate(self, step, **facts):
        """Evaluates the current model; returns the metrics, {name: float}. `facts` are added to the log line."""
        self.prepare()
        started = time.monotonic()
        metrics, texts = self._evaluator()
        seconds = time.monotonic() - started
        shown = "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        _LOGGER.info(f"{self._name} at step {step:,}: {shown}  ({seconds:.1f} s)")
        if texts and self._on_texts:
            self._on_texts(step, texts)
        self._log.scalars(step, metrics, self._folder)
        if texts:
            self._log.text(step, "translations", _table(texts[:_SHOWN]), self._folder)
        if "bleu" in metrics:
            facts["bleu_signature"] = self._evaluator.bleu_signature
        # Last, because a restarted run treats logged evaluations as done.
        self._log.write("evaluation", step, **metrics, seconds=round(seconds, 3), **facts)
        return metrics

    def history(self):
        """Returns the evaluations that led to the run's newest state: a list of (step, {metric: float}), by step."""
        found = {}
        for line in lineage(self._log.read()):
            if line["event"] == "evaluation":
                found[line["step"]] = metrics_of(line)  # the last one of a step counts
        return sorted(found.items())

    def at(self, step):
        """Returns the logged metrics of this step, or None."""
        return dict(self.history()).get(step)


def _table(texts):
    """Formats rows of texts as a Markdown table."""
    rows = [f"| {' | '.join(text.replace('|', '&#124;') for text in row)} |" for row in texts]
    return "\n".join(["| input | output | reference |", "|-|-|-|", *rows])

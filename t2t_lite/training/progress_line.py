"""Shows a run's progress: on a terminal in one moving line with a bar, elsewhere in repeated plain lines."""

import logging
import time

from t2t_lite.cli import streams
from t2t_lite.cli.console import SECONDS, clock, columns, fit, move

_LOGGER = logging.getLogger("t2t_lite")
_BAR = 16  # characters
_NARROWEST = 70  # terminal that has room for the bar beside what is said
_SECONDS_MOVING = 0.5
_SECONDS_PLAIN = 60  # between two lines, where fewer steps than --log_step_count_steps are done in that time
# Beyond these a field says something that is not ordinary.
_MUCH_WAITING = 0.1
_MUCH_PADDING = 0.4
_LARGE_GRADIENT = 100.0
_STARVED = 0.1  # of an equal share


class ProgressLine:
    """The line of a run.

    Args:
        train_steps: int, where the run ends.
        unit: str, that of its loss.

    Attributes:
        moves: bool, whether it is shown on a terminal.
    """

    def __init__(self, train_steps, unit):
        self._train_steps = train_steps
        self._unit = unit
        self.moves = streams.has_moving_line()
        self._due = None  # when it is time for the next one; before the first step there is none
        self._fields, self._left_at = [], None

    def begin(self, seconds, loss):
        """Logs the time and loss of the first step, which is traced and so takes longer."""
        _LOGGER.info(f"first step: {seconds:.1f} s including its tracing, loss {loss:{_digits(loss)}} {self._unit}")
        self._due = time.monotonic() + (_SECONDS_MOVING if self.moves else SECONDS)

    @property
    def is_due(self):
        """Whether the line is to be shown again, by the clock."""
        return self._due is not None and time.monotonic() >= self._due

    def show(self, step, values, shares):
        """Shows a step.

        Args:
            step: int.
            values: dict, as in a run's log; those that are not known are None.
            shares: {name: list by layer of lists of shares}.
        """
        self._due = time.monotonic() + (_SECONDS_MOVING if self.moves else _SECONDS_PLAIN)
        self._fields = self._made(step, values, shares)
        if not self.moves:
            _LOGGER.info("  ".join(self._fields))
            return
        width, done = columns(), _BAR * step // self._train_steps
        bar = f"[{'#' * done}{'-' * (_BAR - done)}] " if width >= _NARROWEST else ""
        move(bar + fit(self._fields, width - len(bar)))

    def leave(self, step):
        """Leaves the line of a step on the terminal, without its bar, unless it is there already."""
        if self._fields and self._left_at != step:
            _LOGGER.info(fit(self._fields, columns()))
            self._left_at = step
        move()

    def _made(self, step, values, shares):
        """Returns the fields, those first that a narrow terminal is to show."""
        seconds, steps_left = values["seconds_per_step"], self._train_steps - step
        fields = [f"step {step:,}/{self._train_steps:,}", f"loss {values['loss']:{_digits(values['loss'])}}"]
        if seconds and steps_left:
            fields.append(f"ETA {clock(values['eta_seconds'])}")
        fields += _rare(values, shares)
        if seconds:
            fields.append(_speed(seconds))
        return [*fields, f"epoch {values['epochs']:.2f}"]


def _speed(seconds):
    """Returns seconds per step as words."""
    if seconds >= 1:
        return f"{seconds:,.1f} s/step"
    return f"{1 / seconds:,.{2 if seconds > 0.1 else 0}f} steps/s"


def _digits(loss):
    return ".3f" if loss >= 0.1 else ".3g"


def _rare(values, shares):
    """Yields the fields of what is not ordinary."""
    if values["skipped_steps"]:
        yield f"skipped {values['skipped_steps']}"
    if values["waiting_for_data"] > _MUCH_WAITING:
        yield f"waiting for data {values['waiting_for_data']:.0%}"
    if values["padding"] > _MUCH_PADDING:
        yield f"padding {values['padding']:.0%}"
    if values["gradient_norm"] > _LARGE_GRADIENT:
        yield f"gradient {values['gradient_norm']:,.0f}"
    if values.get("loss_scale") == 1:
        yield "loss scale 1"
    for name, layers in shares.items():
        if least := [min(layer) for layer in layers if min(layer) < _STARVED / len(layer)]:
            yield f"{name} down to {min(least):.1%}"

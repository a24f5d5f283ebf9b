"""Labels, numbers, tags, answers and masked words of lines."""

import functools

from t2t_lite import registry
from t2t_lite.decoding.jobs.lines import LineAnswer, Lines, is_blank, of_each
from t2t_lite.decoding.jobs.text_files import json_text
from t2t_lite.decoding.texts import valid_unicode
from t2t_lite.errors import UserError, counted
from t2t_lite.settings.ranges import Range, typed_value

_CUT, _SPLIT = "texts that are too long are cut off, not split.", "what is too long is read in parts, and not cut off."
_N_BEST = 5


class LinePredictor(Lines):
    """Predicts of lists of lines with one set of settings.

    A line is a str, whose columns are separated by tabs where a row has two texts; or a list of words; or a dict of an
    "id", a "question" and its "context". The outputs of the latter are one object of JSON together, {id: answer}.

    Args:
        predictor: Predictor, or an object that has its `predict`, `fill_mask`, `features`, `read`, `problem`,
            `num_texts` and `max_input_length`.
        settings: DecodeHParams: n_best, batch_size and max_input_size are used.
        name, on_error, as_json: see `Lines`.
        long_input: "refuse" lines over the limit, or "truncate" them; None: truncate them. Sentences whose words get
            tags are refused, or read in parts: "split", or None. Long contexts of questions are always read in parts.
    """

    title = "predicting"

    def __init__(self, predictor, settings, name, *, long_input=None, on_error=None, as_json=False):
        limit = predictor.max_input_length
        if settings.max_input_size != -1:
            limit = typed_value("max_input_size", settings.max_input_size, int, Range(4, limit))
        self._task = task = registry.task_of(predictor.problem)
        if long_input not in (None, *task.long_input):
            raise UserError(
                f"--long_input={long_input}: {_CUT if 'truncate' in task.long_input else _SPLIT} Leave it out."
            )
        super().__init__(predictor, settings, name, limit, long_input, on_error, as_json)
        self._n_best = settings.n_best or _N_BEST
        self._batch_size = settings.search.batch_size
        self._ends = ()  # the numbers of an output's first and last line

    def read(self, line, prefix="", whole=False):
        """See `Lines`."""
        if is_blank(line) and not whole:
            return None
        reading = self.answerer.read(self._texts(line), max_length=self.limit, whole=whole)
        if self.long_input == "refuse" and (reading.truncated or len(reading.rows) > 1):
            raise UserError(f"longer than {self.limit:,} ids. Split it, or leave out --long_input=refuse.")
        return reading

    def answers(self, readings, on_progress=None):
        """See `Lines`."""
        options = {"batch_size": self._batch_size, "max_length": self.limit, "on_progress": on_progress}
        found = getattr(self.answerer, self._task.method)(readings, **{self._task.count: self._n_best}, **options)
        return list(map(_predicted, readings, found))

    def check_lengths(self, lines, first=1):
        """See `Lines`. These are all lines of an output; the first and the last one may be written otherwise."""
        self._ends = first, first + len(lines) - 1
        return super().check_lengths(lines, first)

    def features(self, readings, **options):
        """Returns `Predictor.features` of each of `readings`; None of None."""
        features = functools.partial(self.answerer.features, batch_size=self._batch_size, **options)
        return of_each(features, readings, None)

    def output(self, number, line, predicted):
        """See `Lines`."""
        answer = predicted.answer
        text = None if self.as_json else "" if answer is None else self._task.as_line(answer)
        if text is None:
            said = {"skipped": True} if answer is None else _rounded(self._task.as_json(answer))
            return json_text({"line": number, **_asked(line, answer), **said})
        if isinstance(line, dict):
            text = f"{json_text(line['id'])}: {json_text(answer.text if answer else '')}"
            return ("{" if number == self._ends[0] else " ") + text + ("}" if number == self._ends[1] else ",")
        return text

    def _texts(self, line):
        """Returns what `Predictor.read` takes of a line."""
        if isinstance(line, dict):
            return tuple(valid_unicode(line[name]) for name in self._task.inputs)
        if isinstance(line, list):
            return tuple(map(valid_unicode, line))
        if self.answerer.num_texts == 1:
            return valid_unicode(line)
        columns = tuple(valid_unicode(line).split("\t"))
        if len(columns) != self.answerer.num_texts:
            raise UserError(
                f"{counted(len(columns), 'column')}. Expected {self.answerer.num_texts} texts with a tab between them."
            )
        return columns


def _predicted(reading, answer):
    parts = getattr(answer, "parts", 1)
    return LineAnswer(answer, reading.truncated, parts, len(reading), is_long=parts > 1)


def _asked(line, answer):
    """Returns what a line of JSON says of the input, which is None where it is not UTF-8; an answer has the words."""
    match line:
        case dict():
            return {"id": line["id"]}
        case list() if answer is not None:
            return {}
    return {"input": line}


def _rounded(value):
    """Returns a value with all floats in it rounded to six digits behind the point."""
    match value:
        case float():
            return round(value, 6)
        case dict():
            return {key: _rounded(one) for key, one in value.items()}
        case list() | tuple():
            return [_rounded(one) for one in value]
    return value

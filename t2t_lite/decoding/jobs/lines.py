"""Lines with one set of settings: each is read, all are answered together, and every answer is an output."""

import dataclasses
import functools
import logging

from t2t_lite.corpora.plain_text import as_field
from t2t_lite.decoding.hypothesis import Hypothesis
from t2t_lite.decoding.jobs import text_files
from t2t_lite.errors import UserError, counted

_LOGGER = logging.getLogger("t2t_lite")
_MANY = 10  # lines named in one message


@dataclasses.dataclass(frozen=True)
class LineAnswer:
    """What is answered to one line.

    Attributes:
        answer: `Translation`, `Generation`, or what `Predictor.predict` or `fill_mask` returns; None: nothing was
            asked, since the line was skipped, or is blank and there is nothing to predict.
        truncated: bool, whether part of the line was not read.
        parts: int, the number of parts that it was read in; 0: none.
        tokens: int, ids of the output; of predictions those that were read.
        is_long: bool, whether it had to be split or truncated, being longer than the limit.
        beside: {name: str}, what files beside the output get: of "alignment" "0-0 1-2", pairs of a word in the line
            and one in the first hypothesis, from 0; of others what `Teller.text` makes of the first hypothesis.
    """

    answer: object = None
    truncated: bool = False
    parts: int = 0
    tokens: int = 0
    is_long: bool = False
    beside: dict = dataclasses.field(default_factory=dict)

    @classmethod
    def of_output(cls, found, parts=1, is_long=False, beside=None):
        """Returns that of a `Translation` or a `Generation`."""
        tokens = len(found.hypotheses[0].ids) + 1 if found.text else 0
        return cls(found, found.truncated, parts, tokens, is_long, beside or {})

    is_short = property(lambda self: getattr(self.answer, "is_short", False))
    lost = property(lambda self: next(filter(None, (getattr(one, "lost", []) for one in self.hypotheses)), []))
    hypotheses = property(lambda self: getattr(self.answer, "hypotheses", None) or (Hypothesis(),))
    text = property(lambda self: self.hypotheses[0].text)


class Lines:
    """Answers lines. Subclasses have `read` and `answers`: how one is read, and how those that were read are answered.

    Args:
        answerer: Translator, Generator or Predictor, or a TranslatorPool of them.
        settings: DecodeHParams.
        name: str, where the lines come from, for messages: a file, standard input.
        limit: int, the most ids of a line that is not split or truncated, or None.
        long_input: "split", "truncate" or "refuse", what is done with longer lines.
        on_error: function that gets a message for each line that cannot be answered; it raises, or the line is skipped.
        as_json: bool, whether outputs are lines of JSON.

    Attributes:
        compile: as in `SearchOptions`.
    """

    cut = "cut off after"  # what a long line is, in messages, with the limit after it
    title = "translating"

    def __init__(self, answerer, settings, name, limit, long_input, on_error=None, as_json=False):
        self.answerer, self.settings, self.name = answerer, settings, name
        self.limit, self.long_input = limit, long_input
        self.as_json = as_json
        self.compile = None
        self._on_error = on_error or _raise

    def read(self, line, prefix=""):
        """Returns what `answers` takes of a line, or None if it is blank and there is nothing to ask.

        Args:
            line: what the reader of a file yields, not None.
            prefix: str, with which its output has to begin.

        Raises:
            UserError: it cannot be read, or is to be refused.
        """
        raise NotImplementedError

    def answers(self, readings, on_progress=None):
        """Returns the LineAnswer of each reading. `on_progress`, or None, is called with the number of lines done."""
        raise NotImplementedError

    def read_target(self, line, _):
        """Returns what `scores` takes of a line that is to be scored. Raises `UserError` as `read`."""
        raise NotImplementedError

    def scores(self, readings):
        """Returns the TargetScore of each reading of `read_target`."""
        raise NotImplementedError

    def stream(self, line):
        """Returns an iterator of the parts of a line's output, or None if its end decides about all of it."""

    def readings(self, lines, first=1, prefixes=None, read=None):
        """Yields what is read of each line; None for one to skip, a blank one, or one of which `on_error` was told.

        Args:
            lines: list of lines; None is one to skip.
            first: int, the number of the first one, for messages.
            prefixes: None, or one str per line.
            read: function of a line and its prefix; None: `self.read`.
        """
        pairs = zip(lines, prefixes or [""] * len(lines), strict=True)
        for number, (line, prefix) in enumerate(pairs, first):
            reading = None
            try:
                if line is not None:
                    reading = (read or self.read)(line, prefix)
            except UserError as error:
                self._on_error(f"{self.name}, line {number}: {error}")
            yield reading

    def answer(self, lines, first=1, prefixes=None, on_progress=None):
        """Returns the LineAnswer of each line. Arguments as of `readings` and `answers`, errors those of `on_error`."""
        answers = functools.partial(self.answers, on_progress=on_progress)
        return of_each(answers, self.readings(lines, first, prefixes), LineAnswer())

    def score(self, lines, first=1):
        """Returns the TargetScore of each line, see `read_target`; None of one that cannot be scored."""
        return of_each(self.scores, self.readings(lines, first, read=self.read_target), None)

    def check_lengths(self, lines, first=1):
        """Reports lines that would be refused to `on_error`; returns the lines, with None in place of those."""
        if self.long_input != "refuse":
            return lines
        every = zip(self.readings(lines, first), lines, strict=True)
        return [None if reading is None and not is_blank(line) else line for reading, line in every]

    def outputs(self, lines, first=1, prefixes=None, on_progress=None, inputs=None):
        """Answers lines, and warns about truncated or split ones.

        Args:
            lines, first, prefixes, on_progress: as of `answer`.
            inputs: list of the lines as they were read, where some of `lines` are None, being refused; None: `lines`.

        Returns:
            (output lines, a list of str without line ends; list of LineAnswer).
        """
        answers = self.answer(lines, first, prefixes, on_progress)
        numbered = list(enumerate(answers, first))
        self.warn_of_long(self.cut, [number for number, found in numbered if found.truncated])
        split = [f"{number} ({found.parts} parts)" for number, found in numbered if found.is_long and found.parts > 1]
        self.warn_of_long("split, being longer than", split)
        if count := sum(found.parts > 1 and not found.is_long for found in answers):
            _LOGGER.info(
                f"{self.name}: {counted(count, 'line')} of several sentences, translated one by one "
                "(--split_sentences=never: as a whole)"
            )
        if lost := [f"{number} ({', '.join(found.lost)})" for number, found in numbered if found.lost]:
            _LOGGER.warning(
                f"{self.name}: protected texts that the model did not write stand at the end of the output: line "
                f"{_shown_numbers(lost)}"
            )
        if short := [number for number, found in numbered if found.is_short]:
            _LOGGER.warning(
                f"{self.name}: the output has less than a third of the line's pieces, so some of it may not be "
                f"translated: line {_shown_numbers(short)}"
            )
        texts = []
        for (number, found), line in zip(numbered, lines if inputs is None else inputs, strict=True):
            texts.append(self.output(number, line, found))
            if self.settings.log_results:
                _LOGGER.info(f"INPUT: {as_field(str(line or ''))}\nOUTPUT: {texts[-1]}")
        return texts, answers

    def output(self, number, line, answered):
        """Returns the output of a line, without its end.

        Args:
            number: int, from 1.
            line: the line; None where it is not UTF-8.
            answered: LineAnswer.
        """
        if self.as_json:
            return text_files.json_line(number, line, answered)
        return text_files.output_line(answered, self.settings)

    def warn_of_long(self, what, numbers):
        """Warns of what was done with the lines of some numbers, being too long, if there are any."""
        if numbers:
            _LOGGER.warning(f"{self.name}: {what} {self.limit:,} pieces: line {_shown_numbers(numbers)}")


def of_each(function, readings, nothing):
    """Returns what a function of those readings that are not None gives for each of them; `nothing` for the others."""
    readings = list(readings)
    found = iter(function([one for one in readings if one is not None]))
    return [nothing if one is None else next(found) for one in readings]


def is_blank(line):
    """Whether there is nothing in a line, which may also be a list of words, a dict, or None."""
    return not (line.strip() if isinstance(line, str) else line)


def _shown_numbers(numbers):
    more = f", … ({len(numbers):,} lines)" if len(numbers) > _MANY else ""
    return ", ".join(map(str, numbers[:_MANY])) + more


def _raise(message):
    raise UserError(message)

"""Lines with one set of settings: each is read, all are answered together, and every answer is an output."""

import dataclasses
import functools
import logging
from typing import NamedTuple

from t2t_lite import registry
from t2t_lite.corpora.plain_text import as_field
from t2t_lite.corpora.sentences import split_text
from t2t_lite.decoding.alignment import pharaoh, word_alignment
from t2t_lite.decoding.command import text_files
from t2t_lite.decoding.command.text_files import json_text
from t2t_lite.decoding.hypothesis import Hypothesis
from t2t_lite.decoding.sentence_parts import is_natural, splits_sentences, translate_parts, unbroken, whole_sentences
from t2t_lite.decoding.texts import prefix_ids, valid_unicode
from t2t_lite.errors import UserError, counted
from t2t_lite.evaluation.tokenizations import target_language
from t2t_lite.settings.ranges import Range, typed_value

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


class _Line(NamedTuple):
    """A line in parts, what was read of each, whether it is too long for one, and the ids its output begins with."""

    text: str
    parts: list
    sources: list
    is_long: bool
    prefix: list


class LineTranslator(Lines):
    """Translates lists of lines with one set of settings.

    If a line was split, the k-th hypothesis joins the k-th ones of all parts (or the last one of a part that has
    fewer), and its score is the sum of theirs.

    Args:
        translator: Translator, or an object that has its `read`, `translate`, `translate_by_risk`, `encoders`,
            `problem`, `hparams`, `max_input_length`, `checked_length`, `searcher` and `run`.
        settings, name, on_error, as_json: see `Lines`; with `as_json` hypotheses get token scores.
        long_input: see `Lines`. None: split, but truncate if `max_input_size` is set, as in tensor2tensor, or if the
            problem's texts are not natural language.
        split_sentences: one of `SPLIT_SENTENCES`, as of `Translator.translate`; None: "auto", where long lines are
            split, else "never".
        utility: "chrf" or "bleu": samples num_samples outputs and sorts them by risk. None: no minimum Bayes risk.
        tokenize: the tokenization for the utility "bleu", see `Translator.translate_by_risk`.
        alignments: bool, whether lines get word alignments.
        told: names of tellers, whose texts lines get.
    """

    def __init__(
        self,
        translator,
        settings,
        name,
        *,
        long_input=None,
        on_error=None,
        as_json=False,
        split_sentences=None,
        utility=None,
        tokenize=None,
        alignments=False,
        told=(),
    ):
        given = settings.max_input_size != -1
        long_input = long_input or ("truncate" if given or not is_natural(translator.problem) else "split")
        limit = translator.checked_length(settings.max_input_size if given else None, "max_input_size")
        if long_input == "split" and not given:  # training had no longer sentences
            limit = min(limit, translator.hparams.max_length or limit)
        super().__init__(translator, settings, name, limit, long_input, on_error, as_json)
        split_sentences = split_sentences or ("auto" if long_input == "split" else "never")
        config = translator.run and translator.run.config
        self._splits_sentences = splits_sentences(split_sentences, translator.problem, config)
        self._utility, self._tokenize = utility, tokenize
        self._options = settings.search_options(mbr=bool(utility))
        self._alignments = alignments
        asked = {
            "return_token_scores": as_json,
            "return_attention": alignments,
            "replace_unknown": settings.replace_unknown,
        }
        self._asked = {name: True for name, is_asked in asked.items() if is_asked} | {f"return_{n}": True for n in told}
        self._language = target_language(translator.problem)

    def read(self, line, prefix=""):
        """See `Lines`."""
        read = functools.cache(lambda text: self.answerer.read(text, self.limit))

        def length(text):  # of a very long one some length over the limit
            return len(read(text).ids) + 1

        is_long = length(line) > self.limit
        if is_long and self.long_input == "refuse":
            count = f"{length(line):,} pieces, more" if length(line) <= 2 * self.limit else "more pieces"
            raise UserError(f"{count} than {self.limit:,}. Split it, or --long_input=split.")
        parts = whole_sentences(line, self.answerer.problem) if self._splits_sentences else [line]
        if is_long and self.long_input == "split":
            parts = unbroken(split_text(line, length, self.limit), line, self.answerer.problem)
        begin = []
        if prefix and read(parts[0]).ids:
            longest = self.answerer.searcher.longest_output(min(length(parts[0]), self.limit), self._options)
            begin = prefix_ids(self.answerer.encoders["targets"], read(parts[0]).target(prefix), longest)
        return _Line(line, parts, list(map(read, parts)), is_long, begin)

    def answers(self, readings, on_progress=None):
        """See `Lines`."""
        prefixes = [line.prefix for line in readings] if any(line.prefix for line in readings) else None
        translate = functools.partial(self._translate, [source for line in readings for source in line.sources])
        texts, parts = [line.text for line in readings], [line.parts for line in readings]
        found = translate_parts(translate, texts, parts, self._language, prefixes, on_progress)
        return list(map(self._answered, readings, found))

    def read_target(self, line, _):
        """See `Lines`."""
        return self.answerer.pair_ids(*line.split("\t"))

    def scores(self, readings):
        """See `Lines`."""
        return self.answerer.score_ids(readings)

    def _translate(self, sources, _, prefixes, on_progress):
        """Returns the Translation of each `SourceText`."""
        arguments = {"max_input_length": self.limit, "on_progress": on_progress, **self._asked}
        if prefixes:
            arguments["prefixes"] = prefixes
        arguments |= vars(self._options) | {"compile": self.compile}
        if not self._utility:
            return self.answerer.translate(sources, **arguments)
        count = self.settings.mbr_samples
        arguments |= {"utility": self._utility, "num_samples": count, "tokenize": self._tokenize}
        found = self.answerer.translate_by_risk(sources, **arguments)
        best = max(self.settings.n_best, 1)
        return [dataclasses.replace(one, hypotheses=one.hypotheses[:best]) for one in found]

    def _answered(self, line, found):
        best = found.hypotheses[0]
        beside = {name: registry.teller(name).text(value) for name, value in best.told.items()}
        if self._alignments:
            spans = found.source_spans or [], best.spans or []
            beside["alignment"] = pharaoh(word_alignment(line.text, spans[0], best.text, spans[1], best.attention))
        return LineAnswer.of_output(found, len(line.parts), line.is_long, beside)


class LineGenerator(Lines):
    """Continues lists of lines with one set of settings. An empty line is an empty prompt.

    Args:
        generator: Generator, or an object that has its `generate`, `score`, `encode` and `max_length`.
        settings: DecodeHParams; extra_length is the most ids of a continuation, max_input_size of a prompt.
        name, on_error, as_json: see `Lines`; with `as_json` hypotheses get token scores.
        long_input: "refuse" lines over the limit, or "truncate" them: only their last ids are read. None: truncate if
            `max_input_size` is set.
    """

    cut = "read only from its end, being longer than"
    title = "generating"

    def __init__(self, generator, settings, name, *, long_input=None, on_error=None, as_json=False):
        if long_input == "split":
            raise UserError("--long_input=split: prompts are not split. truncate reads only the end of long ones.")
        if settings.replace_unknown:
            raise UserError("replace_unknown: only of translations. Leave it out.")
        limit = None if generator.max_length is None else generator.max_length - 1
        given = settings.max_input_size != -1
        if given:
            limit = typed_value("max_input_size", settings.max_input_size, int, Range(1, limit))
        long_input = long_input or ("truncate" if given else "refuse")
        super().__init__(generator, settings, name, limit, long_input, on_error, as_json)
        self._options = settings.search_options()

    def read(self, line, prefix=""):
        """See `Lines`."""
        longest = None if self.long_input == "truncate" else self.limit
        return self._encoded(line, longest, "Shorten it, or read only its end by --long_input=truncate.")

    def answers(self, readings, on_progress=None):
        """See `Lines`."""
        options = {"return_token_scores": self.as_json, "on_progress": on_progress, **self._arguments()}
        return list(map(LineAnswer.of_output, self.answerer.generate(readings, **options)))

    def stream(self, line):
        """See `Lines`."""
        if self._options.n_best != 1 or not (self._options.sampling or self._options.beam_size == 1):
            return None
        (ids,) = self.readings([line])
        return iter(()) if ids is None else self.answerer.stream(ids, **self._arguments())

    def read_target(self, line, _):
        """See `Lines`."""
        return self._encoded(line, self.answerer.max_length, "Split it.")

    def scores(self, readings):
        """See `Lines`."""
        return self.answerer.score(readings)

    def _encoded(self, line, longest, advice):
        ids = self.answerer.encode(valid_unicode(line)) if isinstance(line, str) else line  # ids: `Problem.readers`
        if len(ids) > (longest or len(ids)):
            raise UserError(f"{len(ids):,} pieces, more than {longest:,}. {advice}")
        return ids

    def _arguments(self):
        options = vars(self._options) | {"compile": self.compile, "max_new_tokens": self._options.extra_length}
        del options["extra_length"]
        return options | {"max_prompt_length": self.limit if self.long_input == "truncate" else None}


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

"""Answers lines of text with a trained model: reads the lines, answers them in batches, and formats the outputs."""

import dataclasses
import functools

from t2t_lite import registry
from t2t_lite.corpora.plain_text import as_field, report
from t2t_lite.decoding.alignment import pharaoh, word_alignment
from t2t_lite.decoding.command import text_files
from t2t_lite.decoding.generator import ScoredReader
from t2t_lite.decoding.hypothesis import Hypothesis
from t2t_lite.decoding.sentence_parts import is_natural
from t2t_lite.decoding.texts import valid_unicode
from t2t_lite.errors import LOGGER, UserError, counted, shown
from t2t_lite.settings.ranges import NEW_TOKENS, typed_value

_MANY = 10  # number of line numbers that a message lists at most
_SCORED = 16  # most lines scored at a time, since the logits of all their positions are in memory
_N_BEST = 5  # default number of predictions that an encoder writes per line


@dataclasses.dataclass(frozen=True)
class LineAnswer:
    """The answer to one line.

    Attributes:
        answer: `Translation`, `Generation`, or a result of `Predictor.predict` or `fill_mask`. None for a skipped line,
            and for a blank line if a Predictor answers.
        truncated: bool, whether part of the line was dropped.
        parts: int, the number of parts into which the line was split, possibly 0.
        tokens: int, the number of ids of the output, EOS included; for predictions, the number of ids that were read.
        is_long: bool, whether the line was split or truncated because it is longer than the limit.
        beside: {name: str}, the line's text in additional output files. For "alignment", this text has pairs such as
            "0-0 1-2"; each pair is a word in the line and a word in the first hypothesis, counted from 0. For a
            `Teller`, the text is the result of its method `text` for the first hypothesis.
    """

    answer: object = None
    truncated: bool = False
    parts: int = 0
    tokens: int = 0
    is_long: bool = False
    beside: dict = dataclasses.field(default_factory=dict)

    is_short = property(lambda self: getattr(self.answer, "is_short", False))
    lost = property(lambda self: next(filter(None, (getattr(one, "lost", []) for one in self.hypotheses)), []))
    hypotheses = property(lambda self: getattr(self.answer, "hypotheses", None) or (Hypothesis(),))
    text = property(lambda self: self.hypotheses[0].text)


class Lines:
    """Answers lines of text with fixed settings. Each subclass defines how lines are read, answered and formatted.

    Args:
        answerer: Translator, Generator or Predictor, or a TranslatorPool of them.
        settings: DecodeHParams.
        name: str, the name of the lines' source for messages, such as a path.
        long_input: one of `LONG_INPUTS`, what to do with lines that have more ids than `max_input_size`, or None for
            the default of `Answerer.reader`.
        on_error: function that takes an error message for each line that cannot be answered. If the function does not
            raise an error, the line is skipped. If `on_error` is None, an error is raised.
        as_json: bool, whether outputs are lines of JSON, for which hypotheses get token scores.
        **reader_options: additional arguments of `Answerer.reader`.

    Attributes:
        limit: int, the number of ids above which a line is split or truncated, or None.
        compile: see `SearchOptions`.
    """

    cut = "cut off after"  # the beginning of the warning about truncated lines; the limit follows
    title = "translating"
    scorer = "score_ids"  # the answerer's method that scores the results of `read_target`

    def __init__(self, answerer, settings, name, *, long_input=None, on_error=None, as_json=False, **reader_options):
        self.answerer, self.settings, self.name = answerer, settings, name
        longest = None if settings.max_input_size == -1 else settings.max_input_size
        self.reader = answerer.reader(longest, long_input=long_input, as_flags=True, **reader_options)
        self.limit, self.long_input = self.reader.limit, self.reader.long_input
        self.as_json = as_json
        self.compile = None
        self._on_error = on_error

    def read(self, line, prefix=""):
        """Reads a line for `Answerer.answer`. Returns None for a blank line that needs no answer.

        Args:
            line: an item of the list that a reader of files returns, not None.
            prefix: str, the forced beginning of the line's output.

        Raises:
            UserError: the line cannot be read, or is refused as too long.
        """
        return self.reader.read(line)

    def answer_options(self, readings):
        """Returns the options with which `Answerer.answer` is called for these readings."""
        raise NotImplementedError

    def answered(self, reading, answer):
        """Makes a LineAnswer from a reading and its answer, a `Translation` or a `Generation`."""
        return LineAnswer(answer, answer.truncated, 1, len(answer.hypotheses[0].ids) + 1 if answer.text else 0)

    def stream(self, line):
        """Returns an iterator of the parts of a line's output, or None if the output cannot be streamed."""

    def readings(self, lines, first=1, prefixes=None, read=None):
        """Yields each line's reading, or None if the line is skipped, blank or reported to `on_error`.

        Args:
            lines: list of lines, in which None stands for a line to skip.
            first: int, the number of the first line, for messages.
            prefixes: None, or one str per line.
            read: function of a line and its prefix; None means `self.read`.
        """
        pairs = zip(lines, prefixes or [""] * len(lines), strict=True)
        for number, (line, prefix) in enumerate(pairs, first):
            reading = None
            try:
                if line is not None:
                    reading = (read or self.read)(line, prefix)
            except UserError as error:
                report(f"{self.name}, line {number}: {error}", self._on_error)
            yield reading

    def answer(self, lines, first=1, prefixes=None, on_progress=None):
        """Returns the LineAnswer of each line. Lines that cannot be read are handled as in `readings`.

        Args:
            lines, first, prefixes: see `readings`.
            on_progress: None, or a function called with the number of finished lines.
        """

        def answers(some):
            answers_of_some = self.answerer.answer(some, on_progress=on_progress, **self.answer_options(some))
            return map(self.answered, some, answers_of_some)

        return applied(answers, self.readings(lines, first, prefixes), LineAnswer())

    def score(self, lines, first=1):
        """Returns the TargetScore of each line (see `read_target`), or None for a line that cannot be scored."""

        def scores(some):
            return getattr(self.answerer, self.scorer)(some, batch_size=min(self.settings.search.batch_size, _SCORED))

        return applied(scores, self.readings(lines, first, read=self.read_target), None)

    def check_lengths(self, lines, first=1):
        """Returns the lines, with None for each line that is refused as too long; reports these lines to `on_error`."""
        if self.long_input != "refuse":
            return lines
        every = zip(self.readings(lines, first), lines, strict=True)
        return [None if reading is None and not is_blank(line) else line for reading, line in every]

    def outputs(self, lines, first=1, prefixes=None, on_progress=None, inputs=None):
        """Answers lines, and warns about lines that were truncated or split.

        Args:
            lines, first, prefixes, on_progress: see `answer`.
            inputs: list of the original lines, if `lines` has None for refused lines. Default: `lines`.

        Returns:
            (output lines, a list of str without line ends; list of LineAnswer).
        """
        answers = self.answer(lines, first, prefixes, on_progress)
        numbered = list(enumerate(answers, first))
        split = [
            f"{number} ({answer.parts} parts)" for number, answer in numbered if answer.is_long and answer.parts > 1
        ]
        self.warn_of_long(self.cut, [number for number, answer in numbered if answer.truncated])
        self.warn_of_long("split, because it is longer than", split)
        if count := sum(answer.parts > 1 and not answer.is_long for answer in answers):
            LOGGER.info(
                f"{self.name}: {counted(count, 'line')} had several sentences, which were translated one by one "
                "(--split_sentences=never translates lines as a whole)"
            )
        lost = [f"{number} ({', '.join(answer.lost)})" for number, answer in numbered if answer.lost]
        self.warn("protected texts that the model did not write were appended to the output", lost)
        short = "the output has less than a third as many pieces as the line, so it may omit some of the line"
        self.warn(short, [number for number, answer in numbered if answer.is_short])
        texts = []
        for (number, answer), line in zip(numbered, lines if inputs is None else inputs, strict=True):
            texts.append(self.output(number, line, answer))
            if self.settings.log_results:
                LOGGER.info(f"INPUT: {as_field(str(line or ''))}\nOUTPUT: {texts[-1]}")
        return texts, answers

    def output(self, number, line, answered):
        """Returns the output of a line, without a line end.

        Args:
            number: int, the number of the line, from 1.
            line: the line, or None if it is not UTF-8.
            answered: LineAnswer.
        """
        if self.as_json:
            describe = functools.partial(text_files.described, has_ids=self.settings.identity_output)
            return text_files.json_line(number, line, answered, describe)
        return text_files.output_line(answered, self.settings)

    def warn(self, event, numbers):
        """Logs a warning about the lines with the given numbers, if any."""
        if numbers:
            more = f", … ({len(numbers):,} lines)" if len(numbers) > _MANY else ""
            LOGGER.warning(f"{self.name}: {event}: line {', '.join(map(str, numbers[:_MANY]))}{more}")

    def warn_of_long(self, treatment, numbers):
        """Logs a warning that says how lines that were too long were treated, if there were any."""
        if numbers:
            self.warn(f"{treatment} {self.limit:,} pieces", numbers)


def applied(function, readings, nothing):
    """Calls a function with the readings that are not None. In its results, `nothing` stands for each None."""
    readings = list(readings)
    results = iter(function([one for one in readings if one is not None]))
    return [nothing if one is None else next(results) for one in readings]


def is_blank(line):
    """Returns whether a line (a str, a list of words, a dict or None) is empty or consists only of spaces."""
    return not (line.strip() if isinstance(line, str) else line)


class LineTranslator(Lines):
    """Translates lines. Long lines, and lines with several sentences, are translated in parts; blank lines stay blank.

    Args:
        translator: Translator, or an object with the attributes `reader`, `answer`, `encoders`, `problem` and
            `searcher`.
        settings, name, **options: see `Lines`.
        long_input: see `Lines`. By default, lines are truncated if `max_input_size` is set (as in tensor2tensor) or if
            the problem's texts are not natural language. Otherwise they are split.
        split_sentences: one of `SPLIT_SENTENCES`, see `Translator.translate`. Default: "auto" if long lines are split,
            or else "never".
        utility: "chrf" or "bleu" for minimum Bayes risk decoding, which samples num_samples outputs and sorts them by
            risk. If None, outputs are found by search.
        tokenize: the tokenization for the utility "bleu", see `Translator.translate_by_risk`.
        alignments: bool, whether to return word alignments.
        told: names of the `Teller`s whose values are returned as text.
    """

    def __init__(self, translator, settings, name, *, long_input=None, split_sentences=None, utility=None,
                 tokenize=None, alignments=False, told=(), **options):  # fmt: skip
        truncates = settings.max_input_size != -1 or not is_natural(translator.problem)
        options["long_input"] = long_input or ("truncate" if truncates else "split")
        splits = "auto" if options["long_input"] == "split" else "never"
        super().__init__(translator, settings, name, split_sentences=split_sentences or splits, **options)
        self._options, self._alignments = settings.search_options(mbr=bool(utility)), alignments
        risk = {"utility": utility, "num_samples": settings.mbr_samples, "tokenize": tokenize} if utility else {}
        extra = {"return_token_scores": self.as_json, "return_attention": alignments}
        extra |= {"replace_unknown": settings.replace_unknown} | {f"return_{name}": True for name in told}
        self._answer_options = {name: value for name, value in extra.items() if value} | vars(self._options) | risk
        self._most = max(settings.n_best, 1) if utility else None

    def read(self, line, prefix=""):
        """See `Lines`."""
        reading = self.reader.read(line)
        if not prefix:
            return reading
        return reading._replace(prefix=self.answerer.prefix_of(prefix, reading, self.limit, self._options))

    def answer_options(self, readings):
        """See `Lines`."""
        prefixes = [[*line.prefix] for line in readings]
        forced = {"prefixes": prefixes} if any(prefixes) else {}
        return self._answer_options | forced | {"max_input_length": self.limit, "compile": self.compile}

    def answered(self, reading, translation):
        """See `Lines`."""
        best = translation.hypotheses[0]
        beside = {name: registry.teller(name).text(value) for name, value in best.told.items()}
        if self._alignments:
            spans = translation.source_spans or [], best.spans or []
            beside["alignment"] = pharaoh(word_alignment(reading.text, spans[0], best.text, spans[1], best.attention))
        answered = super().answered(
            reading, dataclasses.replace(translation, hypotheses=translation.hypotheses[: self._most])
        )
        return dataclasses.replace(answered, parts=len(reading.parts), is_long=reading.is_long, beside=beside)

    def read_target(self, line, _):
        """Reads a line with an input and its target for `scores`. Raises `UserError` if it is too long."""
        return self.answerer.pair_ids(*line.split("\t"))


class LineGenerator(Lines):
    """Continues lines, which are prompts and may be empty. A line may also be a list of ids (`Problem.readers`).

    Args:
        generator: Generator.
        settings: DecodeHParams; extra_length is the maximum length of a continuation in ids, and max_input_size is the
            maximum length of a prompt.
        name, **options: see `Lines`.
    """

    cut = "only its end was read, because it is longer than"
    title = "generating"
    scorer = "score"

    def __init__(self, generator, settings, name, **options):
        super().__init__(generator, settings, name, **options)
        self._options = settings.search_options()
        typed_value("extra_length", self._options.extra_length, int, NEW_TOKENS)  # raises under the name typed here

    def answer_options(self, readings):
        """See `Lines`."""
        return {"return_token_scores": self.as_json, **self._arguments()}

    def stream(self, line):
        """See `Lines`."""
        if self._options.n_best != 1 or not (self._options.sampling or self._options.beam_size == 1):
            return None
        (prompt,) = self.readings([line])
        return iter(()) if prompt is None else self.answerer.stream(prompt, **self._arguments())

    def read_target(self, line, _):
        """Reads a line for `scores`. Raises `UserError` if it is too long."""
        return ScoredReader(self.answerer).read(line)

    def _arguments(self):
        options = vars(self._options) | {"compile": self.compile, "max_new_tokens": self._options.extra_length}
        del options["extra_length"]
        return options


class LinePredictor(Lines):
    """Predicts labels, numbers, tags, answers or masked words for lines.

    A line is a str (in which a tab separates the texts of a pair), a list of words, or a dict with an "id", a
    "question" and its "context". The outputs for dicts form one JSON object, {id: answer}.

    Args:
        predictor: Predictor.
        settings: DecodeHParams; n_best, batch_size and max_input_size are used.
        name, **options: see `Lines`.
    """

    title = "predicting"

    def __init__(self, predictor, settings, name, **options):
        super().__init__(predictor, settings, name, **options)
        self._task = predictor.task
        self._n_best = settings.n_best or _N_BEST
        self._ends = ()  # numbers of the first and the last output line
        self._has_warned = False

    def read(self, line, prefix=""):
        """See `Lines`."""
        return None if is_blank(line) and not self.reader.whole else self.reader.read(self._texts(line))

    def answer_options(self, readings):
        """See `Lines`."""
        return {"batch_size": self.settings.search.batch_size, "max_length": self.limit, self._task.count: self._n_best}

    def answered(self, reading, answer):
        """See `Lines`."""
        parts = getattr(answer, "parts", 1)
        return LineAnswer(answer, reading.truncated, parts, len(reading), is_long=parts > 1)

    def check_lengths(self, lines, first=1):
        """See `Lines`. Also stores which lines are the first and the last, since their format may differ."""
        self._ends = first, first + len(lines) - 1
        return super().check_lengths(lines, first)

    def output(self, number, line, predicted):
        """See `Lines`."""
        answer = predicted.answer
        text = None if self.as_json else "" if answer is None else self._task.as_line(answer)
        if text is None:
            fields = {"skipped": True} if answer is None else text_files.rounded(self._task.as_json(answer))
            return text_files.json_text({"line": number, **_input_fields(line, answer), **fields})
        if isinstance(line, dict):
            text = f"{text_files.json_text(line['id'])}: {text_files.json_text(answer.text if answer else '')}"
            return ("{" if number == self._ends[0] else " ") + text + ("}" if number == self._ends[1] else ",")
        return text

    def _texts(self, line):
        """Returns the texts of a line for `Predictor.read`."""
        if not isinstance(line, str):
            texts = [line[name] for name in self._task.inputs] if isinstance(line, dict) else line
            return tuple(map(valid_unicode, texts))
        line, count = valid_unicode(line), self.answerer.num_texts
        if count == 1:
            if not self._has_warned and self._task.is_labelled(line):
                self._has_warned = True
                LOGGER.warning(f"{self.name}: the label in {shown(line)} is read as text. Expected texts alone.")
            return line
        columns = tuple(line.split("\t"))
        if len(columns) != count:
            raise UserError(f"{counted(len(columns), 'column')}. Expected {count} texts separated by a tab.")
        return columns


def _input_fields(line, answer):
    """Returns the JSON fields that show an input (None if not UTF-8), or {} if the answer itself lists its words."""
    if isinstance(line, dict):
        return {"id": line["id"]}
    return {} if isinstance(line, list) and answer is not None else {"input": line}

"""Continues and scores lines with a language model, as `line_translation` translates them."""

from t2t_lite.decoding.jobs.line_translation import LineTranslation
from t2t_lite.decoding.texts import valid_unicode
from t2t_lite.errors import UserError
from t2t_lite.ranges import Range, typed_value


class LineGenerator:
    """Continues lists of lines with one set of settings. An empty line is an empty prompt.

    Args:
        generator: Generator, or an object that has its `generate`, `score`, `encode` and `max_length`.
        settings: DecodeHParams; extra_length is the most ids of a continuation, max_input_size of a prompt.
        name: str, where the lines come from, for messages: a file, standard input.
        long_input: "refuse" lines over the limit, or "truncate" them: only their last ids are read. None: truncate if
            `max_input_size` is set.
        on_error: function that gets a message for each line that cannot be continued; it raises, or the line is
            skipped.
        token_scores: bool, whether hypotheses get token scores.

    Attributes:
        limit: int, the most ids of a prompt, or None.
        compile: as in `SearchOptions`.
    """

    cut = "read only from its end, being longer than"

    def __init__(self, generator, settings, name, *, long_input, on_error, token_scores=False):
        if long_input == "split":
            raise UserError("--long_input=split: prompts are not split. truncate reads only the end of long ones.")
        if settings.replace_unknown:
            raise UserError("replace_unknown: only of translations. Leave it out.")
        self.generator = generator
        self.name = name
        self.limit = None if generator.max_length is None else generator.max_length - 1
        given = settings.max_input_size != -1
        if given:
            self.limit = typed_value("max_input_size", settings.max_input_size, int, Range(1, self.limit))
        self.compile = None
        self._truncates = (long_input or ("truncate" if given else "refuse")) == "truncate"
        self._options = settings.search_options()
        self._token_scores = token_scores
        self._on_error = on_error

    def translate(self, lines, first=1, prefixes=None, on_progress=None):
        """Continues lines.

        Args:
            lines: list of str; None is a line to skip.
            first: int, the number of the first one, for messages.
            prefixes: None.
            on_progress: None, or a function of the number of lines just continued.

        Returns:
            list of `LineTranslation`.

        Raises:
            UserError: raised by `on_error`, or an option is out of range.
        """
        every = self._prompts(lines, first)
        found = iter(
            self.generator.generate(
                [ids for ids in every if ids is not None],
                return_token_scores=self._token_scores,
                on_progress=on_progress,
                **self._arguments(),
            )
        )
        return [
            LineTranslation(parts=0) if ids is None else LineTranslation((one := next(found)).hypotheses, one.truncated)
            for ids in every
        ]

    def check_lengths(self, lines, first=1):
        """Reports lines that would be refused to `on_error`; returns the lines, with None in place of those."""
        if self.limit is None or self._truncates:
            return lines
        every = self._prompts(lines, first)
        return [None if ids is None else line for ids, line in zip(every, lines, strict=True)]

    def stream(self, line):
        """Returns an iterator of the parts of a line's continuation, or None if its end decides about all of it."""
        if self._options.n_best != 1 or not (self._options.sampling or self._options.beam_size == 1):
            return None
        (ids,) = self._prompts([line], 1)
        return iter(()) if ids is None else self.generator.stream(ids, **self._arguments())

    def score(self, lines, first=1):
        """Returns for each line its TargetScore, or None if it is to be skipped or cannot be scored."""
        every = self._ids(lines, first, self.generator.max_length, "Split it.")
        found = iter(self.generator.score([ids for ids in every if ids is not None]))
        return [None if ids is None else next(found) for ids in every]

    def _arguments(self):
        options = vars(self._options) | {"compile": self.compile, "max_new_tokens": self._options.extra_length}
        del options["extra_length"]
        return options | {"max_prompt_length": self.limit if self._truncates else None}

    def _prompts(self, lines, first):
        advice = "Shorten it, or read only its end by --long_input=truncate."
        return self._ids(lines, first, None if self._truncates else self.limit, advice)

    def _ids(self, lines, first, longest, advice):
        """Returns the ids of each line; None for one that is to be skipped, or of which `on_error` was told."""
        every = []
        for number, line in enumerate(lines, first):
            ids = None
            try:
                if line is not None:
                    ids = self.generator.encode(valid_unicode(line))
                    if len(ids) > (longest or len(ids)):
                        raise UserError(f"{len(ids):,} pieces, more than {longest:,}. {advice}")
            except UserError as error:
                ids = self._on_error(f"{self.name}, line {number}: {error}")
            every.append(ids)
        return every

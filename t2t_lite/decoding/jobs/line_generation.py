"""Continues and scores lines with a language model."""

from t2t_lite.decoding.jobs.lines import LineAnswer, Lines
from t2t_lite.decoding.texts import valid_unicode
from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import Range, typed_value


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

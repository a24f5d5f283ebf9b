"""Continues texts by t2t-server's language model, whose parts are printed as they come."""

from t2t_lite.cli import console
from t2t_lite.corpora.plain_text import as_field
from t2t_lite.decoding.command import flag_checks, text_files
from t2t_lite.decoding.command.decode_hparams import DecodeHParams
from t2t_lite.errors import UserError
from t2t_lite.extras.query_client.line_queries import interact
from t2t_lite.settings.config import parse_assignments

# Names of --decode_hparams -> those of a request.
_OF_SAMPLES = {
    "sampling_temp": "temperature",
    "sampling_keep_top_k": "top_k",
    "sampling_keep_top_p": "top_p",
    "sampling_seed": "seed",
}
_OF_ALL = {
    "extra_length": "max_tokens",
    "stop": "stop",
    "no_repeat_ngram_size": "no_repeat_ngram_size",
    "repetition_penalty": "repetition_penalty",
}
_SETTINGS = ("sampling_method", *_OF_SAMPLES, *_OF_ALL)


class StreamedQueries:
    """Sends prompts to a server and prints their continuations.

    Args:
        client: result of `serving.client.open_client`, over REST.
        decode_hparams: str, `name=value,…` of sampling, extra_length, stop and the rules against repetition; what is
            left out is as in the export.

    Raises:
        UserError: a setting is none of these, or its value is out of range.
    """

    def __init__(self, client, decode_hparams=""):
        settings = DecodeHParams.parse(decode_hparams)
        assigned = parse_assignments(decode_hparams, "--decode_hparams")
        if others := sorted({*assigned} - {*_SETTINGS}):
            raise UserError(f"--decode_hparams: {', '.join(others)}: not of a stream. Expected {', '.join(_SETTINGS)}.")
        flag_checks.check(flag_checks.Asked(settings=settings, text=decode_hparams))
        names = {name: key for name, key in (_OF_ALL | _OF_SAMPLES).items() if name in assigned}
        if "sampling_method" in assigned:
            names["sampling_temp"] = "temperature"  # which alone makes it a sample
        search = vars(settings.search) | {"max_tokens": settings.search.extra_length}
        self._options = {key: search[key] for key in names.values()}
        if "sampling_method" in assigned and not settings.search.sampling:
            self._options["temperature"] = 0  # greedy
        self._client = client

    def run(self, text=None):
        """Continues a text, or what is typed, or the lines of standard input."""
        if text is not None:
            return self.show(text)
        return interact(self.show) if console.is_terminal() else self.answer_stdin()

    def show(self, text):
        """Prints the continuation of a text, as it is."""
        self._print(text, lambda part: part)

    def answer_stdin(self):
        """Prints a line for each line of standard input; control characters and line ends become spaces."""
        for _, lines in text_files.stdin_lines():
            for line in lines:
                self._print(line, as_field)

    def _print(self, text, written):
        for part in self._client.stream(text, **self._options):
            print(written(part), end="", flush=True)
        print(flush=True)

"""Sends lines to a server; they come from a file, from standard input, or from a user who types them.

Each translation is written as one line. For an encoder, or if a signature is chosen by name, each output line is
the server's answer as JSON. If the model reads several texts, such as a question and a context, tabs separate them in
an input line. Continuations from a language model are printed part by part, as they arrive.
"""

import sys

from t2t_lite.cli import console
from t2t_lite.cli.console import Progress
from t2t_lite.corpora.plain_text import LONGEST_LINE, as_field
from t2t_lite.decoding.command import flag_checks, text_files
from t2t_lite.decoding.command.decode_hparams import DecodeHParams
from t2t_lite.decoding.command.text_files import json_text
from t2t_lite.errors import LOGGER, Failure, UserError, counted
from t2t_lite.extras.query_client.addresses import ServerError
from t2t_lite.extras.query_client.client import NoTranslations
from t2t_lite.settings.config import parse_assignments
from t2t_lite.settings.ranges import BEAM_SIZE

# {decode hparam: argument of `Client.translate`}
_SEARCH = {"alpha": "alpha", "sampling_seed": "seed", "extra_length": "extra_length"}
_PAIRS = (("first", "second"), ("question", "context"))  # the inputs of encoders that read two texts
_COLUMNS = (*_PAIRS, ("inputs", "targets"))  # model inputs in the order of a line's columns
_SETTINGS = (*_SEARCH, "n_best", "return_beams", "write_beam_scores")
# {decode hparam: field of a completion request}
_STREAM = {
    "sampling_temp": "temperature",
    "sampling_keep_top_k": "top_k",
    "sampling_keep_top_p": "top_p",
    "sampling_seed": "seed",
    "extra_length": "max_tokens",
    "stop": "stop",
    "no_repeat_ngram_size": "no_repeat_ngram_size",
    "repetition_penalty": "repetition_penalty",
}
_STREAM_SETTINGS = ("sampling_method", *_STREAM)


def interact(show):
    """Calls `show` with each typed line until q or the end of input, and prints errors."""
    for line in console.typed_lines(">> ", LONGEST_LINE):
        try:
            show(line)
        except (UserError, Failure) as error:
            print(error, file=sys.stderr)


class LineQueries:
    """Sends lines to a server, and writes an output line for each input line.

    Args:
        client: Client, from `query_client.client.open_client`.
        decode_hparams: str, `name=value,…`. Supported names: write_beam_scores; n_best or return_beams; alpha (or
            sampling_seed, if the export samples) together with extra_length.
        batch_size: int, number of sentences per request.
        split_sentences: see `Client.translate`.
        as_json: bool, whether output lines are JSON objects, as t2t-decoder writes them.
        signature: str, the signature to call, whose outputs are written as JSON. If None, the settings determine the
            signature.

    Raises:
        UserError: a setting is fixed in the export, contradicts another setting, or is out of range.
    """

    def __init__(
        self, client, decode_hparams="", batch_size=32, split_sentences=None, *, as_json=False, signature=None
    ):
        assigned = set(parse_assignments(decode_hparams, "--decode_hparams"))
        # n_best is limited by the export's beam_size, which is not known here.
        beam = f",beam_size={BEAM_SIZE.most}" if "n_best" in assigned and "beam_size" not in assigned else ""
        settings = DecodeHParams.parse(decode_hparams + beam)
        if fixed := sorted(assigned - set(_SETTINGS)):
            raise UserError(
                f"--decode_hparams: {', '.join(fixed)}: fixed in the export. Expected {', '.join(_SETTINGS)}. Other "
                "options are set with t2t-exporter."
            )
        if signature and (assigned or as_json or split_sentences):
            raise UserError(
                f"--signature_name={signature} writes all outputs as JSON. Remove --decode_hparams, --n_best_format "
                "and --split_sentences."
            )
        self._is_n_best = settings.n_best > 0 or settings.return_beams
        assigned &= {*_SEARCH}
        if assigned and self._is_n_best:
            raise UserError(
                f"--decode_hparams: {', '.join(sorted(assigned))}: fixed in the export for n_best and return_beams. "
                "Remove these options, or n_best and return_beams."
            )
        if assigned and (len(assigned) != 2 or "extra_length" not in assigned):
            raise UserError(
                f"--decode_hparams: {', '.join(sorted(assigned))}: expected both alpha and extra_length or, for an "
                "export that samples, both sampling_seed and extra_length."
            )
        self._client = client
        self._options = {"batch_size": batch_size, "split_sentences": split_sentences}
        self._options |= {key: getattr(settings.search, key) for name, key in _SEARCH.items() if name in assigned}
        if self._is_n_best:
            self._options["count"] = settings.n_best or None
        self._settings, self._as_json, self._signature = settings, as_json, signature
        self._columns = None  # names of an encoder's inputs; None until the model is known to be an encoder

    def show(self, text):
        """Prints a text, and its translations with their scores."""
        (answer,) = self._answers([text])
        print(f"Input: {as_field(text)}")
        if self._as_json or isinstance(answer, dict):
            print(f"Output: {self._output(1, text, answer)}", flush=True)
        else:
            for one in answer.hypotheses:
                print(f"Output (score {one.score:.3f}): {as_field(one.text)}", flush=True)

    def translate_file(self, path, output):
        """Translates the lines of a file. `output` is a path, or - for standard output."""
        lines = text_files.input_lines(path)
        with text_files.output_file(output) as write:
            progress = Progress("answering", "lines", len(lines))
            write(self._lines(lines, on_progress=progress.add))
        progress.done()
        if output != "-":
            print(f"written: {output}", file=sys.stderr)

    def translate_stdin(self, output):
        """Translates standard input; answers the available lines before it waits for more."""
        with text_files.output_file(output) as write:
            for first, lines in text_files.stdin_lines():
                write(self._lines(lines, first))

    def _lines(self, lines, first=1, on_progress=None):
        answers = enumerate(self._answers(lines, first, on_progress), first)
        return "".join(f"{self._output(n, line, answer)}\n" for line, (n, answer) in zip(lines, answers, strict=True))

    def _output(self, number, line, answer):
        """Returns the output line (text or JSON, without a line break) for an input line."""
        if isinstance(answer, dict):
            place = {"line": number, "input": line} if self._as_json else {}
            # Outputs are sorted by name, because gRPC returns them in any order.
            return json_text(place | dict(sorted(_unpadded(answer).items())))
        if self._as_json:
            return text_files.json_line(number, line, answer, _described)
        return text_files.output_line(answer, self._settings)

    def _answers(self, texts, first=1, on_progress=None):
        """Returns the answers to lines: a list of `ServedAnswer` or, for an encoder, of dicts {output: value}."""
        if self._signature and self._columns is None:
            self._columns = self._columns_of(self._signature)
        answers = self._translations(texts, on_progress) if self._columns is None else None
        if answers is None:
            options = {"batch_size": self._options["batch_size"], "on_progress": on_progress}
            signature = self._signature or "serving_default"
            answers = self._client.predict(self._inputs(texts, first), signature=signature, **options)
        for number, answer in enumerate(answers, first):
            if answer.get("truncated") if isinstance(answer, dict) else answer.truncated:
                LOGGER.warning(f"line {number}: longer than the export's limit, so it was truncated.")
            if not isinstance(answer, dict) and answer.is_short:
                LOGGER.warning(
                    f"line {number}: the answer is very short, so part of the line may not have been translated. "
                    "--split_sentences=always translates each sentence separately."
                )
        return answers

    def _translations(self, texts, on_progress):
        """Translates lines into a list of `ServedAnswer`; returns None if the model turns out to be an encoder."""
        if self._is_n_best:
            return self._client.n_best(texts, on_progress=on_progress, **self._options)
        try:
            return self._client.translate(texts, on_progress=on_progress, **self._options)
        except NoTranslations:
            self._columns = ("inputs",)
        except ServerError as error:
            candidates = _PAIRS if error.code == "INVALID_ARGUMENT" and "\t" in texts[0] else ()
            self._columns = next((columns for columns in candidates if self._takes(columns, texts[0])), None)
            if self._columns is None:
                raise
        return None

    def _columns_of(self, signature):
        """Returns a signature's inputs in the order of columns. Raises `UserError` if an input is a number."""
        inputs = self._client.check_signature(signature)
        if numbers := sorted(name for name, kind in inputs.items() if kind != "string"):
            raise UserError(
                f"--signature_name={signature}: the signature has numeric inputs: {', '.join(numbers)}. Expected one "
                "with only text inputs; --decode_hparams sends numbers such as alpha."
            )
        return next((columns for columns in _COLUMNS if {*columns} == {*inputs}), tuple(sorted(inputs)))

    def _takes(self, columns, text):
        """Returns whether the model accepts the tab-separated parts of a text as the inputs `columns`."""
        try:
            self._client.predict(dict(zip(columns, ([part] for part in text.split("\t")), strict=False)))
        except ServerError as error:
            if error.code != "INVALID_ARGUMENT":
                raise
            return False
        return True

    def _inputs(self, texts, first):
        """Splits lines into {input: list of str}. Raises `UserError` if a line has the wrong number of columns."""
        if len(self._columns) == 1:
            return {self._columns[0]: texts}
        rows = [text.split("\t") for text in texts]
        for number, row in enumerate(rows, first):
            if len(row) != len(self._columns):
                raise UserError(
                    f"line {number}: {counted(len(row), 'column')}. Expected {' and '.join(self._columns)}, separated "
                    "by a tab."
                )
        return {name: [row[at] for row in rows] for at, name in enumerate(self._columns)}


def _described(hypothesis):
    """Returns the JSON object of a hypothesis, which has fewer fields than t2t-decoder writes."""
    return {"text": hypothesis.text, "score": round(hypothesis.score, 6)}


def _unpadded(answer):
    """Removes the padding ("", 0 and zero vectors) that makes the answers of a request equally long."""
    lists = {name: value for name, value in answer.items() if isinstance(value, list)}
    if isinstance(length := answer.get("lengths"), int):  # outputs of the signatures features and score
        return answer | {name: value[:length] for name, value in lists.items()}
    if "tokens" in lists:  # outputs of the signature "tokens"
        counts = {name: _count(lists[name]) for name in ("tokens", "input_tokens") if name in lists}
        return answer | {name: value[: counts.get(name.replace("ids", "tokens"))] for name, value in lists.items()}
    text_lists = [value for value in lists.values() if _texts(value)]
    if not text_lists:
        return answer
    count, padded = max(map(_count, text_lists)), {*map(len, text_lists)}
    return answer | {name: value[:count] for name, value in lists.items() if len(value) in padded}


def _count(values):
    """Returns the number of items up to the last one that is not blank."""
    return max((at for at, item in enumerate(values, 1) if any(_texts(item))), default=0)


def _texts(value):
    """Returns the texts in a JSON value, at any depth of lists."""
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


class StreamedQueries:
    """Sends prompts to a server and prints the streamed continuations.

    Args:
        client: Client over REST, from `query_client.client.open_client`.
        decode_hparams: str, `name=value,…` for sampling, extra_length, stop, and the rules against repetition. All
            other settings are fixed in the export.

    Raises:
        UserError: a setting is not supported, or a value is out of range.
    """

    def __init__(self, client, decode_hparams=""):
        settings = DecodeHParams.parse(decode_hparams)
        assigned = parse_assignments(decode_hparams, "--decode_hparams")
        if others := sorted({*assigned} - {*_STREAM_SETTINGS}):
            raise UserError(
                f"--decode_hparams: {', '.join(others)}: not available with --stream. Expected "
                f"{', '.join(_STREAM_SETTINGS)}."
            )
        flag_checks.check(flag_checks.DecodeRequest(settings=settings, text=decode_hparams))
        search = vars(settings.search) | {"max_tokens": settings.search.extra_length}
        self._options = {key: search[key] for name, key in _STREAM.items() if name in assigned}
        if "sampling_method" in assigned:  # the server samples if a request has a temperature that is not 0
            self._options["temperature"] = settings.search.temperature if settings.search.sampling else 0
        self._client = client

    def run(self, text=None):
        """Continues `text`; if it is None, continues each typed line or each line of standard input."""
        if text is not None:
            return self.show(text)
        return interact(self.show) if console.is_terminal() else self.answer_stdin()

    def show(self, text):
        """Prints the continuation of a text, including its line breaks."""
        self._print(text, lambda part: part)

    def answer_stdin(self):
        """Prints an output line for each line of standard input; control characters and line breaks become spaces."""
        for _, lines in text_files.stdin_lines():
            for line in lines:
                self._print(line, as_field)

    def _print(self, text, written):
        for part in self._client.stream(text, **self._options):
            print(written(part), end="", flush=True)
        print(flush=True)

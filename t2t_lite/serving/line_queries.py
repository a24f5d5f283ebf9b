"""Translates lines through a server: from a file, from standard input as they arrive, or typed by a user.

For an encoder, a line of output is the JSON of the server's answer. If the encoder reads pairs, or questions and
contexts, a line of input has two texts with a tab between them.
"""

import logging
import sys

from t2t_lite import streams
from t2t_lite.assignments import parse_assignments
from t2t_lite.console import Progress
from t2t_lite.corpora.plain_text import LONGEST_LINE, as_field
from t2t_lite.decoding.jobs import text_files
from t2t_lite.decoding.jobs.decode_hparams import DecodeHParams
from t2t_lite.decoding.jobs.text_files import json_text
from t2t_lite.errors import Failure, UserError, counted
from t2t_lite.serving.client import NoTranslations
from t2t_lite.serving.server_errors import ServerError

_LOGGER = logging.getLogger("t2t_lite")
_OF_THE_SEARCH = {"alpha": "alpha", "sampling_seed": "seed", "extra_length": "extra_length"}  # -> SearchOptions
_PAIRS = (("first", "second"), ("question", "context"))  # inputs of encoders of two texts
_SETTINGS = (*_OF_THE_SEARCH, "write_beam_scores")


class LineQueries:
    """Sends lines to a server and writes a line for each.

    Args:
        client: result of `serving.client.open_client`.
        decode_hparams: str, `name=value,…` of write_beam_scores, and of extra_length with alpha, or with sampling_seed
            if the export samples.
        batch_size: int, sentences per request.
        split_sentences: as for `Client.translate`.

    Raises:
        UserError: a setting is fixed in the export, or a value is out of range.
    """

    def __init__(self, client, decode_hparams="", batch_size=32, split_sentences=None):
        settings = DecodeHParams.parse(decode_hparams)
        assigned = set(parse_assignments(decode_hparams, "--decode_hparams"))
        if fixed := sorted(assigned - set(_SETTINGS)):
            raise UserError(
                f"--decode_hparams: {', '.join(fixed)}: fixed in the export. Expected {', '.join(_SETTINGS)}; "
                "t2t-exporter takes the others."
            )
        assigned &= {*_OF_THE_SEARCH}
        if assigned and (len(assigned) != 2 or "extra_length" not in assigned):
            raise UserError(
                f"--decode_hparams: {', '.join(sorted(assigned))}: expected alpha and extra_length, or, of an export "
                "that samples, sampling_seed and extra_length; the export's own are not known."
            )
        self._client = client
        names = [_OF_THE_SEARCH[name] for name in assigned]
        self._options = {name: getattr(settings.search, name) for name in names} | {"batch_size": batch_size}
        self._options["split_sentences"] = split_sentences
        self._has_scores = settings.write_beam_scores
        self._columns = None  # inputs of the model, once its answers show that it is an encoder

    def show(self, text):
        """Prints a text, its translation and the score."""
        (answer,) = self._answers([text])
        score = f" (score {answer.score:.3f})" if self._columns is None else ""
        print(f"Input: {as_field(text)}\nOutput{score}: {self._output(answer)}", flush=True)

    def interact(self):
        """Translates typed lines, until q or the end of input; failures are shown, since the next line may succeed."""
        for line in streams.typed_lines(">> ", LONGEST_LINE):
            try:
                self.show(line)
            except Failure as error:
                print(error, file=sys.stderr)

    def translate_file(self, path, output):
        """Translates the lines of a file; `output` is a path, or - for standard output."""
        lines = text_files.input_lines(path)
        with text_files.output_file(output) as write:
            progress = Progress("translating", "sentences", len(lines))
            write(self._lines(lines, on_progress=progress.add))
        progress.done()
        if output != "-":
            print(f"written: {output}", file=sys.stderr)

    def translate_stdin(self, output):
        """Translates standard input; available lines are answered before more are read."""
        with text_files.output_file(output) as write:
            for first, lines in text_files.stdin_lines():
                write(self._lines(lines, first))

    def _lines(self, lines, first=1, on_progress=None):
        answers = self._answers(lines, first, on_progress)
        scores = [f"\t{answer.score:.2f}" if self._has_scores and self._columns is None else "" for answer in answers]
        return "".join(f"{self._output(answer)}{score}\n" for answer, score in zip(answers, scores, strict=True))

    def _output(self, answer):
        """Returns the text of an answer, or the JSON of an encoder's answer, a dict."""
        return json_text(_unpadded(answer)) if isinstance(answer, dict) else as_field(answer.text)

    def _answers(self, texts, first=1, on_progress=None):
        """Returns a list of `Answer`, or of {name of the output: value} for an encoder."""
        answers = self._translations(texts, on_progress) if self._columns is None else None
        if answers is None:
            answers = self._client.predict(
                self._inputs(texts, first), batch_size=self._options["batch_size"], on_progress=on_progress
            )
        for number, answer in enumerate(answers, first):
            if answer.get("truncated") if isinstance(answer, dict) else answer.truncated:
                _LOGGER.warning(f"line {number}: longer than the export takes; the rest of it was not read.")
            if not isinstance(answer, dict) and answer.is_short:
                _LOGGER.warning(
                    f"line {number}: the answer is very short, so some of the line may not be translated. "
                    "--split_sentences=always sends its sentences one by one."
                )
        return answers

    def _translations(self, texts, on_progress):
        """Returns a list of `Answer`; None if the model turns out to be an encoder."""
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

    def _takes(self, columns, text):
        """Returns whether the model has these inputs."""
        try:
            self._client.predict(dict(zip(columns, ([part] for part in text.split("\t")), strict=False)))
        except ServerError as error:
            if error.code != "INVALID_ARGUMENT":
                raise
            return False
        return True

    def _inputs(self, texts, first):
        """Returns {input: list of str} of lines. Raises `UserError` for a line with another number of columns."""
        if len(self._columns) == 1:
            return {self._columns[0]: texts}
        rows = [text.split("\t") for text in texts]
        for number, row in enumerate(rows, first):
            if len(row) != len(self._columns):
                raise UserError(
                    f"line {number}: {counted(len(row), 'column')}. Expected {' and '.join(self._columns)} with a tab "
                    "between them."
                )
        return {name: [row[at] for row in rows] for at, name in enumerate(self._columns)}


def _unpadded(answer):
    """Returns an encoder's answer without the padding, "" and 0, of words and masks to the longest of a request."""
    lists = {name: value for name, value in answer.items() if isinstance(value, list)}
    of_texts = [value for value in lists.values() if _texts(value)]
    if not of_texts:
        return answer
    count = max((at for value in of_texts for at, item in enumerate(value, 1) if any(_texts(item))), default=0)
    padded = {*map(len, of_texts)}
    return answer | {name: value[:count] for name, value in lists.items() if len(value) in padded}


def _texts(value):
    """Returns the texts in a JSON value, at any depth of lists."""
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []

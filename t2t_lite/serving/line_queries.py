"""Translates lines through a server: from a file, from standard input as they arrive, or typed by a user."""

import logging
import sys

from t2t_lite import streams
from t2t_lite.assignments import parse_assignments
from t2t_lite.console import Progress
from t2t_lite.corpora.plain_text import LONGEST_LINE
from t2t_lite.decoding.jobs import text_files
from t2t_lite.decoding.jobs.decode_hparams import DecodeHParams
from t2t_lite.errors import Failure, UserError

_LOGGER = logging.getLogger("t2t_lite")
_OF_THE_SEARCH = {"alpha": "alpha", "sampling_seed": "seed", "extra_length": "extra_length"}  # -> SearchOptions
_SETTINGS = (*_OF_THE_SEARCH, "write_beam_scores")


class LineQueries:
    """Sends lines to a server and writes a line for each.

    Args:
        client: result of `serving.client.open_client`.
        decode_hparams: str, `name=value,…` of alpha, or sampling_seed where the export samples, with extra_length, and
            of write_beam_scores.
        batch_size: int, sentences per request.
        split_sentences: as of `Client.translate`.

    Raises:
        UserError: another setting, since those are fixed in the export, or a value out of range.
    """

    def __init__(self, client, decode_hparams="", batch_size=32, split_sentences=None):
        settings = DecodeHParams.parse(decode_hparams)
        given = set(parse_assignments(decode_hparams, "--decode_hparams"))
        if fixed := sorted(given - set(_SETTINGS)):
            raise UserError(
                f"--decode_hparams: {', '.join(fixed)}: fixed in the export. Expected {', '.join(_SETTINGS)}; "
                "t2t-exporter takes the others."
            )
        given &= {*_OF_THE_SEARCH}
        if given and (len(given) != 2 or "extra_length" not in given):
            raise UserError(
                f"--decode_hparams: {', '.join(sorted(given))}: expected alpha and extra_length, or, of an export that "
                "samples, sampling_seed and extra_length; the export's own are not known."
            )
        self._client = client
        names = [_OF_THE_SEARCH[name] for name in given]
        self._options = {name: getattr(settings.search, name) for name in names} | {"batch_size": batch_size}
        self._options["split_sentences"] = split_sentences
        self._has_scores = settings.write_beam_scores

    def show(self, text):
        """Prints a text, its translation and the score."""
        (answer,) = self._translate([text])
        text, translation = map(text_files.as_field, (text, answer.text))
        print(f"Input: {text}\nOutput (score {answer.score:.3f}): {translation}", flush=True)

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
        answers = self._translate(lines, first, on_progress)
        scores = [f"\t{answer.score:.2f}" if self._has_scores else "" for answer in answers]
        return "".join(
            f"{text_files.as_field(answer.text)}{score}\n" for answer, score in zip(answers, scores, strict=True)
        )

    def _translate(self, texts, first=1, on_progress=None):
        answers = self._client.translate(texts, on_progress=on_progress, **self._options)
        for number, answer in enumerate(answers, first):
            if answer.truncated:
                _LOGGER.warning(f"line {number}: longer than the export takes; the rest of it was not read.")
            if answer.is_short:
                _LOGGER.warning(
                    f"line {number}: the answer is very short, so some of the line may not be translated. "
                    "--split_sentences=always sends its sentences one by one."
                )
        return answers

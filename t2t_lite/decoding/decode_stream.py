"""Decoding of standard input as it arrives, and of what a user types."""

import dataclasses
import sys

from t2t_lite import streams
from t2t_lite.corpora.plain_text import LONGEST_LINE
from t2t_lite.decoding import text_files
from t2t_lite.decoding.decoding_job import LineErrors
from t2t_lite.errors import UserError
from t2t_lite.ranges import typed_value

_HELP = "INTERACTIVE MODE: type a sentence, ns=<n> (samples), dl=<n> (extra length of outputs) or q (quit)."


def translate_stdin(job, output="-"):
    """Translates standard input into `output`; available lines are answered before more are read."""
    job.check_files({"--decode_to_file": output}, {"standard input": "-"})
    errors, delimiter = LineErrors(job.on_error), job.settings.delimiter
    lines_of = job.line_translator("standard input", errors)
    with text_files.output_file(output) as write:
        for first, lines in text_files.stdin_lines(delimiter, errors):
            texts, _ = job.outputs(lines_of, lines, first)
            write("".join(text + delimiter for text in texts))
    errors.done()


def interact(job):
    """Reads lines until q or the end of input. Results go to stdout, everything else to stderr (or the prompt)."""
    job.translator  # noqa: B018  (load it before prompting the user)
    print(_HELP, file=sys.stderr)
    for line in streams.typed_lines("> ", LONGEST_LINE):
        try:
            changed = _changed(job.settings, line)
            if changed is None:
                _answer(job, line)
            else:
                job = job.with_settings(changed)
        except UserError as error:
            print(error, file=sys.stderr)


def _changed(settings, line):
    """Returns the settings after a line such as dl=20, or None for a line to translate."""
    name, equals, value = line.partition("=")
    if not equals or name not in ("ns", "dl", "it"):
        return None
    if name == "it":
        if value != "text":
            raise UserError(f"it={value}: inputs are text.")
        return settings
    number = typed_value(name, value, int)
    if name == "dl":
        changed = settings.searching(extra_length=number)
    else:
        changed = dataclasses.replace(settings, num_samples=number if number > 0 else -1)
        changed = changed.searching(sampling=number > 0)
    changed.check(), changed.search_options()
    return changed


def _answer(job, line):
    lines_of = job.line_translator("input", LineErrors(job.on_error))
    lines_of.compile = False  # no pause for a compilation
    (output,), _ = job.outputs(lines_of, [line])
    print(output if job.n_best_format == "json" else output.replace("\t", "\n"), flush=True)

"""Decoding line by line: standard input as it comes, and what somebody types."""

import contextlib
import dataclasses
import sys

from t2t_lite import streams
from t2t_lite.bin import _decode_lines
from t2t_lite.errors import UserError

# Lines translated at a time where many are waiting: enough for full batches, few enough for a short wait.
_CHUNK = 256
_HELP = "INTERACTIVE MODE: type a sentence, ns=<n> (samples), dl=<n> (extra length of outputs) or q (quit)."


def translate_stdin(flags, settings):
    """Translates standard input; what is there is answered before more is read."""
    from t2t_lite.decoding import text_files

    for name in ("decode_reference", "prefix_file", "alignments_file"):
        if flags[name].value:
            raise UserError(f"--{name}: needs --decode_from_file, a file.")
    path, first = flags.decode_to_file or "-", 1
    _decode_lines.check_files(flags, settings, {"--decode_to_file": path}, {"standard input": "-"})
    errors = _decode_lines.LineErrors(flags)
    translator = _decode_lines.load_translator(flags)
    lines_of = _decode_lines.line_translator(flags, settings, translator, "standard input", errors)
    with text_files.output_file(path) if path != "-" else contextlib.nullcontext(sys.stdout.write) as write:
        for lines in text_files.stream_lines(streams.descriptor(), "standard input", settings.delimiter, errors):
            for start in range(0, len(lines), _CHUNK):
                chunk = lines[start : start + _CHUNK]
                translations = lines_of.translate(chunk, first)
                for output in _decode_lines.formatted(flags, settings, chunk, translations, first):
                    write(output + settings.delimiter)
                sys.stdout.flush()
                _decode_lines.say_what_was_long(lines_of, translations, first)
                first += len(chunk)
    errors.done()


def interact(flags, settings):
    """Reads lines until q or the end of input. Results go to stdout, all else to stderr (or the prompt)."""
    from t2t_lite.corpora.plain_text import LONGEST_LINE

    translator = _decode_lines.load_translator(flags)
    print(_HELP, file=sys.stderr)
    for line in streams.typed_lines("> ", LONGEST_LINE):
        try:
            changed = _changed(settings, line)
            if changed is None:
                _answer(flags, settings, translator, line)
            else:
                settings = changed
        except UserError as error:
            print(error, file=sys.stderr)


def _changed(settings, line):
    """Returns the settings after a line such as dl=20, or None where the line is to be translated."""
    from t2t_lite.ranges import typed_value

    name, equals, value = line.partition("=")
    if not equals or name not in ("ns", "dl", "it"):
        return None
    if name == "it":
        if value != "text":
            raise UserError(f"it={value}: inputs are text.")
        return settings
    number = typed_value(name, value, int)
    if name == "dl":
        changed = dataclasses.replace(settings, extra_length=number)
    elif number < 1:
        changed = dataclasses.replace(settings, sampling_method="argmax", num_samples=-1)
    else:
        changed = dataclasses.replace(settings, sampling_method="random", num_samples=number)
    changed.check(), changed.search_options()
    return changed


def _answer(flags, settings, translator, line):
    errors = _decode_lines.LineErrors(flags)
    lines_of = _decode_lines.line_translator(flags, settings, translator, "input", errors)
    lines_of.compile = False  # no pause for a compilation
    translations = lines_of.translate([line])
    _decode_lines.say_what_was_long(lines_of, translations, 1)
    (output,) = _decode_lines.formatted(flags, settings, [line], translations, 1)
    print(output if flags.n_best_format == "json" else output.replace("\t", "\n"), flush=True)

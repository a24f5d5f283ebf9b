"""Translates a file, standard input, or what you type, with a trained model.

    t2t-decoder --output_dir=train --decode_from_file=test.en --decode_to_file=test.de
    t2t-decoder --output_dir=train < test.en > test.de
    t2t-decoder --output_dir=train --decode_interactive

Every line of input gives one line of output, in order; an empty line stays empty. Results go to the file or to standard
output, progress to standard error.
"""

import os
import sys

from t2t_lite.bin import _app, _trained
from t2t_lite.errors import UserError


def define_flags(flags):
    """Declares the command's flags."""
    _trained.define_flags(flags)
    flags.DEFINE_path("decode_from_file", "", "What to translate, one sentence a line; - is standard input.")
    flags.DEFINE_path("decode_to_file", "", "Where to write; - is standard output. Default: <input>.<model>….decodes.")
    flags.DEFINE_path("decode_reference", "", "A reference translation: BLEU is shown at the end.")
    flags.DEFINE_string(
        "decode_hparams",
        "",
        "name=value,… of beam_size=4 (1: greedy), alpha=0.6 (length penalty), extra_length=50 (longest output: that of "
        "the input and so many more pieces), batch_size=32 (sentences), return_beams, write_beam_scores, "
        "max_input_size, identity_output, log_results, length_penalty=gnmt. A parsing problem has its own defaults: "
        "beam_size=21, alpha=0.3, extra_length=300.",
    )
    flags.DEFINE_bool("decode_interactive", False, "Translate what is typed, line by line; q quits.")
    flags.DEFINE_bool("keep_timestamp", False, "Give the output file the checkpoint's time.")
    flags.not_yet("decode_shards", 1, "Split the input file, and run one command for each part.")
    flags.not_yet("decode_in_memory", False, "In Python: t2t_lite.Translator.load(output_dir).translate(texts).")
    flags.not_yet("score_file", "")
    flags.not_yet("eval_use_test_set", False, "Give the test set's text by --decode_from_file.")
    _app.define_tf1_flags(flags)


def check(flags):
    """Raises `UserError` for a mistake that needs no import to be seen."""
    _trained.check(flags)
    if not flags.decode_interactive and not flags.decode_from_file and _is_terminal(sys.stdin):
        raise UserError("missing --decode_from_file (a text file, or - for standard input) or --decode_interactive.")
    for name in ("decode_from_file", "decode_reference"):
        path = flags[name].value
        if path and path != "-" and "://" not in path and not os.path.exists(path):
            raise UserError(f"--{name}={path}: no such file. Check the path.")


def run(flags):
    """Translates."""
    from t2t_lite.decoding.decode_hparams import DecodeHParams

    settings = DecodeHParams.parse(flags.decode_hparams, defaults=_trained.decode_defaults(flags))
    if flags.decode_interactive:
        return _interactive(_trained.load_translator(flags), settings)
    if flags.decode_from_file in ("", "-"):
        return _from_stdin(flags, settings)
    return _from_file(flags, settings)


def _from_file(flags, settings):
    from t2t_lite.data.progress import Progress
    from t2t_lite.decoding import text_files

    lines = text_files.input_lines(flags.decode_from_file)
    references = _references(flags, len(lines))
    translator = _trained.load_translator(flags)
    path = flags.decode_to_file or _default_name(flags.decode_from_file, translator.run.config, settings)
    outputs = []

    def translate(write):
        def keep(line):
            outputs.append(line)
            write(line)

        progress = Progress("translating", "sentences", len(lines))
        cut = text_files.translate_lines(translator, lines, settings, keep, progress.add)
        progress.done()
        _warn_of_cut(cut, flags.decode_from_file, translator, settings)

    if path == "-":
        translate(sys.stdout.write)
    else:
        with text_files.output_file(path) as write:
            translate(write)
        if flags.keep_timestamp:
            _take_time(path, translator.run.path)
        print(f"written: {path}", file=sys.stderr)
    if references is not None:
        _show_bleu([output.rstrip("\n").split("\t")[0] for output in outputs], references)


def _from_stdin(flags, settings):
    from t2t_lite.decoding import text_files

    if flags.decode_reference:
        raise UserError(
            "--decode_reference: needs --decode_from_file. Or pipe the output to a file, then use t2t-bleu."
        )
    translator, count = _trained.load_translator(flags), 0

    def translate(write):
        nonlocal count
        for lines in text_files.stream_lines(sys.stdin.fileno(), "standard input"):
            cut = text_files.translate_lines(translator, lines, settings, write)
            _warn_of_cut([count + number for number in cut], "standard input", translator, settings)
            count += len(lines)
            sys.stdout.flush()

    if flags.decode_to_file in ("", "-"):
        return translate(sys.stdout.write)
    with text_files.output_file(flags.decode_to_file) as write:
        translate(write)
    return None


def _interactive(translator, settings):
    """Reads lines until q or the end of input. Results go to stdout, all else to stderr (or the prompt)."""
    from t2t_lite.decoding import text_files

    if _is_terminal(sys.stdin):
        import readline  # noqa: F401  (input() then has a history)
    elif hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    print("INTERACTIVE MODE: type a sentence, dl=<n> (extra length of outputs) or q (quit).", file=sys.stderr)
    while True:
        try:
            line = input("> " if _is_terminal(sys.stdin) else "").rstrip("\r\n")
        except EOFError:
            return
        if line.strip() == "q":
            return
        if line.startswith("dl="):
            try:
                settings = _with_extra_length(settings, line.removeprefix("dl="))
            except UserError as error:
                print(error, file=sys.stderr)
            continue
        options = vars(settings.search_options()) | {"compile": False}  # no pause for a compilation
        longest = None if settings.max_input_size == -1 else settings.max_input_size
        translation = translator.translate([line], max_input_length=longest, **options)[0]
        _warn_of_cut([1] * translation.truncated, "input", translator, settings)
        print(text_files.output_line(translation, settings).replace("\t", "\n"), flush=True)


def _with_extra_length(settings, text):
    import dataclasses

    from t2t_lite.config import typed_value

    changed = dataclasses.replace(settings, extra_length=typed_value("dl", text, int))
    changed.search_options()
    return changed


def _references(flags, count):
    """Returns the lines of --decode_reference, or None. Raises `UserError` unless there are `count`."""
    from t2t_lite.decoding import text_files

    if not flags.decode_reference:
        return None
    lines = text_files.input_lines(flags.decode_reference)
    if len(lines) != count:
        raise UserError(
            f"--decode_reference={flags.decode_reference}: {len(lines):,} lines, {flags.decode_from_file} has "
            f"{count:,}. Expected as many."
        )
    return lines


def _show_bleu(outputs, references):
    from t2t_lite.evaluation.scores import corpus_bleu

    for name, lowercase in (("BLEU_uncased", True), ("BLEU_cased", False)):
        print(f"{name} = {corpus_bleu(outputs, references, lowercase=lowercase)}", file=sys.stderr)


def _default_name(path, config, settings):
    """tensor2tensor's name of the output: `<input>.<model>.<hparams_set>.<problem>.beam4.alpha0.6.decodes`."""
    names = [config["model"], config["hparams_set"], config["problem"]]
    return ".".join([path, *filter(None, names), f"beam{settings.beam_size}.alpha{settings.alpha}.decodes"])


def _warn_of_cut(numbers, name, translator, settings):
    if numbers:
        longest = translator.max_input_length if settings.max_input_size == -1 else settings.max_input_size
        shown = ", ".join(map(str, numbers[:10])) + (", …" if len(numbers) > 10 else "")
        print(f"t2t-decoder: warning: {name}: cut off after {longest:,} pieces: line {shown}", file=sys.stderr)


def _take_time(path, checkpoint):
    if os.path.exists(path) and os.path.exists(checkpoint + ".index"):
        seconds = os.path.getmtime(checkpoint + ".index")
        os.utime(path, (seconds, seconds))


def _is_terminal(stream):
    return stream is not None and stream.isatty()


def main(argv=None):
    """Runs the command; returns its exit status."""
    return _app.main("t2t-decoder", define_flags, run, argv, check=check)


if __name__ == "__main__":
    sys.exit(main())

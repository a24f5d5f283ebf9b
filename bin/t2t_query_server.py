"""Translates through a TensorFlow Serving that has loaded an export of t2t-exporter.

    t2t-query-server --server=localhost:8500 --servable_name=translate --inputs_once="The red house."
    t2t-query-server --server=localhost:8500 --servable_name=translate        # prompts; q ends
    t2t-query-server --server=localhost:8500 --servable_name=translate < test.en > test.de
    t2t-query-server --server=https://translate.example.org --servable_name=translate --version_label=canary \\
        --inputs_file=test.en --outputs_file=test.de
    t2t-query-server --server=localhost:8500 --servable_name=translate --status

Every line of a file or of standard input gives one line of output, in order; an empty line stays empty. docs/serving.md
has it all.
"""

import contextlib
import logging
import os
import sys

from t2t_lite import streams
from t2t_lite.bin import _app
from t2t_lite.errors import UserError
from t2t_lite.ranges import DECODE_BATCH

_LOGGER = logging.getLogger("t2t_lite")
_TEXT = "text goes to the server as it is, and the vocabulary is in the export"
_CLOUD = "there is no client for Google Cloud ML Engine"
_SETTINGS = ("alpha", "extra_length", "write_beam_scores")
_LINES_AHEAD = 256  # of standard input that are sent together, where so many are waiting


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_string("server", None, "host:port of the server, or http(s)://host:port/path for REST.")
    flags.DEFINE_string("servable_name", None, "The model's name on the server.")
    flags.DEFINE_integer(
        "model_version", None, "The model's version. Default: the newest that is loaded.", 0, 2**63 - 1
    )
    flags.DEFINE_string("version_label", None, "The label of a version in the server's model config, such as stable.")
    flags.DEFINE_enum(
        "protocol", None, ["grpc", "rest"], "How to talk to it. Default: REST to an http address, otherwise gRPC."
    )
    flags.DEFINE_string("inputs_once", None, "Translate this, and stop.")
    flags.DEFINE_path("inputs_file", None, "Translate the lines of this file.")
    flags.DEFINE_path("outputs_file", None, "Write here, when all is translated. Default: standard output.")
    flags.DEFINE_bool("status", False, "Print the model's versions and their states; exit status 0 if one can be used.")
    flags.DEFINE_integer("batch_size", 32, "Sentences per request.", limits=DECODE_BATCH)
    flags.DEFINE_string(
        "decode_hparams",
        "",
        "alpha=0.6,extra_length=50: instead of the export's, and only together. write_beam_scores=true: a tab and the "
        "score after each output. All else is fixed in the export.",
    )
    flags.DEFINE_float(
        "timeout_secs", 10, "Seconds for one request, from its first step to the answer's last byte.", 0.001, 10**6
    )
    flags.DEFINE_integer(
        "retries",
        3,
        "How often a request is sent again that found no server or no answer in time; the waits in between double, "
        "from half a second on.",
        0,
        20,
    )
    flags.DEFINE_bool("tls", False, "Encrypt; each of the next three flags does so, too.")
    flags.DEFINE_path("tls_ca_file", None, "PEM file of the authorities that may sign. Default: the usual ones.")
    flags.DEFINE_path("tls_cert_file", None, "PEM file of the client's certificate, where the server asks for one.")
    flags.DEFINE_path("tls_key_file", None, "PEM file of its private key.")
    for name in ("problem", "data_dir", "t2t_usr_dir"):
        flags.no_effect(name, _TEXT)
    for name in ("cloud_mlengine_model_name", "cloud_mlengine_model_version"):
        flags.no_effect(name, _CLOUD)


def check(flags):
    """Raises `UserError` for a mistake that needs no import to be seen."""
    _app.require(flags, "server", "servable_name")
    given = [f"--{name}" for name in ("inputs_once", "inputs_file", "status") if flags[name].value not in (None, False)]
    if len(given) > 1:
        raise UserError(f"{' and '.join(given)}: expected at most one of them.")
    if flags.outputs_file and (flags.inputs_once is not None or flags.status):
        raise UserError(f"--outputs_file: has no meaning with {given[0]}. Leave it out.")
    if flags.inputs_file and not os.path.exists(flags.inputs_file) and "://" not in flags.inputs_file:
        raise UserError(f"--inputs_file={flags.inputs_file}: no such file. Check the path.")


def run(flags):
    """Translates, or prints the model's state."""
    from t2t_lite import files
    from t2t_lite.serving import client as query

    files.check_outputs(
        {
            "--inputs_file": flags.inputs_file or "-",
            "--tls": [flags.tls_ca_file, flags.tls_cert_file, flags.tls_key_file],
        },
        {"--outputs_file": flags.outputs_file},
    )
    options, with_scores = _settings(flags)
    wants_tls = flags.tls or flags.tls_ca_file or flags.tls_cert_file or flags.tls_key_file
    client = query.open_client(
        flags.server,
        query.Servable(flags.servable_name, flags.model_version, flags.version_label),
        protocol=flags.protocol,
        tls=query.Tls(flags.tls_ca_file, flags.tls_cert_file, flags.tls_key_file) if wants_tls else None,
        timeout=flags.timeout_secs,
        retries=flags.retries,
    )
    with contextlib.closing(client):
        if flags.status:
            return _print_status(client)

        def translate(texts, first=1, on_progress=None):
            answers = client.translate(texts, batch_size=flags.batch_size, on_progress=on_progress, **options)
            _say_what_was_cut(answers, first)
            return answers

        if flags.inputs_once is not None:
            return _show(flags.inputs_once, translate)
        if flags.inputs_file:
            return _translate_file(flags, translate, with_scores)
        if streams.is_terminal():
            return _interact(translate)
        return _translate_stdin(flags, translate, with_scores)


def _settings(flags):
    """Returns ({alpha and extra_length} or {}, whether scores are written)."""
    from t2t_lite.config import parse_assignments
    from t2t_lite.decoding.decode_hparams import DecodeHParams

    settings = DecodeHParams.parse(flags.decode_hparams)
    given = set(parse_assignments(flags.decode_hparams, "--decode_hparams"))
    if fixed := sorted(given - set(_SETTINGS)):
        raise UserError(
            f"--decode_hparams: {', '.join(fixed)}: fixed in the export. Expected {', '.join(_SETTINGS)}; t2t-exporter "
            "takes the others."
        )
    given &= {"alpha", "extra_length"}
    if len(given) == 1:
        raise UserError(
            f"--decode_hparams: {given.pop()} alone: expected alpha and extra_length; the export's own are not known."
        )
    return {name: getattr(settings, name) for name in given}, settings.write_beam_scores


def _print_status(client):
    versions = sorted(client.status())
    for version, state, message in versions:
        print(f"{version}\t{state}" + (f"\t{message}" if message else ""))
    return 0 if any(state == "AVAILABLE" for _, state, _ in versions) else 1


def _translate_file(flags, translate, with_scores):
    from t2t_lite.console import Progress
    from t2t_lite.decoding import text_files

    lines = text_files.input_lines(flags.inputs_file)
    with _output(flags) as write:
        progress = Progress("translating", "sentences", len(lines))
        for answer in translate(lines, on_progress=progress.add):
            write(_line(answer, with_scores))
    progress.done()
    if flags.outputs_file:
        print(f"written: {flags.outputs_file}", file=sys.stderr)


def _translate_stdin(flags, translate, with_scores):
    """Answers what is there before more is read."""
    from t2t_lite.decoding import text_files

    first = 1
    with _output(flags) as write:
        for lines in text_files.stream_lines(streams.descriptor(), "standard input"):
            for start in range(0, len(lines), _LINES_AHEAD):
                chunk = lines[start : start + _LINES_AHEAD]
                for answer in translate(chunk, first):
                    write(_line(answer, with_scores))
                sys.stdout.flush()
                first += len(chunk)


def _interact(translate):
    from t2t_lite.corpora.plain_text import LONGEST_LINE
    from t2t_lite.errors import Failure

    for line in streams.typed_lines(">> ", LONGEST_LINE):
        try:
            _show(line, translate)
        except Failure as error:  # the next question may have an answer
            print(error, file=sys.stderr)


def _show(text, translate):
    from t2t_lite.decoding.text_files import as_field

    (answer,) = translate([text])
    print(f"Input: {as_field(text)}\nOutput (score {answer.score:.3f}): {_line(answer, False)}", end="", flush=True)


def _line(answer, with_scores):
    from t2t_lite.decoding.text_files import as_field

    return as_field(answer.text) + (f"\t{answer.score:.2f}" if with_scores else "") + "\n"


@contextlib.contextmanager
def _output(flags):
    from t2t_lite.decoding.text_files import output_file

    if flags.outputs_file and flags.outputs_file != "-":
        with output_file(flags.outputs_file) as write:
            yield write
    else:
        yield sys.stdout.write


def _say_what_was_cut(answers, first):
    for number, answer in enumerate(answers, first):
        if answer.truncated:
            _LOGGER.warning(f"line {number}: longer than the export takes; only its beginning is translated.")


def main(argv=None):
    """Runs the command; returns its exit status."""
    return _app.main("t2t-query-server", define_flags, run, argv, check=check, tensorflow=False)


if __name__ == "__main__":
    sys.exit(main())

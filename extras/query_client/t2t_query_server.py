"""Translates by querying a server, TensorFlow Serving or t2t-server, that has loaded an export of t2t-exporter.

    t2t-query-server --server=localhost:8500 --servable_name=translate --inputs_once="The red house."
    t2t-query-server --server=localhost:8500 --servable_name=translate        # interactive; q quits
    t2t-query-server --server=localhost:8500 --servable_name=translate < test.en > test.de
    t2t-query-server --server=https://translate.example.org --servable_name=translate --version_label=canary \\
        --inputs_file=test.en --outputs_file=test.de
    t2t-query-server --server=localhost:8500 --servable_name=translate --n_best_format=json \\
        --decode_hparams=return_beams=true --inputs_file=test.en --outputs_file=test.jsonl
    t2t-query-server --server=localhost:8500 --servable_name=encoder --signature_name=features < texts > features.jsonl
    t2t-query-server --server=localhost:8500 --servable_name=translate --status

Every line of a file or of standard input gives one line of output, in order; an empty line stays empty. See
docs/extras/query_client.md.
"""

import contextlib
import sys

from t2t_lite.bin import _app
from t2t_lite.cli import console
from t2t_lite.cli.commands import Mode, check_mode, require
from t2t_lite.settings.ranges import DECODE_BATCH, MODEL_VERSION, REQUEST_TIMEOUT, RETRIES, SPLIT_SENTENCES

_TEXT = "the server gets plain text, and the vocabulary is part of the export"
_CLOUD = "Google Cloud ML Engine is not supported"
_ANSWERS = ("batch_size", "split_sentences", "n_best_format", "signature_name")

_MODES = {
    "status": Mode("--status", ("status", *_ANSWERS)),
    "stream": Mode("--stream", ("stream", "inputs_once")),
    "inputs_once": Mode("--inputs_once", ("inputs_once", *_ANSWERS)),
    "inputs_file": Mode("--inputs_file", ("inputs_file", "outputs_file", *_ANSWERS)),
    "lines": Mode("standard input", ("outputs_file", *_ANSWERS)),
}


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_string("server", None, "host:port of the server, or http(s)://host:port/path for REST.")
    flags.DEFINE_string("servable_name", None, "The model's name on the server.")
    flags.DEFINE_integer(
        "model_version", None, "The model's version. Default: the newest that is loaded.", limits=MODEL_VERSION
    )
    flags.DEFINE_string("version_label", None, "The label of a version in the server's model config, such as stable.")
    flags.DEFINE_enum(
        "protocol", None, ["grpc", "rest"], "Protocol. Default: REST for an http address, otherwise gRPC."
    )
    flags.DEFINE_string("inputs_once", None, "Translate this text, and stop.")
    flags.DEFINE_path("inputs_file", None, "Translate the lines of this file.")
    flags.DEFINE_path(
        "outputs_file", None, "Write to this file when everything is translated. Default: standard output."
    )
    flags.DEFINE_bool(
        "stream", False, "Continue a text by t2t-server's language model, over REST, and print each part as it arrives."
    )
    flags.DEFINE_bool(
        "status", False, "Print the model's versions and their states; exit status 0 if one is available."
    )
    flags.DEFINE_integer("batch_size", 32, "Sentences per request.", limits=DECODE_BATCH)
    flags.DEFINE_enum(
        "split_sentences",
        None,
        SPLIT_SENTENCES,
        "Send a line's sentences one by one. Default: auto, where the export's model was trained on single sentences.",
    )
    flags.DEFINE_string(
        "decode_hparams",
        "",
        "alpha=0.6,extra_length=50, or sampling_seed=1,extra_length=50 where the export samples: both together replace "
        "the export's values. n_best=4, or return_beams=true for all: the best outputs of a line. "
        "write_beam_scores=true: a tab and the score after each output. All other options are fixed in the export.",
    )
    formats = "text: outputs of a line are separated by tabs; json: one JSON object per line, as of t2t-decoder."
    flags.DEFINE_enum("n_best_format", "text", ["text", "json"], formats)
    flags.DEFINE_string(
        "signature_name",
        None,
        "Call this signature, such as features, tokens or score, and write its outputs as JSON. Several texts in a "
        "line are separated by tabs. Default: translations, or an encoder's answers.",
    )
    flags.DEFINE_float(
        "timeout_secs",
        10,
        "Seconds for one request, from its first step to the answer's last byte.",
        limits=REQUEST_TIMEOUT,
    )
    flags.DEFINE_integer(
        "retries",
        3,
        "How often a request is repeated that found no server or no answer in time; the waits double, starting at half "
        "a second.",
        limits=RETRIES,
    )
    flags.DEFINE_bool("tls", False, "Encrypt the connection. Each of the next three flags implies it.")
    flags.DEFINE_path("tls_ca_file", None, "PEM file of the trusted certificate authorities. Default: the system's.")
    flags.DEFINE_path("tls_cert_file", None, "PEM file of the client's certificate, if the server requires one.")
    flags.DEFINE_path("tls_key_file", None, "PEM file of its private key.")
    for name in ("problem", "data_dir", "t2t_usr_dir"):
        flags.no_effect(name, _TEXT)
    for name in ("cloud_mlengine_model_name", "cloud_mlengine_model_version"):
        flags.no_effect(name, _CLOUD)


def check(flags):
    """Raises `UserError` for mistakes that can be found without imports."""
    require(flags, "server", "servable_name")
    _app.refuse_packed(flags, "outputs_file")
    modes = [name for name in _MODES if name in flags and flags[name].value not in (None, False)]
    check_mode(flags, _MODES[modes[0] if modes else "lines"], _MODES)
    _app.require_files(flags, "inputs_file")
    _app.require_folders(flags, "outputs_file")


def run(flags):
    """Translates, or prints the model's state."""
    from t2t_lite import files
    from t2t_lite.extras.query_client import client as query
    from t2t_lite.extras.query_client.line_queries import LineQueries, StreamedQueries, interact

    pem_files = [flags.tls_ca_file, flags.tls_cert_file, flags.tls_key_file]
    files.check_outputs(
        {"--inputs_file": flags.inputs_file or "-", "--tls": pem_files}, {"--outputs_file": flags.outputs_file}
    )
    client = query.open_client(
        flags.server,
        query.Servable(flags.servable_name, flags.model_version, flags.version_label),
        protocol=flags.protocol,
        tls=query.Tls(*pem_files) if flags.tls or any(pem_files) else None,
        timeout=flags.timeout_secs,
        retries=flags.retries,
    )
    with contextlib.closing(client):
        if flags.stream:
            return StreamedQueries(client, flags.decode_hparams).run(flags.inputs_once)
        output = {"as_json": flags.n_best_format == "json", "signature": flags.signature_name}
        queries = LineQueries(client, flags.decode_hparams, flags.batch_size, flags.split_sentences, **output)
        if flags.status:
            return _print_status(client)
        if flags.inputs_once is not None:
            return queries.show(flags.inputs_once)
        if flags.inputs_file:
            return queries.translate_file(flags.inputs_file, flags.outputs_file or "-")
        if console.is_terminal() and not flags.outputs_file:
            return interact(queries.show)
        return queries.translate_stdin(flags.outputs_file or "-")


def _print_status(client):
    versions = sorted(client.status())
    for version, state, message in versions:
        print(f"{version}\t{state}" + (f"\t{message}" if message else ""))
    return 0 if any(state == "AVAILABLE" for _, state, _ in versions) else 1


main = _app.command("t2t-query-server", define_flags, run, check, tensorflow=False)


if __name__ == "__main__":
    sys.exit(main())

"""Translates with a running TensorFlow Serving or t2t-server that has loaded an export of t2t-exporter.

    t2t-query-server --server=localhost:8500 --servable_name=translate --inputs_once="The red house."
    t2t-query-server --server=localhost:8500 --servable_name=translate        # interactive; q quits
    t2t-query-server --server=localhost:8500 --servable_name=translate < test.en > test.de
    t2t-query-server --server=https://translate.example.org --servable_name=translate --version_label=canary \\
        --inputs_file=test.en --outputs_file=test.de
    t2t-query-server --server=localhost:8500 --servable_name=translate --n_best_format=json \\
        --decode_hparams=return_beams=true --inputs_file=test.en --outputs_file=test.jsonl
    t2t-query-server --server=localhost:8500 --servable_name=encoder --signature_name=features < texts > features.jsonl
    t2t-query-server --server=localhost:8500 --servable_name=translate --status

Each line of a file or of standard input produces one output line, in the same order; an empty line stays empty. See
docs/extras/query_client.md.
"""

import contextlib
import sys

from t2t_lite.bin import _app
from t2t_lite.cli import console
from t2t_lite.cli.commands import Mode, check_mode, require
from t2t_lite.extras.query_client.addresses import MODEL_VERSION, RETRIES, TIMEOUT
from t2t_lite.settings.ranges import DECODE_BATCH, SPLIT_SENTENCES

_TEXT = "the client sends plain text, and the export contains the vocabulary"
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
    flags.DEFINE_integer("model_version", None, "The model's version. Default: the newest.", limits=MODEL_VERSION)
    flags.DEFINE_string("version_label", None, "The label of a version in the server's model config, such as stable.")
    flags.DEFINE_enum("protocol", None, ["grpc", "rest"], "Default: REST for an http address, otherwise gRPC.")
    flags.DEFINE_string("inputs_once", None, "Translate this text and exit.")
    flags.DEFINE_path("inputs_file", None, "Translate the lines of this file.")
    flags.DEFINE_path("outputs_file", None, "Write here once everything is translated. Default: standard output.")
    flags.DEFINE_bool("stream", False, "Continue a text with a language model of t2t-server (REST), part by part.")
    flags.DEFINE_bool("status", False, "Print the states of the versions; exit status 0 if one is available.")
    flags.DEFINE_integer("batch_size", 32, "Number of sentences per request.", limits=DECODE_BATCH)
    flags.DEFINE_enum(
        "split_sentences",
        None,
        SPLIT_SENTENCES,
        "Whether to translate each sentence of a line separately. Default: auto, which does so if the model was "
        "trained on single sentences.",
    )
    flags.DEFINE_string(
        "decode_hparams",
        "",
        "alpha=0.6,extra_length=50 (or sampling_seed=1,extra_length=50 if the export samples) replaces the export's "
        "values. n_best=4 writes the 4 best outputs of a line, and return_beams=true writes all outputs. "
        "write_beam_scores=true writes a tab and the score after each output. Other options are fixed in the export.",
    )
    formats = "text: tabs separate a line's outputs. json: each line is a JSON object, as from t2t-decoder."
    flags.DEFINE_enum("n_best_format", "text", ["text", "json"], formats)
    flags.DEFINE_string(
        "signature_name",
        None,
        "Call this signature, such as features, tokens or score, and write its outputs as JSON. If it reads several "
        "texts, separate them with tabs in each line. Default: the signature for translations or an encoder's answers.",
    )
    flags.DEFINE_float(
        "timeout_secs", 10, "Time limit of a request in seconds, until the answer's last byte.", limits=TIMEOUT
    )
    flags.DEFINE_integer(
        "retries",
        3,
        "Maximum number of times to repeat a request that got no answer, after 0.5 s, 1 s, 2 s and so on.",
        limits=RETRIES,
    )
    flags.DEFINE_bool("tls", False, "Encrypt the connection. Each of the flags --tls_*_file implies --tls.")
    flags.DEFINE_path("tls_ca_file", None, "PEM file of trusted certificate authorities. Default: the system's.")
    flags.DEFINE_path("tls_cert_file", None, "PEM file of the client's certificate, if the server requires one.")
    flags.DEFINE_path("tls_key_file", None, "PEM file of the client's private key.")
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
        queries = LineQueries(
            client,
            flags.decode_hparams,
            flags.batch_size,
            flags.split_sentences,
            as_json=flags.n_best_format == "json",
            signature=flags.signature_name,
        )
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

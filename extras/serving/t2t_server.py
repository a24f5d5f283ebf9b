"""Serves an export over TensorFlow Serving's REST API, without TensorFlow Serving.

    t2t-exporter --output_dir=train --export_dir=export
    t2t-server --export_dir=export --port=8501
    t2t-query-server --server=http://localhost:8501 --servable_name=translate --inputs_once="The red house."
    curl -d '{"inputs": ["The red house."]}' http://localhost:8501/v1/models/translate:predict
    # or open http://localhost:8501 in a browser to use a form
    t2t-server --export_dir=stories --max_streams=16           # a language model that streams
    curl -N -d '{"prompt": "Once upon", "stream": true}' http://localhost:8501/v1/completions

The server always serves the newest version, and loads a new version as soon as it appears. After SIGTERM or Ctrl-C, it
answers pending requests and stops. docs/extras/serving.md lists the paths and the differences from TensorFlow Serving.
"""

import os
import re
import sys

from t2t_lite.bin import _app
from t2t_lite.cli.commands import parts, require
from t2t_lite.errors import LOGGER, UserError
from t2t_lite.settings.ranges import DECODE_BATCH, SPLIT_SENTENCES

_ORIGIN = re.compile(r"https?://[^/\s?#]+", re.IGNORECASE)


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_path("export_dir", None, "Folder of the numbered exports from t2t-exporter.")
    flags.DEFINE_integer("port", 8501, "Port to listen on; 0 chooses any free port.", 0, 2**16 - 1)
    flags.DEFINE_string("host", "127.0.0.1", "Address to listen on. There is no password: 0.0.0.0 lets everyone in.")
    flags.DEFINE_string("servable_name", "translate", "The model's name in the server's paths.")
    flags.DEFINE_integer("max_batch_size", 1024, "Maximum number of texts in a request.", limits=DECODE_BATCH)
    flags.DEFINE_integer(
        "max_execution_batch_size",
        32,
        "Maximum number of texts in a batch from several requests. A long text delays the whole batch.",
        limits=DECODE_BATCH,
    )
    flags.DEFINE_integer("num_batch_threads", None, "Batches computed at once. Default: the number of cores.", 1, 256)
    flags.DEFINE_enum(
        "split_sentences",
        None,
        SPLIT_SENTENCES,
        "Whether to translate each sentence of a text separately. Default: auto, which does so if the model was "
        "trained on single sentences.",
    )
    flags.DEFINE_integer(
        "max_enqueued_batches",
        64,
        "Maximum number of waiting batches, each of --max_execution_batch_size texts. Further requests get status 503.",
        1,
        10**6,
    )
    flags.DEFINE_integer(
        "max_streams",
        0,
        "Maximum number of texts that a language model generates at the same time for POST /v1/completions. Further "
        "requests are refused with 503. 0 disables completions. Streaming loads the model a second time into memory.",
        0,
        256,
    )
    flags.DEFINE_path("t2t_usr_dir", None, "Folder of your own code, for streaming with your own problem or model.")
    flags.DEFINE_integer(
        "max_body_bytes", 2**24, "Maximum size of a request's body in bytes, also after decompression.", 2**10, 2**30
    )
    flags.DEFINE_list(
        "allow_origin", [], "Origins, such as https://a.org, whose pages may call this server; * allows all."
    )
    flags.DEFINE_float(
        "drain_secs", 0, "Seconds after SIGTERM in which requests are accepted while /health answers 503.", 0, 3600
    )
    flags.DEFINE_float("poll_secs", 1, "Interval in seconds between checks for a new version.", 0.05, 10**6)


def check(flags):
    """Raises `UserError` for mistakes that can be seen without imports."""
    require(flags, "export_dir", "servable_name", "host")
    if "/" in flags.servable_name or ":" in flags.servable_name:
        raise UserError(f"--servable_name={flags.servable_name}: expected a name without / and :, such as translate.")
    for part in parts("t2t-server"):
        part.check(flags)
    for origin in flags.allow_origin:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise UserError(f"--allow_origin={origin}: expected an origin such as https://example.org, or *.")


def run(flags):
    """Serves the export until the process receives a signal."""
    from t2t_lite.extras.serving.http_server import address_of, open_listener, serve

    with open_listener(flags.host, flags.port) as listener:  # a port in use is reported before the model is loaded
        from t2t_lite.extras.serving.model_versions import ModelVersions, load_export, load_with_generator, watching
        from t2t_lite.extras.serving.server_metrics import ServerMetrics

        name, metrics = flags.servable_name, ServerMetrics()
        versions = ModelVersions(name, flags.export_dir, load_with_generator if flags.max_streams else load_export)
        try:
            versions.refresh()
        except UserError as error:
            if not versions.is_available():
                raise
            LOGGER.warning(f"{error} {versions}, is served.")
        from t2t_lite.extras.serving.request_batching import Batcher, SentenceBatcher
        from t2t_lite.extras.serving.rest_server import RestServer
        from t2t_lite.extras.serving.start_page import model_path

        batcher = Batcher(
            flags.max_execution_batch_size,
            flags.num_batch_threads or os.cpu_count(),
            on_batch=lambda *batch: metrics.add_batch(name, *batch),
            most_waiting=flags.max_enqueued_batches * flags.max_execution_batch_size,
        )
        batcher = SentenceBatcher(batcher, flags.split_sentences, flags.max_batch_size)
        server = RestServer(
            versions,
            batcher,
            metrics,
            most_rows=flags.max_batch_size,
            longest_body=flags.max_body_bytes,
            origins=[origin.lower() for origin in flags.allow_origin],
            most_streams=flags.max_streams,
            apis=[api for part in parts("t2t-server") if (api := part.api(flags, versions, batcher))],
        )
        address = address_of(listener)
        LOGGER.info(f"Serving {versions}, at {address}{model_path(name)}; in a browser: {address}/")
        with watching(versions, flags.poll_secs):
            serve(server, listener, flags.max_body_bytes, flags.drain_secs, server.stop, server.end_streams)


main = _app.command("t2t-server", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())

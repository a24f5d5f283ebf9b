"""Shows trained models in a browser: n-best lists, search trees, token probabilities and attention.

    t2t-insights-server --output_dir=train --port=8010
    t2t-insights-server --checkpoint_path=train/model.ckpt-1000,train/model.ckpt-2000      # two models
    curl -H 'Content-Type: application/json' -d '{"text": "The red house.", "beam_size": 4}' \\
        http://localhost:8010/api/translate

The page is at http://localhost:8010. docs/extras/insights.md describes it and lists the calls of the JSON API. SIGTERM
or Ctrl-C stops the server.
"""

import sys

from t2t_lite.bin import _app, _trained
from t2t_lite.cli.commands import require
from t2t_lite.errors import LOGGER


def define_flags(flags):
    """Declares the command's flags."""
    _trained.define_flags(flags)
    flags.DEFINE_integer("port", 8010, "Port to listen on. 0: any free port.", 0, 2**16 - 1)
    flags.DEFINE_string("host", "127.0.0.1", "Address to listen on. There is no password: 0.0.0.0 lets everyone in.")
    _app.define_tf1_flags(flags)


def check(flags):
    """Raises `UserError` for mistakes that can be found without imports."""
    _trained.check(flags)
    require(flags, "host")


def run(flags):
    """Serves the page until the process receives a signal."""
    from t2t_lite.extras.serving.http_server import address_of, open_listener, serve

    with open_listener(flags.host, flags.port) as listener:
        _trained.find(flags)  # raises an error if the flags contradict a model
        LOGGER.info(f"Loading {', '.join(_trained.paths(flags))}; this may take half a minute.")
        from t2t_lite.extras.insights.app import LONGEST_BODY, create_app
        from t2t_lite.extras.insights.models import Models
        from t2t_lite.training.distribution import gpus_as_needed

        gpus_as_needed()  # allocates GPU memory as needed, since a trainer may need the rest
        models = Models.load(_trained.paths(flags), flags.data_dir)
        for model in models.list():
            LOGGER.info(f"Loaded {model['name']}: {model['model']} of {model['problem']}, step {model['step']}")
        LOGGER.info(f"Serving at {address_of(listener)}/")
        serve(create_app(models), listener, LONGEST_BODY)


main = _app.command("t2t-insights-server", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())

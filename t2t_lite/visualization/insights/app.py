"""The JSON API of t2t-insights-server, a Flask application. docs/visualization.md documents it."""

import logging

from t2t_lite.errors import UserError, printable
from t2t_lite.files.safe_json import strict_json

try:
    import flask
    from werkzeug.exceptions import HTTPException
except ImportError:
    raise UserError("flask is not installed: pip install 't2t_lite[web]'.") from None

_LOGGER = logging.getLogger("t2t_lite")
LONGEST_BODY = 2**18
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def create_app(translations):
    """Returns the application.

    Args:
        translations: Translations.
    """
    app = flask.Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = LONGEST_BODY
    calls = {name: getattr(translations, name) for name in ("translate", "beam", "steps", "attention")}

    @app.get("/api/model")
    def model():
        return translations.model()

    @app.post("/api/<any(translate, beam, steps, attention):call>")
    def post(call):
        if flask.request.mimetype != "application/json":  # a page of another site cannot send this type unasked
            flask.abort(415, "Expected Content-Type: application/json.")
        try:
            request = strict_json(flask.request.get_data())
        except ValueError as error:
            raise UserError(f"The request is not JSON: {error}.") from None
        return calls[call](request)

    @app.errorhandler(Exception)
    def error(error):
        if isinstance(error, HTTPException):
            return {"error": error.description}, error.code
        if isinstance(error, UserError):
            return {"error": printable(str(error))}, 400
        _LOGGER.exception(f"{flask.request.path} failed:")
        return {"error": "The server failed; its log has the details."}, 500

    @app.after_request
    def finish(response):
        response.headers.update(_HEADERS)
        return response

    return app

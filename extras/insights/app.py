"""The Flask application with the page and the JSON API of t2t-insights-server (docs/extras/insights.md)."""

import json

from t2t_lite.errors import LOGGER, UserError, needs, printable
from t2t_lite.extras.insights.media import LONGEST_FILE
from t2t_lite.extras.insights.models import CALLS
from t2t_lite.files.safe_json import strict_json
from t2t_lite.visualization.attention_pictures import SMALLEST
from t2t_lite.visualization.drawing import color
from t2t_lite.visualization.sentence_attention import AXES, MOST_TOKENS, OFFSET, SIDES, TITLES

with needs("Flask", "web", "t2t-insights-server"):
    import flask
    from werkzeug.exceptions import HTTPException, NotFound

LONGEST_BODY = 2**18
_HEADERS = {
    # The page's script turns pictures and sounds from the API into blobs.
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob:; media-src 'self' blob:",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_SHARED = {
    "COLORS": [color(head) for head in range(100)],
    "SMALLEST": SMALLEST,
    "TITLES": TITLES,
    "SIDES": SIDES,
    "AXES": {kind: AXES.format(*sides) for kind, sides in SIDES.items()},
    "OFFSET": OFFSET,
    "MOST_TOKENS": MOST_TOKENS,
    "LONGEST_FILE": LONGEST_FILE,
}
_FACTS = "".join(f"export const {name} = {json.dumps(value)};\n" for name, value in _SHARED.items())


def create_app(models):
    """Returns the Flask application.

    Args:
        models: Models, which answer the requests.
    """
    app = flask.Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = LONGEST_BODY

    @app.get("/")
    def page():
        return app.send_static_file("index.html")

    @app.get("/static/facts.js")
    def facts():
        """Serves the constants that the page's pictures share with `t2t_lite.visualization`."""
        return flask.Response(_FACTS, mimetype="text/javascript")

    @app.get("/api/models")
    def list_models():
        return models.list()

    @app.post("/api/<call>")
    def post(call):
        if call not in CALLS:
            flask.abort(404)
        if flask.request.mimetype != "application/json":  # browsers do not let other sites send JSON
            flask.abort(415, "Expected Content-Type: application/json.")
        try:
            request = strict_json(flask.request.get_data())
        except ValueError as error:
            raise UserError(f"The request is not JSON: {error}.") from None
        is_abandoned = flask.request.environ.get("waitress.client_disconnected", lambda: False)
        answer = models.answer(call, request, is_abandoned)
        try:
            body = json.dumps(answer, ensure_ascii=False, allow_nan=False)
        except ValueError:
            raise UserError("The model's outputs are not finite, so its training has diverged.") from None
        return flask.Response(body, mimetype="application/json")

    @app.errorhandler(Exception)
    def error(error):
        if isinstance(error, NotFound):
            calls = ", ".join(f"/api/{call}" for call in CALLS)
            return {"error": f"Not found: {flask.request.path[:200]}. Expected / or /api/models, or POST {calls}."}, 404
        if isinstance(error, HTTPException):
            return {"error": error.description}, error.code
        if isinstance(error, UserError):
            return {"error": printable(str(error))}, 400
        LOGGER.exception(f"{flask.request.path} failed:")
        return {"error": "The server failed; its log has the details."}, 500

    @app.after_request
    def finish(response):
        response.headers.update(_HEADERS)
        return response

    return app

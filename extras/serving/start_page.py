"""Answers GET / with a page to try the model in a browser, or with a JSON list of the server's paths."""

import pathlib
import urllib.parse

from t2t_lite.extras.serving.json_tensors import to_json

PATH = "/"
_PAGE = pathlib.Path(__file__).with_name("static") / "index.html"
_KIND = "text/html; charset=utf-8"
_HEADERS = [
    # The page is a single file that loads only JSON from this server.
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
    ("Vary", "Accept"),
]


def answer(accept, name, paths):
    """Returns the answer to GET / as (body, Content-Type, other headers).

    Args:
        accept: str, the request's Accept header.
        name: str, the model's name.
        paths: list of str such as "GET /health".
    """
    if "text/html" in accept.lower():
        return _PAGE.read_bytes(), _KIND, _HEADERS
    return to_json({"models": [name], "paths": paths}), "application/json", _HEADERS


def model_path(name):
    """Returns the REST path of a model."""
    return f"/v1/models/{urllib.parse.quote(name, safe='')}"

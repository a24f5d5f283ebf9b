"""Errors that a server sends to its clients, as in TensorFlow Serving's REST API."""

import http

# From TensorFlow Serving's http_server.cc; gRPC has no code for 408, 413 and 415.
_STATUSES = {
    "INVALID_ARGUMENT": 400,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "PAYLOAD_TOO_LARGE": 413,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
    "UNIMPLEMENTED": 501,
    "CANCELLED": 503,  # usually, no client reads this status
    "REQUEST_TIMEOUT": 408,
    "UNSUPPORTED_MEDIA_TYPE": 415,
}
RETRY_AFTER = 1  # seconds until clients should retry, sent with status 503
FAILED = "the server failed; its log has the details"


class Refusal(Exception):
    """Raised if a request cannot be answered; the client receives the message.

    Attributes:
        code: str, the name of a gRPC status code.
        message: str, the reason, for the client.
    """

    def __init__(self, message, code="INVALID_ARGUMENT"):
        super().__init__(message)
        self.message, self.code = message, code


def http_status(code):
    """Returns the HTTP status line of a gRPC code, such as "404 Not Found"."""
    status = http.HTTPStatus(200 if code == "OK" else _STATUSES.get(code, 500))
    return f"{status.value} {status.phrase}"

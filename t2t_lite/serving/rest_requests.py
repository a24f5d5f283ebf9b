"""Requests to TensorFlow Serving over REST (JSON), with Python's standard library."""

import contextlib
import http.client
import json
import re
import socket
import ssl
import threading
import urllib.parse

from t2t_lite.errors import Failure, UserError
from t2t_lite.files.safe_json import check_schema, parse_json
from t2t_lite.serving.server_errors import LONGEST_ANSWER, server_error

# HTTP statuses that TensorFlow Serving uses for gRPC's codes; 502 comes from proxies.
_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}

_STATUS = {"model_version_status": [{"version": str | int, "state": str, "status?": {"error_message?": str}}]}


class RestTransport:
    """Addresses of one model on one server. See `client.Client` for its methods.

    Every request opens a connection, so no request can fail because a proxy closed an idle one.
    """

    def __init__(self, address, servable, tls, timeout):
        self.address, self.servable, self._timeout = address, servable, timeout
        self._context = None if tls is None else tls.context()
        self._path = f"{address.path}/v1/models/{urllib.parse.quote(servable.name, safe='')}"
        if servable.version is not None:
            self._path += f"/versions/{servable.version}"
        if servable.label is not None:
            self._path += f"/labels/{urllib.parse.quote(servable.label, safe='')}"

    def predict(self, signature, inputs):
        """Calls a signature; returns {name of the output: list}."""
        body = {"signature_name": signature, "inputs": inputs}
        outputs = self._ask("POST", f"{self._path}:predict", json.dumps(body)).get("outputs")
        return outputs if isinstance(outputs, dict) else {"outputs": outputs}

    def status(self):
        """Returns [(version, state, message)]."""
        answer = self._ask("GET", self._path)
        try:
            check_schema(answer, _STATUS, f"{self.address}: {self.servable}")
            versions = [int(version["version"]) for version in answer["model_version_status"]]
        except ValueError as error:  # UserError too
            raise Failure(f"{error} Expected the answer of a TensorFlow Serving.") from None
        messages = [version.get("status", {}).get("error_message", "") for version in answer["model_version_status"]]
        states = [version["state"] for version in answer["model_version_status"]]
        return list(zip(versions, states, messages, strict=True))

    def close(self):
        """Does nothing, since no connection is kept open."""

    def _ask(self, method, path, body=None):
        """Sends a request and returns the JSON object of the answer, within the time limit of a request."""
        place, options = (self.address.host, self.address.port), {"timeout": self._timeout}
        if self._context is None:
            connection = http.client.HTTPConnection(*place, **options)
        else:
            connection = http.client.HTTPSConnection(*place, context=self._context, **options)
        sockets, outcome = [], []

        def exchange():
            try:
                outcome.append(self._exchange(connection, sockets, method, path, body))
            except Exception as error:
                outcome.append(error)

        # A socket's own timeout applies to each step: looking up the host has none, and a server that keeps sending
        # single bytes would never exceed it.
        thread = threading.Thread(target=exchange, daemon=True)
        thread.start()
        try:
            thread.join(self._timeout)
            answer = outcome[0] if outcome else self._error("DEADLINE_EXCEEDED", "")
        finally:
            _break_off(sockets)
        if isinstance(answer, Exception):
            raise answer
        return self._content(*answer)

    def _exchange(self, connection, sockets, method, path, body):
        """Returns (status, reason, content, Retry-After) of an answer. Raises ServerError if there is none."""
        # The connection's socket is added to `sockets`, since the connection drops it once the answer has started.
        try:
            connection.connect()
            sockets.append(connection.sock)
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            with contextlib.closing(connection.getresponse()) as answer:  # otherwise it would keep the connection open
                return self._read(answer)
        except TimeoutError:
            raise self._error("DEADLINE_EXCEEDED", "") from None
        except ssl.SSLError as error:
            raise self._error("CERTIFICATE", error) from None
        except (http.client.BadStatusLine, http.client.LineTooLong) as error:
            if isinstance(error, OSError):  # a connection that was closed
                raise self._error("UNAVAILABLE", error) from None
            raise self._error("UNIMPLEMENTED", "it does not answer in HTTP") from None
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: a chunk's size is not a number
            raise self._error("UNAVAILABLE", getattr(error, "strerror", None) or error) from None

    def _read(self, answer):
        too_long = (answer.length or 0) > LONGEST_ANSWER
        if too_long or len(data := answer.read(LONGEST_ANSWER + 1)) > LONGEST_ANSWER:
            raise Failure(
                f"{self.address}: {self.servable}: an answer of more than {LONGEST_ANSWER:,} bytes. Ask for fewer "
                "sentences at a time."
            )
        if answer.length:
            raise self._error("UNAVAILABLE", f"the answer ends {answer.length:,} bytes too early")
        return answer.status, answer.reason, data, answer.headers.get("Retry-After", "")

    def _content(self, status, reason, data, retry_after):
        """Returns the JSON object in an answer. Raises ServerError if it is an error."""
        try:
            content = parse_json(data, f"{self.address}: not a TensorFlow Serving, its answer", LONGEST_ANSWER, dict)
        except UserError as error:
            if status == 200:
                raise Failure(str(error)) from None
            content = {}
        if status != 200:
            code, details = _CODES.get(status, f"HTTP {status}"), content.get("error")
            error = self._error(code, details if isinstance(details, str) and details else f"HTTP {status} {reason}")
            error.retry_after = int(retry_after[:6]) if re.fullmatch("[0-9]+", retry_after) else 0  # or it is a date
            raise error
        return content

    def _error(self, code, details):
        return server_error(code, details, self.address, self.servable, self._timeout)


def _break_off(sockets):
    """Closes sockets, and wakes threads that are waiting for them."""
    for connected in sockets:
        with contextlib.suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)
        connected.close()

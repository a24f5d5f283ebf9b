"""The transport for requests over REST (JSON), based on Python's standard library."""

import contextlib
import http.client
import json
import re
import socket
import ssl
import threading
import urllib.parse

from t2t_lite.errors import Failure, UserError
from t2t_lite.extras.query_client.addresses import LONGEST_ANSWER, server_error
from t2t_lite.files.safe_json import check_schema, strict_json

# The gRPC code for each HTTP status of TensorFlow Serving; 502 comes from proxies.
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

_JSON = {"Content-Type": "application/json"}
_STATUS = {"model_version_status": [{"version": str | int, "state": str, "status?": {"error_message?": str}}]}


class RestTransport:
    """Calls the REST paths of a model on a server. See `client.Client` for the methods.

    Every request opens a new connection, because a proxy may have closed an idle connection.
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
        """Calls a signature, and returns {output: list}."""
        body = {"signature_name": signature, "inputs": inputs}
        outputs = self._ask("POST", f"{self._path}:predict", json.dumps(body)).get("outputs")
        return outputs if isinstance(outputs, dict) else {"outputs": outputs}

    def status(self):
        """Returns the model's versions, [(version, state, message)]."""
        answer = self._ask("GET", self._path)
        try:
            check_schema(answer, _STATUS, f"{self.address}: {self.servable}")
            return [
                (int(version["version"]), version["state"], version.get("status", {}).get("error_message", ""))
                for version in answer["model_version_status"]
            ]
        except ValueError as error:  # UserError is a ValueError
            raise Failure(f"{error} Expected an answer from TensorFlow Serving.") from None

    def stream(self, request):
        """Yields the events of a streamed completion, as dicts. The time limit applies to the wait for each event.

        Args:
            request: dict, the fields of the request except "model" and "stream".

        Raises:
            ServerError: the request was refused, or the stream failed before its end.
            UserError: a version or label was chosen.
        """
        if self.servable.version is not None or self.servable.label is not None:
            raise UserError(f"{self.servable}: only the newest version can stream. Remove the version or the label.")
        body = json.dumps({"model": self.servable.name, "stream": True, **request})
        with contextlib.closing(self._connection()) as connection, self._errors():
            connection.request("POST", f"{self.address.path}/v1/completions", body, _JSON)
            with contextlib.closing(connection.getresponse()) as answer:
                if answer.status != 200:
                    self._content(*self._read(answer))
                while (line := answer.readline(LONGEST_ANSWER)) != b"data: [DONE]\n":
                    if not line:
                        raise self._error("UNAVAILABLE", "the stream ended too early")
                    if line.startswith(b"data: "):
                        yield self._event(line.removeprefix(b"data: "))

    def _event(self, line):
        """Parses an event of a stream into a dict. Raises ServerError if the event is an error."""
        event = _parsed(line, f"{self.address}: not a t2t-server: the event", {"choices?": [{"text": str}]})
        if not event.get("choices"):
            raise self._error("INTERNAL", _message(event.get("error")) or "an event without a text")
        return event

    def signatures(self):
        """Returns the export's signatures, {name: {input: type}}."""
        answer = self._ask("GET", f"{self._path}/metadata")
        try:
            return {
                name: {key: spec["dtype"].removeprefix("DT_").lower() for key, spec in one.get("inputs", {}).items()}
                for name, one in answer["metadata"]["signature_def"]["signature_def"].items()
            }
        except (KeyError, TypeError, AttributeError):
            raise Failure(f"{self.address}: {self.servable}: the model's metadata contain no signatures.") from None

    def close(self):
        """Does nothing, because no connection is kept open."""

    def _ask(self, method, path, body=None):
        """Sends a request and returns the JSON object in the answer. The time limit is for the whole exchange."""
        connection, sockets, outcome = self._connection(), [], []

        def exchange():
            try:
                outcome.append(self._exchange(connection, sockets, method, path, body))
            except Exception as error:
                outcome.append(error)

        # A socket's timeout is not enough: it does not limit the host look-up, and it applies to each read, so that a
        # server could send single bytes forever.
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
        """Sends a request; returns (status, reason, content, Retry-After). Raises ServerError if there is no answer."""
        # The socket is kept in `sockets`, because the connection drops it once the answer has started.
        with self._errors():
            connection.connect()
            sockets.append(connection.sock)
            connection.request(method, path, body, _JSON if body else {})
            # The connection stays open until the answer is closed.
            with contextlib.closing(connection.getresponse()) as answer:
                return self._read(answer)

    def _connection(self):
        place, options = (self.address.host, self.address.port), {"timeout": self._timeout}
        if self._context is None:
            return http.client.HTTPConnection(*place, **options)
        return http.client.HTTPSConnection(*place, context=self._context, **options)

    @contextlib.contextmanager
    def _errors(self):
        """Context manager that turns errors of a connection into ServerError."""
        try:
            yield
        except TimeoutError:
            raise self._error("DEADLINE_EXCEEDED", "") from None
        except ssl.SSLError as error:
            raise self._error("CERTIFICATE", error) from None
        except (http.client.BadStatusLine, http.client.LineTooLong) as error:
            if isinstance(error, OSError):  # the server closed the connection
                raise self._error("UNAVAILABLE", error) from None
            raise self._error("UNIMPLEMENTED", "the server does not answer in HTTP") from None
        except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: a chunk's size is not a number
            raise self._error("UNAVAILABLE", getattr(error, "strerror", None) or error) from None

    def _read(self, answer):
        too_long = (answer.length or 0) > LONGEST_ANSWER
        if too_long or len(data := answer.read(LONGEST_ANSWER + 1)) > LONGEST_ANSWER:
            raise Failure(
                f"{self.address}: {self.servable}: the response is larger than {LONGEST_ANSWER:,} bytes. Send fewer "
                "sentences per request."
            )
        if answer.length:
            raise self._error("UNAVAILABLE", f"the answer ended {answer.length:,} bytes too early")
        return answer.status, answer.reason, data, answer.headers.get("Retry-After", "")

    def _content(self, status, reason, data, retry_after):
        """Returns the JSON object in an answer. Raises ServerError if the answer is an error."""
        try:
            content = _parsed(data, f"{self.address}: {self.servable}: the answer", dict)
        except Failure:
            if status == 200:
                raise
            content = {}
        if status != 200:
            code, details = _CODES.get(status, f"HTTP {status}"), _message(content.get("error"))
            error = self._error(code, details if isinstance(details, str) and details else f"HTTP {status} {reason}")
            # Retry-After may also be a date, which is ignored.
            error.retry_after = int(retry_after[:6]) if re.fullmatch("[0-9]+", retry_after) else 0
            raise error
        return content

    def _error(self, code, details):
        return server_error(code, details, self.address, self.servable, self._timeout)


def _parsed(data, where, schema):
    """Parses JSON from a server, bytes: see `check_schema`. Raises `Failure`, whose message begins with `where`."""
    try:
        value = strict_json(data)
        check_schema(value, schema, where)
    except UserError as error:
        raise Failure(str(error)) from None
    except ValueError as error:
        is_damaged = "is not a number" in str(error)  # TensorFlow Serving writes NaN
        advice = "The model is damaged: export another checkpoint." if is_damaged else "Check the port."
        raise Failure(f"{where}: not JSON: {error}. {advice}") from None
    return value


def _message(error):
    """Returns the message of an error in the format of TensorFlow Serving or OpenAI's API, or None."""
    return error.get("message") if isinstance(error, dict) else error


def _break_off(sockets):
    """Closes sockets, and wakes up threads that wait for them."""
    for connected in sockets:
        with contextlib.suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)
        connected.close()

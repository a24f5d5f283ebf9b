"""Requests to TensorFlow Serving over REST (JSON)."""

import http.client
import json
import ssl
import urllib.parse

from t2t_lite.errors import Failure
from t2t_lite.export.query import server_error

# HTTP statuses, as TensorFlow Serving has them for gRPC's codes; 502 is a proxy's.
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


class RestTransport:
    """Addresses of one model on one server. See `query.Client` for what its methods are for.

    Every request has a connection of its own: an idle one that a proxy has closed cannot fail.
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
        found = self._ask("POST", f"{self._path}:predict", json.dumps(body)).get("outputs")
        return found if isinstance(found, dict) else {"outputs": found}

    def status(self):
        """Returns [(version, state, message)]."""
        found = self._ask("GET", self._path).get("model_version_status", [])
        return [(int(one["version"]), one["state"], one.get("status", {}).get("error_message", "")) for one in found]

    def close(self):
        """Nothing is open."""

    def _ask(self, method, path, body=None):
        """Returns the JSON object of an answer."""
        place, options = (self.address.host, self.address.port), {"timeout": self._timeout}
        if self._context is None:
            connection = http.client.HTTPConnection(*place, **options)
        else:
            connection = http.client.HTTPSConnection(*place, context=self._context, **options)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            data = answer.read().decode("utf-8", "replace")
        except TimeoutError:
            raise self._error("DEADLINE_EXCEEDED", "") from None
        except ssl.SSLError as error:
            raise self._error("CERTIFICATE", error) from None
        except (http.client.BadStatusLine, http.client.LineTooLong) as error:
            if isinstance(error, OSError):  # a connection that was closed
                raise self._error("UNAVAILABLE", error) from None
            raise self._error("UNIMPLEMENTED", "it does not answer in HTTP") from None
        except (OSError, http.client.HTTPException) as error:
            raise self._error("UNAVAILABLE", getattr(error, "strerror", None) or error) from None
        finally:
            connection.close()
        try:
            found = json.loads(data)
        except ValueError:
            found = None
        if answer.status != 200:
            details = found.get("error") if isinstance(found, dict) else None
            code = _CODES.get(answer.status, f"HTTP {answer.status}")
            raise self._error(code, details or f"HTTP {answer.status} {answer.reason}")
        if not isinstance(found, dict):
            raise Failure(f"{self.address}: not a TensorFlow Serving: {data[:80]!r} is not a JSON object.")
        return found

    def _error(self, code, details):
        return server_error(code, details, self.address, self.servable, self._timeout)

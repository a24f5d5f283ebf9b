"""Describes errors of a server or of the connection to it, with advice."""

from t2t_lite.errors import Failure
from t2t_lite.files.safe_json import MOST_BYTES

LONGEST_ANSWER = MOST_BYTES  # an answer is held in memory


class ServerError(Failure):
    """A server did not answer, or answered with an error.

    Attributes:
        code: str, the name of a gRPC status code, to which REST's statuses are mapped; or CERTIFICATE.
        retry_after: int, seconds after which the request may be repeated, as set by the server.
    """

    retry_after = 0

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def server_error(code, details, address, servable, timeout):
    """Returns the ServerError for a failed request.

    Args:
        code: see `ServerError`.
        details: str, the message of the server, or of the library if the server was not reached.
        address, servable: of the request.
        timeout: float, its time limit in seconds.
    """
    details = " ".join(str(details).split())[:300].rstrip(".")
    protocol = {"grpc": "gRPC", "rest": "REST"}[address.protocol]
    message = f"{address}: {servable}: {code}: {details}."
    messages = {
        "CERTIFICATE": f"{address}: no encrypted connection: {details}. Check the TLS files, and that the server's "
        "certificate is for this host.",
        "UNAVAILABLE": f"{address}: no answer over {protocol}: {details or 'unavailable'}. Check host and port; "
        "TensorFlow Serving's are usually 8500 (gRPC) and 8501 (REST).",
        "DEADLINE_EXCEEDED": f"{address}: {servable}: no answer within {timeout:g} s. Allow more time, or ask for "
        "fewer sentences at a time.",
        "NOT_FOUND": f"{address}: {servable}: not served there: {details}. Check the name and the version.",
        "UNIMPLEMENTED": f"{address}: not a TensorFlow Serving that speaks {protocol}: {details}. Check the port.",
    }
    if code == "UNAVAILABLE" and "closed" in details:
        messages[code] += " One that closes the connection at once may want TLS, or a client's certificate."
    return ServerError(code, messages.get(code, message))

"""Describes where a request goes (server address, TLS files, model), and why a request failed."""

import dataclasses
import ipaddress
import os
import re
import ssl
import urllib.parse

from t2t_lite.decoding.texts import valid_unicode
from t2t_lite.errors import Failure, UserError, shown
from t2t_lite.settings.ranges import Range, typed_value

MODEL_VERSION = Range(0, 2**63 - 1)
TIMEOUT = Range(0.001, 10**6)  # seconds
RETRIES = Range(0, 20)
LONGEST_ANSWER = 2**24  # maximum size of an answer in bytes; answers are kept in memory
_ADDRESS = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<host>\[[0-9a-f:.]+\]|[^\s:/?#@\[\]\\]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[^\s?#\\]*)?",
    re.IGNORECASE,
)
# The path of a request. Users may append it to a server's address by mistake.
_MODEL_PATH = re.compile(r"/v1/models(?:/(?P<name>[^/:]+).*)?$|:(?:predict|classify|regress)$", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Servable:
    """A model on the server.

    Attributes:
        name: str, the model's name on the server.
        version: int, or None for the newest loaded version.
        label: str, a version's label in the server's model config, or None. `version` and `label` cannot both be given.
    """

    name: str
    version: int | None = None
    label: str | None = None

    def __post_init__(self):
        for role, name in (("name", self.name), ("label", "-" if self.label is None else self.label)):
            if not isinstance(name, str) or not name.strip() or name != valid_unicode(name):
                raise UserError(f"a model's {role} {shown(name)}: expected a text such as translate.")
        if self.version is not None:
            object.__setattr__(self, "version", typed_value("version", self.version, int, MODEL_VERSION))
        if self.version is not None and self.label is not None:
            raise UserError(f"version {self.version} and label {self.label!r}: expected at most one of them.")

    def __str__(self):
        if self.version is not None:
            return f"model {self.name!r}, version {self.version}"
        return f"model {self.name!r}" + (f", label {self.label!r}" if self.label is not None else "")


@dataclasses.dataclass(frozen=True)
class Tls:
    """The PEM files for an encrypted connection.

    Attributes:
        ca_file: str, the certificate authorities, one of which must have signed the server's certificate. If None, the
            system's authorities are used.
        cert_file, key_file: str, the client's certificate and its private key if the server requires them, or None.
    """

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None

    def context(self):
        """Returns an `ssl.SSLContext`. Raises `UserError` if a file is missing or invalid."""
        for path in (self.ca_file, self.cert_file, self.key_file):
            if path is not None and not os.path.isfile(path):
                raise UserError(f"{path}: no such file. Expected a PEM file.")
        if (self.cert_file is None) != (self.key_file is None):
            raise UserError("TLS: expected both a client certificate and its private key, or neither.")
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except ssl.SSLError:
            raise UserError(
                f"{self.ca_file}: not a certificate. Expected a PEM file with certificate authorities."
            ) from None
        if self.cert_file is not None:
            try:
                # without a password, OpenSSL would prompt for one
                context.load_cert_chain(self.cert_file, self.key_file, password=lambda: "")
            except ssl.SSLError:
                raise UserError(
                    f"{self.cert_file}, {self.key_file}: not a certificate and its private key. Expected two PEM files "
                    "that belong together, and a key without a password."
                ) from None
        return context


@dataclasses.dataclass(frozen=True)
class Address:
    """The address of a server. In a REST address, `path` comes before /v1."""

    protocol: str
    host: str
    port: int
    path: str = ""
    encrypted: bool = False

    @classmethod
    def parse(cls, server, protocol=None, encrypted=False):
        """Parses host:port, or for REST http://host:port/path or https://….

        Args:
            server: str.
            protocol: one of PROTOCOLS. If None, REST is used for an http address, and otherwise gRPC.
            encrypted: bool, whether to use TLS.

        Raises:
            UserError: the address is invalid, or contradicts another argument.
        """
        if at := _MODEL_PATH.search(server):
            base = server[: at.start()]
            model = f" and --servable_name={at['name']}" if at["name"] else ""
            raise UserError(
                f"server {shown(server)} is the address of a request. Expected only the server's address, "
                f"{base if '://' in base else f'http://{base}'}{model}."
            )
        match = _ADDRESS.fullmatch(server)
        scheme = (match["scheme"] or "").lower() if match else ""
        port = int(match["port"] or {"http": 80, "https": 443}.get(scheme, 0)) if match else 0
        host = _host(match["host"]) if match else None
        path = match["path"] if match else None
        if not host or not 0 < port < 2**16 or (path and not scheme):
            raise UserError(
                f"server {shown(server)}: expected host:port, such as localhost:8500 (gRPC) or localhost:8501 (REST), "
                "or an http:// or https:// address (REST), with a port from 1 to 65535. A path needs http:// or https://."
            )
        path = urllib.parse.quote(valid_unicode(path or ""), safe="/%:@!$&'()*+,;=~").rstrip("/")
        if scheme and protocol == "grpc":
            raise UserError(f"server {shown(server)} is a REST address. Expected host:port for gRPC.")
        if scheme == "http" and encrypted:
            raise UserError(f"server {shown(server)}: http is not encrypted. Expected https:// with TLS.")
        protocol = protocol or ("rest" if scheme else "grpc")
        return cls(protocol, host, port, path, encrypted or scheme == "https")

    def __str__(self):
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _host(text):
    """Returns a host name or address in the form that name resolution expects, or None if it is invalid."""
    try:
        if text.startswith("["):
            return str(ipaddress.IPv6Address(text[1:-1]))
        name = text.encode("idna").decode().lower()
    except ValueError:  # such as UnicodeError if a part of the name is empty or too long
        return None
    return name if re.fullmatch(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?", name) else None


class ServerError(Failure):
    """Raised if a server does not answer, or answers with an error.

    Attributes:
        code: str, "CERTIFICATE", or the name of a gRPC status code, to which HTTP statuses are mapped.
        retry_after: int, seconds after which the server allows the client to repeat the request.
    """

    retry_after = 0

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def server_error(code, details, address, servable, timeout):
    """Returns the ServerError for a failed request.

    Args:
        code: see `ServerError`.
        details: str, the server's message, or the library's message if the server was not reached.
        address, servable: Address and Servable of the request.
        timeout: float, the request's time limit in seconds.
    """
    details = " ".join(str(details).split())[:300].rstrip(".")
    protocol = {"grpc": "gRPC", "rest": "REST"}[address.protocol]
    message = f"{address}: {servable}: {code}: {details}."
    messages = {
        "CERTIFICATE": f"{address}: no encrypted connection: {details}. Check the TLS files, and whether the "
        "server's certificate was issued for this host.",
        "UNAVAILABLE": f"{address}: no answer over {protocol}: {details or 'unavailable'}. Check host and port; "
        "TensorFlow Serving's ports are usually 8500 (gRPC) and 8501 (REST).",
        "DEADLINE_EXCEEDED": f"{address}: {servable}: no answer within {timeout:g} s. Allow more time, or send fewer "
        "sentences per request.",
        "NOT_FOUND": f"{address}: {servable}: not on this server: {details}. Check the name and the version.",
        "UNIMPLEMENTED": f"{address}: not TensorFlow Serving's {protocol} port: {details}. Check the port.",
    }
    if code == "UNAVAILABLE" and "closed" in details:
        messages[code] += " A server that closes the connection immediately may need TLS, or a client certificate."
    return ServerError(code, messages.get(code, message))

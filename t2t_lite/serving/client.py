"""A client of TensorFlow Serving for exported models: addresses, certificates, retries, batches.

    client = open_client("localhost:8500", Servable("translate"))
    [answer.text for answer in client.translate(["Hello world.", "How are you?"])]

grpc_requests.py and rest_requests.py implement the protocols.
"""

import dataclasses
import functools
import ipaddress
import logging
import math
import os
import random
import re
import ssl
import time
import urllib.parse

from t2t_lite.corpora.sentences import SENTENCES
from t2t_lite.decoding.texts import check_options, check_texts, valid_unicode
from t2t_lite.errors import Failure, UserError, counted, shown
from t2t_lite.files.safe_json import check_schema
from t2t_lite.ranges import DECODE_BATCH, MODEL_VERSION, REQUEST_TIMEOUT, RETRIES, settings_of, typed_value
from t2t_lite.search_options import SearchOptions
from t2t_lite.serving import sentence_answers
from t2t_lite.serving.server_errors import ServerError

_LOGGER = logging.getLogger("t2t_lite")

PROTOCOLS = ("grpc", "rest")
# Errors that may be temporary; translating has no side effects, so repeating a request is safe.
_PASSING = ("UNAVAILABLE", "DEADLINE_EXCEEDED")
_REFUSALS = ("INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION")  # of a missing signature
_LONGEST_WAIT = 10.0  # seconds
_OPTIONS = settings_of(SearchOptions)
_COLUMNS = {"outputs": [str], "scores": [float], "truncated": [bool]}
_ADDRESS = re.compile(
    r"(?:(?P<scheme>https?)://)?(?P<host>\[[0-9a-f:.]+\]|[^\s:/?#@\[\]\\]+)(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[^\s?#\\]*)?",
    re.IGNORECASE,
)
# The path that requests add to a server's address.
_MODEL_PATH = re.compile(r"/v1/models(?:/(?P<name>[^/:]+).*)?$|:(?:predict|classify|regress)$", re.IGNORECASE)


class NoTranslations(Failure):
    """The model answers with something other than translations, such as an encoder's classes."""


@dataclasses.dataclass(frozen=True)
class Servable:
    """A model on the server.

    Attributes:
        name: str, its name on the server.
        version: int, or None for the newest loaded one.
        label: str, a version's label in the server's model config, or None. Version and label exclude each other.
    """

    name: str
    version: int | None = None
    label: str | None = None

    def __post_init__(self):
        for what, name in (("name", self.name), ("label", "-" if self.label is None else self.label)):
            if not isinstance(name, str) or not name.strip() or name != valid_unicode(name):
                raise UserError(f"a model's {what} {shown(name)}: expected a text such as translate.")
        if self.version is not None:
            object.__setattr__(self, "version", typed_value("version", self.version, int, MODEL_VERSION))
        if self.version is not None and self.label is not None:
            raise UserError(
                f"version {self.version} and label {self.label!r}: expected at most one. A label stands for a version."
            )

    def __str__(self):
        if self.version is not None:
            return f"model {self.name!r}, version {self.version}"
        return f"model {self.name!r}" + (f", label {self.label!r}" if self.label is not None else "")


@dataclasses.dataclass(frozen=True)
class ServedAnswer:
    """The translation of one text.

    Attributes:
        text: str.
        score: float, log-probability in nats / length penalty.
        truncated: bool, whether the export truncated the text because it was too long.
        is_short: bool, whether it is so much shorter than the text that part of the text is probably not translated.
    """

    text: str
    score: float
    truncated: bool
    is_short: bool = False


@dataclasses.dataclass(frozen=True)
class Tls:
    """Files (PEM) for an encrypted connection.

    Attributes:
        ca_file: str, certificate authorities that must have signed the server's certificate; None: the system's.
        cert_file: str, the client's certificate, if the server requires one; key_file is its private key.
    """

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None

    def context(self):
        """Returns an `ssl.SSLContext`. Raises `UserError` for missing or invalid files."""
        for path in (self.ca_file, self.cert_file, self.key_file):
            if path is not None and not os.path.isfile(path):
                raise UserError(f"{path}: no such file. Expected a PEM file.")
        if (self.cert_file is None) != (self.key_file is None):
            raise UserError("TLS: a client's certificate and its private key are given together, or neither of them.")
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except ssl.SSLError:
            raise UserError(f"{self.ca_file}: not a certificate. Expected a PEM file of authorities.") from None
        if self.cert_file is not None:
            try:
                context.load_cert_chain(
                    self.cert_file, self.key_file, password=lambda: ""
                )  # never prompts on a terminal
            except ssl.SSLError:
                raise UserError(
                    f"{self.cert_file}, {self.key_file}: not a certificate and its private key. Expected PEM files "
                    "that belong together; the key without a password."
                ) from None
        return context


@dataclasses.dataclass(frozen=True)
class Address:
    """The address of a server; `path` precedes /v1 in REST addresses."""

    protocol: str
    host: str
    port: int
    path: str = ""
    encrypted: bool = False

    @classmethod
    def parse(cls, server, protocol=None, encrypted=False):
        """Parses host:port, or, for REST, http://host:port/path and https://….

        Args:
            server: str.
            protocol: one of PROTOCOLS; None: REST for an http address, otherwise gRPC.
            encrypted: bool, whether to use TLS.

        Raises:
            UserError: the address is invalid, or contradicts another argument.
        """
        if at := _MODEL_PATH.search(server):
            base = server[: at.start()]
            model = f" and --servable_name={at['name']}" if at["name"] else ""
            raise UserError(
                f"server {shown(server)}: that is where a request goes. Expected the server alone, "
                f"{base if '://' in base else f'http://{base}'}{model}."
            )
        match = _ADDRESS.fullmatch(server)
        scheme = (match["scheme"] or "").lower() if match else ""
        port = int(match["port"] or {"http": 80, "https": 443}.get(scheme, 0)) if match else 0
        host = _host(match["host"]) if match else None
        if not host or not 0 < port < 2**16:
            raise UserError(
                f"server {shown(server)}: expected host:port, such as localhost:8500 (gRPC) or localhost:8501 (REST), "
                "or an http:// or https:// address (REST); ports are 1 to 65535."
            )
        path = urllib.parse.quote(valid_unicode(match["path"] or ""), safe="/%:@!$&'()*+,;=~").rstrip("/")
        if not scheme and path:
            raise UserError(f"server {shown(server)}: a path needs http:// or https:// before the host.")
        if scheme and protocol == "grpc":
            raise UserError(f"server {shown(server)}: that is a REST address. Expected host:port for gRPC.")
        if scheme == "http" and encrypted:
            raise UserError(f"server {shown(server)}: http is not encrypted. Expected https:// with TLS.")
        protocol = protocol or ("rest" if scheme else "grpc")
        return cls(protocol, host, port, path, encrypted or scheme == "https")

    def __str__(self):
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _host(text):
    """Returns a host's name or address in the form for name resolution, or None if it is invalid."""
    try:
        if text.startswith("["):
            return str(ipaddress.IPv6Address(text[1:-1]))
        name = text.encode("idna").decode().lower()
    except ValueError:  # UnicodeError too: a part of the name is empty, or too long
        return None
    return name if re.fullmatch(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?", name) else None


class Client:
    """Translates through a server; thread-safe. `open_client` creates it.

    Attributes:
        transport: has `predict(signature, inputs) -> {output: list}`, of inputs {name: list of str, float or int}, and
            `status() -> [(version, state, message)]`; they raise ServerError.
        retries: int, number of times that a failed request is repeated.
        first_wait: float, seconds before the first retry. The wait doubles each time and varies randomly, so that
            clients that failed together do not retry together.
    """

    def __init__(self, transport, retries=3, first_wait=0.5):
        self.transport, self.retries, self.first_wait = transport, retries, first_wait
        self._wants_sentences = None  # until the server has been asked

    def translate(
        self,
        texts,
        *,
        split_sentences=None,
        alpha=None,
        extra_length=None,
        seed=None,
        batch_size=32,
        on_progress=None,
        **others,
    ):
        """Returns a list of ServedAnswer in the order of texts.

        Args:
            texts: list of str.
            split_sentences: "always": send the sentences of a text one by one, and join their answers; a score is their
                sum. "never": send each text as it is. None, or "auto": split texts of several sentences if the export
                has the signature `sentences`, since its model was trained on single sentences.
            alpha, extra_length: float and int, both or neither: see `SearchOptions`. None: the export's.
            seed: int, instead of alpha if the export samples.
            batch_size: int, texts per request; texts of similar length are batched together.
            on_progress: None, or a function called with the number of texts just translated.

        Raises:
            ServerError: there was no answer after all retries.
            Failure: the answer is not that of an exported model that generates text; `NoTranslations` if the model is
                of another kind.
            UserError: an option is out of range, or lacks the other one.
            TypeError: texts is not a list of str, or there are other arguments, which are fixed in the export.
        """
        names = ("alpha", "extra_length", "seed", "split_sentences", "batch_size", "on_progress")
        check_options(others, names, "translate")
        texts = check_texts(texts)
        options = {"alpha": alpha, "seed": seed, "extra_length": extra_length}
        if parts := sentence_answers.parts_of(texts, split_sentences, self._has_sentences):
            translate = functools.partial(self.translate, split_sentences="never", batch_size=batch_size, **options)
            return sentence_answers.joined(translate, parts, on_progress)
        options = {name: _OPTIONS[name].typed(value) for name, value in options.items() if value is not None}
        if options and (len(options) != 2 or extra_length is None):
            raise UserError(
                f"{', '.join(options)}: expected alpha and extra_length, or, of an export that samples, seed and "
                "extra_length; the export's own are not known here."
            )
        signature = "with_options" if options else "serving_default"
        answers = [None] * len(texts)
        for places in _batches(texts, batch_size):
            inputs = {"inputs": [texts[i] for i in places]}
            # One value per text, because a server that batches requests does not accept scalars.
            inputs |= {name: [value] * len(places) for name, value in options.items()}
            outputs = self._retrying(lambda inputs=inputs: self.transport.predict(signature, inputs))
            for i, answer in zip(places, self._checked(outputs, len(places)), strict=True):
                answers[i] = dataclasses.replace(answer, is_short=sentence_answers.is_short(texts[i], answer.text))
            if on_progress:
                on_progress(len(places))
        return answers

    def predict(self, inputs, *, signature="serving_default", batch_size=32, on_progress=None):
        """Calls a signature of an export that does not translate, such as an encoder's: see docs/serving.md.

        Args:
            inputs: {name: list of str}, all of the same length.
            signature: str.
            batch_size, on_progress: as for `translate`.

        Returns:
            A list of {name of the output: value}, one per text. A value that is a list may be padded.

        Raises:
            ServerError: there was no answer after all retries.
            Failure: the number of answers is wrong.
            UserError, TypeError: the inputs are not lists of str of the same length.
        """
        inputs = {name: check_texts(texts, name) for name, texts in inputs.items()}
        if len({*map(len, inputs.values())}) != 1:
            numbers = ", ".join(f"{len(texts)} {name}" for name, texts in inputs.items())
            raise UserError(f"inputs: {numbers or 'none'}. Expected lists of equally many texts.")
        joined = ["".join(row) for row in zip(*inputs.values(), strict=True)]
        answers = [None] * len(joined)
        for places in _batches(joined, batch_size):
            part = {name: [texts[i] for i in places] for name, texts in inputs.items()}
            outputs = self._retrying(lambda part=part: self.transport.predict(signature, part))
            if wrong := [
                name for name, rows in outputs.items() if not isinstance(rows, list) or len(rows) != len(places)
            ]:
                raise Failure(
                    f"{self.transport.address}: {self.transport.servable}: {wrong[0]} is not a list of "
                    f"{counted(len(places), 'answer')}. Expected one for each text."
                )
            for at, i in enumerate(places):
                answers[i] = {name: rows[at] for name, rows in outputs.items()}
            if on_progress:
                on_progress(len(places))
        return answers

    def status(self):
        """Returns [(version, state, message)] of the model: int, a state such as "AVAILABLE", and an error or ""."""
        return self._retrying(self.transport.status)

    def close(self):
        """Closes the connection."""
        self.transport.close()

    def _has_sentences(self):
        """Returns whether the export has the signature `sentences`; asks the server only once."""
        if self._wants_sentences is None:
            try:
                self._retrying(lambda: self.transport.predict(SENTENCES, {"inputs": [""]}))
                self._wants_sentences = True
            except ServerError as error:
                if error.code not in _REFUSALS:
                    raise
                self._wants_sentences = False
        return self._wants_sentences

    def _retrying(self, call):
        for attempt in range(self.retries + 1):
            try:
                return call()
            except ServerError as error:
                if error.code not in _PASSING or attempt == self.retries:
                    raise
                wait = min(self.first_wait * 2**attempt, _LONGEST_WAIT) * random.uniform(0.5, 1)
                wait += min(error.retry_after, _LONGEST_WAIT)
                _LOGGER.warning(f"{error.code}: asking again in {wait:.1f} s ({attempt + 1} of {self.retries}).")
                time.sleep(wait)

    def _checked(self, outputs, count):
        """Checks the outputs of a signature and returns a list of ServedAnswer."""
        where = f"{self.transport.address}: {self.transport.servable}"
        try:
            check_schema(outputs, _COLUMNS, where)
        except UserError as error:
            expected = f"Expected outputs, scores and truncated of {counted(count, 'text')}"
            if "outputs" not in outputs and "truncated" in outputs:
                raise NoTranslations(
                    f"{where}: answers with {', '.join(outputs)}. {expected}, as a model that makes texts has; "
                    "Client.predict returns the answers of others."
                ) from None
            raise Failure(f"{error} {expected}, as exports of t2t-exporter have.") from None
        if sizes := [f"{len(outputs[name])} {name}" for name in _COLUMNS if len(outputs[name]) != count]:
            raise Failure(f"{where}: answers {', '.join(sizes)} for {counted(count, 'text')}. Expected one for each.")
        if not all(map(math.isfinite, outputs["scores"])):
            raise Failure(f"{where}: a score is not finite: the model is damaged. Export it from another checkpoint.")
        texts = map(valid_unicode, outputs["outputs"])
        return [ServedAnswer(*row) for row in zip(texts, outputs["scores"], outputs["truncated"], strict=True)]


def _batches(texts, batch_size):
    """Yields lists of indices of texts; texts of similar length are batched together."""
    batch_size = typed_value("batch_size", batch_size, int, DECODE_BATCH)
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def open_client(server, servable, *, protocol=None, tls=None, timeout=10.0, retries=3):
    """Returns a Client. It connects with the first request.

    Args:
        server: str, host:port, or an http address for REST.
        servable: Servable.
        protocol: "grpc" or "rest"; None: see `Address.parse`.
        tls: Tls; None: not encrypted, unless the address is https.
        timeout: float, seconds for one request, from looking up the host to the answer's last byte; each retry has
            the same time.
        retries: int, number of times that a request is repeated if the server was not available (gRPC's UNAVAILABLE,
            REST's 503) or did not answer in time.

    Raises:
        UserError: an invalid address or file, or gRPC without the packages of `t2t_lite[serving]`.
    """
    timeout, retries = (
        typed_value("timeout", timeout, float, REQUEST_TIMEOUT),
        typed_value("retries", retries, int, RETRIES),
    )
    address = Address.parse(server, protocol, tls is not None)
    tls = tls or (Tls() if address.encrypted else None)
    if address.protocol == "rest":
        from t2t_lite.serving.rest_requests import RestTransport as Transport
    else:
        from t2t_lite.serving.grpc_requests import GrpcTransport as Transport
    return Client(Transport(address, servable, tls, timeout), retries)

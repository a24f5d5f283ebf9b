"""A client for exported models on TensorFlow Serving or t2t-server; it sends batches and retries failed requests.

    client = open_client("localhost:8500", Servable("translate"))
    [answer.text for answer in client.translate(["Hello world.", "How are you?"])]

grpc_requests.py and rest_requests.py implement the protocols.
"""

import functools
import random
import time

from t2t_lite.corpora.sentences import SENTENCES
from t2t_lite.decoding.texts import check_texts, in_batches
from t2t_lite.errors import LOGGER, Failure, UserError, counted
from t2t_lite.extras.query_client.addresses import RETRIES, TIMEOUT, Address, Servable, ServerError, Tls
from t2t_lite.extras.query_client.served_answers import NoTranslations, ServedAnswer, answer_of, answer_parts, parts_of
from t2t_lite.settings.ranges import settings_of, typed_value
from t2t_lite.settings.search_options import SearchOptions

__all__ = ["PROTOCOLS", "Address", "Client", "NoTranslations", "Servable", "ServedAnswer", "Tls", "open_client"]

PROTOCOLS = ("grpc", "rest")
# Codes of errors that may be temporary. Repeating a request is safe, because translating has no side effects.
_PASSING = ("UNAVAILABLE", "DEADLINE_EXCEEDED")
_REFUSALS = ("INVALID_ARGUMENT", "FAILED_PRECONDITION")  # gRPC codes of a server that lacks a signature
_LONGEST_WAIT = 10.0  # seconds
_OPTIONS = settings_of(SearchOptions)


class Client:
    """Translates texts with a model on a server. Thread-safe; created by `open_client`.

    Attributes:
        transport: an object with the methods `predict(signature, inputs) -> {output: list}`, where inputs are {name:
            list of str, float or int}, `status() -> [(version, state, message)]` and `signatures() -> {name: {input:
            type}}`. The methods raise ServerError.
        retries: int, maximum number of times to repeat a failed request.
        first_wait: float, seconds before the first retry. The wait doubles each time, and is randomized so that clients
            that failed together do not retry together.
    """

    def __init__(self, transport, retries=3, first_wait=0.5):
        self.transport, self.retries, self.first_wait = transport, retries, first_wait
        self._wants_sentences = None  # whether to split texts; None until the server has been asked

    def translate(
        self, texts, *, split_sentences=None, alpha=None, extra_length=None, seed=None, batch_size=32, on_progress=None
    ):
        """Translates texts, and returns a list of ServedAnswer in the same order.

        Args:
            texts: list of str.
            split_sentences: "always" translates each sentence of a text separately, joins the translations and adds the
                scores. "never" sends each text unchanged. None or "auto" splits texts if the export has the signature
                `sentences`, which means that the model was trained on single sentences.
            alpha, extra_length: float and int, see `SearchOptions`; give both or neither. If None, the export's
                values are used. All other options of the search are fixed in the export.
            seed: int, to be given instead of alpha if the export samples.
            batch_size: int, number of texts per request. Texts of similar length are batched together.
            on_progress: None, or a function called with the number of texts just translated.

        Raises:
            ServerError: the server has not answered after all retries.
            Failure: the answer does not have the format of an exported model that generates text. If it has the format
                of another kind of model, the error is a `NoTranslations`.
            UserError: an option is out of range, or only one of alpha (or seed) and extra_length is given.
            TypeError: texts is not a list of str.
        """
        texts = check_texts(texts)
        options = {"alpha": alpha, "seed": seed, "extra_length": extra_length}
        if parts := parts_of(texts, split_sentences, self._has_sentences):
            translate = functools.partial(self.translate, split_sentences="never", batch_size=batch_size, **options)
            return answer_parts(translate, parts, on_progress)
        options = {name: _OPTIONS[name].typed(value) for name, value in options.items() if value is not None}
        if options and (len(options) != 2 or extra_length is None):
            raise UserError(
                f"{', '.join(options)}: expected both alpha and extra_length, or for an export that samples, both seed "
                "and extra_length, because the client does not know the export's values."
            )
        signature = "with_options" if options else "serving_default"
        # Each text has its own value, because a server that batches requests does not accept scalars.
        inputs = {"inputs": texts} | {name: [value] * len(texts) for name, value in options.items()}
        return self._answers(signature, inputs, texts, batch_size, on_progress, self._checked)

    def n_best(self, texts, *, count=None, split_sentences=None, batch_size=32, on_progress=None):
        """Translates texts, and returns a list of ServedAnswer with up to `count` hypotheses, in the same order.

        Args:
            texts, split_sentences, batch_size, on_progress: see `translate`. If a text is split, its k-th hypothesis
                joins the k-th hypotheses of its sentences.
            count: int, at most the beam size of the export, or None for all hypotheses.

        Raises:
            ServerError, Failure, UserError, TypeError: see `translate`; also Failure if the export has no signature
                `n_best`, and UserError if it has fewer than `count` hypotheses, or if `count` is not a positive number.
        """
        texts, count = check_texts(texts), None if count is None else _OPTIONS["n_best"].typed(count)
        if parts := parts_of(texts, split_sentences, self._has_sentences):
            translate = functools.partial(self.n_best, count=count, split_sentences="never", batch_size=batch_size)
            return answer_parts(translate, parts, on_progress)
        checked = functools.partial(self._checked, count=count)
        return self._answers("n_best", {"inputs": texts}, texts, batch_size, on_progress, checked)

    def stream(self, prompt, **options):
        """Streams the continuation of a text from a t2t-server over REST. A failed request is not repeated.

        Args:
            prompt: str.
            **options: fields of the request such as max_tokens, temperature and stop, see docs/extras/serving.md; `n`
                must be 1.

        Yields:
            str, each part of the continuation when it arrives.

        Raises:
            ServerError: the request was refused, or the stream broke off before the continuation was complete.
            UserError: the client uses gRPC, a version was chosen, or `n` is not 1.
        """
        if not hasattr(self.transport, "stream"):
            raise UserError(f"{self.transport.address}: streaming needs REST. Expected http://host:port of t2t-server.")
        if options.get("n") not in (None, 1):
            raise UserError(f"n={options['n']}: a stream has one continuation. Call stream again with another seed.")
        (prompt,) = check_texts([prompt])
        for event in self.transport.stream({"prompt": prompt, **options}):
            yield event["choices"][0]["text"]

    def signatures(self):
        """Returns the signatures of the export, {signature: {input: its type, such as "string"}}."""
        return self._retrying(self.transport.signatures)

    def predict(self, inputs, *, signature="serving_default", batch_size=32, on_progress=None):
        """Calls a signature of any export, such as an encoder's (see docs/serving.md), and returns its outputs.

        Args:
            inputs: {name: list of str}, all of the same length.
            signature: str, the name of the signature.
            batch_size, on_progress: see `translate`.

        Returns:
            A list of {output: value}, one dict per text. A value that is a list may be padded.

        Raises:
            ServerError: the server has not answered after all retries.
            Failure: the server returned the wrong number of answers.
            UserError, TypeError: the inputs are not lists of str of the same length.
        """
        inputs = {name: check_texts(texts, name) for name, texts in inputs.items()}
        if len({*map(len, inputs.values())}) != 1:
            numbers = ", ".join(f"{len(texts)} {name}" for name, texts in inputs.items())
            raise UserError(f"inputs: {numbers or 'none'}. Expected lists with the same number of texts.")
        joined = ["".join(row) for row in zip(*inputs.values(), strict=True)]
        return self._answers(signature, inputs, joined, batch_size, on_progress, lambda row, text: row)

    def status(self):
        """Returns the model's versions, [(version, a state such as "AVAILABLE", error message or "")]."""
        return self._retrying(self.transport.status)

    def close(self):
        """Closes the connection."""
        self.transport.close()

    def _has_sentences(self):
        """Returns whether the export has the signature `sentences`. Only the first call asks the server."""
        if self._wants_sentences is None:
            try:
                self._retrying(lambda: self.transport.predict(SENTENCES, {"inputs": [""]}))
                self._wants_sentences = True
            except ServerError as error:
                if error.code not in _REFUSALS:
                    raise
                self._wants_sentences = False
        return self._wants_sentences

    def _checked(self, row, text, count=None):
        return answer_of(row, self._where, count).checked(text)

    def _answers(self, signature, inputs, texts, batch_size, on_progress, answer):
        """Calls a signature for batches of similarly long texts.

        Returns the list of `answer(row, text)`, where `row` is {output: value} for the text. Raises `Failure` if the
        server returned the wrong number of answers.
        """
        answers = [None] * len(texts)
        for places in in_batches(texts, batch_size):
            outputs = self._called(signature, {name: [values[i] for i in places] for name, values in inputs.items()})
            if wrong := [
                name for name, rows in outputs.items() if not isinstance(rows, list) or len(rows) != len(places)
            ]:
                raise Failure(
                    f"{self._where}: {wrong[0]} is not a list of {counted(len(places), 'answer')}. Expected an answer "
                    "for each text."
                )
            for at, i in enumerate(places):
                answers[i] = answer({name: rows[at] for name, rows in outputs.items()}, texts[i])
            if on_progress:
                on_progress(len(places))
        return answers

    def _called(self, signature, inputs):
        try:
            return self._retrying(lambda: self.transport.predict(signature, inputs))
        except ServerError as error:
            if error.code in _REFUSALS and signature != "serving_default":
                self.check_signature(signature, error)
            raise

    def check_signature(self, signature, error=None):
        """Returns the inputs of a signature, {input: type}. Raises `Failure` if the export lacks the signature.

        Args:
            signature: str.
            error: ServerError of a failed call; it is raised if the signatures cannot be requested.
        """
        try:
            known = self.signatures()
        except Failure:
            if error is None:
                raise
            raise error from None
        if signature not in known or signature.startswith("__"):  # signatures named "__…" are internal
            raise Failure(
                f"{self._where}: no signature {signature}. The export has "
                f"{', '.join(sorted(name for name in known if not name.startswith('__')))}."
            ) from None
        return known[signature]

    def _retrying(self, call):
        for attempt in range(self.retries + 1):
            try:
                return call()
            except ServerError as error:
                if error.code not in _PASSING or attempt == self.retries:
                    raise
                wait = min(self.first_wait * 2**attempt, _LONGEST_WAIT) * random.uniform(0.5, 1)
                wait += min(error.retry_after, _LONGEST_WAIT)
                LOGGER.warning(f"{error.code}: retrying in {wait:.1f} s ({attempt + 1} of {self.retries}).")
                time.sleep(wait)

    @property
    def _where(self):
        return f"{self.transport.address}: {self.transport.servable}"


def open_client(server, servable, *, protocol=None, tls=None, timeout=10.0, retries=3):
    """Returns a Client, which connects with its first request.

    Args:
        server: str, host:port, or an http(s) address for REST.
        servable: Servable.
        protocol: "grpc", "rest" or None, see `Address.parse`.
        tls: Tls. If None, the connection is encrypted only if the address is https.
        timeout: float, time limit of a request in seconds, from the host look-up to the answer's last byte. Each retry
            has the same limit.
        retries: int, maximum number of times to repeat a request if the server is unavailable (UNAVAILABLE in gRPC, 503
            in REST) or does not answer in time.

    Raises:
        UserError: an address or a file is invalid, or the packages of `t2t_lite[serving]` for gRPC are missing.
    """
    timeout = typed_value("timeout", timeout, float, TIMEOUT)
    retries = typed_value("retries", retries, int, RETRIES)
    address = Address.parse(server, protocol, tls is not None)
    tls = tls or (Tls() if address.encrypted else None)
    if address.protocol == "rest":
        from t2t_lite.extras.query_client.rest_requests import RestTransport as Transport
    else:
        from t2t_lite.extras.query_client.grpc_requests import GrpcTransport as Transport
    return Client(Transport(address, servable, tls, timeout), retries)

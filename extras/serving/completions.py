"""Serves completions, whole or as server-sent events, in the format of OpenAI's API (docs/extras/serving.md)."""

import dataclasses
import json
import logging
import threading
import time
import uuid

from t2t_lite.errors import UserError, nearest
from t2t_lite.extras.serving.refusals import FAILED, Refusal
from t2t_lite.extras.serving.served_export import model_errors
from t2t_lite.files.safe_json import check_schema
from t2t_lite.settings.ranges import Range, typed_value
from t2t_lite.settings.search_options import SearchOptions

_LOGGER = logging.getLogger("t2t_lite")
PATH = "/v1/completions"
HEADERS = [
    ("Content-Type", "text/event-stream; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("X-Accel-Buffering", "no"),  # otherwise nginx buffers the events
]
_LAST_SECONDS = 20.0  # grace period for open streams when the server stops
_DONE = b"data: [DONE]\n\n"
_LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
_SAMPLING = ("temperature", "top_p", "top_k")
_NUMBERS = (*_SAMPLING, "seed", "no_repeat_ngram_size", "repetition_penalty", "max_tokens")
_READ = {"model": str, "prompt": str | list, "stream": bool, "stop": str | list, **dict.fromkeys(_NUMBERS, float)}
# Parameters that clients send although they have no effect here.
_UNREAD = {
    "n": float, "best_of": float, "echo": bool, "suffix": str, "logprobs": float, "logit_bias": dict,
    "presence_penalty": float, "frequency_penalty": float, "user": str, "stream_options": dict,
}  # fmt: skip
# The only supported values of these parameters.
_NEUTRAL = {
    "n": [1], "best_of": [1], "echo": [False], "suffix": [""], "logprobs": [], "logit_bias": [{}],
    "presence_penalty": [0], "frequency_penalty": [0],
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class CompletionRequest:
    """A request for a completion.

    Attributes:
        prompt: str.
        is_streamed: bool.
        max_tokens: int, the maximum number of ids in the continuation.
        options: SearchOptions.
    """

    prompt: str
    is_streamed: bool
    max_tokens: int
    options: SearchOptions

    @classmethod
    def parse(cls, request, defaults, most_tokens):
        """Returns the CompletionRequest that a request's body describes.

        The text is sampled if the request has `temperature`, `top_p` or `top_k`, or if sampling is the export's
        default. A `temperature` of 0 means greedy search.

        Args:
            request: dict, the body. A null counts as missing.
            defaults: SearchOptions, the defaults of the export.
            most_tokens: int, the limit for `max_tokens`.

        Raises:
            Refusal: a name is unknown, or a value has the wrong type or is not supported.
        """
        given = {name: value for name, value in request.items() if value is not None}
        try:
            for name, value in given.items():
                _check(name, value)
            is_streamed = given.get("stream", False)
            limits = Range(1, most_tokens)
            max_tokens = typed_value("max_tokens", given.get("max_tokens", defaults.extra_length), int, limits)
            return cls(_prompt(given), is_streamed, max_tokens, _options(given, defaults))
        except UserError as error:
            raise Refusal(str(error)) from None


def _check(name, value):
    """Raises `Refusal` or `UserError` if a name is unknown, or a value has the wrong type or is not supported."""
    kinds = _READ | _UNREAD
    if name not in kinds:
        raise Refusal(f"{name[:200]}: unknown. {nearest(name[:200], _READ) or ''}".rstrip())
    check_schema(value, kinds[name], name)
    if name in _NEUTRAL and value not in _NEUTRAL[name]:
        only = f"only {_NEUTRAL[name][0]!r} is supported" if _NEUTRAL[name] else "not supported"
        raise Refusal(f"{name}: {only}. Remove it.")


def _prompt(given):
    prompt = given.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise Refusal("prompt: expected a single text. Send several texts in separate requests.")
    return prompt


def _options(given, defaults):
    search = vars(defaults) | {name: given[name] for name in (*_NUMBERS, "stop") if name in given}
    search.pop("max_tokens", None)
    if search["top_k"] == -1:
        search["top_k"] = 0
    is_greedy = given.get("temperature") == 0 or not (defaults.sampling or any(name in given for name in _SAMPLING))
    options = SearchOptions(
        **(search | {"sampling": True})
    )  # sampling=True checks the ranges of all values, even for greedy search
    return dataclasses.replace(options, sampling=not is_greedy)


class Completions:
    """Limits how many completions a server generates at the same time.

    When a client disconnects, its slot is free immediately, even while a step of its text is being computed or traced.

    Args:
        most: int, the maximum number of open completions.
    """

    def __init__(self, most):
        self._most, self._lock = most, threading.Lock()
        # One function per unclosed completion, which returns whether its client has disconnected.
        self._abandonments = []
        self._end = float("inf")  # time.monotonic() at which open completions must end

    @property
    def num_open(self):
        """The number of open completions whose clients are still connected."""
        return sum(not is_abandoned() for is_abandoned in self._abandonments)

    def open(self, generator, request, name, is_abandoned):
        """Returns a Completion, which the caller must close. Raises `Refusal` if too many are open.

        Args:
            generator: ServedGenerator.
            request: CompletionRequest.
            name: str, the model's name.
            is_abandoned: function that returns whether the client has disconnected. Any thread may call it.
        """
        with self._lock:
            # The model may still be busy with texts of disconnected clients, and each of these texts takes memory.
            if self.num_open >= self._most or len(self._abandonments) >= 2 * self._most:
                raise Refusal(f"all {self._most} streams of the server are in use", "UNAVAILABLE")
            self._abandonments.append(is_abandoned)

        def release():
            with self._lock:
                self._abandonments.remove(is_abandoned)

        try:
            stream = generator.stream(request.prompt, request.max_tokens, request.options)
        except BaseException:
            release()
            raise
        return Completion(stream, name, is_abandoned, release, lambda: time.monotonic() > self._end)

    def end(self):
        """Ends open completions after a grace period."""
        self._end = time.monotonic() + _LAST_SECONDS


class Completion:
    """A text that is being generated.

    Args:
        stream: GenerationStream.
        name: str, the model's name.
        is_abandoned: function that returns whether the client has disconnected.
        on_close: function that is called once, by `close`.
        must_end: function that returns whether generation must stop now because the server is stopping.
    """

    def __init__(self, stream, name, is_abandoned, on_close, must_end):
        self._stream, self._is_abandoned, self._on_close, self._must_end = stream, is_abandoned, on_close, must_end
        self._head = {"id": f"cmpl-{uuid.uuid4().hex}", "object": "text_completion", "created": int(time.time())}
        self._head["model"] = name
        self._is_aborted = False

    def whole(self):
        """Generates the whole text and returns the answer, a dict. Raises `Refusal` if the client has disconnected."""
        for _ in self._parts():
            pass
        if self._is_aborted:
            raise Refusal("the server is stopping", "UNAVAILABLE")
        return self._answer(self._stream.text)

    def events(self):
        """Yields server-sent events, bytes, during generation. Raises `Refusal` if the client has disconnected."""
        for part in self._parts():
            yield _event(self._head | {"choices": [_choice(part)]})
        yield _event(self._answer("") | {"generated_text": self._stream.text})
        yield _DONE

    def close(self):
        """Frees the slot and the model's state for this text."""
        on_close, self._on_close = self._on_close, lambda: None
        on_close()
        self._stream.close()

    def _parts(self):
        while not self._must_end():
            if self._is_abandoned():
                raise Refusal("the client has disconnected", "CANCELLED")
            with model_errors():
                part = self._stream.step()
            if part is None:
                return
            if part:
                yield part
        self._is_aborted = True

    def _answer(self, text):
        """Returns the JSON object of the answer or of the last event, which gives the reason why the text ended."""
        reason = "abort" if self._is_aborted else "stop" if self._stream.ended else "length"
        counts = len(self._stream.prompt_ids), len(self._stream.ids)
        usage = dict(zip(("prompt_tokens", "completion_tokens", "total_tokens"), (*counts, sum(counts)), strict=True))
        choice = _choice(text, reason) | {"stop_reason": self._stream.stop}
        return self._head | {"choices": [choice], "usage": usage, "truncated": self._stream.truncated}


class EventStream:
    """The body of a streamed answer (PEP 3333): an iterator of bytes, which the server closes at the end or earlier.

    Args:
        completion: Completion, which `close` also closes.
        on_end: function that is called once, at the end, with the name of a gRPC code.

    Raises:
        Exception: the first event failed. The completion has then been closed.
    """

    def __init__(self, completion, on_end):
        self._completion, self._on_end, self._code = completion, on_end, "CANCELLED"
        self._events = completion.events()
        try:
            self._first = [next(self._events)]  # before the HTTP status is sent, so that an error can set it
        except BaseException:
            completion.close()
            raise

    def __iter__(self):
        return self

    def __next__(self):
        try:
            event = self._first.pop() if self._first else next(self._events, None)
        except Refusal as refusal:
            self._code, self._events = refusal.code, iter(())
            return _event(error_of(refusal.message, refusal.code))
        except Exception:
            _LOGGER.exception("A stream failed:")
            self._code, self._events = "INTERNAL", iter(())
            return _event(error_of(FAILED, "INTERNAL"))
        if event is None:
            raise StopIteration
        if event is _DONE:
            self._code = "OK"
        return event

    def close(self):
        """Closes the completion and reports the gRPC code."""
        self._completion.close()
        on_end, self._on_end = self._on_end, lambda code: None
        on_end(self._code)


def error_of(message, code):
    """Returns the JSON object of an error as OpenAI's clients expect it."""
    return {"error": {"message": message, "code": code}}


def _choice(text, reason=None):
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}


def _event(value):
    """Returns a server-sent event, bytes. Characters that some clients treat as line breaks are escaped."""
    return f"data: {json.dumps(value, ensure_ascii=False).translate(_LINE_ENDS)}\n\n".encode()

"""Serves completions, whole or as server-sent events, in the format of OpenAI's API (docs/extras/serving.md)."""

import dataclasses
import itertools
import json
import re
import threading
import time
import uuid

from t2t_lite.errors import LOGGER
from t2t_lite.extras.serving.completion_requests import NAMES
from t2t_lite.extras.serving.refusals import FAILED, Refusal
from t2t_lite.extras.serving.served_export import model_errors
from t2t_lite.settings.ranges import SAMPLING_SEED
from t2t_lite.text.vocabulary import EOS_ID

PATH = "/v1/completions"
HEADERS = [
    ("Content-Type", "text/event-stream; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("X-Accel-Buffering", "no"),  # otherwise nginx buffers the events
]
_LAST_SECONDS = 20.0  # grace period for open streams when the server stops
_DONE = b"data: [DONE]\n\n"
_LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
_NEXT_SEED = 0x9E3779B1  # step between the seeds of a prompt's samples; odd, and unlike any step that users choose
_KINDS = {"INVALID_ARGUMENT": "invalid_request_error", "NOT_FOUND": "invalid_request_error"}


class Completions:
    """Limits how many completions a server generates at the same time.

    When a client disconnects, its slot becomes free immediately, even if a step of its text is still being computed or
    traced.

    Args:
        most: int, the maximum number of open completions.
    """

    def __init__(self, most):
        self._most, self._lock = most, threading.Lock()
        # For each unclosed completion, a function that returns whether its client has disconnected.
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

        try:  # after the check, because reading millions of ids takes seconds
            prompts = [generator.read(prompt, request.needs_ids) for prompt in request.prompts]
        except BaseException:
            release()
            raise
        return Completion(generator, request, prompts, name, is_abandoned, release, self._must_end)

    def end(self):
        """Ends open completions after a grace period."""
        self._end = time.monotonic() + _LAST_SECONDS

    def _must_end(self):
        return time.monotonic() > self._end


class Completion:
    """The texts of a request: `count` continuations of each prompt, which are generated one after the other.

    Args:
        generator: ServedGenerator.
        request: CompletionRequest.
        prompts: list of `ServedPrompt`, the prompts of the request.
        name: str, the model's name.
        is_abandoned: function that returns whether the client has disconnected.
        on_close: function that is called once, by `close`.
        must_end: function that returns whether generation must stop now because the server is stopping.
    """

    def __init__(self, generator, request, prompts, name, is_abandoned, on_close, must_end):
        self._generator, self._request, self._prompts = generator, request, prompts
        self._is_abandoned, self._on_close, self._must_end = is_abandoned, on_close, must_end
        self._head = {"id": f"cmpl-{uuid.uuid4().hex}", "object": "text_completion", "created": int(time.time())}
        self._head["model"] = name
        self._stream, self._is_aborted = None, False
        self._num_tokens = [0, 0]  # number of ids in the prompts, and in the continuations

    def whole(self):
        """Generates all texts; returns the answer, a dict. Raises `Refusal` if the client has disconnected."""
        texts = self._next_ids() if self._asks_next_id() else [*itertools.starmap(self._generated, self._places())]
        if self._is_aborted:
            raise Refusal("the server is stopping", "UNAVAILABLE")
        if self._request.num_logprobs is not None and not self._asks_next_id():
            texts = self._scored(texts)
        choices = [self._choice(index, one) for index, one in enumerate(texts)]
        return self._head | {
            "choices": choices, "usage": self._usage(), "truncated": any(one.truncated for one in texts)
        }  # fmt: skip

    def events(self):
        """Yields the events, bytes, while the texts are generated. Raises `Refusal` if the client has disconnected."""
        for index, (prompt, options, number) in enumerate(self._places()):
            for part in self._parts(prompt, options):
                yield _event(self._head | {"choices": [_choice(index, part)]})
            end = self._ended(prompt, number)
            choice = _choice(index, "", end.reason) | {"stop_reason": end.stop}
            facts = {"truncated": end.truncated, "generated_text": end.text}
            if is_last := self._is_aborted or index + 1 == len(self._prompts) * self._request.count:
                facts = {"usage": self._usage()} | facts
            yield _event(self._head | {"choices": [choice]} | facts)
            if is_last:
                break
        yield _DONE

    def close(self):
        """Frees the slot and the model's state for this text."""
        self._on_close()
        if self._stream:
            self._stream.close()

    def _places(self):
        """Yields (ServedPrompt, SearchOptions, index among the prompt's texts); each sample has its own seed."""
        for prompt, number in itertools.product(self._prompts, range(self._request.count)):
            options = self._request.options
            seed = (options.seed + number * _NEXT_SEED) % (int(SAMPLING_SEED.most) + 1)
            yield prompt, dataclasses.replace(options, seed=seed) if options.sampling else options, number

    def _parts(self, prompt, options):
        """Yields the parts of a continuation."""
        self._stream = None
        self._check_client()
        if self._request.max_tokens == 0:
            return
        self._stream = self._generator.stream(prompt.source, self._request.max_tokens, options)
        while not self._must_end():
            self._check_client()
            with model_errors():
                part = self._stream.step()
            if part is None:
                return
            if part:
                yield part
        self._is_aborted = True

    def _check_client(self):
        if self._is_abandoned():
            raise Refusal("the client has disconnected", "CANCELLED")

    def _generated(self, prompt, options, number):
        """Generates a text; returns its `_Continuation`. For the arguments see `_places`."""
        if not self._is_aborted:
            for _ in self._parts(prompt, options):
                pass
        return self._ended(prompt, number)

    def _ended(self, prompt, number):
        """Returns the `_Continuation` of the stream that has just ended; see `_places` for `number`."""
        if (stream := self._stream) is None:
            self._count(prompt, prompt.ids or [], number, [])
            return _Continuation(prompt, "", [], "length")
        reason = "abort" if self._is_aborted else "stop" if stream.ended else "length"
        ids = stream.ids + [EOS_ID] * (stream.ended and stream.stop is None)
        self._count(prompt, stream.prompt_ids, number, stream.ids)
        return _Continuation(prompt, stream.text, ids, reason, stream.stop, stream.truncated)

    def _asks_next_id(self):
        """Whether scoring the prompts suffices, because each continuation is only the most probable next id."""
        options = self._request.options
        is_plain = not (options.sampling or options.stop or options.banned_texts or options.no_repeat_ngram_size)
        is_plain &= options.repetition_penalty == 1 and self._request.count == 1
        return is_plain and self._request.max_tokens == 1 and self._request.num_logprobs is not None

    def _next_ids(self):
        """Computes a `_Continuation` of one id for each prompt, with one pass over the prompts instead of streams."""
        # EOS stands at the position of the next id; its score is replaced with the score of that id.
        rows = [[*prompt.ids, EOS_ID] for prompt in self._prompts]
        texts = []
        for prompt, scores in zip(self._prompts, self._scores(rows, max(1, self._request.num_logprobs)), strict=True):
            (i,), scores.log_probs[-1:] = scores.top_ids[-1, :1].tolist(), scores.top_log_probs[-1, :1]
            text, ids = self._generator.text_after(prompt.ids, i), [i]
            self._count(prompt, prompt.ids, 0, [] if i == EOS_ID else ids)
            texts.append(_Continuation(prompt, text, ids, "stop" if i == EOS_ID else "length", scores=scores))
        return texts

    def _scored(self, texts):
        """Returns the `_Continuation`s with scores for the ids of prompts and continuations."""
        rows = [one.prompt.ids + one.ids for one in texts]
        scores = iter(self._scores([row for row in rows if row], self._request.num_logprobs))
        return [
            dataclasses.replace(one, scores=next(scores) if row else None) for one, row in zip(texts, rows, strict=True)
        ]

    def _scores(self, rows, count):
        with model_errors():
            return self._generator.scores(rows, count, lambda _: self._check_client())

    def _count(self, prompt, prompt_ids, number, ids):
        """Adds the number of a text's ids to the usage; a prompt's ids are counted with its first text."""
        self._num_tokens[0] += (len(prompt_ids) + prompt.num_begin) * (number == 0)
        self._num_tokens[1] += len(ids)

    def _usage(self):
        counts = *self._num_tokens, sum(self._num_tokens)
        return dict(zip(("prompt_tokens", "completion_tokens", "total_tokens"), counts, strict=True))

    def _choice(self, index, one):
        """Returns the JSON object of a text."""
        text = one.prompt.text + one.text if self._request.has_echo else one.text
        choice = _choice(index, text, one.reason) | {"stop_reason": one.stop}
        if self._request.num_logprobs is not None:
            texts = self._generator.token_texts
            choice["logprobs"] = texts.logprobs(one, self._request.num_logprobs, self._request.has_echo)
        return choice


@dataclasses.dataclass(frozen=True)
class _Continuation:
    """A continuation that has been generated.

    Attributes:
        prompt: ServedPrompt.
        text: str, without the prompt.
        ids: list of int, which ends in EOS if the model ended the text.
        reason: str, why generation ended, as in `finish_reason` of OpenAI's API.
        stop: str, the stop string that ended the text, or None.
        truncated: bool, whether only the end of the prompt was read.
        scores: RowScores of the prompt's ids followed by `ids`, or None.
    """

    prompt: object
    text: str
    ids: list
    reason: str
    stop: str | None = None
    truncated: bool = False
    scores: object = None


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
        events = completion.events()
        try:
            # The first event is computed before the HTTP status is sent, so that an error can set the status.
            self._events = itertools.chain([next(events)], events)
        except BaseException:
            completion.close()
            raise

    def __iter__(self):
        return self

    def __next__(self):
        try:
            event = next(self._events, None)
        except Refusal as refusal:
            self._code, self._events = refusal.code, iter(())
            return _event(error_of(refusal.message, refusal.code))
        except Exception:
            LOGGER.exception("A stream failed:")
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
        self._on_end(self._code)


def error_of(message, code):
    """Returns the JSON object of an error in the form of OpenAI's API; its `param` is the name that begins the message.

    Args:
        message: str.
        code: str, the name of a gRPC code.
    """
    named = re.match(r"(\w+)[:=]", message)
    param = named[1] if named and (named[1] in NAMES or ": unknown." in message) else None
    kind = _KINDS.get(code, "server_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def models_of(name, created):
    """Returns the answer to GET /v1/models in the form of OpenAI's API.

    Args:
        name: str, the model's name.
        created: int, time at which the export was written, in seconds since 1970.
    """
    return {"object": "list", "data": [{"id": name, "object": "model", "created": created, "owned_by": "t2t_lite"}]}


def _choice(index, text, reason=None):
    return {"index": index, "text": text, "logprobs": None, "finish_reason": reason}


def _event(value):
    """Returns a server-sent event, bytes. Characters that some clients treat as line breaks are escaped."""
    return f"data: {json.dumps(value, ensure_ascii=False).translate(_LINE_ENDS)}\n\n".encode()

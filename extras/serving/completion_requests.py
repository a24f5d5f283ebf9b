"""Parses requests for completions in OpenAI's JSON format; docs/extras/serving.md lists the parameters."""

import dataclasses

from t2t_lite.errors import UserError, nearest
from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.files.safe_json import check_schema
from t2t_lite.settings.ranges import Range, typed_value
from t2t_lite.settings.search_options import SearchOptions

MOST_LOGPROBS = 20  # maximum of `logprobs`, as in vLLM; OpenAI's servers allow 5
_SAMPLING = ("temperature", "top_p", "top_k")
_NUMBERS = (*_SAMPLING, "seed", "no_repeat_ngram_size", "repetition_penalty", "max_tokens")
_READ = {
    "model": str, "prompt": str | list, "stream": bool, "stop": str | list, "n": float, "best_of": float, "echo": bool,
    "logprobs": float, **dict.fromkeys(_NUMBERS, float),
}  # fmt: skip
# Parameters that are accepted because clients send them, but have no effect.
_UNREAD = {
    "suffix": str, "logit_bias": dict, "presence_penalty": float, "frequency_penalty": float, "user": str,
    "stream_options": dict,
}  # fmt: skip
# The only supported values of these parameters.
_NEUTRAL = {"suffix": [""], "logit_bias": [{}], "presence_penalty": [0], "frequency_penalty": [0]}
NAMES = tuple(_READ | _UNREAD)


@dataclasses.dataclass(frozen=True)
class CompletionRequest:
    """A request for completions.

    Attributes:
        prompts: tuple, in which each prompt is a str or a list of ids.
        is_streamed: bool.
        max_tokens: int, maximum number of ids in a continuation; 0 is allowed only with `has_echo`.
        options: SearchOptions.
        count: int, number of continuations per prompt.
        has_echo: bool, whether the returned texts begin with their prompts.
        num_logprobs: int, number of most probable ids listed per position; None omits log-probabilities.
    """

    prompts: tuple
    is_streamed: bool
    max_tokens: int
    options: SearchOptions
    count: int = 1
    has_echo: bool = False
    num_logprobs: int | None = None

    @property
    def needs_ids(self):
        """Whether the ids of a whole prompt are part of the answer, so that a long prompt must not be truncated."""
        return self.has_echo or self.num_logprobs is not None

    @classmethod
    def parse(cls, request, defaults, most_tokens, most_texts=1024):
        """Parses the JSON object of a request; returns a CompletionRequest.

        The request samples if it has `temperature`, `top_p` or `top_k`, or if the export samples; `temperature` 0 means
        greedy search.

        Args:
            request: dict. Values that are None count as missing.
            defaults: SearchOptions of the export.
            most_tokens: int, the largest `max_tokens`.
            most_texts: int, the maximum number of continuations in a request.

        Raises:
            Refusal: a name is unknown, or a value has the wrong type or is not supported.
        """
        fields = {name: value for name, value in request.items() if value is not None}
        try:
            for name, value in fields.items():
                _check(name, value)
            is_streamed, has_echo = fields.get("stream", False), fields.get("echo", False)
            limits = Range(0 if has_echo else 1, most_tokens)
            max_tokens = typed_value("max_tokens", fields.get("max_tokens", defaults.extra_length), int, limits)
            prompts = _prompts(fields)
            count = typed_value("n", fields.get("n", 1), int, Range(1, 128))
            num_logprobs = fields.get("logprobs")
            if num_logprobs is not None:
                num_logprobs = typed_value("logprobs", num_logprobs, int, Range(0, MOST_LOGPROBS))
            options = _options(fields, defaults)
        except UserError as error:
            raise Refusal(str(error)) from None
        if fields.get("best_of", count) != count:
            raise Refusal(f"best_of: only {count}, the value of n, is supported. Remove it.")
        if len(prompts) * count > most_texts:
            raise Refusal(f"prompt: {len(prompts)} prompts with n={count} exceed {most_texts} texts. Send fewer.")
        for name in ("echo", "logprobs"):
            if is_streamed and fields.get(name, False) is not False:
                raise Refusal(f"{name}: not supported with stream. Remove one of the two.")
        return cls(prompts, is_streamed, max_tokens, options, count, has_echo, num_logprobs)


def _check(name, value):
    """Raises `Refusal` or `UserError` if a name is unknown, or a value has the wrong type or is not supported."""
    kinds = _READ | _UNREAD
    if name not in kinds:
        raise Refusal(f"{name[:200]}: unknown. {nearest(name[:200], _READ) or ''}".rstrip())
    check_schema(value, kinds[name], name)
    if name in _NEUTRAL and value not in _NEUTRAL[name]:
        raise Refusal(f"{name}: only {_NEUTRAL[name][0]!r} is supported. Remove it.")


def _prompts(fields):
    """Returns the prompts: OpenAI's API takes a text, a list of texts, a list of ids, or a list of lists of ids."""
    prompt = fields.get("prompt")
    if isinstance(prompt, str) or _are_ids(prompt, at_least=1):
        return (prompt,)
    are_texts = isinstance(prompt, list) and all(isinstance(one, str) for one in prompt)
    if not (isinstance(prompt, list) and prompt and (are_texts or all(map(_are_ids, prompt)))):
        raise Refusal("prompt: expected a text, a list of texts, a list of ids, or a list of lists of ids.")
    return tuple(prompt)


def _are_ids(values, at_least=0):
    is_list = isinstance(values, list) and len(values) >= at_least
    return is_list and all(isinstance(i, int) for i in values)


def _options(fields, defaults):
    search = vars(defaults) | {name: fields[name] for name in (*_NUMBERS, "stop") if name in fields}
    search.pop("max_tokens", None)
    if search["top_k"] == -1:
        search["top_k"] = 0
    is_greedy = fields.get("temperature") == 0 or not (defaults.sampling or any(name in fields for name in _SAMPLING))
    # sampling=True also checks the values that greedy search ignores
    options = SearchOptions(**(search | {"sampling": True}))
    return dataclasses.replace(options, sampling=not is_greedy)

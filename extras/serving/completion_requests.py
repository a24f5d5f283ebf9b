"""Requests for completions, in the JSON of OpenAI's API, which servers of language models share."""

import dataclasses

from t2t_lite.errors import UserError, nearest
from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.files.safe_json import check_schema
from t2t_lite.settings.ranges import Range, typed_value
from t2t_lite.settings.search_options import SearchOptions

_SAMPLING = ("temperature", "top_p", "top_k")
_NUMBERS = (*_SAMPLING, "seed", "no_repeat_ngram_size", "repetition_penalty", "max_tokens")
_READ = {"model": str, "prompt": str | list, "stream": bool, "stop": str | list, **dict.fromkeys(_NUMBERS, float)}
# What clients send although it changes nothing.
_UNREAD = {
    "n": float, "best_of": float, "echo": bool, "suffix": str, "logprobs": float, "logit_bias": dict,
    "presence_penalty": float, "frequency_penalty": float, "user": str, "stream_options": dict,
}  # fmt: skip
# The only values of these that can be served.
_NEUTRAL = {
    "n": [1], "best_of": [1], "echo": [False], "suffix": [""], "logprobs": [], "logit_bias": [{}],
    "presence_penalty": [0], "frequency_penalty": [0],
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class CompletionRequest:
    """A request.

    Attributes:
        prompt: str.
        is_streamed: bool.
        max_tokens: int, the most ids of the continuation.
        options: SearchOptions.
    """

    prompt: str
    is_streamed: bool
    max_tokens: int
    options: SearchOptions

    @classmethod
    def parse(cls, request, defaults, most_tokens):
        """Returns the CompletionRequest of a body.

        It samples if `temperature`, `top_p` or `top_k` is given, and else if the export does; `temperature` 0 is
        greedy.

        Args:
            request: dict. A null is as if it were not there.
            defaults: SearchOptions of the export.
            most_tokens: int.

        Raises:
            Refusal: a name is unknown, a value is of a wrong type, or cannot be served.
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
    """Raises `Refusal` or `UserError` for an unknown name, a value of a wrong type, or one that is not served."""
    kinds = _READ | _UNREAD
    if name not in kinds:
        raise Refusal(f"{name[:200]}: unknown. {nearest(name[:200], _READ) or ''}".rstrip())
    check_schema(value, kinds[name], name)
    if name in _NEUTRAL and value not in _NEUTRAL[name]:
        only = f"only {_NEUTRAL[name][0]!r} is served" if _NEUTRAL[name] else "not served"
        raise Refusal(f"{name}: {only}. Leave it out.")


def _prompt(given):
    prompt = given.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise Refusal("prompt: expected a text. Several are sent one by one.")
    return prompt


def _options(given, defaults):
    search = vars(defaults) | {name: given[name] for name in (*_NUMBERS, "stop") if name in given}
    search.pop("max_tokens", None)
    if search["top_k"] == -1:
        search["top_k"] = 0
    is_greedy = given.get("temperature") == 0 or not (defaults.sampling or any(name in given for name in _SAMPLING))
    options = SearchOptions(**(search | {"sampling": True}))  # values out of range are errors in any case
    return dataclasses.replace(options, sampling=not is_greedy)

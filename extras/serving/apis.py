"""Paths of t2t-server that TensorFlow Serving lacks: the base class of APIs, and an API for a model's vocabulary.

To add an API, an extra has a module `in_t2t_server.py` with three functions: `define_flags(flags)`; `check(flags)`,
which may raise `UserError`; and `api(flags, versions, batcher)`, which returns an `Api`, or None if the flags do not
enable it.
"""

import typing

from t2t_lite.errors import UserError
from t2t_lite.extras.serving.completions import error_of
from t2t_lite.extras.serving.json_tensors import parse_body, to_json
from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.files.safe_json import check_schema
from t2t_lite.text.vocabulary import EOS_ID


class Body(typing.NamedTuple):
    """The body of a request.

    Attributes:
        data: bytes, decompressed.
        kind: str, its Content-Type in lower case, without parameters.
    """

    data: bytes
    kind: str


class Api:
    """Answers requests to certain paths of t2t-server.

    Attributes:
        paths: {path: HTTP method}.
    """

    paths: typing.ClassVar[dict[str, str]]

    def read(self, path, body):
        """Parses the body of a POST request. The server reads one body at a time, to limit the memory for all of them.

        Args:
            path: str, one of `paths`.
            body: Body.

        Returns:
            The argument `request` of `answer`; by default, the JSON object in the body.

        Raises:
            Refusal: the body is invalid.
        """
        return parse_body(body.data)

    def answer(self, path, request, is_abandoned):
        """Returns the JSON answer, bytes, to a request.

        Args:
            path: str, one of `paths`.
            request: the result of `read`, or None for a GET request.
            is_abandoned: function that returns whether the client has disconnected.

        Raises:
            Refusal: the request cannot be answered.
        """
        raise NotImplementedError

    def error(self, message, code):
        """Returns the JSON object of an error, given its message and the name of a gRPC code."""
        raise NotImplementedError


class TokenizerApi(Api):
    """Encodes and decodes with a language model's vocabulary, at vLLM's paths, which lm-evaluation-harness calls.

    Args:
        find: function that takes the name of a model, or None for this server's, and returns the ServedGenerator. It
            raises `Refusal` if the server has no such model.
    """

    paths: typing.ClassVar[dict[str, str]] = {"/tokenizer_info": "GET", "/tokenize": "POST", "/detokenize": "POST"}
    # `add_special_tokens` changes nothing, since no ids are added to prompts.
    _SCHEMAS: typing.ClassVar[dict] = {
        "/tokenize": {"prompt": str, "add_special_tokens?": bool, "model?": str},
        "/detokenize": {"tokens": [int], "model?": str},
    }

    def __init__(self, find):
        self._find = find

    def answer(self, path, request, is_abandoned):
        """See `Api`. A prompt that consists only of the end-of-text token, such as </s>, becomes the token's id."""
        if path == "/tokenizer_info":
            texts = self._find(None).token_texts
            return to_json({"tokenizer_class": texts.name, "bos_token": None, "eos_token": texts.end})
        schema = self._SCHEMAS[path]
        names = [name.removesuffix("?") for name in schema]
        for name in request:
            if name not in names:
                raise Refusal(f"{name[:200]}: unknown. Expected {', '.join(names)}.")
        try:
            check_schema(request, schema, path)
            generator = self._find(request.get("model"))
            if path == "/tokenize":
                prompt = request["prompt"]
                ids = [EOS_ID] if prompt == generator.token_texts.end else generator.ids_of(prompt)
                return to_json({"count": len(ids), "max_model_len": generator.longest_prompt, "tokens": ids})
            return to_json({"prompt": generator.token_texts.joined(generator.ids_of(request["tokens"], "tokens"))})
        except UserError as error:
            raise Refusal(str(error)) from None

    def error(self, message, code):
        """See `Api`."""
        return error_of(message, code)

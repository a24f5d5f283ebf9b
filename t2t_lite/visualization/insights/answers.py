"""What the answers about models of every task share: checking a request, and attention."""

import numpy as np

from t2t_lite.decoding.texts import valid_unicode
from t2t_lite.errors import UserError, counted, nearest, shown
from t2t_lite.files.safe_json import check_schema
from t2t_lite.visualization.attention_pictures import attend

_MOST_CHARACTERS = 10_000  # of a text


class Answers:
    """Answers requests, JSON objects, with JSON objects; one at a time. Every call raises `UserError` for a bad one.

    Args:
        answerer: what `t2t_lite.load` returns.

    Attributes:
        calls: tuple of the names of methods from a request to an answer.
    """

    calls = ("attention",)

    def __init__(self, answerer):
        self.answerer = answerer

    def attention(self, request):
        """Returns what the model attends to in "text".

        Returns:
            {kind: {"queries": [str], "keys": [str], "weights": [layers, heads, queries, keys]}} of the kinds
            "encoder", "decoder" and "memory", as far as the model has them.
        """
        return shown_attention(attend(self.answerer, checked(request, {"text": str})["text"]))

    def prepared(self, text):
        """Returns a text as the problem wants to have it."""
        return self.answerer.problem.input_text(text) if self.answerer.problem else text


def shown_attention(found):
    """Returns what is answered of {kind: SentenceAttention}."""
    return {
        kind: {"queries": one.queries, "keys": one.keys, "weights": [_rounded(layer) for layer in one.weights]}
        for kind, one in found.items()
    }


def checked(request, schema):
    """Returns a request with texts in valid Unicode.

    Args:
        request: a JSON value.
        schema: {name: type}, see `check_schema`; other names are not allowed.

    Raises:
        UserError: it has another form, an unknown name, or a text that is too long.
    """
    check_schema(request, schema, "request")
    known = [name.removesuffix("?") for name in schema]
    for name, value in request.items():
        if name not in known:
            raise UserError(
                f"{shown(name)}: is not known. {nearest(name, known, end=' ')}Expected some of {', '.join(known)}."
            )
        if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
            raise UserError(
                f"{name}: {counted(len(value), 'character')}. Expected at most {_MOST_CHARACTERS:,}: split the text."
            )
    return {name: valid_unicode(value) if isinstance(value, str) else value for name, value in request.items()}


def _rounded(weights):
    """Returns nested lists with the digits that a picture can show: they are most of the answer's bytes."""
    return np.round(weights.astype(float), 5).tolist()

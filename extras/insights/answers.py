"""Answers the JSON requests that models of all tasks support, and those about encoders; checks all requests."""

import time

import numpy as np

from t2t_lite.decoding.texts import valid_unicode
from t2t_lite.errors import UserError, counted, nearest, shown
from t2t_lite.extras.insights.media import picture_file
from t2t_lite.extras.pictures.pattern_pictures import draw_patterns, has_patterns, usual_length
from t2t_lite.files.safe_json import check_schema
from t2t_lite.settings.ranges import PATTERN_LENGTH, typed_value
from t2t_lite.visualization.attention_pictures import attend

_MOST_CHARACTERS = 10_000  # maximum number of characters of a text in a request


class Answers:
    """Answers JSON requests about a model, one at a time. Every call raises `UserError` for an invalid request.

    Args:
        answerer: the result of `t2t_lite.load`.

    Attributes:
        calls: tuple of str, the names of the methods that answer a request.
    """

    calls = ("attention", "patterns")

    def __init__(self, answerer):
        self.answerer = answerer
        if not has_patterns(answerer.model):
            self.leave_out("patterns")

    def leave_out(self, call):
        """Removes from `calls` a call that this model does not support."""
        self.calls = tuple(one for one in self.calls if one != call)

    def attention(self, request):
        """Returns the model's attention weights for "text".

        Returns:
            {kind: {"queries": [str], "keys": [str], "weights": [layers, heads, queries, keys]}}. The kinds are
            "encoder", "decoder" and "memory", if the model has them.
        """
        return shown_attention(attend(self.answerer, checked(request, {"text": str})["text"]))

    def patterns(self, request):
        """Draws the attention pattern for "length" positions, by default the length of the training examples.

        Returns:
            {"length": int, "picture": {"name", "type", "data" in base64}}.
        """
        request = checked(request, {"length?": int})
        length = typed_value("length", request.get("length", usual_length(self.answerer.run)), int, PATTERN_LENGTH)
        return {"length": length, "picture": picture_file("patterns", draw_patterns(self.answerer.model, length))}

    def prepared(self, text):
        """Returns a text after the problem's preprocessing."""
        return self.answerer.problem.encoded_text(text) if self.answerer.problem else text


def shown_attention(attentions):
    """Converts {kind: SentenceAttention} to JSON; weights are rounded, so that the answer is short."""
    return {
        kind: {
            "queries": attention.queries,
            "keys": attention.keys,
            "weights": [np.round(layer.astype(float), 5).tolist() for layer in attention.weights],
        }
        for kind, attention in attentions.items()
    }


def checked(request, schema):
    """Checks a request, and returns it with all texts in valid Unicode.

    Args:
        request: a JSON value.
        schema: {name: type}, see `check_schema`; other names are not allowed.

    Raises:
        UserError: the request does not match the schema, contains an unknown name, or contains a text that is too long.
    """
    check_schema(request, schema, "request")
    names = [name.removesuffix("?") for name in schema]
    for name, value in request.items():
        if name not in names:
            raise UserError(f"{shown(name)}: unknown field. {nearest(name, names, ' ')}Expected {', '.join(names)}.")
        if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
            raise UserError(
                f"{name}: {counted(len(value), 'character')}. Expected at most {_MOST_CHARACTERS:,}. Split the text."
            )
    return {name: valid_unicode(value) if isinstance(value, str) else value for name, value in request.items()}


class Predictions(Answers):
    """Answers requests about a Predictor."""

    calls = ("predict", "attention", "patterns")

    def __init__(self, answerer):
        super().__init__(answerer)
        if answerer.num_texts > 1:
            self.leave_out("attention")  # attention pictures show only one text

    def predict(self, request):
        """Predicts the answer to "text", or to "text" and "second" for tasks that read two texts.

        Returns:
            The fields of the task's answer, see `EncoderTask.as_json`. For classes, these are {"label",
            "probabilities": [{"label", "probability"}]}, in which the most probable class comes first. For display, the
            result also has {"answer": str, "lists": [[{"text", "probability"}]], "truncated": bool, "seconds": float}.
        """
        names = ["text", "second"][: self.answerer.num_texts]
        request = checked(request, dict.fromkeys(names, str))
        texts, task = tuple(request[name] for name in names), self.answerer.task
        start = time.perf_counter()
        (answer,) = getattr(self.answerer, task.method)([texts if len(texts) > 1 else texts[0]])
        text, lists = task.shown(answer)
        fields = task.as_json(answer)
        if isinstance(fields.get("probabilities"), dict):
            fields["probabilities"] = [{"label": label, "probability": share} for label, share in lists[0]]
        return {
            **fields,
            "answer": text,
            "lists": [[{"text": text, "probability": share} for text, share in alternatives] for alternatives in lists],
            "truncated": getattr(answer, "truncated", False),
            "seconds": round(time.perf_counter() - start, 4),
        }

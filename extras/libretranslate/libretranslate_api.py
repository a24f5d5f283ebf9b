"""Answers requests as LibreTranslate's API does (github.com/LibreTranslate, version 1.7)."""

import functools
import json
import re
import typing
import urllib.parse

import numpy as np

from t2t_lite.errors import UserError
from t2t_lite.extras.libretranslate.html_texts import HTMLTexts, around
from t2t_lite.extras.serving.apis import Api
from t2t_lite.extras.serving.json_tensors import parse_body, to_json
from t2t_lite.extras.serving.refusals import Refusal
from t2t_lite.extras.serving.served_export import model_errors
from t2t_lite.runs.locating import find_run, folder_of

_NAMES = ("q", "source", "target", "format", "alternatives", "api_key")
_LINE_ENDS = re.compile(r"(\r\n|\n|\r)")
_FORM = "application/x-www-form-urlencoded"


class LibreTranslateApi(Api):
    """Translates from a model's source language to its target language.

    Args:
        source, target: {"code": str, "name": str}, the languages.
        versions: ModelVersions.
        batcher: SentenceBatcher.
        most_texts: int, the maximum number of texts in a request.
    """

    paths: typing.ClassVar[dict[str, str]] = {"/translate": "POST", "/languages": "GET", "/detect": "POST"}

    def __init__(self, source, target, versions, batcher, most_texts):
        self._source, self._target, self._most_texts = source, target, most_texts
        self._versions, self._batcher = versions, batcher

    def read(self, path, body):
        """See `Api`."""
        return _fields(body) if path == "/translate" else None

    def answer(self, path, request, is_abandoned):
        """See `Api`."""
        if path == "/languages":
            code, name = self._source["code"], self._source["name"]
            languages = [{"code": code, "name": name, "targets": [self._target["code"]]}]
            return to_json([*languages, {**self._target, "targets": []}])
        if path == "/detect":
            raise Refusal(
                f"/detect: not served, because the only source language is {self._source['code']}. Select this "
                "language in your program instead of automatic detection.",
                "UNIMPLEMENTED",
            )
        return to_json({"translatedText": self._translated(request, is_abandoned)})

    def error(self, message, code):
        """See `Api`."""
        return {"error": message}

    def _translated(self, fields, is_abandoned):
        for name in fields:
            if name not in _NAMES:
                raise Refusal(f"Invalid request: unknown parameter {name[:100]}. Expected {', '.join(_NAMES)}")
        for name in ("q", "source", "target"):
            if name not in fields:
                raise Refusal(f"Invalid request: missing {name} parameter")
        self._check_languages(fields["source"], fields["target"])
        kind, texts = fields.get("format", "text"), fields["q"]
        if kind not in ("text", "html"):
            raise Refusal(f"{_shown(kind)} format is not supported. Expected text or html")
        if str(fields.get("alternatives", 0)) != "0":
            raise Refusal("alternatives: only 0 is supported")
        are_many = isinstance(texts, list)
        if not all(isinstance(text, str) for text in (texts if are_many else [texts])):
            raise Refusal("Invalid request: q parameter: expected a text or a list of texts")
        answers = self._answers(texts if are_many else [texts], kind, is_abandoned)
        return answers if are_many else answers[0]

    def _check_languages(self, source, target):
        for code, served, role in ((source, self._source, "source"), (target, self._target, "target")):
            if code == "auto" and role == "source":
                raise Refusal(f"auto: detection is not supported. Expected source {served['code']}")
            if not isinstance(code, str) or code.replace("_", "-").lower() != served["code"].lower():
                raise Refusal(f"{_shown(code)} is not supported as {role} language. Expected {served['code']}")

    def _answers(self, texts, kind, is_abandoned):
        """Returns the translations of texts, whose lines or pieces of HTML are translated separately."""
        _, export = self._versions.find()
        protects_tags = kind == "html" and self._protects_tags(export.path)
        documents = [HTMLTexts(text, protects_tags) if kind == "html" else TextLines(text) for text in texts]
        whole = self._translations(export, documents, is_abandoned)
        # If the model has lost or misplaced tags, the texts between the tags are translated separately.
        apart = [HTMLTexts(one.text, False) for one, text in zip(documents, whole, strict=True) if text is None]
        again = iter(self._translations(export, apart, is_abandoned))
        return [next(again) if text is None else text for text in whole]

    def _translations(self, export, documents, is_abandoned):
        """Returns the result of `with_translations` for each document; all pieces are translated in a single batch."""
        pieces = [piece for document in documents for piece in document.pieces]
        remaining = iter(self._run(export, pieces, is_abandoned))
        return [document.with_translations([next(remaining) for _ in document.pieces]) for document in documents]

    def _run(self, export, texts, is_abandoned):
        """Returns the translations of texts. Raises `Refusal` if there are too many texts, or a text is too long."""
        if not texts:
            return []
        if len(texts) > self._most_texts:
            raise Refusal(f"Invalid request: q has {len(texts)} lines or sentences. The limit is {self._most_texts}")
        signature = signature_of_texts(export)
        if signature is None:
            raise Refusal("/translate: the model of this server does not translate", "UNIMPLEMENTED")
        inputs = {"inputs": np.array([text.encode() for text in texts], object)}
        with model_errors():
            outputs = self._batcher.run(signature, inputs, is_abandoned=is_abandoned)
        for text, is_truncated in zip(texts, outputs["truncated"], strict=True):
            if is_truncated:
                raise Refusal(f"Invalid request: q: {_shown(text)} is longer than the model can read. Divide the text")
        return [output.decode("utf-8", "replace") for output in outputs["outputs"]]

    @functools.lru_cache(maxsize=1)  # noqa: B019  (there is one API per process)
    def _protects_tags(self, path):
        """Returns whether the model of an export copies tags unchanged."""
        problem = problem_of(path)
        return problem is not None and "tags" in getattr(problem.substitution, "kinds", ())


def problem_of(path):
    """Returns the Problem of an export, with its settings, or None if t2t-exporter did not write the export."""
    try:
        run = find_run(path)
        problem = run.problem
        problem.get_feature_encoders(folder_of(run.checkpoint))  # also reads the settings of your own corpora
    except UserError:
        return None
    return problem


def signature_of_texts(export):
    """Returns the signature of a ServedExport that translates texts, or None."""
    signature = export.signatures.get("serving_default")
    is_translation = signature is not None and signature.is_of_texts and "generate" not in export.signatures
    return signature if is_translation else None


class TextLines:
    """A text whose lines are translated separately. Line ends and the spaces around lines are kept.

    Args:
        text: str.

    Attributes:
        pieces: list of str, the lines to translate.
    """

    def __init__(self, text):
        self._parts = _LINE_ENDS.split(text)
        self.pieces = [part.strip() for part in self._parts if part.strip()]

    def with_translations(self, translations):
        """Returns the text with `pieces` replaced by their translations, a list of str."""
        remaining = iter(translations)
        return "".join(around(part, next(remaining)) if part.strip() else part for part in self._parts)


def _fields(body):
    """Returns the parameters, {name: value}, in the body of a request, which is JSON or a form."""
    if body.kind.startswith("multipart/"):
        raise Refusal(f"Invalid request: {body.kind} is not supported. Expected application/json or {_FORM}")
    if body.kind != _FORM:
        return {name: value for name, value in parse_body(body.data).items() if value is not None}
    try:
        pairs = urllib.parse.parse_qsl(body.data.decode(), keep_blank_values=True, errors="strict")
    except ValueError:  # such as a UnicodeDecodeError
        raise Refusal("Invalid request: the form is not UTF-8") from None
    fields = {}
    for name, value in pairs:
        if name in fields and name != "q":
            raise Refusal(f"Invalid request: several values of {name[:100]}. Expected a single value")
        fields.setdefault(name, []).append(value)
    return {name: values if len(values) > 1 else values[0] for name, values in fields.items()}


def _shown(value):
    """Returns a value as text for a message, at most 100 characters long."""
    return value[:100] if isinstance(value, str) else json.dumps(value)[:100]

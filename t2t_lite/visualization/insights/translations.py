"""What a page shows of a translation model: n-best lists, token probabilities, alternatives and attention, as JSON."""

import threading
import time

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.beam_search import EOS_ID
from t2t_lite.decoding.scoring import GivenTargets
from t2t_lite.decoding.texts import valid_unicode
from t2t_lite.decoding.translator import prefix_ids
from t2t_lite.errors import UserError, counted, located, nearest, shown
from t2t_lite.files.safe_json import check_schema
from t2t_lite.ranges import Range, typed_value
from t2t_lite.visualization.attention import attend
from t2t_lite.visualization.sentence_attention import BEGIN, END, MOST_TOKENS, sentence_ids

_MOST_CHARACTERS = 10_000  # of a text
_BEAM_SIZE = Range(1, 32)  # everything that a search keeps is answered
_TOP = Range(1, 100)


class Translations:
    """Answers requests, JSON objects, with JSON objects; thread-safe, one at a time.

    Args:
        translator: Translator.

    In a request, "prefix" and "target" are a text, or a list of ids as the answers give them: a text can be divided
    into other tokens than a search has chosen. Every method raises `UserError` for a request that cannot be answered.
    """

    def __init__(self, translator):
        self._translator, self._lock = translator, threading.Lock()
        self._log_probs = GivenTargets(self._traced)

    def translate(self, request):
        """Translates "text"; "beam_size", "alpha", "extra_length" and "prefix" (the output's beginning) are optional.

        Returns:
            {"translation": str, "hypotheses": [{"text", "score", "ended", "tokens": [{"token", "id", "log_prob"}]}],
            best first, as many as the beam; "source_tokens": [str], "truncated": bool, "seconds": float}.
            Log-probabilities are in nats; a score is their sum / length penalty.
        """
        text, prefix, options = self._search_of(request)
        start = time.perf_counter()
        with self._lock:
            (found,) = self._translator.translate([text], prefixes=[prefix], return_token_scores=True, **options)
        return {
            "translation": found.text,
            "hypotheses": [_hypothesis(one) for one in found.hypotheses],
            "source_tokens": found.source_tokens,
            "truncated": bool(found.truncated),
            "seconds": round(time.perf_counter() - start, 4),
        }

    def beam(self, request):
        """Returns what the search of `translate` looks at for the same request, with "text" not blank.

        Returns:
            {"nodes": [{"id", "parent", "step", "token", "token_id", "log_prob", "score", "kept", "finished"}],
            "hypotheses": [id]}. The first node is the root, each one after its parent;
            `t2t_lite.decoding.search_tree.Node` says what they mean. Hypotheses are as the search ranks them.
        """
        text, prefix, options = self._search_of(request)
        translator, encoders = self._translator, self._translator.encoders
        with self._lock:
            text = self._prepared(text)
            with located("text"):
                source = encoders["inputs"].encode(text) if text.strip() else []
            if not source:
                raise UserError("text: is blank. Expected a sentence.")
            source = [*source[: translator.checked_length(None) - 1], EOS_ID]
            options = translator.search_options(options)
            longest = translator.searcher.longest_output(len(source), options)
            prefix = prefix_ids(encoders["targets"], prefix, longest)
            nodes, hypotheses = translator.searcher.trace(source, options, prefix)
        return {"nodes": [_node(encoders["targets"], *each) for each in enumerate(nodes)], "hypotheses": hypotheses}

    def steps(self, request):
        """Scores "target", a translation of "text", with the "top" (default: 5) alternatives at each step.

        Returns:
            {"log_prob": float, "steps": [{"token", "id", "log_prob", "alternatives": [{"token", "id", "log_prob"}]}]},
            with EOS if the target is a text. The alternatives are the most probable tokens after those before.
        """
        request = _checked(request, {"text": str, "target": str | list, "top?": int})
        top = typed_value("top", request.get("top", 5), int, _TOP)
        encoder = self._translator.encoders["targets"]
        with self._lock:
            source = sentence_ids(self._translator.encoders, "inputs", self._prepared(request["text"]))
            target = self._given(request, "target")
            if isinstance(target, str):
                target = sentence_ids(self._translator.encoders, "targets", target)
            (log_probs,) = self._log_probs([source], [target])  # [length, V]
        best = np.argsort(-log_probs, axis=1, kind="stable")[:, :top]
        steps = [
            _token(encoder, i, row) | {"alternatives": [_token(encoder, j, row) for j in ids]}
            for i, ids, row in zip(target, best, log_probs, strict=True)
        ]
        return {"log_prob": sum(step["log_prob"] for step in steps), "steps": steps}

    def attention(self, request):
        """Returns what the model attends to in "text" and "target" (default: its own translation).

        Returns:
            {kind: {"queries": [str], "keys": [str], "weights": [layers, heads, queries, keys]}} of the kinds
            "encoder", "decoder" and "memory".
        """
        request = _checked(request, {"text": str, "target?": str | list})
        with self._lock:
            found = attend(self._translator, request["text"], self._given(request, "target"))
        return {
            kind: {"queries": one.queries, "keys": one.keys, "weights": [_rounded(layer) for layer in one.weights]}
            for kind, one in found.items()
        }

    def model(self):
        """Returns what is shown: problem, model and hparams_set, {"problem", "model", "hparams_set", "step"}."""
        run = self._translator.run
        if run is None:
            return {"problem": None, "model": None, "hparams_set": None, "step": None}
        return {name: run.config[name] for name in ("problem", "model", "hparams_set")} | {"step": run.step}

    def _traced(self, inputs, targets):
        logits = self._translator.model({"inputs": inputs, "targets": targets}, training=False)
        return tf.nn.log_softmax(tf.cast(logits, tf.float32))

    def _search_of(self, request):
        """Returns the text, the prefix and the options of a request for a search that answers all that it finds."""
        optional = {"beam_size?": int, "alpha?": float, "extra_length?": int, "prefix?": str | list}
        request = _checked(request, {"text": str} | optional)
        options = {name: request[name] for name in ("alpha", "extra_length") if name in request}
        beam_size = typed_value("beam_size", request.get("beam_size", 4), int, _BEAM_SIZE)
        # Compiling takes longer than a reader waits, and changes the last digits from one request to the next.
        options |= {"beam_size": beam_size, "n_best": beam_size, "compile": False}
        return request["text"], self._given(request, "prefix") or "", options

    def _given(self, request, name):
        """Returns a request's text, list of ids, or None. Raises `UserError` for ids that cannot be a target."""
        given = request.get(name)
        if isinstance(given, list):
            check_schema(given, [int], name)
            size = self._translator.encoders["targets"].vocab_size
            last = len(given) - 1 if name == "target" else -1  # only there EOS may stand
            for at, number in enumerate(given):
                if not (0 < number < size and (number != EOS_ID or at == last)):
                    raise UserError(f"{name}: item {at}: the id {number} cannot stand there (ids are below {size:,}).")
            if not given and name == "target":
                raise UserError("target: has no ids. Expected some, or a text.")
            if len(given) > MOST_TOKENS:
                raise UserError(f"{name}: {len(given):,} ids. Expected at most {MOST_TOKENS}.")
        return given

    def _prepared(self, text):
        return self._translator.problem.input_text(text) if self._translator.problem else text


def _checked(request, schema):
    """Returns a request with texts in valid Unicode.

    Raises:
        UserError: it has another form, an unknown name, or a text that is too long.
    """
    check_schema(request, schema, "request")
    known = [name.removesuffix("?") for name in schema]
    for name, value in request.items():
        if name not in known:
            raise UserError(f"{shown(name)}: is not known. {nearest(name, known)} Expected some of {', '.join(known)}.")
        if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
            raise UserError(
                f"{name}: {counted(len(value), 'character')}. Expected at most {_MOST_CHARACTERS:,}: split the text."
            )
    return {name: valid_unicode(value) if isinstance(value, str) else value for name, value in request.items()}


def _hypothesis(one):
    found = [*zip(one.tokens, one.ids, strict=True), *[(END, EOS_ID)] * one.ended] if one.token_scores else []
    tokens = [
        {"token": token, "id": number, "log_prob": log_prob}
        for (token, number), log_prob in zip(found, one.token_scores, strict=True)
    ]
    return {"text": one.text, "score": one.score, "ended": one.ended, "tokens": tokens}


def _node(encoder, at, node):
    parent, token = (None, BEGIN) if node.parent < 0 else (node.parent, _label(encoder, node.id))
    shown_of = ("step", "log_prob", "score", "kept", "finished")
    of_token = {"id": at, "parent": parent, "token": token, "token_id": node.id}
    return of_token | {name: getattr(node, name) for name in shown_of}


def _token(encoder, number, log_probs):
    return {"token": _label(encoder, number), "id": int(number), "log_prob": float(log_probs[number])}


def _label(encoder, number):
    return END if number == EOS_ID else encoder.pieces([number])[0]


def _rounded(weights):
    """Returns nested lists with the digits that a picture can show: they are most of the answer's bytes."""
    return np.round(weights.astype(float), 5).tolist()

"""What a page shows of a translation model: n-best lists, token probabilities, alternatives and attention, as JSON."""

import time

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.beam_search import EOS_ID
from t2t_lite.decoding.scoring import GivenTargets
from t2t_lite.decoding.translator import prefix_ids
from t2t_lite.errors import UserError, located
from t2t_lite.files.safe_json import check_schema
from t2t_lite.ranges import Range, typed_value
from t2t_lite.visualization.insights.answers import Answers, checked
from t2t_lite.visualization.sentence_attention import BEGIN, END, MOST_TOKENS, sentence_ids

_BEAM_SIZE = Range(1, 32)  # everything that a search keeps is answered
_TOP = Range(1, 100)


class Translations(Answers):
    """Answers of a Translator.

    In a request, "prefix" and "target" are a text, or a list of ids as the answers give them: a text can be divided
    into other tokens than a search has chosen.
    """

    calls = ("translate", "beam", "steps", "attention")

    def __init__(self, answerer):
        super().__init__(answerer)
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
        (found,) = self.answerer.translate([text], prefixes=[prefix], return_token_scores=True, **options)
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
        translator, encoders = self.answerer, self.answerer.encoders
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
        request = checked(request, {"text": str, "target": str | list, "top?": int})
        top = typed_value("top", request.get("top", 5), int, _TOP)
        encoder = self.answerer.encoders["targets"]
        source = sentence_ids(self.answerer.encoders, "inputs", self._prepared(request["text"]))
        target = self._given(request, "target")
        if isinstance(target, str):
            target = sentence_ids(self.answerer.encoders, "targets", target)
        (log_probs,) = self._log_probs([source], [target])  # [length, V]
        best = np.argsort(-log_probs, axis=1, kind="stable")[:, :top]
        steps = [
            _token(encoder, i, row) | {"alternatives": [_token(encoder, j, row) for j in ids]}
            for i, ids, row in zip(target, best, log_probs, strict=True)
        ]
        return {"log_prob": sum(step["log_prob"] for step in steps), "steps": steps}

    def attention(self, request):
        """Returns what the model attends to in "text" and "target" (default: its own translation)."""
        request = checked(request, {"text": str, "target?": str | list})
        return self._attention(request["text"], self._given(request, "target"))

    def _traced(self, inputs, targets):
        logits = self.answerer.model({"inputs": inputs, "targets": targets}, training=False)
        return tf.nn.log_softmax(tf.cast(logits, tf.float32))

    def _search_of(self, request):
        """Returns the text, the prefix and the options of a request for a search that answers all that it finds."""
        optional = {"beam_size?": int, "alpha?": float, "extra_length?": int, "prefix?": str | list}
        request = checked(request, {"text": str} | optional)
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
            size = self.answerer.encoders["targets"].vocab_size
            last = len(given) - 1 if name == "target" else -1  # only there EOS may stand
            for at, number in enumerate(given):
                if not (0 < number < size and (number != EOS_ID or at == last)):
                    raise UserError(f"{name}: item {at}: the id {number} cannot stand there (ids are below {size:,}).")
            if not given and name == "target":
                raise UserError("target: has no ids. Expected some, or a text.")
            if len(given) > MOST_TOKENS:
                raise UserError(f"{name}: {len(given):,} ids. Expected at most {MOST_TOKENS}.")
        return given


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

"""Answers JSON requests about models that generate text (search trees, probabilities) and about translation models."""

import dataclasses
import time
import types

import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.decoding.scoring import GivenTargets
from t2t_lite.decoding.texts import check_ids, prefix_ids
from t2t_lite.errors import UserError, located
from t2t_lite.extras.insights.answers import Answers, checked, shown_attention
from t2t_lite.extras.insights.media import types_written, write_files
from t2t_lite.extras.insights.search_tree import trace
from t2t_lite.models.outputs import named_outputs
from t2t_lite.settings.ranges import EXTRA_LENGTH, NEW_TOKENS, Range, typed_value
from t2t_lite.text.vocabulary import EOS_ID
from t2t_lite.visualization.attention_pictures import attend
from t2t_lite.visualization.sentence_attention import BEGIN, END, MOST_TOKENS, check_positions, sentence_ids

SAMPLING = {"sampling": bool, "temperature": float, "top_k": int, "top_p": float, "seed": int}  # optional in a request
_BEAM_SIZE = Range(1, 32)  # limited because an answer contains the whole search tree
_TOP = Range(1, 100)


class TextAnswers(Answers):
    """Answers requests about a TextModel. Subclasses define `searched` and `scored`.

    In a request, "prefix" and "target" are each a text, or a list of ids from an earlier answer. Ids are useful because
    the pieces that a search returns may differ from the pieces into which an encoder splits the same text.

    Attributes:
        asked: {name: type}, the fields of a request that hold the model's input.
        length, lengths: str and Range, the name and the range of the option that limits the output's length.
    """

    asked = types.MappingProxyType({"text": str})
    length, lengths = "extra_length", EXTRA_LENGTH

    def __init__(self, answerer):
        super().__init__(answerer)
        self._log_probs = GivenTargets(self._traced)
        if not types_written(answerer.problem):
            self.leave_out("files")

    def searched(self, request):
        """Returns the source ids for a search, given a checked request. Raises `UserError`."""
        raise NotImplementedError

    def scored(self, request, target):
        """Returns (source ids, target ids) for scoring a request's target, a text or ids. Raises `UserError`."""
        raise NotImplementedError

    def given(self, request):
        """Returns a request's input, which is a text or a list of ids. Raises `UserError`."""
        return self.prepared(request["text"])

    def beam(self, request):
        """Returns the tree of a beam search for "text".

        Returns:
            {"nodes": [{"id", "parent", "step", "token", "token_id", "log_prob", "score", "kept", "finished"}],
            "hypotheses": [id]}. The first node is the root, and each node follows its parent; see
                `t2t_lite.extras.insights.search_tree.Node`. Hypotheses are in the order of the search.
        """
        request, prefix, options = self.search_of(request)
        options = dataclasses.replace(options, sampling=False)
        source = self.searched(request)
        prefix = self.prefix_of(self.encoded_target(request, prefix), source, options)
        nodes, hypotheses = trace(self.answerer.searcher, source, options, prefix)
        encoder = self.answerer.encoders["targets"]
        return {"nodes": [_node(encoder, *node) for node in enumerate(nodes)], "hypotheses": hypotheses}

    def steps(self, request):
        """Scores "target", an output for "text", and returns the "top" (default: 5) alternatives at each step.

        Returns:
            {"log_prob": float, "steps": [{"token", "id", "log_prob", "alternatives": [{"token", "id", "log_prob"}]}]}.
            The alternatives are the most probable tokens given the previous tokens.
        """
        request = checked(request, {**self.asked, "target": str | list, "top?": int})
        top = typed_value("top", request.get("top", 5), int, _TOP)
        source, target = self.pair_of(request)
        (log_probs,) = self._log_probs([source], [target])  # [length, V]
        best = np.argsort(-log_probs, axis=1, kind="stable")[:, :top]
        encoder = self.answerer.encoders["targets"]
        steps = [
            _token(encoder, i, row) | {"alternatives": [_token(encoder, j, row) for j in ids]}
            for i, ids, row in zip(target, best, log_probs, strict=True)
        ]
        return {"log_prob": sum(step["log_prob"] for step in steps), "steps": steps}

    def files(self, request):
        """Converts "target", the ids of an output, to files with the extension "ending", using the problem's writers.

        Returns:
            {"files": [{"name", "type": media type, "data": base64}], "given": [left, top, width, height] or null, see
            `Problem.given_part`}.
        """
        request = checked(request, {**self.asked, "target": list, "ending": str})
        ids, encoders, problem = self.output_ids(request["target"]), self.answerer.encoders, self.answerer.problem
        if len(ids) > NEW_TOKENS.most:
            raise UserError(f"target: {len(ids):,} ids. Expected at most {NEW_TOKENS.most:,}.")
        given = self.given(request)
        area = problem.given_part([] if isinstance(given, str) else given, encoders)
        written = write_files(problem, encoders, request["ending"], given, ids)
        return {"files": written, "given": area and list(area)}

    def search_of(self, request, others=None):
        """Returns (checked request, prefix, SearchOptions with which a search returns the whole beam).

        Args:
            request: a JSON value.
            others: {name: type}, additional options that the request may have.
        """
        others = {"beam_size": int, "alpha": float, self.length: int, **(others or {})}
        optional = {f"{name}?": kind for name, kind in others.items()}
        request = checked(request, {**self.asked, "prefix?": str | list} | optional)
        settings = {name: request[name] for name in others if name in request}
        if self.length in settings:
            settings["extra_length"] = typed_value(self.length, settings.pop(self.length), int, self.lengths)
        beam_size = typed_value("beam_size", settings.get("beam_size", 4), int, _BEAM_SIZE)
        # The search is not compiled: compiling takes longer than a user waits, and changes the last digits from request
        # to request.
        settings |= {"beam_size": beam_size, "n_best": beam_size, "compile": False}
        return request, self.text_or_ids(request, "prefix") or "", self.answerer.search_options(settings)

    def prefix_of(self, prefix, source, options):
        """Returns the ids of a prefix (text or ids). Raises `UserError` if the output has no room for the prefix."""
        longest = self.answerer.searcher.longest_output(len(source), options)
        return prefix_ids(self.answerer.encoders["targets"], prefix, longest) if prefix else []

    def encoded_target(self, request, target):
        """Returns a target text after the problem's preprocessing; a target of ids is returned unchanged."""
        problem = self.answerer.problem
        return problem.encoded_target(target, request["text"]) if problem and "text" in request else target

    def pair_of(self, request):
        """Returns (source ids, target ids) for scoring. Raises `UserError` if the model cannot read them."""
        source, target = self.scored(request, self.text_or_ids(request, "target"))
        check_positions(self.answerer.model, {"inputs": source, "targets": target})
        return source, target

    def text_or_ids(self, request, name):
        """Returns a field of a request: a text, a list of ids, or None. Raises `UserError` for invalid ids."""
        value = request.get(name)
        if isinstance(value, list):
            self.output_ids(value, name)
            if not value and name == "target":
                raise UserError("target is empty. Expected at least one id, or a text.")
            if len(value) > MOST_TOKENS:
                raise UserError(f"{name}: {len(value):,} ids. Expected at most {MOST_TOKENS}.")
        return value

    def output_ids(self, ids, name="target"):
        """Returns the ids of a request's target, without EOS at their end, or of a prefix. Raises `UserError`."""
        size, may_end = self.answerer.encoders["targets"].vocab_size, name == "target" and ids[-1:] == [EOS_ID]
        with located(name):
            check_ids(ids, size)  # true and 1.0, which equal EOS, are not ids
            return check_ids(ids[:-1] if may_end else ids, size, least=2)

    def _traced(self, inputs, targets):
        logits, _ = named_outputs(self.answerer.model({"inputs": inputs, "targets": targets}, training=False))
        return tf.nn.log_softmax(tf.cast(logits["targets"], tf.float32))


class Translations(TextAnswers):
    """Answers requests about a Translator."""

    calls = ("translate", "beam", "steps", "attention", "ponder", "patterns", "files")

    def __init__(self, answerer):
        super().__init__(answerer)
        if hasattr(answerer.model, "ponder_steps") and "ponder_steps" in registry.list_tellers():
            self._ponder_steps = registry.teller("ponder_steps")(answerer.model)
        else:
            self.leave_out("ponder")

    def translate(self, request):
        """Translates "text". Optional: "beam_size", "alpha", "extra_length" and "prefix" (the start of the output).

        Also optional are the fields for sampling: see `Generations.generate`.

        Returns:
            {"translation": str, "hypotheses": [{"text", "score", "ended", "tokens": [{"token", "id", "log_prob"}]}],
            best first, one per beam; "source_tokens": [str], "truncated": bool, "seconds": float}. Log-probabilities
            are in nats; a score is the sum of the log-probabilities, divided by the length penalty.
        """
        start = time.perf_counter()
        request, prefix, options = self.search_of(request, SAMPLING)
        (translation,) = self.answerer.translate(
            [request["text"]],
            split_sentences="never",  # the page shows a single search
            prefixes=[prefix],
            return_token_scores=True,
            **dataclasses.asdict(options),
        )
        return {
            "translation": translation.text,
            "hypotheses": [shown_hypothesis(hypothesis) for hypothesis in translation.hypotheses],
            "source_tokens": translation.source_tokens,
            "truncated": bool(translation.truncated),
            "seconds": round(time.perf_counter() - start, 4),
        }

    def attention(self, request):
        """Returns the model's attention weights for "text" and "target" (default: the model's translation)."""
        request = checked(request, {**self.asked, "target?": str | list})
        return shown_attention(attend(self.answerer, request["text"], self.text_or_ids(request, "target")))

    def ponder(self, request):
        """Returns the number of ponder steps for each piece of "text" and of "target", an output for "text".

        Returns:
            {"source": [{"token": str, "steps": int}], "output": a list like "source"}, without EOS.
        """
        request = checked(request, {**self.asked, "target": str | list})
        pair = self.pair_of(request)
        (steps,) = self._ponder_steps(*([ids] for ids in pair))
        encoders = (self.answerer.encoders[side] for side in ("inputs", "targets"))
        return {
            name: [{"token": token, "steps": count} for token, count in zip(encoder.pieces(ids), counts, strict=False)]
            for name, encoder, ids, counts in zip(("source", "output"), encoders, pair, steps, strict=True)
        }

    def searched(self, request):
        """Returns the source ids with EOS, as `translate` reads them. Raises `UserError` if the text is blank."""
        reader = self.answerer.reader(split_sentences="never")
        with located("text"):
            (source,) = reader.read(request["text"]).sources
        if not source.ids:
            raise UserError("text is blank. Expected a sentence.")
        return [*source.ids[: reader.limit - 1], EOS_ID]

    def scored(self, request, target):
        """Returns the source ids with EOS, and the target ids, to which EOS is added if the target is a text."""
        encoders, target = self.answerer.encoders, self.encoded_target(request, target)
        source = sentence_ids(encoders["inputs"], self.given(request), "text")
        return source, sentence_ids(encoders["targets"], target, "target") if isinstance(target, str) else target


def shown_hypothesis(hypothesis):
    """Converts a Hypothesis with token scores to JSON."""
    ids = [*zip(hypothesis.tokens, hypothesis.ids, strict=True)]
    pairs = [*ids, (END, EOS_ID)][: len(hypothesis.token_scores)]  # no EOS after a stop string or at the limit
    tokens = [
        {"token": token, "id": number, "log_prob": log_prob}
        for (token, number), log_prob in zip(pairs, hypothesis.token_scores, strict=True)
    ]
    return {"text": hypothesis.text, "score": hypothesis.score, "ended": hypothesis.ended, "tokens": tokens}


def _node(encoder, at, node):
    parent, token = (None, BEGIN) if node.parent < 0 else (node.parent, _label(encoder, node.id))
    fields = ("step", "log_prob", "score", "kept", "finished")
    place = {"id": at, "parent": parent, "token": token, "token_id": node.id}
    return place | {name: getattr(node, name) for name in fields}


def _token(encoder, number, log_probs):
    return {"token": _label(encoder, number), "id": int(number), "log_prob": float(log_probs[number])}


def _label(encoder, number):
    return END if number == EOS_ID else encoder.pieces([number])[0]

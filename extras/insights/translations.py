"""The page's data about a translation model: n-best lists, their search, probabilities and attention, as JSON."""

import dataclasses
import time

from t2t_lite import registry
from t2t_lite.errors import UserError, located
from t2t_lite.extras.insights.answers import checked, shown_attention
from t2t_lite.extras.insights.text_answers import TextAnswers, shown_hypothesis
from t2t_lite.text.vocabulary import EOS_ID
from t2t_lite.visualization.attention_pictures import attend
from t2t_lite.visualization.sentence_attention import sentence_ids


class Translations(TextAnswers):
    """Answers of a Translator."""

    calls = ("translate", "beam", "steps", "attention", "ponder", "patterns", "files")
    length = "extra_length"

    def __init__(self, answerer):
        super().__init__(answerer)
        if hasattr(answerer.model, "ponder_steps") and "ponder_steps" in registry.list_tellers():
            self._ponder_steps = registry.teller("ponder_steps")(answerer.model)
        else:
            self.leave_out("ponder")

    def translate(self, request):
        """Translates "text"; "beam_size", "alpha", "extra_length" and "prefix" (the output's beginning) are optional.

        Returns:
            {"translation": str, "hypotheses": [{"text", "score", "ended", "tokens": [{"token", "id", "log_prob"}]}],
            best first, as many as the beam; "source_tokens": [str], "truncated": bool, "seconds": float}.
            Log-probabilities are in nats; a score is their sum / length penalty.
        """
        start = time.perf_counter()
        request, prefix, options = self.search_of(request)
        (translation,) = self.answerer.translate(
            [request["text"]],
            split_sentences="never",  # the page shows one search
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
        """Returns the model's attention in "text" and "target" (default: its own translation)."""
        request = checked(request, {**self.asked, "target?": str | list})
        return shown_attention(attend(self.answerer, request["text"], self.text_or_ids(request, "target")))

    def ponder(self, request):
        """Says in how many steps the model thought about each piece of "text", and of "target", an output for it.

        Returns:
            {"source": [{"token": str, "steps": int}], "output": the same}, without the ends of sentences.
        """
        request = checked(request, {**self.asked, "target": str | list})
        pair = self.scored(request, self.text_or_ids(request, "target"))
        (steps,) = self._ponder_steps(*([ids] for ids in pair))
        encoders = (self.answerer.encoders[side] for side in ("inputs", "targets"))
        return {
            name: [{"token": token, "steps": count} for token, count in zip(encoder.pieces(ids), counts, strict=False)]
            for name, encoder, ids, counts in zip(("source", "output"), encoders, pair, steps, strict=True)
        }

    def searched(self, request):
        """Returns the source's ids, EOS included, as in `translate`. Raises `UserError` if it is blank."""
        text = self.given(request)
        with located("text"):
            source = self.answerer.encoders["inputs"].encode(text) if text.strip() else []
        if not source:
            raise UserError("text: is blank. Expected a sentence.")
        return [*source[: self.answerer.checked_length(None) - 1], EOS_ID]

    def scored(self, request, target):
        """Returns the ids of both, EOS included if the target is a text. Raises `UserError`."""
        encoders = self.answerer.encoders
        source, target = sentence_ids(encoders, "inputs", self.given(request)), self.encoded_target(request, target)
        return source, sentence_ids(encoders, "targets", target) if isinstance(target, str) else target

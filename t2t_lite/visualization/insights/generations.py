"""The page's data about a language model: continuations, their search, probabilities and attention, as JSON."""

import time

from t2t_lite.decoding.scoring import token_log_probs
from t2t_lite.errors import UserError, counted, located
from t2t_lite.ranges import NEW_TOKENS, typed_value
from t2t_lite.visualization.insights.answers import checked, shown_attention
from t2t_lite.visualization.insights.text_answers import TextAnswers, shown_hypothesis
from t2t_lite.visualization.sentence_attention import MOST_TOKENS, read_attention

_SAMPLING = {"sampling": bool, "temperature": float, "top_k": int, "top_p": float, "seed": int}


class Generations(TextAnswers):
    """Answers of a Generator. A "text" is the prompt, and may be empty."""

    calls = ("generate", "beam", "steps", "attention")
    length = "max_new_tokens"

    def __init__(self, answerer):
        super().__init__(answerer)
        self._scores = token_log_probs(answerer.model)

    def generate(self, request):
        """Continues "text"; "beam_size", "alpha", "max_new_tokens" and "prefix" are optional, as is sampling.

        With "sampling" there are "beam_size" samples; see `SearchOptions` for "temperature", "top_k", "top_p", "seed".

        Returns:
            {"continuation": str, "hypotheses": [{"text", "score", "ended", "tokens": [{"token", "id", "log_prob"}]}],
            best first or in the order of sampling, "prompt_tokens": [str], "seconds": float}.
        """
        start = time.perf_counter()
        text, prefix, options = self.search_of(request, _SAMPLING)
        prompt = self.searched(text)
        prefix = self.prefix_of(prefix, prompt, options)
        (results,) = self.answerer.searcher.search([prompt], options, [prefix])
        scores = self._scores([prompt] * len(results), [result.all_ids for result in results])
        hypotheses = [
            self.answerer.hypothesis(text, result, options.stop, prompt, token_scores=log_probs.tolist())
            for result, log_probs in zip(results, scores, strict=True)
        ]
        return {
            "continuation": hypotheses[0].text,
            "hypotheses": [shown_hypothesis(hypothesis) for hypothesis in hypotheses],
            "prompt_tokens": self.answerer.encoders["targets"].pieces(prompt),
            "seconds": round(time.perf_counter() - start, 4),
        }

    def attention(self, request):
        """Returns the model's attention in "text", followed by "target" if there is one."""
        request = checked(request, {"text": str, "target?": str | list})
        prompt, target = self.searched(request["text"]), self.text_or_ids(request, "target")
        ids = [*prompt, *self._ids(target or [])]
        if not ids:
            raise UserError("text: is blank. Expected a text, or a target.")
        if len(ids) > MOST_TOKENS:
            raise UserError(f"text: {counted(len(ids), 'token')}. A picture shows at most {MOST_TOKENS}.")
        encoders = self.answerer.encoders
        text = encoders["targets"].decode(ids)
        return shown_attention(
            read_attention(self.answerer.model, encoders, {"targets": text}, {"targets": ids}, {"targets": 2})
        )

    def search_of(self, request, others=None):
        """See `TextAnswers.search_of`; the length is checked under its name here."""
        if isinstance(request, dict) and "max_new_tokens" in request:
            typed_value("max_new_tokens", request["max_new_tokens"], int, NEW_TOKENS)
        return super().search_of(request, others)

    def searched(self, text):
        """Returns the prompt's ids. Raises `UserError` if they leave no room for a continuation."""
        with located("text"):
            prompt = self.answerer.encoders["targets"].encode(self.prepared(text))
        longest = self.answerer.max_length
        if longest is not None and len(prompt) >= longest:
            raise UserError(
                f"text: {len(prompt):,} ids. The model reads {longest:,}, the continuation included: shorten the text."
            )
        return prompt

    def scored(self, text, target):
        """Returns the ids of the prompt and of the target, without an end."""
        return self.searched(text), self._ids(target)

    def _ids(self, target):
        if not isinstance(target, str):
            return target
        with located("target"):
            ids = self.answerer.encoders["targets"].encode(target)
        if not 0 < len(ids) <= MOST_TOKENS:
            raise UserError(f"target: {counted(len(ids), 'token')}. Expected from 1 to {MOST_TOKENS}.")
        return ids

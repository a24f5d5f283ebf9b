"""JSON answers about a language model: continuations, search trees, probabilities and attention."""

import time
import types

from t2t_lite.decoding.scoring import token_log_probs
from t2t_lite.decoding.texts import check_ids
from t2t_lite.errors import UserError, counted, located, printable
from t2t_lite.extras.insights.answers import checked, shown_attention
from t2t_lite.extras.insights.media import FILE, picture_file, read_file
from t2t_lite.extras.insights.text_answers import SAMPLING, TextAnswers, shown_hypothesis
from t2t_lite.settings.ranges import NEW_TOKENS
from t2t_lite.visualization.attention_pictures import attend_to_row, default_layer, draw_attention
from t2t_lite.visualization.sentence_attention import MOST_POSITIONS, MOST_TOKENS


class Generations(TextAnswers):
    """Answers requests about a Generator. The prompt is a "text", or a "file" that the problem can read."""

    calls = ("generate", "beam", "steps", "attention", "attention_map", "patterns", "files")
    asked = types.MappingProxyType({"text?": str, "file?": FILE})
    length, lengths = "max_new_tokens", NEW_TOKENS

    def __init__(self, answerer):
        super().__init__(answerer)
        self._scores = token_log_probs(answerer.model)

    def generate(self, request):
        """Continues "text" (which may be empty) or "file".

        Optional fields are "beam_size", "alpha", "max_new_tokens", "prefix" and "sampling". If "sampling" is true,
        "beam_size" outputs are sampled; see `SearchOptions` for "temperature", "top_k", "top_p" and "seed".

        Returns:
            {"continuation": str, "hypotheses": [{"text", "score", "ended", "tokens": [{"token", "id", "log_prob"}]}],
            best first, or in the order of sampling; "prompt_tokens": [str], "seconds": float}.
        """
        start = time.perf_counter()
        request, prefix, options = self.search_of(request, SAMPLING)
        prompt = self.searched(request)
        text = request["text"] if "text" in request else self.answerer.encoders["targets"].decode(prompt)
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
        """Returns the model's attention weights for "text" or "file", followed by the optional "target"."""
        request = checked(request, {**self.asked, "target?": str | list})
        prompt, target = self.searched(request), self.text_or_ids(request, "target")
        ids = self._row(prompt, target, MOST_TOKENS)
        return shown_attention(attend_to_row(self.answerer, ids))

    def attention_map(self, request):
        """Draws one layer of the attention weights for up to 1,100 tokens.

        Returns:
            {"layer": int from 1, by default the second to last; "layers": int, the number of layers; "picture":
            {"name", "type", "data" in base64}}.
        """
        request = checked(request, {**self.asked, "target?": str | list, "layer?": int})
        target = request.get("target")
        if isinstance(target, list):
            target = self.output_ids(target)
        ids = self._row(self.searched(request), target, MOST_POSITIONS)
        attention = attend_to_row(self.answerer, ids, MOST_POSITIONS)["decoder"]
        layer = request.get("layer", default_layer(attention))
        picture = picture_file("attention", draw_attention(attention, layer, view="map"))
        return {"layer": layer, "layers": len(attention.weights), "picture": picture}

    def given(self, request):
        """Returns a request's prompt, which is a text or a list of ids. Raises `UserError`."""
        if ("text" in request) == ("file" in request):
            raise UserError("request: expected either a 'text' or a 'file'.")
        if "text" in request:
            return self.prepared(request["text"])
        return read_file(self.answerer.problem, self.answerer.encoders, request["file"])

    def searched(self, request):
        """Returns the ids of a request's prompt. Raises `UserError` if they leave no room for a continuation."""
        source, encoder = self.given(request), self.answerer.encoders["targets"]
        where = "text" if "text" in request else printable(request["file"]["name"])[-80:]
        with located(where):
            prompt = encoder.encode(source) if isinstance(source, str) else check_ids(source, encoder.vocab_size)
        longest = self.answerer.max_length
        if longest is not None and len(prompt) >= longest:
            raise UserError(
                f"{where}: {len(prompt):,} ids. The model reads at most {longest:,}, including the continuation. "
                "Shorten the prompt."
            )
        return prompt

    def scored(self, request, target):
        """Returns the prompt ids and the target ids of a request, without EOS."""
        return self.searched(request), self._ids(target)

    def _row(self, prompt, target, most):
        """Returns the ids of a prompt and a target (text, ids or None). Raises `UserError` for no ids or too many."""
        ids = [*prompt, *self._ids(target or [])]
        if not ids:
            raise UserError("text is blank. Expected a text, or a target.")
        if len(ids) > most:
            raise UserError(f"text: {counted(len(ids), 'token')}. A picture shows at most {most:,}.")
        return ids

    def _ids(self, target):
        if not isinstance(target, str):
            return target
        with located("target"):
            ids = self.answerer.encoders["targets"].encode(target)
        if not 0 < len(ids) <= MOST_TOKENS:
            raise UserError(f"target: {counted(len(ids), 'token')}. Expected from 1 to {MOST_TOKENS}.")
        return ids

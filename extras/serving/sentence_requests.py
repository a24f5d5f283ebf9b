"""Splits the texts of a server's requests into sentences, which are translated one by one, and joins the outputs."""

import numpy as np

from t2t_lite.corpora.sentences import join_texts, sentence_parts
from t2t_lite.extras.serving.refusals import Refusal

# The signatures whose texts are split: see `served_export.Signature`.
_ATTRIBUTES = {"auto": "wants_sentences", "always": "is_of_texts"}


class SentenceBatcher:
    """Runs requests like a `Batcher`; texts of several sentences become several rows.

    Args:
        batcher: Batcher.
        split_sentences: one of `SPLIT_SENTENCES`, or None for "auto": if the model was trained on single sentences.
        most_rows: int, maximum number of sentences of a request.
    """

    def __init__(self, batcher, split_sentences, most_rows):
        self._batcher, self._most_rows = batcher, most_rows
        self._attribute = _ATTRIBUTES.get(split_sentences or "auto", "")

    def run(self, signature, inputs, **options):
        """Returns the outputs of a signature, {name: array}; arguments and errors are those of `Batcher.run`.

        A score is the sum of the sentences' scores, and a text is truncated if a sentence is. Raises `Refusal` if there
        are too many sentences.
        """
        texts = inputs.get("inputs")
        if not getattr(signature, self._attribute, False) or texts.ndim != 1:
            return self._batcher.run(signature, inputs, **options)
        parts = [sentence_parts(bytes(text).decode("utf-8", "replace")) for text in texts]
        counts = [len(of_text) for of_text in parts]
        if (rows := sum(counts)) == len(texts):
            return self._batcher.run(signature, inputs, **options)
        if rows > self._most_rows:
            raise Refusal(f"Task size {rows} sentences is larger than maximum input batch size {self._most_rows}")
        at = np.repeat(np.arange(len(texts)), counts)
        many = {name: value[at] if value.shape[:1] == texts.shape else value for name, value in inputs.items()}
        many["inputs"] = np.array([part.encode() for of_text in parts for part in of_text], object)
        outputs = self._batcher.run(signature, many, **options)
        starts = np.cumsum([0, *counts[:-1]])
        translations = iter(outputs["outputs"])
        texts_joined = [join_texts([next(translations).decode() for _ in of_text])[0].encode() for of_text in parts]
        return {
            "outputs": np.array(texts_joined, object),
            "scores": np.add.reduceat(outputs["scores"], starts),
            "truncated": np.logical_or.reduceat(outputs["truncated"], starts),
        }

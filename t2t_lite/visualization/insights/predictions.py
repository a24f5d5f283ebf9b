"""What a page shows of an encoder: what it answers, as JSON."""

import time

from t2t_lite.visualization.insights.answers import Answers, checked


class Predictions(Answers):
    """Answers of a Predictor."""

    calls = ("predict", "attention")

    def __init__(self, answerer):
        super().__init__(answerer)
        if answerer.num_texts > 1:
            self.calls = ("predict",)  # pictures of attention have one text

    def predict(self, request):
        """Answers "text", of tasks that read two texts "text" and "second".

        Returns:
            The fields of the task's answer, see `EncoderTask.as_json`, of classes {"label", "probabilities": [{"label",
            "probability"}]}, the most probable first; and {"answer": str, "lists": [[{"text", "probability"}]], what
            the page shows of it; "truncated": bool, "seconds": float}.
        """
        names = ["text", "second"][: self.answerer.num_texts]
        request = checked(request, dict.fromkeys(names, str))
        texts, task = tuple(request[name] for name in names), self.answerer.task
        start = time.perf_counter()
        (found,) = getattr(self.answerer, task.method)([texts if len(texts) > 1 else texts[0]])
        text, lists = task.shown(found)
        fields = task.as_json(found)
        if isinstance(fields.get("probabilities"), dict):
            fields["probabilities"] = [{"label": label, "probability": share} for label, share in lists[0]]
        return {
            **fields,
            "answer": text,
            "lists": [[{"text": text, "probability": share} for text, share in one] for one in lists],
            "truncated": getattr(found, "truncated", False),
            "seconds": round(time.perf_counter() - start, 4),
        }

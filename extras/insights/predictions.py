"""The page's data about an encoder: its answers, as JSON."""

import time

from t2t_lite.extras.insights.answers import Answers, checked


class Predictions(Answers):
    """Answers of a Predictor."""

    calls = ("predict", "attention", "patterns")

    def __init__(self, answerer):
        super().__init__(answerer)
        if answerer.num_texts > 1:
            self.leave_out("attention")  # its pictures show only one text

    def predict(self, request):
        """Answers "text"; tasks that read two texts have "text" and "second".

        Returns:
            The fields of the task's answer, see `EncoderTask.as_json`; for classes {"label", "probabilities":
            [{"label", "probability"}]}, the most probable first. In addition, {"answer": str, "lists": [[{"text",
            "probability"}]], "truncated": bool, "seconds": float}, for display.
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

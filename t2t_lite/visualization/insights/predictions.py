"""What a page shows of a classifier, as JSON."""

import time

from t2t_lite.visualization.insights.answers import Answers, checked


class Predictions(Answers):
    """Answers of a Predictor."""

    calls = ("predict", "attention")

    def predict(self, request):
        """Classifies "text".

        Returns:
            {"label": str, "probabilities": [{"label", "probability"}], the most probable first, "truncated": bool,
            "seconds": float}.
        """
        text = checked(request, {"text": str})["text"]
        start = time.perf_counter()
        (found,) = self.answerer.predict([text])
        order = sorted(found.probabilities.items(), key=lambda one: -one[1])
        return {
            "label": found.label,
            "probabilities": [{"label": label, "probability": probability} for label, probability in order],
            "truncated": found.truncated,
            "seconds": round(time.perf_counter() - start, 4),
        }

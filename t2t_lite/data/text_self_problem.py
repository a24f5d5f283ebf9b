"""Problems of text alone, for language models (tensor2tensor's text_problems.py)."""

import types

from t2t_lite.data.text_problem import Text2TextProblem


class Text2SelfProblem(Text2TextProblem):
    """Text that a language model learns. Subclasses write `generate_samples`, as in tensor2tensor.

    Samples are {"targets": str}. Records and batches hold `targets` alone, which end in 1.
    """

    features = types.MappingProxyType({"targets": 2})
    text_features = ("targets",)
    task = "language_model"
    eval_decode_metric = None

"""XLM-RoBERTa, a RoBERTa with a SentencePiece vocabulary of a hundred languages."""

from t2t_lite import registry
from t2t_lite.extras.hugging_face import roberta


@registry.register_family("xlm-roberta")
def xlm_roberta():
    """Returns the Family."""
    return roberta.roberta()._replace(
        class_prefix="XLMRoberta",
        vocabularies=(("xlm-roberta",), "XLM-RoBERTa"),
    )

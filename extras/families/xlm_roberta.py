"""XLM-RoBERTa, a RoBERTa with a SentencePiece vocabulary of a hundred languages."""

from t2t_lite.extras.families import unigram_vocabulary
from t2t_lite.interchange.families import roberta

FAMILY = roberta.FAMILY._replace(
    model_type="xlm-roberta",
    class_prefix="XLMRoberta",
    vocabularies=((unigram_vocabulary.XLM_ROBERTA,), "XLM-RoBERTa"),
)

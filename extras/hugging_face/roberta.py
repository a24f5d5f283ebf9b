"""The family of RoBERTa, a BERT with a byte-level vocabulary. Its positions start at the padding id + 1."""

from t2t_lite import registry
from t2t_lite.extras.hugging_face import bert
from t2t_lite.text.published.byte_level_bpe import ByteLevelBPEEncoder


def limits(config):
    """Returns the limits of BERT and those of RoBERTa's heads: see `Family`."""
    is_fixed = {"activation": ("gelu",)} if config["head"] == "masked_lm" else {}  # the only activation of this head
    return {**bert.limits(config), "sentence_classes": (0,), **is_fixed}


@registry.register_family("roberta")
def roberta():
    """Returns the Family of RoBERTa."""
    return bert.relative(
        "Roberta",
        heads=bert.heads(
            ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"), ("classifier.dense", "classifier.out_proj")
        ),
        fields=bert.fields(padding=1, ends=bert.ENDS),
        limits=limits,
        weights=bert.body("roberta"),
        vocabularies=((ByteLevelBPEEncoder,), "byte-level BPE"),
        hparams_set="roberta_base",
        sentence_problem=None,
        first_position=lambda padding: padding + 1,
    )

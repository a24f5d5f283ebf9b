"""ELECTRA: the discriminator as a body for other heads, the generator as a model of masked words."""

from t2t_lite import registry
from t2t_lite.extras.hugging_face import bert
from t2t_lite.extras.hugging_face.family import only
from t2t_lite.text.published.wordpiece import WordPieceEncoder


def _complete(path, config):
    if config["embedding_size"] == config["hidden_size"]:
        config["embedding_size"] = None  # only other sizes are projected


def _limits(config):
    is_fixed = {"activation": ("gelu",)} if config["head"] == "masked_lm" else {}  # the only one of its head
    is_projected = config["embedding_size"] == config["hidden_size"]
    return {
        **bert.limits(config),
        "sentence_classes": (0,),
        **is_fixed,
        "embedding_size": ("other than hidden_size",) if is_projected else None,
    }


@registry.register_family("electra")
def electra():
    """Returns the Family."""
    return bert.bert()._replace(
        class_prefix="Electra",
        matches=lambda config: bert.class_of(config) == "Electra",
        heads={
            **bert.heads(
                ("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head.bias"),
                ("classifier.dense", "classifier.out_proj"),
            ),
            # Whether an id was replaced is one number per position: no head here gives it.
            "ForPreTraining": (None, {}),
        },
        fields=bert.fields(
            bert.EMBEDDING_SIZE,
            only("summary_type", "first", usual="first"),
            only("summary_use_proj", True, usual=True),
            only("summary_activation", "gelu", usual="gelu"),
        ),
        options={"pooler_activation": "gelu"},
        limits=_limits,
        weights={**bert.body("electra"), "projection": "electra.embeddings_project"},
        vocabularies=((WordPieceEncoder,), "WordPiece"),
        complete=_complete,
        prefix="electra.",
        unused=(
            "position_ids", "token_type_ids", "generator_lm_head.weight",  # computed when a model is loaded, or tied
            *(f"discriminator_predictions.{layer}.{kind}" for layer in ("dense", "dense_prediction")
              for kind in ("weight", "bias")),
        ),
        sentence_problem=None,
    )  # fmt: skip

"""ALBERT, a BERT with small embeddings whose layers share their weights in groups."""

import numpy as np

from t2t_lite import registry
from t2t_lite.extras.hugging_face import bert
from t2t_lite.extras.hugging_face.family import Field, check, only

_ATTENTION, _FFN = "encoder.layers.*.self_attention", "encoder.layers.*.feed_forward"
_PROJECTION = "albert.encoder.embedding_hidden_mapping_in"
_LAYER = "albert.encoder.albert_layer_groups.*.albert_layers.0"


def _complete(path, config):
    groups, layers = config["num_hidden_groups"], config["num_hidden_layers"]
    check(path, "num_hidden_groups", groups, 1 <= groups <= layers, f"a number from 1 to {layers:,}")


@registry.register_family("albert")
def albert():
    """Returns the Family."""
    return bert.bert()._replace(
        class_prefix="Albert",
        matches=lambda config: bert.class_of(config) == "Albert",
        heads=bert.heads(
            ("predictions.dense", "predictions.LayerNorm", "predictions.bias"),
            ("albert.pooler", "classifier"),
            ("albert.pooler", "sop_classifier.classifier"),
        ),
        fields=bert.fields(
            bert.EMBEDDING_SIZE,
            Field(
                "num_hidden_groups",
                "num_hidden_groups",
                int,
                usual=1,
                value=lambda config: config["num_hidden_groups"] or config["num_layers"],
            ),
            only("inner_group_num", 1, None),
            Field("classifier_dropout_prob", value=lambda config: config["dropout"], is_read=False),
            activation="gelu_new",
            ends=bert.ENDS,
        ),
        weights={
            **bert.embeddings("albert"),
            "projection": _PROJECTION,
            **{f"{_ATTENTION}.layer.{role}_projection": f"{_LAYER}.attention.{role}" for role in bert.ROLES},
            f"{_ATTENTION}.layer.output_projection": f"{_LAYER}.attention.dense",
            f"{_ATTENTION}.normalization": f"{_LAYER}.attention.LayerNorm",
            f"{_FFN}.layer.inner": f"{_LAYER}.ffn",
            f"{_FFN}.layer.outer": f"{_LAYER}.ffn_output",
            f"{_FFN}.normalization": f"{_LAYER}.full_layer_layer_norm",
        },
        complete=_complete,
        prefix="albert.",
        hparams_set="albert_base",
        sentence_problem="sentence_order_own",
        constants={
            f"{_PROJECTION}.weight": lambda config: np.eye(config["hidden_size"], dtype="float32"),
            f"{_PROJECTION}.bias": lambda config: np.zeros(config["hidden_size"], "float32"),
        },
    )

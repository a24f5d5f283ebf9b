"""Declares BERT's relatives by how they differ from BERT: ALBERT, DistilBERT, ELECTRA, ERNIE 2.0 and XLM-RoBERTa."""

import numpy as np

from t2t_lite import registry
from t2t_lite.extras.hugging_face import bert, roberta
from t2t_lite.extras.hugging_face.family import Field, check, choice, number, only, rate
from t2t_lite.text.published.wordpiece import WordPieceEncoder

_ATTENTION, _FFN = "encoder.layers.*.self_attention", "encoder.layers.*.feed_forward"
_PROJECTION = "albert.encoder.embedding_hidden_mapping_in"
_ALBERT_LAYER = "albert.encoder.albert_layer_groups.*.albert_layers.0"


def _check_groups(path, config):
    groups, layers = config["num_hidden_groups"], config["num_hidden_layers"]
    check(path, "num_hidden_groups", groups, 1 <= groups <= layers, f"a number from 1 to {layers:,}")


def _groups(config):
    return config["num_hidden_groups"] or config["num_layers"]


@registry.register_family("albert")
def albert():
    """Returns the Family of ALBERT, which has small embeddings, and groups of layers that share their weights."""
    return bert.relative(
        "Albert",
        heads=bert.heads(
            ("predictions.dense", "predictions.LayerNorm", "predictions.bias"),
            ("albert.pooler", "classifier"),
            ("albert.pooler", "sop_classifier.classifier"),
        ),
        fields=bert.fields(
            bert.EMBEDDING_SIZE,
            Field("num_hidden_groups", "num_hidden_groups", int, usual=1, value=_groups),
            only("inner_group_num", 1, None),
            Field("classifier_dropout_prob", value=lambda config: config["dropout"], is_read=False),
            activation="gelu_new",
            ends=bert.ENDS,
        ),
        weights={
            **bert.embeddings("albert"),
            "projection": _PROJECTION,
            **{f"{_ATTENTION}.layer.{role}_projection": f"{_ALBERT_LAYER}.attention.{role}" for role in bert.ROLES},
            f"{_ATTENTION}.layer.output_projection": f"{_ALBERT_LAYER}.attention.dense",
            f"{_ATTENTION}.normalization": f"{_ALBERT_LAYER}.attention.LayerNorm",
            f"{_FFN}.layer.inner": f"{_ALBERT_LAYER}.ffn",
            f"{_FFN}.layer.outer": f"{_ALBERT_LAYER}.ffn_output",
            f"{_FFN}.normalization": f"{_ALBERT_LAYER}.full_layer_layer_norm",
        },
        complete=_check_groups,
        hparams_set="albert_base",
        sentence_problem="sentence_order_own",
        constants={
            f"{_PROJECTION}.weight": lambda config: np.eye(config["hidden_size"], dtype="float32"),
            f"{_PROJECTION}.bias": lambda config: np.zeros(config["hidden_size"], "float32"),
        },
    )


_BLOCK = "distilbert.transformer.layer.*"
_ROLES = {"query": "q", "key": "k", "value": "v", "output": "out"}
_RENAMED = {  # {BERT's name: DistilBERT's field}
    "hidden_size": number("dim", "hidden_size"),
    "num_hidden_layers": number("n_layers", "num_layers"),
    "num_attention_heads": number("n_heads", "num_heads", divides="dim"),
    "intermediate_size": number("hidden_dim", "filter_size"),
    "hidden_act": choice("activation", "activation", bert.ACTIVATIONS),
    "hidden_dropout_prob": rate("dropout", "dropout"),
    "attention_probs_dropout_prob": rate("attention_dropout", "attention_dropout"),
}
_LACKING = ("type_vocab_size", "layer_norm_eps", "position_embedding_type", "is_decoder", "add_cross_attention")


def _distilbert_limits(config):
    limits = {**bert.limits(config), "sentence_classes": (0,)}
    del limits["num_segments"]
    return limits


@registry.register_family("distilbert")
def distilbert():
    """Returns the Family of DistilBERT, which has ReLU in the class head, renamed settings, and no segments."""
    return bert.relative(
        "DistilBert",
        heads=bert.heads(
            ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"), ("pre_classifier", "classifier")
        ),
        fields=(
            *(_RENAMED.get(field.name, field) for field in bert.fields() if field.name not in _LACKING),
            # A table of sinusoids is stored like a learned position table, and imported as a learned table.
            Field("sinusoidal_pos_embds", kind=bool, usual=False, value=lambda config: False),
            Field("seq_classif_dropout", value=lambda config: config["dropout"], is_read=False),
            Field("qa_dropout", value=lambda config: 0.0, is_read=False),
        ),
        options={"num_segments": 0, "norm_epsilon": 1e-12, "pooler_activation": "relu"},
        limits=_distilbert_limits,
        weights={
            **{path: name for path, name in bert.embeddings("distilbert").items() if path != "segment_embedding"},
            **{f"{_ATTENTION}.layer.{role}_projection": f"{_BLOCK}.attention.{w}_lin" for role, w in _ROLES.items()},
            f"{_ATTENTION}.normalization": f"{_BLOCK}.sa_layer_norm",
            f"{_FFN}.layer.inner": f"{_BLOCK}.ffn.lin1",
            f"{_FFN}.layer.outer": f"{_BLOCK}.ffn.lin2",
            f"{_FFN}.normalization": f"{_BLOCK}.output_layer_norm",
        },
        vocabularies=((WordPieceEncoder,), "WordPiece"),
        unused=(
            "position_ids", "vocab_projector.weight",  # weights that are computed at load time, or tied
        ),
        sentence_problem=None,
        tokenizer={"tokenizer_class": "DistilBertTokenizer"},
    )  # fmt: skip


def _without_own_projection(path, config):
    if config["embedding_size"] == config["hidden_size"]:
        config["embedding_size"] = None  # embeddings are only projected if their size differs from the hidden size


def _electra_limits(config):
    is_projected = config["embedding_size"] == config["hidden_size"]
    return {**roberta.limits(config), "embedding_size": ("other than hidden_size",) if is_projected else None}


@registry.register_family("electra")
def electra():
    """Returns the Family of ELECTRA: the discriminator as a body for other heads, or the masked-word generator."""
    return bert.relative(
        "Electra",
        heads={
            **bert.heads(
                ("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head.bias"),
                ("classifier.dense", "classifier.out_proj"),
            ),
            # The published head predicts, for each position, whether the id was replaced. Our model has no such head.
            "ForPreTraining": (None, {}),
        },
        fields=bert.fields(
            bert.EMBEDDING_SIZE,
            only("summary_type", "first", usual="first"),
            only("summary_use_proj", True, usual=True),
            only("summary_activation", "gelu", usual="gelu"),
        ),
        options={"pooler_activation": "gelu"},
        limits=_electra_limits,
        weights={**bert.body("electra"), "projection": "electra.embeddings_project"},
        vocabularies=((WordPieceEncoder,), "WordPiece"),
        complete=_without_own_projection,
        unused=(
            "position_ids", "token_type_ids", "generator_lm_head.weight",  # computed at load time, or tied
            *(f"discriminator_predictions.{layer}.{kind}" for layer in ("dense", "dense_prediction")
              for kind in ("weight", "bias")),
        ),
        sentence_problem=None,
    )  # fmt: skip


def _without_task_ids(path, config):
    if not config["use_task_id"]:
        config["task_type_vocab_size"] = 0


@registry.register_family("ernie")
def ernie():
    """Returns the Family of ERNIE 2.0, which has an additional embedding of task types."""
    return bert.relative(
        "Ernie",
        heads=bert.own_heads("ernie"),
        fields=bert.fields(
            Field("use_task_id", kind=bool, usual=False, value=lambda config: True),
            Field("task_type_vocab_size", "num_task_types", int, usual=3),
        ),
        weights={**bert.body("ernie"), "task_embedding": "ernie.embeddings.task_type_embeddings"},
        complete=_without_task_ids,
        hparams_set="ernie_base",
    )


@registry.register_family("xlm-roberta")
def xlm_roberta():
    """Returns the Family of XLM-RoBERTa, a RoBERTa with a SentencePiece vocabulary for a hundred languages."""
    return roberta.roberta()._replace(class_prefix="XLMRoberta", vocabularies=(("xlm-roberta",), "XLM-RoBERTa"))

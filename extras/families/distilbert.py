"""DistilBERT, a BERT without segments, whose class head has relu; its settings have other names."""

from t2t_lite import registry
from t2t_lite.extras.hugging_face import bert
from t2t_lite.extras.hugging_face.family import Field, choice, number, rate
from t2t_lite.text.published.wordpiece import WordPieceEncoder

_ATTENTION, _FFN = "encoder.layers.*.self_attention", "encoder.layers.*.feed_forward"
_LAYER = "distilbert.transformer.layer.*"
_ROLES = {"query": "q", "key": "k", "value": "v", "output": "out"}
_SETTINGS = {  # instead of BERT's of these names
    "hidden_size": number("dim", "hidden_size"),
    "num_hidden_layers": number("n_layers", "num_layers"),
    "num_attention_heads": number("n_heads", "num_heads", divides="dim"),
    "intermediate_size": number("hidden_dim", "filter_size"),
    "hidden_act": choice("activation", "activation", bert.ACTIVATIONS),
    "hidden_dropout_prob": rate("dropout", "dropout"),
    "attention_probs_dropout_prob": rate("attention_dropout", "attention_dropout"),
}
_LACKING = ("type_vocab_size", "layer_norm_eps", "position_embedding_type", "is_decoder", "add_cross_attention")


def _limits(config):
    limits = {**bert.limits(config), "sentence_classes": (0,)}
    del limits["num_segments"]
    return limits


@registry.register_family("distilbert")
def distilbert():
    """Returns the Family."""
    return bert.bert()._replace(
        class_prefix="DistilBert",
        matches=lambda config: bert.class_of(config) == "DistilBert",
        heads=bert.heads(
            ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"), ("pre_classifier", "classifier")
        ),
        fields=(
            *(_SETTINGS.get(field.name, field) for field in bert.fields() if field.name not in _LACKING),
            # A table of sinusoids is stored like a learned one, which it is here.
            Field("sinusoidal_pos_embds", kind=bool, usual=False, value=lambda config: False),
            Field("seq_classif_dropout", value=lambda config: config["dropout"], is_read=False),
            Field("qa_dropout", value=lambda config: 0.0, is_read=False),
        ),
        options={"num_segments": 0, "norm_epsilon": 1e-12, "pooler_activation": "relu"},
        limits=_limits,
        weights={
            **{path: name for path, name in bert.embeddings("distilbert").items() if path != "segment_embedding"},
            **{f"{_ATTENTION}.layer.{role}_projection": f"{_LAYER}.attention.{w}_lin" for role, w in _ROLES.items()},
            f"{_ATTENTION}.normalization": f"{_LAYER}.sa_layer_norm",
            f"{_FFN}.layer.inner": f"{_LAYER}.ffn.lin1",
            f"{_FFN}.layer.outer": f"{_LAYER}.ffn.lin2",
            f"{_FFN}.normalization": f"{_LAYER}.output_layer_norm",
        },
        vocabularies=((WordPieceEncoder,), "WordPiece"),
        prefix="distilbert.",
        unused=(
            "position_ids", "vocab_projector.weight",  # computed when a model is loaded, or tied
        ),
        sentence_problem=None,
        tokenizer={"tokenizer_class": "DistilBertTokenizer"},
    )  # fmt: skip

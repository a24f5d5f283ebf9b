"""The family of BERT, a post-norm encoder whose dense kernels are stored as [outputs, inputs]."""

from t2t_lite import registry
from t2t_lite.extras.hugging_face.family import (
    NEEDED,
    OPTIONAL,
    Family,
    Field,
    choice,
    epsilon,
    fact,
    number,
    off,
    only,
    rate,
)
from t2t_lite.models.transformer_encoder import TransformerEncoder
from t2t_lite.text.published.wordpiece import WordPieceEncoder

ACTIVATIONS = {
    "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu", "silu": "swish",
    "swish": "swish",
}  # fmt: skip


ENDS = ("bos_token_id", "eos_token_id")
ROLES = ("query", "key", "value")
# Some relatives of BERT have embeddings that are smaller than the hidden states.
EMBEDDING_SIZE = number(
    "embedding_size", "embedding_size", usual=128,
    value=lambda config: config["embedding_size"] or config["hidden_size"],
)  # fmt: skip


def class_of(config):
    """Returns the prefix of the foreign classes that can represent a `TransformerEncoder` with this config."""
    if config["pooler_activation"] != "tanh":
        return {"relu": "DistilBert", "gelu": "Electra"}[config["pooler_activation"]]
    if config["embedding_size"] is not None or config["num_hidden_groups"] is not None:
        return "Albert"
    if config["num_task_types"]:
        return "Ernie"
    return "Roberta" if config["num_segments"] == 1 else "Bert"


def fields(*more, padding=0, activation="gelu", ends=()):
    """Returns the fields of a BERT's `config.json`, including the additional fields of a relative.

    Args:
        more: the additional Fields of a relative.
        padding: int, the default pad_token_id.
        activation: str, the default hidden_act.
        ends: names of additional `config.json` fields for token ids, which are not read.
    """
    return (
        *encoder_fields(
            number("hidden_size", "hidden_size"),
            number("num_hidden_layers", "num_layers"),
            number("num_attention_heads", "num_heads", divides="hidden_size"),
            number("intermediate_size", "filter_size"),
            choice("hidden_act", "activation", ACTIVATIONS, usual=activation),
            rate("hidden_dropout_prob", "dropout"),
            rate("attention_probs_dropout_prob", "attention_dropout"),
            number("max_position_embeddings", "max_position"),
            number("type_vocab_size", "num_segments", usual=2),
            epsilon("layer_norm_eps", 1e-12),
            *more,
            padding=padding,
            ends=ends,
        ),
        only("position_embedding_type", "absolute", None, is_written=False),
        *off("is_decoder", "add_cross_attention"),
    )


def encoder_fields(*own, padding, ends=()):
    """Returns the fields that all encoders have in `config.json`, including a family's own Fields: see `fields`."""
    return (
        Field("architectures", kind=[str], usual=NEEDED, is_written=False),
        *fact("model_type"),
        number("vocab_size", "vocab_size"),
        *own,
        Field("pad_token_id", kind=int | None, usual=padding, is_written=False),
        *fact(*ends),
        Field("id2label", kind={str: str}, usual=OPTIONAL, is_written=False),
        *fact("label2id"),
        Field("problem_type", kind=str | None, is_written=False),
        Field("tie_word_embeddings", values={True: None, False: None}, usual=True),
        only("dtype", "float32", is_read=False),
    )


def limits(config):
    """Returns the limits on a `TransformerEncoder`'s arguments: see `Family.limits`."""
    return {
        **dict.fromkeys(("position_layout", "head", "first_id")),
        "pooling": ("first",) if config["head"] in ("class", "real") else None,
        "num_segments": None if config["num_segments"] else ("1 or more",),
        "sentence_classes": (0, 2) if config["head"] == "masked_lm" else (0,),
        "softmax_bias": (False, True),
    }


def body(prefix):
    """Returns {path of our weight: foreign name} for the weights of the body, whose names begin with `prefix`."""
    attention, ffn = "encoder.layers.*.self_attention", "encoder.layers.*.feed_forward"
    layer = f"{prefix}.encoder.layer.*"
    return {
        **embeddings(prefix),
        **{f"{attention}.layer.{role}_projection": f"{layer}.attention.self.{role}" for role in ROLES},
        f"{attention}.layer.output_projection": f"{layer}.attention.output.dense",
        f"{attention}.normalization": f"{layer}.attention.output.LayerNorm",
        f"{ffn}.layer.inner": f"{layer}.intermediate.dense",
        f"{ffn}.layer.outer": f"{layer}.output.dense",
        f"{ffn}.normalization": f"{layer}.output.LayerNorm",
    }


def embeddings(prefix):
    """Returns {path of our weight: foreign name} for the embeddings and their normalization."""
    return {
        "embedding": f"{prefix}.embeddings.word_embeddings",
        "position": f"{prefix}.embeddings.position_embeddings",
        "segment_embedding": f"{prefix}.embeddings.token_type_embeddings",
        "embedding_norm": f"{prefix}.embeddings.LayerNorm",
    }


def heads(masked_ids, classes, sentences=None):
    """Returns the table of heads, {suffix of a class name: (our head, {path: name})}.

    Args:
        masked_ids: names of the dense layer, the normalization and the bias of the head that predicts masked ids.
        classes: names of the two dense layers of the classification head.
        sentences: names of the two dense layers of the next-sentence head. If None, the family has no class with this
            head.
    """
    ids = dict(zip(("masked_ids_head.dense", "masked_ids_head.norm", "embedding.bias"), masked_ids, strict=True))
    class_head = dict(zip(("class_head.pooler", "class_head.dense"), classes, strict=True))
    sentence_head = dict(zip(("sentence_head.pooler", "sentence_head.dense"), sentences or (), strict=False))
    return {
        **({"ForPreTraining": ("masked_lm", ids | sentence_head)} if sentences else {}),
        "ForMaskedLM": ("masked_lm", ids),
        "ForSequenceClassification": ("class", class_head),
        "ForTokenClassification": ("tag", {"class_head.dense": "classifier"}),
        "ForQuestionAnswering": ("span", {"span_head.dense": "qa_outputs"}),
    }


def own_heads(prefix):
    """Returns the table of a BERT's heads; the name of its pooler begins with `prefix`."""
    ids, pooler = "cls.predictions", f"{prefix}.pooler.dense"
    masked_ids = (f"{ids}.transform.dense", f"{ids}.transform.LayerNorm", f"{ids}.bias")
    return heads(masked_ids, (pooler, "classifier"), (pooler, "cls.seq_relationship"))


@registry.register_family("bert")
def bert():
    """Returns the Family of BERT."""
    return Family(
        class_prefix="Bert",
        model=TransformerEncoder,
        matches=lambda config: class_of(config) == "Bert",
        heads=own_heads("bert"),
        fields=fields(),
        options={},
        limits=limits,
        weights=body("bert"),
        vocabularies=((WordPieceEncoder, "albert"), "WordPiece or ALBERT"),
        prefix="bert.",
        unused=(
            # Weights that are computed at load time, also stored under another name, or part of a head that the class
            # lacks.
            "position_ids", "token_type_ids", "decoder.weight", "decoder.bias", "pooler.dense.weight",
            "pooler.dense.bias", "pooler.weight", "pooler.bias", "seq_relationship.weight", "seq_relationship.bias",
            "sop_classifier.classifier.weight", "sop_classifier.classifier.bias",
        ),
        hparams_set="bert_base",
        sentence_problem="next_sentence_own",
    )  # fmt: skip


def relative(class_prefix, **own):
    """Returns the Family of a relative of BERT by what differs; the names of its body start with its class prefix."""
    return bert()._replace(
        class_prefix=class_prefix,
        matches=lambda config: class_of(config) == class_prefix,
        prefix=f"{class_prefix.lower()}.",
        **own,
    )

"""The weights of Hugging Face's BERT, RoBERTa, ALBERT and ERNIE: one table of their names, for import and export.

All are post-norm; their dense kernels are [outputs, inputs]. RoBERTa's positions count from the id of padding + 1.
"""

from typing import NamedTuple

from t2t_lite.interchange.formats import hugging_face_class
from t2t_lite.interchange.named_weights import Part, dense, norm

# Ends of the names of what is computed when a model is loaded, is stored under another name, too, or belongs to a head
# that the class does not have.
UNUSED = (
    "position_ids", "token_type_ids", "decoder.weight", "decoder.bias", "pooler.dense.weight", "pooler.dense.bias",
    "pooler.weight", "pooler.bias", "seq_relationship.weight", "seq_relationship.bias",
    "sop_classifier.classifier.weight", "sop_classifier.classifier.bias",
)  # fmt: skip
ACTIVATIONS = {  # of several names for one of ours the first one is written
    "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu", "silu": "swish",
    "swish": "swish",
}  # fmt: skip
PROJECTION = "encoder.embedding_hidden_mapping_in"
_BODY = ("embeddings.", "encoder.", "pooler.")


class LayerNames(NamedTuple):
    """Names of the parts of a layer; `layer` has a place for its number."""

    layer: str
    query: str
    key: str
    value: str
    output: str
    attention_norm: str
    inner: str
    outer: str
    norm: str


class HeadNames(NamedTuple):
    """Names of heads.

    Attributes:
        ids: of masked ids: its dense layer, its normalization, and its bias.
        pooler, classes: the two dense layers of the head of classes.
        sentence_pooler, sentence: likewise of the head of sentences; None: there is none.
    """

    ids: tuple
    pooler: str
    classes: str
    sentence_pooler: str | None
    sentence: str | None


class Architecture(NamedTuple):
    """What differs between them.

    Attributes:
        class_prefix: str, with which the names of its classes begin; in lower case and with a dot also the names of the
            body's weights, but in the files of a model without head.
        hparams_set: str, the set that its settings for training are taken from.
        sentence_problem: str, the problem of its pretraining with sentences; None: there is none.
        layer: LayerNames.
        head: HeadNames.
    """

    class_prefix: str
    hparams_set: str
    sentence_problem: str | None
    layer: LayerNames
    head: HeadNames

    @property
    def prefix(self):
        """With which the names of the body's weights begin."""
        return f"{self.class_prefix.lower()}."


_BERT_LAYER = LayerNames(
    "encoder.layer.{}", "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense",
    "attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm",
)  # fmt: skip
_ALBERT_LAYER = LayerNames(
    "encoder.albert_layer_groups.{}.albert_layers.0", "attention.query", "attention.key", "attention.value",
    "attention.dense", "attention.LayerNorm", "ffn", "ffn_output", "full_layer_layer_norm",
)  # fmt: skip
_BERT_HEAD = HeadNames(
    ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias"),
    "pooler.dense", "classifier", "pooler.dense", "cls.seq_relationship",
)  # fmt: skip
_ROBERTA_HEAD = HeadNames(
    ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"), "classifier.dense", "classifier.out_proj", None, None
)
_ALBERT_HEAD = HeadNames(
    ("predictions.dense", "predictions.LayerNorm", "predictions.bias"),
    "pooler", "classifier", "pooler", "sop_classifier.classifier",
)  # fmt: skip
ARCHITECTURES = {
    "bert": Architecture("Bert", "bert_base", "next_sentence_own", _BERT_LAYER, _BERT_HEAD),
    "roberta": Architecture("Roberta", "roberta_base", None, _BERT_LAYER, _ROBERTA_HEAD),
    "albert": Architecture("Albert", "albert_base", "sentence_order_own", _ALBERT_LAYER, _ALBERT_HEAD),
    "ernie": Architecture("Ernie", "ernie_base", "next_sentence_own", _BERT_LAYER, _BERT_HEAD),
}
HEADS = {  # ends of the names of their classes -> our head
    "ForPreTraining": "masked_lm",
    "ForMaskedLM": "masked_lm",
    "ForSequenceClassification": "class",
    "ForTokenClassification": "tag",
    "ForQuestionAnswering": "span",
}


def kind_of(model):
    """Returns the key in `ARCHITECTURES` of a `TransformerEncoder`."""
    return hugging_face_class(model).lower()


def class_of(model):
    """Returns the name of the class that holds a `TransformerEncoder`."""
    head = model.config["head"]
    ends = {ours: end for end, ours in reversed(HEADS.items())} | {"real": "ForSequenceClassification"}
    if head == "masked_lm" and not model.config["sentence_classes"]:
        ends[head] = "ForMaskedLM"
    return ARCHITECTURES[kind_of(model)].class_prefix + ends[head]


def parts(model, kind, first_position=0, has_head=True):
    """Yields the Parts of a `TransformerEncoder`; the body's names are without prefix.

    Args:
        model: TransformerEncoder that the caller has checked.
        kind: key in `ARCHITECTURES`.
        first_position: int, the rows of the table of positions that RoBERTa does not use.
        has_head: bool, whether there are the weights of what the model predicts.
    """
    names = ARCHITECTURES[kind].layer
    yield Part("embeddings.word_embeddings.weight", [(model.embedding, "embeddings")], is_by_id=True)
    yield Part("embeddings.position_embeddings.weight", [(model.position, "table")], skipped=first_position)
    yield Part("embeddings.token_type_embeddings.weight", [(model.segment_embedding, "embeddings")])
    if model.task_embedding is not None:
        yield Part("embeddings.task_type_embeddings.weight", [(model.task_embedding, "embeddings")])
    yield from norm("embeddings.LayerNorm", model.embedding_norm)
    if model.projection is not None:
        yield from _linear(PROJECTION, model.projection)
    for number, layer in enumerate(dict.fromkeys(model.encoder.layers)):  # those of a group are one
        name, attention = names.layer.format(number), layer.self_attention
        for role in ("query", "key", "value", "output"):
            yield from _linear(f"{name}.{getattr(names, role)}", getattr(attention.layer, f"{role}_projection"))
        yield from norm(f"{name}.{names.attention_norm}", attention.normalization)
        yield from _linear(f"{name}.{names.inner}", layer.feed_forward.layer.inner)
        yield from _linear(f"{name}.{names.outer}", layer.feed_forward.layer.outer)
        yield from norm(f"{name}.{names.norm}", layer.feed_forward.normalization)
    if has_head:
        yield from _head(model, ARCHITECTURES[kind].head)


def _head(model, names):
    if model.masked_ids_head is not None:
        dense_name, norm_name, bias = names.ids
        yield from _linear(dense_name, model.masked_ids_head.dense)
        yield from norm(norm_name, model.masked_ids_head.norm)
        yield Part(bias, [(model.embedding, "bias")], is_by_id=True)
    elif model.span_head is not None:
        yield from _linear("qa_outputs", model.span_head.dense)
    elif model.class_head.pooler is None:
        yield from _linear("classifier", model.class_head.dense)
    else:
        yield from _linear(names.pooler, model.class_head.pooler)
        yield from _linear(names.classes, model.class_head.dense)
    if model.sentence_head is not None:
        yield from _linear(names.sentence_pooler, model.sentence_head.pooler)
        yield from _linear(names.sentence, model.sentence_head.dense)


def with_prefix(name, kind):
    """Returns the whole name of a Part."""
    return ARCHITECTURES[kind].prefix + name if name.startswith(_BODY) else name


def _linear(name, layer):
    return dense(name, layer, is_transposed=True)

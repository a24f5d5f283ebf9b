"""The weights of Hugging Face's BERT, RoBERTa and ERNIE: one table of their names, for import and export.

All are post-norm; their dense kernels are [outputs, inputs]. RoBERTa's positions count from the id of padding + 1.
"""

from typing import NamedTuple

from t2t_lite.export.formats import hugging_face_class
from t2t_lite.interchange.named_weights import Part, dense, norm

# Ends of the names of what is computed when a model is loaded, is stored under another name, too, or belongs to a head
# that the class does not have.
UNUSED = (
    "position_ids", "token_type_ids", "decoder.weight", "decoder.bias", "pooler.dense.weight", "pooler.dense.bias",
    "seq_relationship.weight", "seq_relationship.bias",
)  # fmt: skip
ACTIVATIONS = {  # of several names for one of ours the first one is written
    "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu", "silu": "swish",
    "swish": "swish",
}  # fmt: skip
_BODY = ("embeddings.", "encoder.", "pooler.")


class Architecture(NamedTuple):
    """What differs between them.

    Attributes:
        prefix: str, of the names of the body's weights, which the files of a model without head do not have.
        class_prefix: str, with which the names of its classes begin.
        vocabulary: str, the kind that `vocabulary_of` reads.
        hparams_set: str, the set that its settings for training are taken from.
        first_token: str, the token before every text.
        ids_head: names of the head of masked ids: its dense layer, its normalization, and its bias.
        pooler, classes: names of the two dense layers of the head of classes.
        sentence: str, name of the second dense layer of the head of sentences; None: there is none.
    """

    prefix: str
    class_prefix: str
    vocabulary: str
    hparams_set: str
    first_token: str
    ids_head: tuple
    pooler: str
    classes: str
    sentence: str | None


_BERT_IDS = ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias")
_BERT_HEADS = (_BERT_IDS, "pooler.dense", "classifier", "cls.seq_relationship")
_ROBERTA_IDS = ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias")
ARCHITECTURES = {
    "bert": Architecture("bert.", "Bert", "WordPiece", "bert_base", "[CLS]", *_BERT_HEADS),
    "roberta": Architecture(
        "roberta.", "Roberta", "BPE", "roberta_base", "<s>",
        _ROBERTA_IDS, "classifier.dense", "classifier.out_proj", None,
    ),
}  # fmt: skip
HEADS = {  # ends of the names of their classes -> our head
    "ForPreTraining": "masked_lm",
    "ForMaskedLM": "masked_lm",
    "ForSequenceClassification": "class",
    "ForTokenClassification": "tag",
    "ForQuestionAnswering": "span",
}
HUB_TASKS = {
    "masked_lm": "fill-mask",
    "class": "text-classification",
    "real": "text-classification",
    "tag": "token-classification",
    "span": "question-answering",
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
    yield Part("embeddings.word_embeddings.weight", [(model.embedding, "embeddings")], is_by_id=True)
    yield Part("embeddings.position_embeddings.weight", [(model.position, "table")], skipped=first_position)
    yield Part("embeddings.token_type_embeddings.weight", [(model.segment_embedding, "embeddings")])
    yield from norm("embeddings.LayerNorm", model.embedding_norm)
    for number, layer in enumerate(model.encoder.layers):
        name, attention = f"encoder.layer.{number}", layer.self_attention
        for role in ("query", "key", "value"):
            yield from _linear(f"{name}.attention.self.{role}", getattr(attention.layer, f"{role}_projection"))
        yield from _linear(f"{name}.attention.output.dense", attention.layer.output_projection)
        yield from norm(f"{name}.attention.output.LayerNorm", attention.normalization)
        yield from _linear(f"{name}.intermediate.dense", layer.feed_forward.layer.inner)
        yield from _linear(f"{name}.output.dense", layer.feed_forward.layer.outer)
        yield from norm(f"{name}.output.LayerNorm", layer.feed_forward.normalization)
    if has_head:
        yield from _head(model, ARCHITECTURES[kind])


def _head(model, names):
    if model.masked_ids_head is not None:
        dense_name, norm_name, bias = names.ids_head
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
        yield from _linear(names.pooler, model.sentence_head.pooler)
        yield from _linear(names.sentence, model.sentence_head.dense)


def with_prefix(name, kind):
    """Returns the whole name of a Part."""
    return ARCHITECTURES[kind].prefix + name if name.startswith(_BODY) else name


def _linear(name, layer):
    return dense(name, layer, is_transposed=True)

"""Folders of BERT and its relatives with random weights and small vocabularies, made without Hugging Face's package."""

import io
import json

import numpy as np
import sentencepiece

from t2t_lite import registry
from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors
from tests.text.published_samples import PIECES, write_byte_level, write_pieces

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
POSITIONS = 24
FAIRSEQ = "sentencepiece.bpe.model"
_OF_ALBERT = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "control_symbols": ["[CLS]", "[SEP]", "[MASK]"]}
_HEADS = ("MaskedLM", "PreTraining", "SequenceClassification", "TokenClassification", "QuestionAnswering")
_KINDS = {
    "Bert": "bert", "Roberta": "roberta", "Albert": "albert", "Ernie": "ernie", "DistilBert": "distilbert",
    "Electra": "electra", "XLMRoberta": "xlm-roberta",
}  # fmt: skip
_OF_EXTRAS = {"TokenClassification": "tagging", "QuestionAnswering": "spans"}  # their tasks
CLASSES = [
    f"{kind}For{head}"
    for kind, model_type in _KINDS.items()
    for head in _HEADS
    if head != "PreTraining" or kind in ("Bert", "Albert", "Ernie")
    if model_type in registry.list_families() and (head not in _OF_EXTRAS or _OF_EXTRAS[head] in registry.list_tasks())
]
LABELS = ["red", "green", "blue"]
_OF_DISTILBERT = {  # names of settings, and parts of names of weights, by BERT's
    "hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim", "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}  # fmt: skip
_PARTS_OF_DISTILBERT = {
    "encoder.layer": "transformer.layer",
    "attention.self.query": "attention.q_lin",
    "attention.self.key": "attention.k_lin",
    "attention.self.value": "attention.v_lin",
    "attention.output.dense": "attention.out_lin",
    "attention.output.LayerNorm": "sa_layer_norm",
    "intermediate.dense": "ffn.lin1",
    "output.dense": "ffn.lin2",
    "output.LayerNorm": "output_layer_norm",
}
_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def write_encoder(folder, class_name, prefix=True, rename=str, **config):
    """Writes a folder; returns (its path, {name: array}).

    Args:
        folder: Path, which does not exist yet.
        class_name: str, of `CLASSES`, or the model without head, such as "BertModel".
        prefix: bool, whether the names of the body have their prefix.
        rename: function of a name, that it is stored under.
        **config: of `config.json`, beside or instead of the usual settings, by BERT's names.
    """
    folder.mkdir(parents=True)
    kind = _KINDS[class_name.partition("For")[0].removesuffix("Model")]
    positions = POSITIONS
    if kind == "roberta":
        with open(write_byte_level(folder, special=_SPECIAL), encoding="utf-8") as file:
            vocab = json.load(file)
        more = {"vocab_size": len(vocab), "pad_token_id": vocab["<pad>"], "type_vocab_size": 1}
        positions = POSITIONS + vocab["<pad>"] + 1
    elif kind == "xlm-roberta":
        more = {"vocab_size": write_sentencepiece(folder, FAIRSEQ) + 2, "pad_token_id": 1, "type_vocab_size": 1}
        positions = POSITIONS + 2
    else:
        size = write_sentencepiece(folder) if kind == "albert" else len(PIECES)
        more = {"vocab_size": size, "pad_token_id": 0, "type_vocab_size": 2}
        if kind != "albert":
            write_pieces(folder)
    if kind == "albert":
        more |= {"embedding_size": 8, "num_hidden_groups": 2, "num_hidden_layers": 4, "hidden_act": "gelu_new"}
    elif kind == "distilbert":
        del more["type_vocab_size"]
    elif kind == "electra":
        more |= {"embedding_size": 8}
    elif kind == "ernie":
        more |= {"use_task_id": True, "task_type_vocab_size": 3}
    said = {"model_type": kind, "architectures": [class_name], "max_position_embeddings": positions, **SIZES, **more}
    if class_name.endswith("Classification"):
        said["id2label"] = {str(i): label for i, label in enumerate(LABELS)}
    said |= config
    rng = np.random.default_rng(5)
    body = f"{'roberta' if kind == 'xlm-roberta' else kind}." if prefix else ""
    shapes = {**{body + n: s for n, s in _body(kind, said).items()}, **_head(class_name, kind, body, said)}
    tensors = {name: rng.normal(scale=0.3, size=shape).astype("float32") for name, shape in shapes.items()}
    if kind in ("roberta", "xlm-roberta"):  # rows that no text uses
        tensors[f"{body}embeddings.position_embeddings.weight"][: positions - POSITIONS] = 0
    write_tensors(str(folder / "model.safetensors"), {rename(name): tensor for name, tensor in tensors.items()})
    names = _OF_DISTILBERT if kind == "distilbert" else {}
    (folder / "config.json").write_text(json.dumps({names.get(name, name): value for name, value in said.items()}))
    return str(folder), tensors


def write_sentencepiece(folder, name="spiece.model"):
    """Writes the model of an ALBERT, or by the name `FAIRSEQ` of an XLM-RoBERTa; returns the number of its pieces."""
    words = ["the", "un", "cafe", "naive", "sing", "in", "12", "東", "red"]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(" ".join(words[at % 9 :] + words[: at % 7]) for at in range(100)),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
        **_OF_ALBERT if name != FAIRSEQ else {},
    )
    (folder / name).write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).vocab_size()


def _body(kind, said):
    size, inner = said["hidden_size"], said["intermediate_size"]
    width = said.get("embedding_size", size)
    tables = {"word": "vocab_size", "position": "max_position_embeddings", "token_type": "type_vocab_size"}
    tables |= {"task_type": "task_type_vocab_size"} if kind == "ernie" else {}
    shapes = {
        f"embeddings.{name}_embeddings.weight": (said[count], width) for name, count in tables.items() if count in said
    }
    shapes |= _norm("embeddings.LayerNorm", width)
    if kind == "albert":
        shapes |= _linear("encoder.embedding_hidden_mapping_in", width, size)
        for number in range(said["num_hidden_groups"]):
            layer = f"encoder.albert_layer_groups.{number}.albert_layers.0"
            for role in ("query", "key", "value", "dense"):
                shapes |= _linear(f"{layer}.attention.{role}", size, size)
            shapes |= _linear(f"{layer}.ffn", size, inner) | _linear(f"{layer}.ffn_output", inner, size)
            shapes |= _norm(f"{layer}.attention.LayerNorm", size) | _norm(f"{layer}.full_layer_layer_norm", size)
        return shapes
    if kind == "electra" and width != size:
        shapes |= _linear("embeddings_project", width, size)
    for number in range(said["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        for role in ("query", "key", "value"):
            shapes |= _linear(f"{layer}.attention.self.{role}", size, size)
        shapes |= _linear(f"{layer}.attention.output.dense", size, size)
        shapes |= _norm(f"{layer}.attention.output.LayerNorm", size)
        shapes |= _linear(f"{layer}.intermediate.dense", size, inner) | _linear(f"{layer}.output.dense", inner, size)
        shapes |= _norm(f"{layer}.output.LayerNorm", size)
    if kind == "distilbert":
        for theirs, name in _PARTS_OF_DISTILBERT.items():
            shapes = {key.replace(theirs, name): shape for key, shape in shapes.items()}
    return shapes


def _head(class_name, kind, body, said):
    size, end = said["hidden_size"], class_name.partition("For")[2]
    width, bias = said.get("embedding_size", size), (said["vocab_size"],)
    pooler = f"{body}pooler" if kind == "albert" else f"{body}pooler.dense"
    if end in ("MaskedLM", "PreTraining"):
        dense, norm, ids = {
            "roberta": ("lm_head.dense", "lm_head.layer_norm", "lm_head"),
            "xlm-roberta": ("lm_head.dense", "lm_head.layer_norm", "lm_head"),
            "albert": ("predictions.dense", "predictions.LayerNorm", "predictions"),
            "distilbert": ("vocab_transform", "vocab_layer_norm", "vocab_projector"),
            "electra": ("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head"),
        }.get(kind, ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions"))
        shapes = _linear(dense, size, width) | _norm(norm, width) | {f"{ids}.bias": bias}
        if end == "PreTraining":
            sentence = "sop_classifier.classifier" if kind == "albert" else "cls.seq_relationship"
            shapes |= _linear(pooler, size, size) | _linear(sentence, size, 2)
        return shapes
    if end == "SequenceClassification":
        names = {"distilbert": ("pre_classifier", "classifier")}.get(kind, (pooler, "classifier"))
        if kind in ("roberta", "xlm-roberta", "electra"):
            names = ("classifier.dense", "classifier.out_proj")
        return _linear(names[0], size, size) | _linear(names[1], size, len(said["id2label"]))
    if end == "TokenClassification":
        return _linear("classifier", size, len(said["id2label"]))
    return _linear("qa_outputs", size, 2) if end else {}


def _linear(name, inputs, outputs):
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _norm(name, size):
    return {f"{name}.weight": (size,), f"{name}.bias": (size,)}

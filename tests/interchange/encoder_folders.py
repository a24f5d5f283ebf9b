"""Folders of BERT and its relatives with random weights and small vocabularies, made without Hugging Face's package."""

import io
import json
import re

import numpy as np
import sentencepiece

from t2t_lite.interchange.safetensors_file import write_tensors
from tests.text.published_samples import PIECES, write_byte_level, write_pieces

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
POSITIONS = 24
_HEADS = ("MaskedLM", "PreTraining", "SequenceClassification", "TokenClassification", "QuestionAnswering")
CLASSES = [f"{kind}For{head}" for kind in ("Bert", "Roberta", "Albert", "Ernie") for head in _HEADS]
CLASSES.remove("RobertaForPreTraining")
LABELS = ["red", "green", "blue"]
_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def write_encoder(folder, class_name, prefix=True, rename=str, **config):
    """Writes a folder; returns (its path, {name: array}).

    Args:
        folder: Path, which does not exist yet.
        class_name: str, of `CLASSES`, or the model without head, such as "BertModel".
        prefix: bool, whether the names of the body have their prefix.
        rename: function of a name, that it is stored under.
        **config: of `config.json`, beside or instead of the usual settings.
    """
    folder.mkdir(parents=True)
    kind = re.match("[A-Z][a-z]+", class_name)[0].lower()
    if kind == "roberta":
        with open(write_byte_level(folder, special=_SPECIAL), encoding="utf-8") as file:
            vocab = json.load(file)
        more = {"vocab_size": len(vocab), "pad_token_id": vocab["<pad>"], "type_vocab_size": 1}
        positions = POSITIONS + vocab["<pad>"] + 1
    else:
        size = write_sentencepiece(folder) if kind == "albert" else len(PIECES)
        more, positions = {"vocab_size": size, "pad_token_id": 0, "type_vocab_size": 2}, POSITIONS
        if kind != "albert":
            write_pieces(folder)
    if kind == "albert":
        more |= {"embedding_size": 8, "num_hidden_groups": 2, "num_hidden_layers": 4, "hidden_act": "gelu_new"}
    elif kind == "ernie":
        more |= {"use_task_id": True, "task_type_vocab_size": 3}
    said = {"model_type": kind, "architectures": [class_name], "max_position_embeddings": positions, **SIZES, **more}
    if class_name.endswith("Classification"):
        said["id2label"] = {str(i): label for i, label in enumerate(LABELS)}
    said |= config
    rng = np.random.default_rng(5)
    body = f"{kind}." if prefix else ""
    shapes = {**{body + n: s for n, s in _body(kind, said).items()}, **_head(class_name, kind, body, said)}
    tensors = {name: rng.normal(scale=0.3, size=shape).astype("float32") for name, shape in shapes.items()}
    if kind == "roberta":  # rows that no text uses
        tensors[f"{body}embeddings.position_embeddings.weight"][: positions - POSITIONS] = 0
    write_tensors(str(folder / "model.safetensors"), {rename(name): tensor for name, tensor in tensors.items()})
    (folder / "config.json").write_text(json.dumps(said))
    return str(folder), tensors


def write_sentencepiece(folder):
    """Writes an ALBERT's spiece.model; returns the number of its pieces."""
    words = ["the", "un", "cafe", "naive", "sing", "in", "12", "東", "red"]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(" ".join(words[at % 9 :] + words[: at % 7]) for at in range(100)),
        model_writer=model,
        vocab_size=40,
        hard_vocab_limit=False,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        minloglevel=2,
    )
    (folder / "spiece.model").write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).vocab_size()


def _body(kind, said):
    size, inner = said["hidden_size"], said["intermediate_size"]
    width = said.get("embedding_size", size)
    tables = {"word": "vocab_size", "position": "max_position_embeddings", "token_type": "type_vocab_size"}
    tables |= {"task_type": "task_type_vocab_size"} if kind == "ernie" else {}
    shapes = {f"embeddings.{name}_embeddings.weight": (said[count], width) for name, count in tables.items()}
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
    for number in range(said["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        for role in ("query", "key", "value"):
            shapes |= _linear(f"{layer}.attention.self.{role}", size, size)
        shapes |= _linear(f"{layer}.attention.output.dense", size, size)
        shapes |= _norm(f"{layer}.attention.output.LayerNorm", size)
        shapes |= _linear(f"{layer}.intermediate.dense", size, inner) | _linear(f"{layer}.output.dense", inner, size)
        shapes |= _norm(f"{layer}.output.LayerNorm", size)
    return shapes


def _head(class_name, kind, body, said):
    size, end = said["hidden_size"], class_name.partition("For")[2]
    width, bias = said.get("embedding_size", size), (said["vocab_size"],)
    pooler = f"{body}pooler" if kind == "albert" else f"{body}pooler.dense"
    if end in ("MaskedLM", "PreTraining"):
        ids, dense, norm = {
            "roberta": ("lm_head", "dense", "layer_norm"),
            "albert": ("predictions", "dense", "LayerNorm"),
        }.get(kind, ("cls.predictions", "transform.dense", "transform.LayerNorm"))
        shapes = _linear(f"{ids}.{dense}", size, width) | _norm(f"{ids}.{norm}", width) | {f"{ids}.bias": bias}
        if end == "PreTraining":
            sentence = "sop_classifier.classifier" if kind == "albert" else "cls.seq_relationship"
            shapes |= _linear(pooler, size, size) | _linear(sentence, size, 2)
        return shapes
    if end == "SequenceClassification":
        names = ("classifier.dense", "classifier.out_proj") if kind == "roberta" else (pooler, "classifier")
        return _linear(names[0], size, size) | _linear(names[1], size, len(said["id2label"]))
    if end == "TokenClassification":
        return _linear("classifier", size, len(said["id2label"]))
    return _linear("qa_outputs", size, 2) if end else {}


def _linear(name, inputs, outputs):
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _norm(name, size):
    return {f"{name}.weight": (size,), f"{name}.bias": (size,)}

"""Folders of BERT and its relatives with random weights and small vocabularies, made without Hugging Face's package."""

import json
import pathlib
import re

import sentencepiece

from t2t_lite import registry
from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors
from tests.extras.hugging_face.published_weights import random_tensors
from tests.text.published_samples import PIECES, sentencepiece_model, write_byte_level, write_pieces

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
_OF_DISTILBERT = {  # names of settings, by BERT's
    "hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim", "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}  # fmt: skip
_OWN = {  # settings of a kind, beside or instead of the usual ones
    "albert": {"embedding_size": 8, "num_hidden_groups": 2, "num_hidden_layers": 4, "hidden_act": "gelu_new"},
    "electra": {"embedding_size": 8},
    "ernie": {"use_task_id": True, "task_type_vocab_size": 3},
}
_LETTERS = {  # see published_weights.py
    "V": "vocab_size", "P": "max_position_embeddings", "S": "type_vocab_size", "T": "task_type_vocab_size",
    "H": "hidden_size", "F": "intermediate_size",
}  # fmt: skip


def write_encoder(folder, class_name, prefix=True, **config):
    """Writes a folder; returns (its path, {name: array}).

    Args:
        folder: Path, which does not exist yet.
        class_name: str, of `CLASSES`, or the model without head, such as "BertModel".
        prefix: bool, whether the names of the body have their prefix.
        **config: of `config.json`, beside or instead of the usual settings, by BERT's names.
    """
    folder.mkdir(parents=True)
    kind = _KINDS[class_name.partition("For")[0].removesuffix("Model")]
    vocab_size, padding = _write_vocabulary(folder, kind)
    unused = padding + 1 if "roberta" in kind else 0  # rows of positions that no text uses
    settings = {
        "model_type": kind, "architectures": [class_name], "vocab_size": vocab_size, "pad_token_id": padding,
        "max_position_embeddings": POSITIONS + unused, "type_vocab_size": 1 if unused else 2, **SIZES,
        **_OWN.get(kind, {}),
    }  # fmt: skip
    if class_name.endswith("Classification"):
        settings["id2label"] = {str(i): label for i, label in enumerate(LABELS)}
    settings |= config
    sizes = {letter: settings[name] for letter, name in _LETTERS.items() if name in settings}
    sizes |= {"W": settings.get("embedding_size", sizes["H"]), "L": len(settings.get("id2label", ()))}
    layers = settings.get("num_hidden_groups", settings["num_hidden_layers"])
    end = re.search("For.*|$", class_name)[0]
    tensors = random_tensors(kind, end, sizes, layers)
    body = f"{kind.removeprefix('xlm-')}."
    if unused:
        tensors[f"{body}embeddings.position_embeddings.weight"][:unused] = 0
    if not prefix:
        tensors = {name.removeprefix(body): tensor for name, tensor in tensors.items()}
    write_tensors(str(folder / "model.safetensors"), tensors)
    if kind == "distilbert":
        del settings["type_vocab_size"]
        settings = {_OF_DISTILBERT.get(name, name): value for name, value in settings.items()}
    (folder / "config.json").write_text(json.dumps(settings))
    return str(folder), tensors


def _write_vocabulary(folder, kind):
    """Writes the files of a kind's vocabulary; returns (the number of its tokens, the id of padding)."""
    if kind == "roberta":
        path = write_byte_level(folder, special=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
        vocab = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        return len(vocab), vocab["<pad>"]
    if kind == "xlm-roberta":
        return write_sentencepiece(folder, FAIRSEQ) + 2, 1
    if kind == "albert":
        return write_sentencepiece(folder), 0
    write_pieces(folder)
    return len(PIECES), 0


def write_sentencepiece(folder, name="spiece.model"):
    """Writes the model of an ALBERT, or by the name `FAIRSEQ` of an XLM-RoBERTa; returns the number of its pieces."""
    words = ["the", "un", "cafe", "naive", "sing", "in", "12", "東", "red"]
    sentences = (" ".join(words[at % 9 :] + words[: at % 7]) for at in range(100))
    model = sentencepiece_model(sentences, 40, **_OF_ALBERT if name != FAIRSEQ else {})
    (folder / name).write_bytes(model)
    return sentencepiece.SentencePieceProcessor(model_proto=model).vocab_size()

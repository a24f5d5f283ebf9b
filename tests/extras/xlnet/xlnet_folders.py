"""Folders of XLNet with random weights and a small vocabulary, made without Hugging Face's package."""

import json
import random

import sentencepiece

from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors
from tests.extras.hugging_face.published_weights import random_tensors
from tests.text.published_samples import sentencepiece_model

SIZES = {"d_model": 16, "n_layer": 2, "n_head": 4, "d_inner": 24}
CLASSES = [
    "XLNetLMHeadModel", "XLNetForSequenceClassification", "XLNetForTokenClassification",
    "XLNetForQuestionAnsweringSimple",
]  # fmt: skip
LABELS = ["red", "green", "blue"]
WARM_AND_COLD = {"warm": ["the", "red", "cafe"], "cold": ["12", "Un", "sing"]}  # words that say a label
_CONTROL = ["<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"]


def write_xlnet(folder, class_name, prefix=True, **config):
    """Writes a folder; returns (its path, {name: array}).

    Args:
        folder: Path, which does not exist yet.
        class_name: str, of `CLASSES`, or "XLNetModel", which has no head.
        prefix: bool, whether the names of the body have their prefix.
        **config: of `config.json`, beside or instead of the usual settings.
    """
    folder.mkdir(parents=True)
    said = {"model_type": "xlnet", "architectures": [class_name], **SIZES, "vocab_size": write_vocabulary(folder)}
    said |= {"pad_token_id": 5}
    if class_name.endswith("Classification"):
        said["id2label"] = {str(i): label for i, label in enumerate(LABELS)}
    said |= config
    heads, size, inner = said["n_head"], said["d_model"], said["d_inner"]
    sizes = {"V": said["vocab_size"], "H": size, "N": heads, "D": size // heads, "F": inner}
    tensors = random_tensors(
        "xlnet", class_name.removeprefix("XLNet"), sizes | {"L": len(said.get("id2label", ()))}, said["n_layer"]
    )
    if not prefix:
        tensors = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    write_tensors(str(folder / "model.safetensors"), tensors)
    (folder / "config.json").write_text(json.dumps(said))
    return str(folder), tensors


def write_warm_and_cold(path):
    """Writes 300 labelled texts of `WARM_AND_COLD`."""
    draw = random.Random(1)
    kinds = [*WARM_AND_COLD] * 150
    lines = [f"{kind}\t{draw.choice(WARM_AND_COLD[kind])} in {draw.choice(WARM_AND_COLD[kind])}" for kind in kinds]
    path.write_text("\n".join(lines))


def write_vocabulary(folder):
    """Writes a spiece.model whose special tokens have the ids of the published ones; returns the number of pieces."""
    words = ["the", "Un", "cafe", "naive", "sing", "in", "12", "東", "red", "The"]
    sentences = (" ".join(words[at % 10 :] + words[: at % 7]) for at in range(100))
    model = sentencepiece_model(sentences, 46, unk_id=0, bos_id=1, eos_id=2, control_symbols=_CONTROL)
    (folder / "spiece.model").write_bytes(model)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert [pieces.id_to_piece(i) for i in range(9)] == ["<unk>", "<s>", "</s>", *_CONTROL]
    return pieces.vocab_size()

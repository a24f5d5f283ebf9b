"""Folders of XLNet with random weights and a small vocabulary, made without Hugging Face's package."""

import io
import json
import random

import numpy as np
import sentencepiece

from t2t_lite.extras.hugging_face.hugging_face_folder import write_tensors

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
    rng = np.random.default_rng(5)
    shapes = _body(said, "transformer." if prefix else "") | _head(class_name, said)
    tensors = {name: rng.normal(scale=0.3, size=shape).astype("float32") for name, shape in shapes.items()}
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
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(" ".join(words[at % 10 :] + words[: at % 7]) for at in range(100)),
        model_writer=model,
        vocab_size=46,
        hard_vocab_limit=False,
        unk_id=0,
        bos_id=1,
        eos_id=2,
        control_symbols=_CONTROL,
        minloglevel=2,
    )
    (folder / "spiece.model").write_bytes(_reordered(model.getvalue()))
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).vocab_size()


def _reordered(model):
    """Returns a model with <pad> at 5: the trainer puts it where it stands in the list."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    assert [pieces.id_to_piece(i) for i in range(9)] == ["<unk>", "<s>", "</s>", *_CONTROL]
    return model


def _body(said, prefix):
    size, heads, inner = said["d_model"], said["n_head"], said["d_inner"]
    head = (heads, size // heads)
    shapes = {"mask_emb": (1, 1, size), "word_embedding.weight": (said["vocab_size"], size)}
    for number in range(said["n_layer"]):
        layer = f"layer.{number}"
        shapes |= {f"{layer}.rel_attn.{name}": (size, *head) for name in "qkvor"}
        shapes |= {f"{layer}.rel_attn.r_{name}_bias": head for name in "rsw"}
        shapes |= {f"{layer}.rel_attn.seg_embed": (2, *head), f"{layer}.ff.layer_1.weight": (inner, size)}
        shapes |= {f"{layer}.ff.layer_2.weight": (size, inner), f"{layer}.ff.layer_1.bias": (inner,)}
        shapes[f"{layer}.ff.layer_2.bias"] = (size,)
        for norm in ("rel_attn.layer_norm", "ff.layer_norm"):
            shapes |= {f"{layer}.{norm}.weight": (size,), f"{layer}.{norm}.bias": (size,)}
    return {prefix + name: shape for name, shape in shapes.items()}


def _head(class_name, said):
    size, labels = said["d_model"], len(said.get("id2label", ()))
    if class_name == "XLNetLMHeadModel":
        return {"lm_loss.bias": (said["vocab_size"],)}
    dense = {
        "XLNetForSequenceClassification": {"sequence_summary.summary": size, "logits_proj": labels},
        "XLNetForTokenClassification": {"classifier": labels},
        "XLNetForQuestionAnsweringSimple": {"qa_outputs": 2},
    }.get(class_name, {})
    weights = {f"{name}.weight": (count, size) for name, count in dense.items()}
    return weights | {f"{name}.bias": (count,) for name, count in dense.items()}

"""Exports encoders as BERT and its relatives in Hugging Face's package, without using it."""

import numpy as np

from t2t_lite.errors import UserError
from t2t_lite.export.model_card import toolkit_card
from t2t_lite.files import folders
from t2t_lite.interchange import albert_vocabulary, encoders, named_weights
from t2t_lite.interchange.encoders import ARCHITECTURES
from t2t_lite.interchange.hugging_face_folder import write_hugging_face_folder
from t2t_lite.interchange.marian import NEVER
from t2t_lite.interchange.published_vocabulary import published
from t2t_lite.text.published.wordpiece import WordPieceEncoder
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID, UNK_ID, SentencePieceEncoder


def export_encoder(predictor, path, *, license="", command=""):
    """Writes a folder that Transformers' auto classes load, offline; the caller has checked the model.

    The head decides the class: masked words, with or without sentences, classes, a number, tags or spans. The
    vocabulary has its own files and ids. Logits are the same; where nothing but a zero vector stood before each text
    (`first_id=0`), the embedding of the token that stands there is zero, and the model never predicts it.

    Args:
        predictor: Predictor.
        path: str, a new or empty folder.
        license, command: see `export_hugging_face`.

    Returns:
        `path`, which appears when everything is written.

    Raises:
        UserError: the vocabulary lacks a token, the model reads another one first, or it reads two texts otherwise.
    """
    folders.check_new(path)
    model, vocabulary = predictor.model, published(predictor.encoders["inputs"])
    kind, class_name = encoders.kind_of(model), encoders.class_of(model)
    if kind == "roberta" and getattr(predictor.problem, "num_texts", 1) > 1:
        raise UserError(
            f"{predictor.problem.full_name}: a RoBERTa reads two ends between two texts, this model has learned one. "
            "Expected a model of single texts, or one with two segments, a BERT (num_segments=2)."
        )
    names, first_token, ids = ARCHITECTURES[kind], vocabulary.first_token, vocabulary.ids
    first_id = vocabulary.special_ids[first_token]
    if -1 in ids:
        raise UserError(
            f"{vocabulary.path}: no token for padding, the end or unknown text. Expected a published encoder's."
        )
    if model.config["first_id"] not in (0, first_id):
        raise UserError(f"first_id={model.config['first_id']}: expected 0, or {first_id}, the id of {first_token}.")
    first_position = ids[PAD_ID] + 1 if kind == "roberta" else 0
    tensors = named_weights.state(encoders.parts(model, kind, first_position), ids)
    if model.config["first_id"] == 0:
        tensors["embeddings.word_embeddings.weight"][ids[first_id]] = 0
        if model.masked_ids_head is not None:
            tensors[names.head.ids[-1]][ids[first_id]] = NEVER
    if kind == "albert" and model.projection is None:
        tensors[f"{encoders.PROJECTION}.weight"] = np.eye(model.config["hidden_size"], dtype="float32")
        tensors[f"{encoders.PROJECTION}.bias"] = np.zeros(model.config["hidden_size"], "float32")
    _scale_numbers(predictor, tensors, names.head.classes)
    card = toolkit_card(
        predictor,
        title="An encoder for Hugging Face Transformers",
        library="transformers",
        body=_USE.format(auto=f"AutoModel{class_name.removeprefix(names.class_prefix)}"),
        license=license,
        command=command,
        rows={"class": class_name},
    )
    contents = {
        **vocabulary.contents,
        "config.json": _config(predictor, class_name, vocabulary, first_position),
        "tokenizer_config.json": _tokenizer_config(predictor, vocabulary),
        "README.md": card.encode(),
    }
    state = {encoders.with_prefix(name, kind): tensor for name, tensor in tensors.items()}
    return write_hugging_face_folder(path, state, contents)


def _scale_numbers(predictor, tensors, name):
    """Makes the one number of a head for numbers what it stands for; here it is a place between two numbers."""
    if predictor.model.config["head"] != "real":
        return
    numbers = predictor.encoders["targets"]
    width = np.float32(numbers.highest - numbers.lowest)
    tensors[f"{name}.weight"] = tensors[f"{name}.weight"] * width
    tensors[f"{name}.bias"] = tensors[f"{name}.bias"] * width + np.float32(numbers.lowest)


def _config(predictor, class_name, vocabulary, first_position):
    kind, config = encoders.kind_of(predictor.model), predictor.model.config
    theirs = {ours: name for name, ours in reversed(encoders.ACTIVATIONS.items())}
    head = config["head"]
    labels = {"class": predictor.labels, "tag": predictor.labels, "real": ["LABEL_0"]}.get(head)
    numbers = {str(i): label for i, label in enumerate(labels or ())}
    roles = {"pad": PAD_ID, "bos": vocabulary.special_ids[vocabulary.first_token], "eos": EOS_ID}
    return {
        "architectures": [class_name],
        "model_type": kind,
        "vocab_size": len(vocabulary.ids),
        "hidden_size": config["hidden_size"],
        "num_hidden_layers": config["num_layers"],
        "num_attention_heads": config["num_heads"],
        "intermediate_size": config["filter_size"],
        "hidden_act": theirs[config["activation"]],
        "hidden_dropout_prob": config["dropout"],
        "attention_probs_dropout_prob": config["attention_dropout"],
        "max_position_embeddings": config["max_position"] + first_position,
        "type_vocab_size": config["num_segments"],
        "layer_norm_eps": config["norm_epsilon"],
        **_sizes_of_relatives(kind, config),
        **{f"{role}_token_id": vocabulary.ids[i] for role, i in roles.items() if role == "pad" or kind in _ENDED},
        **({"id2label": numbers, "label2id": {label: int(i) for i, label in numbers.items()}} if labels else {}),
        **({"problem_type": "regression"} if head == "real" else {}),
        "tie_word_embeddings": True,
        "dtype": "float32",
    }


def _sizes_of_relatives(kind, config):
    if kind == "albert":
        return {
            "embedding_size": config["embedding_size"] or config["hidden_size"],
            "num_hidden_groups": config["num_hidden_groups"] or config["num_layers"],
            "inner_group_num": 1,
            "classifier_dropout_prob": config["dropout"],
        }
    return {"use_task_id": True, "task_type_vocab_size": config["num_task_types"]} if kind == "ernie" else {}


def _tokenizer_config(predictor, vocabulary):
    encoder = predictor.encoders["inputs"]
    mask = [token for token in vocabulary.special_ids if token in ("[MASK]", "<mask>")]
    return {
        **_tokenizer(encoder, vocabulary.first_token),
        **({"mask_token": mask[0]} if mask else {}),
        "model_max_length": predictor.model.config["max_position"],
        "clean_up_tokenization_spaces": False,
        **vocabulary.added_settings,
    }


def _tokenizer(encoder, first):
    """Returns the part that is of one kind of vocabulary."""
    tokens = encoder.pieces([PAD_ID, EOS_ID, UNK_ID])
    if isinstance(encoder, WordPieceEncoder):
        kind = {"tokenizer_class": "BertTokenizer", "do_lower_case": encoder.lower}
    elif isinstance(encoder, SentencePieceEncoder):  # its clean-up is in the rules of the model already
        kind = {"tokenizer_class": "AlbertTokenizer", "do_lower_case": False, "keep_accents": True}
        tokens = albert_vocabulary.RESERVED
    else:
        kind = {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": False}
    pad, end, unknown = tokens
    ends = {} if isinstance(encoder, WordPieceEncoder) else {"bos_token": first, "eos_token": end}
    return {**kind, "cls_token": first, "sep_token": end, "pad_token": pad, "unk_token": unknown, **ends}


_ENDED = ("roberta", "albert")  # whose config.json has the ids of the beginning and the end
_USE = """```bash
pip install transformers torch
```

```python
from transformers import {auto}, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(".")
model = {auto}.from_pretrained(".")
print(model(**tokenizer("A text.", return_tensors="pt")))
```
"""

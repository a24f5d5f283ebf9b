"""Models for Hugging Face Transformers: a MarianMTModel's folder with its tokenizer, written without that package."""

import json
import os
import re

from t2t_lite.data.vocabulary import EOS_ID, PAD_ID, UNK_ID
from t2t_lite.errors import UserError
from t2t_lite.export import folders, plain_transformer
from t2t_lite.export.marian import marian_state, shares_embeddings
from t2t_lite.export.safetensors_file import write_tensors

_ACTIVATIONS = ("relu", "gelu", "swish")
# Rows of Marian's table of positions, which is made when it is loaded: the longest input (1024) and 50 more have room.
_POSITIONS = 2048
_LONGEST_INPUT, _LONGEST_OUTPUT = 1024, 512
# A language code, as multilingual models want one at the beginning of a text, and the one piece of ours that it is.
LANGUAGE_CODE = re.compile(r">>.+<<")


def export_hugging_face(translator, path, *, beam_size=4, alpha=0.6):
    """Writes a folder that AutoModelForSeq2SeqLM and AutoTokenizer load, offline, with Transformers 4 or 5.

    `generate` there gives the ids of our search with `ends="top"` and `length_penalty="power"`; with a penalty, when it
    is told `early_stopping="never"` (by default it stops at a guess). Two things are not the same: a text that
    begins with `>>`, `<<` after it, is read as a language code, and an output ends at 512 ids however short its input.

    Args:
        translator: Translator of one Transformer that Marian can hold: post-norm, sinusoids in the paper's or Marian's
            layout, norm_epsilon 1e-5, relu, gelu or swish, d_k = d_v = hidden_size / num_heads; a SentencePiece
            vocabulary, or two.
        path: str, a new or empty folder.
        beam_size: int, of `generation_config.json`.
        alpha: float, exponent of the length penalty there: score = log-probability / length^alpha.

    Returns:
        `path`, which appears when all is written.

    Raises:
        UserError: an option that Marian does not have (it is named), another model or vocabulary, or a folder that
            holds something.
        Failure: writing failed; nothing is left behind.
    """
    plain_transformer.check(translator, "Hugging Face's Marian")
    config = translator.model.config
    _check_supported(config)
    models = plain_transformer.sentencepiece_models(translator.encoders)
    if not models:
        kinds = {type(encoder).__name__ for encoder in translator.encoders.values()}
        raise UserError(
            f"Hugging Face's Marian has SentencePiece vocabularies: found {', '.join(sorted(kinds))}. A SavedModel "
            "(--format=saved_model) holds every vocabulary."
        )
    folders.check_new(path)
    pieces = {side: plain_transformer.unique_pieces(encoder) for side, encoder in translator.encoders.items()}
    documents = {
        "config.json": _model_config(config, pieces),
        "generation_config.json": _generation_config(beam_size, alpha),
        **_tokenizer(pieces, translator.problem, has_two=config["target_vocab_size"] is not None),
    }
    state = marian_state(translator.model)

    def write(folder):
        write_tensors(os.path.join(folder, "model.safetensors"), state)
        for name, content in documents.items():
            folders.write_file(folder, name, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())
        for name, model in models.items():
            folders.write_file(folder, name, model)
        folders.write_file(folder, "README.md", _README.format(plain_transformer.description(translator)).encode())

    return folders.write_folder(path, write)


def _check_supported(config):
    head_size = config["hidden_size"] // config["num_heads"]
    plain_transformer.check_options(
        "Hugging Face's Marian",
        config,
        {
            **dict.fromkeys(("hidden_size", "filter_size", "num_heads", "num_encoder_layers", "num_decoder_layers")),
            "norm": ("post",),
            "norm_epsilon": (1e-5,),
            "position": ("sinusoidal",),
            "position_layout": ("interleaved", "marian"),
            "max_position": None,
            "activation": _ACTIVATIONS,
            "key_dim": (None, head_size),
            "value_dim": (None, head_size),
            "attention_bias": (False, True),
            "softmax_bias": (False, True),
            "tie_embeddings": (True, False),
        },
    )


def _model_config(config, pieces):
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (
            ("layers", config[f"num_{side}_layers"]),
            ("attention_heads", config["num_heads"]),
            ("ffn_dim", config["filter_size"]),
        )
    }
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        "d_model": config["hidden_size"],
        **sides,
        "activation_function": config["activation"],
        "dropout": config["dropout"],
        "attention_dropout": config["attention_dropout"],
        "activation_dropout": config["relu_dropout"],
        "scale_embedding": True,
        "static_position_embeddings": True,
        "max_position_embeddings": _POSITIONS,
        "vocab_size": len(pieces["inputs"]),
        "decoder_vocab_size": len(pieces["targets"]),
        "share_encoder_decoder_embeddings": shares_embeddings(config),
        "tie_word_embeddings": config["tie_embeddings"],
        **_special_ids(),
        "bos_token_id": None,
        "forced_eos_token_id": None,
        "dtype": "float32",
    }


def _special_ids():
    return {"pad_token_id": PAD_ID, "eos_token_id": EOS_ID, "decoder_start_token_id": PAD_ID}


def _generation_config(beam_size, alpha):
    search = {"num_beams": beam_size, "length_penalty": alpha, "early_stopping": False, "max_length": _LONGEST_OUTPUT}
    return {**_special_ids(), **search}


def _tokenizer(pieces, problem, has_two):
    """Returns {name of a file: content} of a MarianTokenizer, beside its SentencePiece models."""
    languages = (problem.languages if problem else None) or (None, None)
    names = {role: pieces["inputs"][i] for role, i in (("pad", PAD_ID), ("eos", EOS_ID), ("unk", UNK_ID))}
    documents = {
        "vocab.json": _ids(pieces["inputs"]),
        "tokenizer_config.json": {
            "tokenizer_class": "MarianTokenizer",
            **{f"{role}_token": name for role, name in names.items()},
            "source_lang": languages[0],
            "target_lang": languages[1],
            "separate_vocabs": has_two,
            "model_max_length": _LONGEST_INPUT,
            # Texts mean themselves: "</s>" in one is no end of sentence, and blanks stay where they are.
            "split_special_tokens": True,
            "clean_up_tokenization_spaces": False,
        },
    }
    if has_two:
        documents["target_vocab.json"] = _ids(pieces["targets"])
    return documents


def _ids(pieces):
    codes = {piece: piece.removeprefix("\u2581") for piece in pieces}
    return {codes[p] if LANGUAGE_CODE.fullmatch(codes[p]) else p: i for i, p in enumerate(pieces)}


_README = """# A translation model for Hugging Face Transformers

{} It is a MarianMTModel.

```bash
pip install transformers torch sentencepiece
```

```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(".")
model = AutoModelForSeq2SeqLM.from_pretrained(".")
batch = tokenizer(["The first sentence.", "The second one."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))
```

With Transformers 4 also `pipeline("translation", model=".")`; Transformers 5 has no such pipeline.
"""

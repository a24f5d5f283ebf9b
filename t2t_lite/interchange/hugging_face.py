"""Exports models to Hugging Face Transformers as a folder with model and tokenizer, without using that package."""

import re

from t2t_lite.decoding.generator import Generator
from t2t_lite.decoding.translator import Translator
from t2t_lite.export.model_card import toolkit_card
from t2t_lite.files import folders
from t2t_lite.interchange import encoder_export, formats, gpt_export
from t2t_lite.interchange.blenderbot import SINUSOIDS, blenderbot_state
from t2t_lite.interchange.hugging_face_folder import write_hugging_face_folder
from t2t_lite.interchange.marian import marian_state, shares_embeddings
from t2t_lite.interchange.sentencepiece_files import sentencepiece_models, unique_pieces
from t2t_lite.models.transformer_encoder import TransformerEncoder
from t2t_lite.models.transformer_lm import TransformerLM
from t2t_lite.search_options import SearchOptions
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID, UNK_ID

# Rows of Marian's table of positions, which is made when it is loaded: the longest input (1024) and 50 more have room.
_MARIAN_POSITIONS = 2048
_LONGEST_INPUT, _LONGEST_OUTPUT = 1024, 512
_OTHERS = {TransformerLM: gpt_export.export_gpt, TransformerEncoder: encoder_export.export_encoder}
# A language code at the beginning of a text, as in multilingual models; it must be one piece in our vocabulary.
LANGUAGE_CODE = re.compile(r">>.+<<")


def export_hugging_face(
    translator: Translator | Generator,
    path: str,
    *,
    beam_size: int = SearchOptions.beam_size,
    alpha: float = SearchOptions.alpha,
    license: str = "",
    command: str = "",
) -> str:
    """Writes a folder that AutoModelForSeq2SeqLM and AutoTokenizer load, offline, with Transformers 4 or 5.

    A post-norm model becomes a MarianMTModel, a pre-norm one a BlenderbotForConditionalGeneration, both with Marian's
    tokenizer. `generate` gives the same ids as our search with `ends="top"` and `length_penalty="power"`. With a length
    penalty, this requires `early_stopping="never"` (by default it stops when an estimate says so). Two things differ: a
    text that begins with `>>` and has a later `<<` is read as a language code, and an output is limited to 512 ids even
    if its input is short. A language model becomes a GPT2LMHeadModel or an OpenAIGPTLMHeadModel: see `gpt_export`; it
    has no beam_size and alpha.

    Args:
        translator: Translator of one Transformer that one of the two can represent (see the table in
            docs/conversion.md; `t2t-trainer --describe` tells before training), with one SentencePiece vocabulary, or
            for Marian two.
        path: str, a new or empty folder.
        beam_size: int, for `generation_config.json`.
        alpha: float, exponent of the length penalty in Transformers: score = log-probability / length^alpha.
        license: str, the model's licence; "": not stated.
        command: str, the command that made the export, or "".

    Returns:
        `path`, which appears when everything is written.

    Raises:
        UserError: neither supports the model's options (the message lists all of them), the model or vocabulary is of
            another type, or the folder is not empty.
        Failure: writing failed; nothing is left behind.
    """
    formats.check("hugging_face", translator)
    if exporter := _OTHERS.get(type(translator.model)):
        return exporter(translator, path, license=license, command=command)
    config = translator.model.config
    is_marian = formats.hugging_face_class(translator.model) == "Marian"
    models = sentencepiece_models(translator.encoders)
    folders.check_new(path)
    pieces = {side: unique_pieces(encoder) for side, encoder in translator.encoders.items()}
    model_config = {**_both_configs(config, pieces), **(_marian if is_marian else _blenderbot)(config, pieces)}
    longest = config["max_position"] if config["position"] == "learned" else _LONGEST_INPUT
    documents = {
        "config.json": model_config,
        "generation_config.json": _generation_config(beam_size, alpha, longest),
        **_tokenizer(pieces, translator.problem, longest, has_two=config["target_vocab_size"] is not None),
    }
    state = (marian_state if is_marian else blenderbot_state)(translator.model)
    card = toolkit_card(
        translator,
        title="A translation model for Hugging Face Transformers",
        library="transformers",
        body=_USE,
        license=license,
        command=command,
        rows={
            "class": model_config["architectures"][0],
            "search": f"beam {beam_size}, length_penalty {alpha:g} (the score is divided by the length to this power)",
        },
    )

    return write_hugging_face_folder(path, state, {**documents, **models, "README.md": card.encode()})


def _both_configs(config, pieces):
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
        "is_encoder_decoder": True,
        "d_model": config["hidden_size"],
        **sides,
        "activation_function": config["activation"],
        "dropout": config["dropout"],
        "attention_dropout": config["attention_dropout"],
        "activation_dropout": config["relu_dropout"],
        "scale_embedding": True,
        "vocab_size": len(pieces["inputs"]),
        "tie_word_embeddings": config["tie_embeddings"],
        **_special_ids(),
        "bos_token_id": None,
        "forced_eos_token_id": None,
        "dtype": "float32",
    }


def _marian(config, pieces):
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "static_position_embeddings": True,
        "max_position_embeddings": _MARIAN_POSITIONS,
        "decoder_vocab_size": len(pieces["targets"]),
        "share_encoder_decoder_embeddings": shares_embeddings(config),
    }


def _blenderbot(config, pieces):
    return {
        "architectures": ["BlenderbotForConditionalGeneration"],
        "model_type": "blenderbot",
        "max_position_embeddings": config["max_position"] if config["position"] == "learned" else SINUSOIDS,
        "encoder_no_repeat_ngram_size": 0,  # 3 where it is left out, as a chat needs it
    }


def _special_ids():
    return {"pad_token_id": PAD_ID, "eos_token_id": EOS_ID, "decoder_start_token_id": PAD_ID}


def _generation_config(beam_size, alpha, longest):
    search = {"num_beams": beam_size, "length_penalty": alpha, "early_stopping": False}
    return {**_special_ids(), **search, "max_length": min(_LONGEST_OUTPUT, longest)}


def _tokenizer(pieces, problem, longest, has_two):
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
            "model_max_length": min(_LONGEST_INPUT, longest),
            # Texts are literal: "</s>" in a text is not the end of a sentence, and spaces are kept.
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


_USE = """```bash
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

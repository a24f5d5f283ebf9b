"""Reads and checks the JSON files of a Hugging Face folder before anything else is done with the model."""

import logging
import os

from t2t_lite import files
from t2t_lite.errors import UserError, shown
from t2t_lite.files.safe_json import check_schema

_LOGGER = logging.getLogger("t2t_lite")
CLASSES = {
    "marian": "MarianMTModel",
    "blenderbot": "BlenderbotForConditionalGeneration",
    "gpt2": "GPT2LMHeadModel",
    "openai-gpt": "OpenAIGPTLMHeadModel",
    "bert": "BertForMaskedLM or another",
    "roberta": "RobertaForMaskedLM or another",
    "albert": "AlbertForMaskedLM or another",
    "ernie": "ErnieForMaskedLM or another",
}
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
# Far beyond any Transformer. The exact numbers are checked by the shapes of the weights.
_SIZES = {
    "d_model": 2**16, "vocab_size": 2**24, "decoder_vocab_size": 2**24, "max_position_embeddings": 2**20,
    "encoder_layers": 2**9, "decoder_layers": 2**9, "encoder_attention_heads": 2**12, "encoder_ffn_dim": 2**18,
}  # fmt: skip
_RATES = ("dropout", "attention_dropout", "activation_dropout")
_SCHEMA = {
    "activation_function": str,
    **dict.fromkeys(("scale_embedding", "share_encoder_decoder_embeddings", "tie_word_embeddings"), bool),
    **dict.fromkeys((*_SIZES, "pad_token_id", "eos_token_id"), int),
    **{f"{name}?": float for name in _RATES},
}
_TOKENIZER_SCHEMA = {
    "unk_token?": str | dict,
    "separate_vocabs?": bool | None,
    "source_lang?": str | None,
    "target_lang?": str | None,
}


def read_said(folder):
    """Returns (path of `config.json`, what it says). Raises `UserError` unless its model_type is one of CLASSES."""
    path = os.path.join(folder, "config.json")
    said = files.read_json(path)
    kind = said.get("model_type")
    if kind not in list(CLASSES):  # a list, as the value may be anything
        expected = " or ".join(f"{name!r}, a {class_name}" for name, class_name in CLASSES.items())
        raise UserError(f"{path}: model_type is {shown(kind)}. Expected {expected}.")
    return path, said


def read_config(folder):
    """Returns the `config.json` of a Marian or a Blenderbot with its defaults.

    Raises:
        UserError: something in it is wrong or not supported; the message names it.
    """
    path, said = read_said(folder)
    kind = said["model_type"]
    config = {
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "activation_function": "gelu",
        "scale_embedding": False,
        "max_position_embeddings": 1024,
        **said,
    }
    is_one = kind == "blenderbot" or config["share_encoder_decoder_embeddings"] is True
    if is_one or config.get("decoder_vocab_size") is None:
        config["decoder_vocab_size"] = config.get("vocab_size")
    check_schema(config, _SCHEMA, path)
    check_numbers(path, config, _SIZES, _RATES)
    for name in ("pad_token_id", "eos_token_id"):
        size = min(config["vocab_size"], config["decoder_vocab_size"])
        check(path, name, config[name], 0 <= config[name] < size, f"an id from 0 to {size - 1:,}")
    check_heads(path, config, "encoder_attention_heads", "d_model")
    check_choices(path, config, _required(kind, config))
    return config


def check(path, name, value, is_right, expected):
    """Raises `UserError` unless a value `is_right`."""
    if not is_right:
        raise UserError(f"{path}: {name}={shown(value).strip(chr(39))}. Expected {expected}.")


def check_numbers(path, config, sizes, rates):
    """Checks sizes, {name: largest}, and the dropout rates that are there. Raises `UserError`."""
    for name, largest in sizes.items():
        check(path, name, config[name], 1 <= config[name] <= largest, f"a number from 1 to {largest:,}")
    for name in rates:
        rate = config.get(name, 0)
        check(path, name, rate, 0 <= rate < 1, "a number from 0 to below 1")


def check_heads(path, config, heads, size):
    """Checks that the number of heads divides the hidden size; both are names in `config`. Raises `UserError`."""
    check(path, heads, config[heads], config[size] % config[heads] == 0, f"a divisor of {size}={config[size]}")


def check_choices(path, config, choices):
    """Checks settings by {name: tuple of possible values}; None: left out. Raises `UserError`."""
    for name, possible in choices.items():
        words = " or ".join(str(value) for value in possible if value is not None)
        is_possible = any(config.get(name) == value and type(config.get(name)) is type(value) for value in possible)
        check(path, name, config.get(name), is_possible, f"{words}: the Transformer here has no other")


def check_rows(path, size, published_ids, vocabulary):
    """Checks that each token has a row in the table of embeddings, and warns of rows beyond. Raises `UserError`.

    Args:
        path: str, of `config.json`.
        size: int, its vocab_size.
        published_ids: list of int by our id: the id there, or -1.
        vocabulary: str, the path of the tokens.
    """
    count = sum(theirs >= 0 for theirs in published_ids)
    check(path, "vocab_size", size, size >= count, f"the {count:,} tokens of {vocabulary} or more")
    if size > count:
        _LOGGER.warning(f"{path}: vocab_size={size:,}, but {count:,} tokens: the ids beyond them are left out.")


def read_tokenizer_config(folder):
    """Returns `tokenizer_config.json`, or {} if there is none, with "unk_token" as text.

    Raises:
        UserError: the file is damaged or has another structure.
    """
    path = os.path.join(folder, "tokenizer_config.json")
    found = files.read_json(path, _TOKENIZER_SCHEMA) if files.exists(path) else {}
    unknown = found.get("unk_token", "<unk>")
    if isinstance(unknown, dict):
        check_schema(unknown, {"content": str}, f"{path}: unk_token")
        unknown = unknown["content"]
    return {**found, "unk_token": unknown}


def _required(kind, config):
    """Returns {name: allowed values}."""
    both = {
        "scale_embedding": (True,),
        "activation_function": tuple(ACTIVATIONS),
        "decoder_start_token_id": (config["pad_token_id"],),
        "decoder_attention_heads": (config["encoder_attention_heads"],),
        "decoder_ffn_dim": (config["encoder_ffn_dim"],),
    }
    if kind == "blenderbot":
        return {**both, "share_encoder_decoder_embeddings": (True,), "tie_word_embeddings": (True,)}
    return {
        **both,
        "normalize_before": (False, None),
        "normalize_embedding": (False, None),
        "add_final_layer_norm": (False, None),
        "static_position_embeddings": (True, None),
    }

"""Imports GPT and GPT-2 from folders of Hugging Face as runs of `transformer_lm`."""

from t2t_lite.config import HParams
from t2t_lite.errors import UserError, shown
from t2t_lite.files.safe_json import check_schema
from t2t_lite.interchange import gpt, named_weights
from t2t_lite.interchange.hugging_face_config import (
    check,
    check_choices,
    check_heads,
    check_numbers,
    check_rows,
    read_said,
)
from t2t_lite.interchange.hugging_face_weights import read_safetensors
from t2t_lite.interchange.imported_run import write_imported_run
from t2t_lite.interchange.published_vocabulary import vocabulary_of
from t2t_lite.models.transformer_lm import TransformerLM
from t2t_lite.text.published.bpe_encoder import BPEEncoder
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID
from t2t_lite.text.vocabulary_files import open_encoder

_SIZES = {
    "vocab_size": 2**24, "n_positions": 2**20, "n_embd": 2**16, "n_layer": 2**9, "n_head": 2**12, "n_inner": 2**18,
}  # fmt: skip
_RATES = ("resid_pdrop", "embd_pdrop", "attn_pdrop")
_SCHEMA = {
    **dict.fromkeys(_SIZES, int),
    **{f"{name}?": float for name in _RATES},
    "layer_norm_epsilon": float,
    "eos_token_id": int | list | None,
}


def import_gpt(path, output_dir):
    """Makes a run from a GPT2LMHeadModel or an OpenAIGPTLMHeadModel, with the vocabulary of either.

    Given the same ids, logits are the same. An empty prompt is read as the end of a text, and so is what precedes a
    text that is scored. The ids that the vocabulary lacks, of padding and unknown text, are never predicted.

    Args:
        path: str, a folder of `config.json`, `model.safetensors`, and `vocab.json` with `merges.txt` or
            `tokenizer.json`.
        output_dir: str, folder of the new run, which does not exist yet or is empty.

    Returns:
        The path of the new checkpoint, without suffix.

    Raises:
        UserError: a file is missing or damaged, or a setting of the model is not supported (the message names it).
        Failure: writing failed; nothing is left behind.
    """
    config = _read_config(path)
    weights = _read_weights(path, config)
    with vocabulary_of(path) as vocabulary:
        encoder = open_encoder(vocabulary.path)
        _check_vocabulary(path, config, encoder)
        unused = [i for i, theirs in enumerate(encoder.published_ids) if theirs < 0 or i == PAD_ID]
        length = config["n_positions"]

        def fill(model):
            parts = gpt.parts(model, config["model_type"])
            named_weights.fill(parts, weights.take, vocabulary.ids, config["vocab_size"])
            weights.check_all_taken()

        return write_imported_run(
            output_dir,
            "languagemodel_own",
            lambda problem, folder: problem.hold_vocabulary(folder, vocabulary.path, sequence_length=length),
            model="transformer_lm",
            hparams=_hparams(config).override_from_dict({"begin": "end", "unused_ids": unused}),
            fill=fill,
        )


def _read_config(folder):
    """Returns `config.json` with its defaults. Raises `UserError`, which names what is wrong or not supported."""
    path, said = read_said(folder)
    architecture = gpt.ARCHITECTURES[said["model_type"]]
    usual = {
        "layer_norm_epsilon": 1e-5,
        architecture.activation: next(iter(architecture.activations)),
        "tie_word_embeddings": True,
        "scale_attn_weights": True,
        "eos_token_id": None,
    }
    config = {**usual, **said}
    if config.get("n_inner") is None and isinstance(config.get("n_embd"), int):
        config["n_inner"] = 4 * config["n_embd"]
    check_schema(config, _SCHEMA, path)
    check_numbers(path, config, _SIZES, _RATES)
    check_heads(path, config, "n_head", "n_embd")
    epsilon = config["layer_norm_epsilon"]
    check(path, "layer_norm_epsilon", epsilon, 1e-20 <= epsilon <= 1, "a number from 1e-20 to 1")
    off = (False, None)
    choices = {
        architecture.activation: tuple(architecture.activations),
        "tie_word_embeddings": (True,),
        "scale_attn_weights": (True,),
        **dict.fromkeys(("scale_attn_by_inverse_layer_idx", "add_cross_attention"), off),
    }
    check_choices(path, config, choices)
    if said["model_type"] == "openai-gpt":
        check(path, "n_inner", config["n_inner"], config["n_inner"] == 4 * config["n_embd"], "4 n_embd, or none")
    return config


def _read_weights(folder, config):
    """Returns the HuggingFaceWeights, after checking that sizes are those of `config`."""
    found = read_safetensors(folder, "AutoModelForCausalLM", lambda name: name.removeprefix(gpt.PREFIX), gpt.UNUSED)
    architecture, size = gpt.ARCHITECTURES[config["model_type"]], config["n_embd"]
    found.take(f"{architecture.embedding}.weight", (config["vocab_size"], size))
    found.take(f"{architecture.position}.weight", (config["n_positions"], size))
    for number in range(config["n_layer"]):  # stops at the first missing one
        found.take(f"h.{number}.mlp.c_fc.weight", (size, config["n_inner"]))
    return found


def _check_vocabulary(folder, config, encoder):
    if not isinstance(encoder, BPEEncoder):
        raise UserError(
            f"{folder}: an encoder's vocabulary. Expected vocab.json and merges.txt, or a BPE tokenizer.json."
        )
    check_rows(f"{folder}/config.json", config["vocab_size"], encoder.published_ids, encoder.path)
    end, said = encoder.published_ids[EOS_ID], config["eos_token_id"]
    expected = f"{end}, the id of {shown(encoder.tokens[EOS_ID])}, alone"
    check(f"{folder}/config.json", "eos_token_id", said, said in (end, [end], None), expected)


def _hparams(config):
    architecture = gpt.ARCHITECTURES[config["model_type"]]
    is_pre = architecture.norm == "pre"
    dropouts = {"layer_prepostprocess_dropout": "resid_pdrop", "attention_dropout": "attn_pdrop"}
    return (
        HParams()
        .of_model(TransformerLM)
        .override_from_dict(
            {
                "hidden_size": config["n_embd"],
                "filter_size": config["n_inner"],
                "num_heads": config["n_head"],
                "num_hidden_layers": config["n_layer"],
                "attention_bias": True,
                "ffn_activation": architecture.activations[config[architecture.activation]],
                "norm_epsilon": config["layer_norm_epsilon"],
                "layer_preprocess_sequence": "n" if is_pre else "none",
                "layer_postprocess_sequence": "da" if is_pre else "dan",
                "pos": "emb",
                "max_position": config["n_positions"],
                "max_length": config["n_positions"],
                "multiply_embedding_mode": "none",
                "label_smoothing": 0.0,
                **{ours: float(config[theirs]) for ours, theirs in dropouts.items() if theirs in config},
            }
        )
    )

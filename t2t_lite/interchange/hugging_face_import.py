"""Imports Hugging Face models, such as OPUS-MT's, as runs of this package."""

import os
import re
from collections.abc import Sequence

import numpy as np

from t2t_lite import files
from t2t_lite.config import HParams
from t2t_lite.errors import UserError, shown
from t2t_lite.files.folders import check_new
from t2t_lite.interchange import blenderbot, encoder_import, encoders, gpt, gpt_import, marian, marian_vocabulary
from t2t_lite.interchange.hugging_face_config import ACTIVATIONS, read_config, read_said, read_tokenizer_config
from t2t_lite.interchange.hugging_face_weights import MarianWeights
from t2t_lite.interchange.imported_run import write_imported_run
from t2t_lite.text.published import added_tokens

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?", re.ASCII)


def import_hugging_face(path: str, output_dir: str, *, languages: Sequence[str] = (), problem: str = "") -> str:
    """Makes a run from a Marian, a Blenderbot as `export_hugging_face` writes it, a GPT, or a BERT and its relatives.

    GPT and GPT-2 become language models: see `t2t_lite.interchange.gpt_import`, and BERT and its relatives encoders:
    see `t2t_lite.interchange.encoder_import`. What follows is said of the others.

    The run can decode, be exported, and be fine-tuned (`--warm_start_from`). A search with `ends="top"` finds the same
    ids as `generate` with the same beam size and penalty (`length_penalty="power"`) and `early_stopping="never"`.
    Padding is never an output here; in Transformers, `bad_words_ids` excludes it.

    Args:
        path: str, a folder of `config.json`, `model.safetensors` or `pytorch_model.bin` (which needs PyTorch, whose
            tensor reader runs no code), `source.spm`, `target.spm`, `vocab.json` and optionally
            `tokenizer_config.json`. Embeddings, softmax and vocabulary may be shared or not.
        output_dir: str, folder of the new run, which does not exist yet or is empty.
        languages: (of inputs, of targets), such as ("en", "de"); default: those in the tokenizer's configuration.
        problem: str, for encoders of pairs "classify_pair_own" or "regress_pair_own"; "": the usual one.

    Returns:
        The path of the new checkpoint, without suffix.

    Raises:
        UserError: a file is missing or damaged, or a setting of the model is not supported (the message names it).
        Failure: writing failed; nothing is left behind.

    Example:
        >>> import_hugging_face("opus-mt-en-de", "train")                            # doctest: +SKIP
        'train/model.ckpt-0'
    """
    check_new(output_dir)
    if _HUB_NAME.fullmatch(path) and not os.path.exists(path):
        raise UserError(
            f"{path}: no such folder. A model is imported from this machine; if that is its name on the Hub, download "
            f"it first: hf download {path} --local-dir={path.rpartition('/')[2]}"
        )
    kind = read_said(path)[1]["model_type"]
    if kind not in ("marian", "blenderbot") and languages:
        raise UserError(f"--languages: only for models that translate. Leave it out for model_type {kind}.")
    if kind in encoders.ARCHITECTURES:
        return encoder_import.import_encoder(path, output_dir, problem)
    if problem:
        raise UserError(f"--problem: only for encoders. Leave it out for model_type {kind}.")
    if kind in gpt.ARCHITECTURES:
        return gpt_import.import_gpt(path, output_dir)
    config = read_config(path)
    tokenizer = read_tokenizer_config(path)
    languages = languages or (tokenizer.get("source_lang"), tokenizer.get("target_lang"))
    if not all(languages):
        raise UserError(f"{path}: which languages it translates is not said there. Expected --languages=en,de.")
    weights = MarianWeights(path, config)
    inputs, targets = _vocabularies(path, config, tokenizer)
    embeddings = _our_rows(weights.take_embeddings(config), inputs, targets)
    is_one = inputs.model == targets.model
    positions = None
    if config["model_type"] == "blenderbot":
        positions = blenderbot.positions_of(weights.take, (config["max_position_embeddings"], config["d_model"]))
    scale = positions[2] if positions else np.float32(1)

    def fill(model):
        if config["model_type"] == "blenderbot":
            blenderbot.fill(model, weights.take, scale)
            if positions is None:
                blenderbot.fill_positions(model, weights.take)
        else:
            marian.fill(model, weights.take)
        weights.check_all_taken()
        for layer, rows in (
            (model.input_embedding, embeddings["inputs"]),
            (model.target_embedding, embeddings["targets"]),
            (model.softmax, embeddings["softmax"]),
        ):
            layer.embeddings.assign(blenderbot.divided(rows, scale))
        model.softmax.bias.assign(embeddings["bias"])

    contents = {"inputs": inputs.model, "targets": targets.model}
    return write_imported_run(
        output_dir,
        "translate_own",
        lambda problem, folder: problem.hold_vocabularies(folder, tuple(languages), contents, ".model"),
        model="transformer",
        hparams=_hparams(config, config["tie_word_embeddings"] and (not is_one or _shares(config)), positions),
        fill=fill,
    )


def _vocabularies(path, config, tokenizer):
    """Returns the MarianVocabulary of each side; they are equal if both sides share one."""
    is_separate = tokenizer.get("separate_vocabs") is True
    names = {"source.spm": "vocab.json", "target.spm": "target_vocab.json" if is_separate else "vocab.json"}
    sizes = {"source.spm": config["vocab_size"], "target.spm": config["decoder_vocab_size"]}
    models, ids, special = {}, {}, {}
    for name, listed in names.items():
        models[name] = files.read_bytes(os.path.join(path, name))
        file = os.path.join(path, listed)
        ids[name] = files.read_json(file, {str: int})
        marian_vocabulary.check_ids(ids[name], sizes[name], file)
        special[name] = _special_ids(config, tokenizer, ids[name], file)

    for facts in added_tokens.read_settings(os.path.join(path, "")).values():
        if not any(facts["content"] in tokens for tokens in ids.values()):
            raise UserError(f"{path}: the added token {shown(facts['content'])} is not in vocab.json. Expected none.")

    def side(name, every):
        file = os.path.join(path, name)
        return marian_vocabulary.renumbered(models[name], ids[name], special[name], sizes[name], file, every)

    targets = side("target.spm", every=True)
    if models["source.spm"] == models["target.spm"] and not is_separate and not targets.has_others:
        return targets, targets
    return side("source.spm", every=False), targets


def _special_ids(config, tokenizer, ids, file):
    unknown = tokenizer["unk_token"]
    if unknown not in ids:
        raise UserError(f"{file}: has no {unknown!r}, the piece of unknown text. Expected a Marian vocabulary.")
    special = {"pad": config["pad_token_id"], "eos": config["eos_token_id"], "unk": ids[unknown]}
    if len(set(special.values())) < 3:
        raise UserError(f"{file}: padding, end of sentence and unknown have the ids {special}. Expected three.")
    return special


def _our_rows(found, inputs, targets):
    """Returns {"inputs", "targets", "softmax": float32 [our ids, hidden], "bias": float32 [our ids]}."""
    # A bias of -1e9, which forbids an id, would spoil the loss in fine-tuning: label smoothing sums all logits.
    bias = np.maximum(found["bias"][targets.rows], marian.NEVER)
    return {
        "inputs": found["inputs"][inputs.rows],
        "targets": found["targets"][targets.rows],
        "softmax": found["softmax"][targets.rows],
        "bias": np.where(targets.is_unknown, np.float32(marian.NEVER), bias),
    }


def _hparams(config, is_tied, positions):
    dropouts = {
        "layer_prepostprocess_dropout": "dropout",
        "attention_dropout": "attention_dropout",
        "relu_dropout": "activation_dropout",
    }
    return HParams().override_from_dict(
        {
            "hidden_size": config["d_model"],
            "filter_size": config["encoder_ffn_dim"],
            "num_heads": config["encoder_attention_heads"],
            "num_encoder_layers": config["encoder_layers"],
            "num_decoder_layers": config["decoder_layers"],
            "attention_bias": True,
            "softmax_bias": True,
            "ffn_activation": ACTIVATIONS[config["activation_function"]],
            "shared_embedding_and_softmax_weights": is_tied,
            **_norms_and_positions(config, positions),
            **{ours: float(config[theirs]) for ours, theirs in dropouts.items() if theirs in config},
        }
    )


def _norms_and_positions(config, positions):
    if config["model_type"] == "marian":
        post_norm = {"layer_preprocess_sequence": "none", "layer_postprocess_sequence": "dan"}
        return {**post_norm, "norm_epsilon": blenderbot.EPSILON, "pos": "timing", "position_layout": "marian"}
    pre_norm = {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"}
    if positions is None:
        learned = {"pos": "emb", "max_position": config["max_position_embeddings"]}
        return {**pre_norm, **learned, "norm_epsilon": blenderbot.EPSILON}
    layout, epsilon, _ = positions
    return {**pre_norm, "pos": "timing", "position_layout": layout, "norm_epsilon": epsilon}


def _shares(config):
    return config["share_encoder_decoder_embeddings"]

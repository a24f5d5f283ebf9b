"""Imports and exports translation models (Marian and its relatives) as Hugging Face folders.

The paper alternates sines and cosines in the position features; Marian puts all sines before all cosines. If the hidden
features of all weights are permuted in the same way, a Transformer still computes the same function. One permutation
therefore converts the paper's layout to Marian's. `extras/families/blenderbot.py` explains why Blenderbot's weights are
scaled.
"""

import os

import numpy as np
from keras import ops

from t2t_lite import files
from t2t_lite.errors import LOGGER, UserError, shown
from t2t_lite.extras.hugging_face import marian_vocabulary, named_weights
from t2t_lite.extras.hugging_face.family import hparams_of
from t2t_lite.extras.hugging_face.hugging_face_folder import Folder, read_weights, usage_of_transformers
from t2t_lite.extras.hugging_face.marian import SINUSOIDS, shares_embeddings
from t2t_lite.extras.hugging_face.marian_vocabulary import LANGUAGE_CODE, sentencepiece_models, unique_pieces
from t2t_lite.extras.hugging_face.named_weights import NEVER, array_of, rows
from t2t_lite.files.safe_json import check_schema
from t2t_lite.layers import SinusoidalPositionEmbedding
from t2t_lite.layers.positions import LAYOUTS
from t2t_lite.models.transformer import Transformer
from t2t_lite.runs.saving import write_imported_run
from t2t_lite.text.published import published_encoder
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID, UNK_ID

EPSILON = 1e-5  # epsilon of the foreign normalization layers
_LONGEST_INPUT, _LONGEST_OUTPUT = 1024, 512
_SHARED, _SOFTMAX, _BIAS = "model.shared.weight", "lm_head.weight", "final_logits_bias"
_EMBEDDINGS = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
_TOKENIZER_SCHEMA = {
    "unk_token?": str | dict,
    "separate_vocabs?": bool | None,
    "source_lang?": str | None,
    "target_lang?": str | None,
}


def import_translation_model(family, path, config, output_dir, languages=()):
    """Makes a run from a MarianMTModel, or from a Blenderbot that `export_hugging_face` wrote.

    Args:
        family: Family.
        path, output_dir, languages: see `import_hugging_face`.
        config: dict, see `Family.read`.

    Returns:
        The path of the new checkpoint, without suffix.

    Raises:
        UserError: a file is missing or damaged (the message names it).
        Failure: writing failed; nothing is left behind.
    """
    tokenizer = _read_tokenizer_config(path)
    languages = languages or (tokenizer.get("source_lang"), tokenizer.get("target_lang"))
    if not all(languages):
        raise UserError(f"{path}: the files do not name the languages. Expected a flag such as --languages=en,de.")
    arguments = family.arguments(config)
    weights = read_weights(path, family)
    embeddings = _take_embeddings(weights, config)
    weights.check_sizes(arguments)
    inputs, targets = _vocabularies(path, config, tokenizer)
    embeddings = _our_rows(embeddings, inputs, targets)
    is_one = inputs.model == targets.model
    arguments["tie_embeddings"] &= not is_one or config["share_encoder_decoder_embeddings"]
    table, scale, longest = family.weights, np.float32(1), arguments.pop("max_position")
    if names := _position_names(family):
        if sinusoids := _sinusoids_of(weights.take, names, (longest, config["d_model"])):
            layout, epsilon, scale = sinusoids
            arguments |= {"position": "sinusoidal", "position_layout": layout, "norm_epsilon": epsilon}
            table = without_positions(family)
        else:
            arguments |= {"position": "learned", "max_position": longest, "norm_epsilon": EPSILON}

    def fill(model):
        weights.fill(model, table, change=lambda part, array: divided(array, _factor(model, part, scale)))
        matrices = {"inputs": model.input_embedding, "targets": model.target_embedding, "softmax": model.softmax}
        for name, layer in matrices.items():
            layer.embeddings.assign(divided(embeddings[name], scale))
        model.softmax.bias.assign(embeddings["bias"])

    contents = {"inputs": inputs.model, "targets": targets.model}
    return write_imported_run(
        output_dir,
        "translate_own",
        lambda problem, folder: problem.hold_vocabularies(folder, tuple(languages), contents, ".model"),
        model=Transformer.REGISTERED_NAME,
        hparams=hparams_of(arguments, Transformer),
        fill=fill,
    )


def _read_tokenizer_config(folder):
    """Returns the contents of `tokenizer_config.json`, or {} if the file is missing, with "unk_token" as a string.

    Raises `UserError` if the file is invalid.
    """
    path = os.path.join(folder, "tokenizer_config.json")
    config = files.read_json(path, _TOKENIZER_SCHEMA) if files.exists(path) else {}
    unknown = config.get("unk_token", "<unk>")
    if isinstance(unknown, dict):
        check_schema(unknown, {"content": str}, f"{path}: unk_token")
        unknown = unknown["content"]
    return {**config, "unk_token": unknown}


def _take_embeddings(weights, config):
    """Returns {"inputs", "targets", "softmax": float32 [ids, hidden], "bias": float32 [ids]} for foreign ids."""
    hidden, sizes = config["d_model"], (config["vocab_size"], config["decoder_vocab_size"])
    if config["share_encoder_decoder_embeddings"]:
        shared = weights.take_any((_SHARED, *_EMBEDDINGS, _SOFTMAX), (sizes[0], hidden))
        embeddings = {"inputs": shared, "targets": shared}
    else:
        embeddings = {
            "inputs": weights.take(_EMBEDDINGS[0], (sizes[0], hidden)),
            "targets": weights.take_any((_EMBEDDINGS[1], _SOFTMAX), (sizes[1], hidden)),
        }
    is_tied = config["tie_word_embeddings"]
    embeddings["softmax"] = embeddings["targets"] if is_tied else weights.take(_SOFTMAX, (sizes[1], hidden))
    embeddings["bias"] = weights.take(_BIAS, (1, sizes[1]))[0]
    if embeddings["targets"][config["pad_token_id"]].any():
        raise UserError(
            f"{weights.path}: the embedding of padding, with which decoding begins, is not zero. Here decoding begins "
            "with a zero vector, so the translations would differ."
        )
    return embeddings


def _vocabularies(path, config, tokenizer):
    """Returns the MarianVocabulary of the inputs and of the targets; they are the same object if shared."""
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

    for facts in published_encoder.read_settings(os.path.join(path, "")).values():
        if not any(facts["content"] in tokens for tokens in ids.values()):
            raise UserError(f"{path}: the added token {shown(facts['content'])} is not in vocab.json. Remove it.")

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
        raise UserError(f"{file}: {unknown!r}, the piece for unknown text, is missing. Expected a Marian vocabulary.")
    special = {"pad": config["pad_token_id"], "eos": config["eos_token_id"], "unk": ids[unknown]}
    if len(set(special.values())) < 3:
        raise UserError(f"{file}: padding, end of sentence and unknown have the ids {special}. Expected distinct ids.")
    return special


def _our_rows(embeddings, inputs, targets):
    """Returns {"inputs", "targets", "softmax": float32 [ids, hidden], "bias": float32 [ids]} for our ids."""
    # A bias of -1e9, which excludes an id, would spoil the loss in fine-tuning: label smoothing sums all logits.
    bias = np.maximum(embeddings["bias"][targets.rows], NEVER)
    return {
        "inputs": embeddings["inputs"][inputs.rows],
        "targets": embeddings["targets"][targets.rows],
        "softmax": embeddings["softmax"][targets.rows],
        "bias": np.where(targets.is_unknown, np.float32(NEVER), bias),
    }


def translation_folder(family, translator, options):
    """Returns the Folder of a translation model, for AutoModelForSeq2SeqLM and AutoTokenizer to load.

    Args:
        family: Family.
        translator: Translator whose model the family supports; the caller has checked this.
        options: SearchOptions, whose beam_size and alpha become those of `generate`.
    """
    config = translator.model.config
    pieces = {side: unique_pieces(encoder) for side, encoder in translator.encoders.items()}
    if code := next(filter(LANGUAGE_CODE.fullmatch, pieces["inputs"]), None):
        LOGGER.warning(
            f"{code} at the beginning of a text gets other ids in Transformers, which reads it as a language code and "
            "drops the space piece before it, so translations may differ. Train with symbols such as <2de> instead."
        )
    longest = config["max_position"] if config["position"] == "learned" else _LONGEST_INPUT
    sizes = {"vocab_size": len(pieces["inputs"])}
    if any(field.name == "decoder_vocab_size" for field in family.fields):
        sizes["decoder_vocab_size"] = len(pieces["targets"])
    (end,) = family.heads
    vocabularies, tokenizer = _tokenizer(pieces, translator.problem, longest, config["target_vocab_size"] is not None)
    return Folder(
        title="A translation model for Hugging Face Transformers",
        use=_USE,
        config=family.written(config, family.class_prefix + end, sizes),
        tokenizer=tokenizer,
        tensors=translation_tensors(family, translator.model),
        contents={
            "generation_config.json": {
                "pad_token_id": PAD_ID,
                "eos_token_id": EOS_ID,
                "decoder_start_token_id": PAD_ID,
                "num_beams": options.beam_size,
                "length_penalty": options.alpha,
                "early_stopping": False,
                "max_length": min(_LONGEST_OUTPUT, longest),
            },
            **vocabularies,
            **sentencepiece_models(translator.encoders),
        },
        rows={
            "search": f"beam {options.beam_size}, length_penalty {options.alpha:g} (the score is divided by "
            "length^length_penalty)"
        },
    )


def translation_tensors(family, model):
    """Returns {foreign name: float32 array}, the tensors to export for a Transformer that the family supports.

    Marian and Blenderbot start decoding from the embedding of padding, which is zero. If the softmax shares this row, a
    bias of -100 replaces the logit of padding. Matrices that share their weights are exported only once.
    """
    config, scale, position_names = model.config, stream_scale(model.config["norm_epsilon"]), _position_names(family)
    order, factor = conversion(family, model)
    source, target = (rows(embedding)[:, order] for embedding in (model.input_embedding, model.target_embedding))
    source[0] = target[0] = 0
    if shares_embeddings(config):
        tensors = {_SHARED: target * scale}
    else:
        tensors = {_EMBEDDINGS[0]: source * scale, _EMBEDDINGS[1]: target * scale}
    if not config["tie_embeddings"]:
        tensors[_SOFTMAX] = rows(model.softmax)[:, order]
    tensors[_BIAS] = _logits_bias(model)
    for side, name in position_names.items():
        tensors[name] = _position_table(model, side) * scale

    def change(part, array):
        array = array if part.feature_axis is None else np.take(array, order, axis=part.feature_axis)
        return array * factor(part)

    parts = named_weights.parts(model, without_positions(family), family.is_transposed)
    return tensors | named_weights.state(parts, change=change)


def conversion(family, model):
    """Returns how a family's weights differ from the corresponding weights of a Transformer.

    Args:
        family: Family.
        model: Transformer.

    Returns:
        (int array, the index of our hidden feature for each foreign hidden feature; function of a WeightPart that
        returns the ratio of the foreign weight to ours).
    """
    scale = stream_scale(model.config["norm_epsilon"])
    size = model.config["hidden_size"]
    is_ordered = _position_names(family) or model.config["position_layout"] != "interleaved"
    order = np.arange(size) if is_ordered else np.r_[0:size:2, 1:size:2]
    return order, lambda part: _factor(model, part, scale)


def _logits_bias(model):
    """Returns the bias of a Transformer's logits, float32 [1, ids], with -100 for padding if the softmax is tied."""
    config, size = model.config, model.target_vocab_size
    bias = rows(model.softmax, "bias") if config["softmax_bias"] else np.zeros(size, "float32")
    if config["tie_embeddings"]:
        bias[0] = NEVER
    return bias[None]


def _position_names(family):
    """Returns {side: name of its position table}, or {} if the family does not store position tables."""
    names = {side: family.weights.get(f"{side}_position") for side in ("encoder", "decoder")}
    return {side: f"{name}.weight" for side, name in names.items() if name}


def without_positions(family):
    """Returns the entries {path: name} of a family's `weights` that are not position tables."""
    return {path: name for path, name in family.weights.items() if not path.endswith("_position")}


def stream_scale(epsilon):
    """Returns the factor c by which the foreign hidden states differ from ours, float32."""
    return np.float32((EPSILON / epsilon) ** 0.5)


def _factor(model, part, scale):
    """Returns the ratio of a foreign weight to ours."""
    if part.weights[0][0] is model.decoder_norm:
        return 1 / scale
    return scale if part.is_added else np.float32(1)


def _sinusoids_of(take, names, shape):
    """Returns (layout, epsilon, scale) if the position tables, {side: name}, are scaled sinusoids, else None."""
    tables = [take(name, shape) for name in names.values()]
    if not np.array_equal(*tables) or shape[1] % 2:
        return None
    scale = tables[0][0].max()  # at position 0, all sines are 0 and all cosines are 1
    if not 3e-3 < scale < 1e4:  # range of the scale for epsilons up to 1
        return None
    exact = EPSILON / float(scale) ** 2
    epsilon = next(value for value in (float(f"{exact:.6g}"), exact) if np.isclose(stream_scale(value), scale, 1e-6, 0))
    for layout in LAYOUTS:
        if np.allclose(tables[0] / scale, _sinusoids(layout, *shape), rtol=0, atol=1e-5):
            return layout, epsilon, scale
    return None


def divided(array, scale):
    """Returns float32 `array / scale`, rounded so that multiplying it by `scale` gives `array` if possible."""
    quotient = array / scale
    for neighbour in (np.float32(np.inf), np.float32(-np.inf)):
        other = np.nextafter(quotient, neighbour)
        quotient = np.where((quotient * scale != array) & (other * scale == array), other, quotient)
    return quotient


def _position_table(model, side):
    """Returns the position table that the encoder or decoder adds to its embeddings, float32 [positions, hidden]."""
    config, shape = model.config, (SINUSOIDS, model.config["hidden_size"])
    if config["position"] == "learned":
        table = rows(getattr(model, f"{side}_position"), "table")
    else:
        is_none = config["position"] == "none"
        table = np.zeros(shape, "float32") if is_none else _sinusoids(config["position_layout"], *shape)
    if side == "encoder" and config["target_space_embedding"]:
        table = table + array_of(model.target_space)
    return table


def _sinusoids(layout, length, hidden_size):
    layer = SinusoidalPositionEmbedding(layout, dtype="float32")
    layer.build((None, None, hidden_size))
    return array_of(layer.encode(ops.arange(length)))


def _tokenizer(pieces, problem, longest, has_two):
    """Returns the files of a MarianTokenizer: ({name of a file: ids}, contents of `tokenizer_config.json`)."""
    languages = (problem.languages if problem else None) or (None, None)
    names = {role: pieces["inputs"][i] for role, i in (("pad", PAD_ID), ("eos", EOS_ID), ("unk", UNK_ID))}
    documents = {"vocab.json": _ids(pieces["inputs"])}
    if has_two:
        documents["target_vocab.json"] = _ids(pieces["targets"])
    return documents, {
        "tokenizer_class": "MarianTokenizer",
        **{f"{role}_token": name for role, name in names.items()},
        "source_lang": languages[0],
        "target_lang": languages[1],
        "separate_vocabs": has_two,
        "model_max_length": min(_LONGEST_INPUT, longest),
        # Texts are literal: "</s>" in a text does not end the sentence, and spaces are kept.
        "split_special_tokens": True,
        "clean_up_tokenization_spaces": False,
    }


def _ids(pieces):
    codes = {piece: piece.removeprefix("\u2581") for piece in pieces}
    return {codes[p] if LANGUAGE_CODE.fullmatch(codes[p]) else p: i for i, p in enumerate(pieces)}


_USE = usage_of_transformers(
    "AutoModelForSeq2SeqLM",
    'batch = tokenizer(["The first sentence.", "The second one."], return_tensors="pt", padding=True)',
    "print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))",
    packages="transformers torch sentencepiece",
)
_USE += '\nTransformers 4 also supports `pipeline("translation", model=".")`; Transformers 5 has no such pipeline.\n'

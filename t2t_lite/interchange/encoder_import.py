"""Imports BERT and its relatives from folders of Hugging Face as runs of `transformer_encoder`."""

import logging

from t2t_lite import registry
from t2t_lite.errors import UserError, shown
from t2t_lite.files.safe_json import check_schema
from t2t_lite.interchange import encoders, named_weights
from t2t_lite.interchange.encoders import ARCHITECTURES
from t2t_lite.interchange.hugging_face_config import check, check_choices, check_heads, check_numbers, read_said
from t2t_lite.interchange.hugging_face_weights import read_safetensors
from t2t_lite.interchange.imported_run import write_run_of_one_vocabulary
from t2t_lite.interchange.published_vocabulary import vocabulary_of
from t2t_lite.models.transformer_encoder import TransformerEncoder
from t2t_lite.text.vocabulary import PAD_ID
from t2t_lite.text.vocabulary_files import open_encoder

_LOGGER = logging.getLogger("t2t_lite")
_SIZES = {
    "vocab_size": 2**24, "max_position_embeddings": 2**20, "hidden_size": 2**16, "num_hidden_layers": 2**9,
    "num_attention_heads": 2**12, "intermediate_size": 2**18, "type_vocab_size": 2**16,
}  # fmt: skip
_RATES = ("hidden_dropout_prob", "attention_probs_dropout_prob")
_SCHEMA = {
    **dict.fromkeys(_SIZES, int),
    **{f"{name}?": float for name in _RATES},
    "architectures": [str],
    "layer_norm_eps": float,
    "pad_token_id": int | None,
    "id2label?": {str: str},
    "problem_type?": str | None,
}
_OFF = (False, None)


def import_encoder(path, output_dir):
    """Makes a run from an encoder with its head: masked words, classes, tags, spans or a number.

    Logits and hidden states are the same, given the same ids. A body without head becomes a run of masked words whose
    head is untrained, for features and for `--warm_start_from`; the log says so.

    Args:
        path: str, a folder of `config.json`, `model.safetensors`, and the vocabulary: `vocab.txt`, or `vocab.json` and
            `merges.txt`, or `tokenizer.json`.
        output_dir: str, folder of the new run, which does not exist yet or is empty.

    Returns:
        The path of the new checkpoint, without suffix.

    Raises:
        UserError: a file is missing or damaged, or a setting of the model is not supported (the message names it).
        Failure: writing failed; nothing is left behind.
    """
    config, head = _read_config(path)
    names = ARCHITECTURES[config["model_type"]]
    weights = _read_weights(path, config)
    with vocabulary_of(path, names.vocabulary) as vocabulary:
        encoder = open_encoder(vocabulary)
        first_position = _check_vocabulary(path, config, encoder)
        if head is None:
            _LOGGER.warning(f"{path}: a model without head: features, and a beginning for training, are all it gives.")

        def fill(model):
            parts = encoders.parts(model, config["model_type"], first_position, has_head=head is not None)
            named_weights.fill(parts, weights.take, encoder.published_ids, config["vocab_size"])
            weights.check_all_taken()

        problem, remembered = _problem(config, head, config["max_position_embeddings"] - first_position - 1)
        return write_run_of_one_vocabulary(
            output_dir,
            problem=problem,
            model=TransformerEncoder.REGISTERED_NAME,
            hparams=_hparams(config, head, first_position, encoder.special_id(names.first_token)),
            hparams_set=names.hparams_set,
            vocabulary=vocabulary,
            remembered=remembered,
            fill=fill,
        )


def _read_config(folder):
    """Returns (`config.json` with its defaults, our head, or None if it has none). Raises `UserError`."""
    path, said = read_said(folder)
    kind = said["model_type"]
    usual = {
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "pad_token_id": 1 if kind == "roberta" else 0,
        "tie_word_embeddings": True,
        "type_vocab_size": 2,
    }
    config = {**usual, **said}
    check_schema(config, _SCHEMA, path)
    check_numbers(path, config, _SIZES, _RATES)
    check_heads(path, config, "num_attention_heads", "hidden_size")
    epsilon = config["layer_norm_eps"]
    check(path, "layer_norm_eps", epsilon, 1e-20 <= epsilon <= 1, "a number from 1e-20 to 1")
    head = _head(path, config)
    is_fixed = kind == "roberta" and head == "masked_lm"  # there the head's activation is not the layers'
    choices = {
        "hidden_act": ("gelu",) if is_fixed else tuple(encoders.ACTIVATIONS),
        "position_embedding_type": ("absolute", None),
        "tie_word_embeddings": (True,) if head == "masked_lm" else (True, False),
        **dict.fromkeys(("is_decoder", "add_cross_attention"), _OFF),
    }
    check_choices(path, config, choices)
    check(path, "pruned_heads", config.get("pruned_heads"), not config.get("pruned_heads"), "none")
    return config, head


def _head(path, config):
    """Returns the head that the class in `config.json` has, or None."""
    prefix = ARCHITECTURES[config["model_type"]].class_prefix
    classes = {prefix + end: head for end, head in encoders.HEADS.items()} | {f"{prefix}Model": None}
    name = config["architectures"][0] if config["architectures"] else None
    expected = f"{', '.join(list(classes)[:-1])} or {list(classes)[-1]}, which has no head"
    check(path, "architectures", name, name in classes, expected)
    head = classes[name]
    if head == "class":
        kind = config.get("problem_type")
        possible = (None, "single_label_classification", "regression")
        check(path, "problem_type", kind, kind in possible, f"{possible[1]} or {possible[2]}")
        if len(_labels(path, config)) == 1 or kind == "regression":
            return "real"
    return head


def _labels(path, config):
    """Returns the names of the classes in order."""
    labels = config.get("id2label") or {"0": "LABEL_0", "1": "LABEL_1"}
    names = [labels.get(str(i)) for i in range(len(labels))]
    is_right = None not in names and len(set(names)) == len(names)
    check(path, "id2label", labels, is_right, f"different names for 0 to {len(names) - 1}")
    return names


def _read_weights(folder, config):
    """Returns the HuggingFaceWeights, after checking that sizes are those of `config`."""
    prefix, size = ARCHITECTURES[config["model_type"]].prefix, config["hidden_size"]

    def rename(name):
        name = name.removeprefix(prefix)
        for old, new in ((".gamma", ".weight"), (".beta", ".bias")):  # as TensorFlow has them
            name = name.removesuffix(old) + new if name.endswith(old) else name
        return name

    found = read_safetensors(folder, "AutoModel", rename, encoders.UNUSED)
    found.take("embeddings.word_embeddings.weight", (config["vocab_size"], size))
    found.take("embeddings.position_embeddings.weight", (config["max_position_embeddings"], size))
    for number in range(config["num_hidden_layers"]):  # stops at the first missing one
        found.take(f"encoder.layer.{number}.intermediate.dense.weight", (config["intermediate_size"], size))
    return found


def _check_vocabulary(folder, config, encoder):
    """Returns the number of rows of the table of positions that are not used. Raises `UserError`."""
    path, published = f"{folder}/config.json", encoder.published_ids
    count, size = len(published), config["vocab_size"]
    if -1 in published:
        lacking = ("padding", "end", "unknown text")[published.index(-1)]
        raise UserError(f"{encoder.path}: no token for {lacking}. Expected the vocabulary of the model.")
    check(path, "vocab_size", size, size >= count, f"the {count:,} tokens of {encoder.path}")
    if size > count:
        _LOGGER.warning(f"{path}: vocab_size={size:,}, but {count:,} tokens: the ids beyond them are left out.")
    padding = config["pad_token_id"]
    check(path, "pad_token_id", padding, padding == published[PAD_ID], f"{published[PAD_ID]}, the id of padding")
    first = padding + 1 if config["model_type"] == "roberta" else 0
    least = config["max_position_embeddings"]
    check(path, "max_position_embeddings", least, least > first + 1, f"more than {first + 1}")
    return first


def _problem(config, head, longest):
    """Returns (the name of the problem, what it remembers)."""
    if head in (None, "masked_lm"):
        return "masked_lm_own", {"sequence_length": longest, "mask_rate": 0.15, "mask_unit": "token"}
    if head == "class":
        return "classify_own", {"class_labels": _labels("config.json", config)}
    raise UserError(f"config.json: architectures={shown(config['architectures'][0])}: not supported yet.")


def _hparams(config, head, first_position, first_id):
    positions = config["max_position_embeddings"] - first_position
    dropouts = {"layer_prepostprocess_dropout": "hidden_dropout_prob", "attention_dropout": _RATES[1]}
    hparams = registry.hparams(ARCHITECTURES[config["model_type"]].hparams_set).of_model(TransformerEncoder)
    return hparams.override_from_dict(
        {
            "hidden_size": config["hidden_size"],
            "filter_size": config["intermediate_size"],
            "num_heads": config["num_attention_heads"],
            "num_hidden_layers": config["num_hidden_layers"],
            "ffn_activation": encoders.ACTIVATIONS[config["hidden_act"]],
            "norm_epsilon": config["layer_norm_eps"],
            "max_position": positions,
            "max_length": positions - 1,
            "num_segments": config["type_vocab_size"],
            "first_id": first_id,
            "head": head or "masked_lm",
            **{ours: float(config[theirs]) for ours, theirs in dropouts.items() if theirs in config},
        }
    )

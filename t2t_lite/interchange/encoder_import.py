"""Imports BERT and its relatives from folders of Hugging Face as runs of `transformer_encoder`."""

import logging

from t2t_lite import registry
from t2t_lite.data.text_problems.span_problem import SpanProblem
from t2t_lite.errors import UserError
from t2t_lite.files.safe_json import check_schema
from t2t_lite.interchange import encoders, named_weights
from t2t_lite.interchange.encoders import ARCHITECTURES
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
from t2t_lite.models.transformer_encoder import TransformerEncoder
from t2t_lite.text.vocabulary import PAD_ID

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
    **dict.fromkeys(("embedding_size", "num_hidden_groups", "task_type_vocab_size"), int),
    "use_task_id": bool,
    "layer_norm_eps": float,
    "pad_token_id": int | None,
    "id2label?": {str: str},
    "problem_type?": str | None,
}
_OFF = (False, None)
_USUAL = {
    "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0, "tie_word_embeddings": True, "type_vocab_size": 2,
    "embedding_size": 128, "num_hidden_groups": 1, "task_type_vocab_size": 3, "use_task_id": False,
}  # fmt: skip
_USUAL_OF = {"roberta": {"pad_token_id": 1}, "albert": {"hidden_act": "gelu_new"}}  # where it differs
_PROBLEMS = {  # by head: the problems that a run may belong to, the usual one first
    None: ("masked_lm_own",),
    "masked_lm": ("masked_lm_own",),
    "class": ("classify_own", "classify_pair_own"),
    "real": ("regress_own", "regress_pair_own"),
    "tag": ("tag_own",),
    "span": ("qa_own",),
}


def import_encoder(path, output_dir, problem=""):
    """Makes a run from an encoder with its head: masked words, classes, tags, spans or a number.

    Logits and hidden states are the same, given the same ids. A body without head becomes a run of masked words whose
    head is untrained, for features and for `--warm_start_from`; the log says so.

    Args:
        path: str, a folder of `config.json`, `model.safetensors`, and the vocabulary: `vocab.txt`, or `vocab.json` and
            `merges.txt`, or `spiece.model`, or `tokenizer.json`.
        output_dir: str, folder of the new run, which does not exist yet or is empty.
        problem: str, the problem that the run belongs to; "": the usual one of the head, of single texts.

    Returns:
        The path of the new checkpoint, without suffix.

    Raises:
        UserError: a file is missing or damaged, or a setting of the model is not supported (the message names it).
        Failure: writing failed; nothing is left behind.
    """
    config, head = _read_config(path)
    kind = config["model_type"]
    weights = _read_weights(path, config)
    problem = _problem_name(path, kind, head, _has_sentences(weights, kind), problem)
    if head is None:
        _LOGGER.warning(f"{path}: a model without head: features, and a beginning for training, are all it gives.")
    if kind == "roberta" and head == "span":
        _LOGGER.warning(f"{path}: RoBERTa reads two ends between question and context, here it will read one.")
    with vocabulary_of(path) as vocabulary:
        first_position = _check_vocabulary(path, config, vocabulary)
        hparams = _hparams(config, config["max_position_embeddings"] - first_position)
        own = {"head": head or "masked_lm", "first_id": vocabulary.special_ids[vocabulary.first_token]}
        own["sentence_classes"] = 2 if problem == ARCHITECTURES[kind].sentence_problem else 0

        def fill(model):
            parts = encoders.parts(model, kind, first_position, has_head=head is not None)
            named_weights.fill(parts, weights.take, vocabulary.ids, config["vocab_size"])
            weights.check_all_taken()

        remembered = _remembered(path, config, head, hparams.max_length)
        return write_imported_run(
            output_dir,
            problem,
            lambda made, folder: made.hold_vocabulary(folder, vocabulary.path, **remembered),
            model=TransformerEncoder.REGISTERED_NAME,
            hparams=hparams.override_from_dict(own),
            hparams_set=ARCHITECTURES[kind].hparams_set,
            fill=fill,
        )


def _read_config(folder):
    """Returns (`config.json` with its defaults, our head, or None if it has none). Raises `UserError`."""
    path, said = read_said(folder)
    kind = said["model_type"]
    config = {**_USUAL, **_USUAL_OF.get(kind, {}), **said}
    check_schema(config, _SCHEMA, path)
    check_numbers(path, config, _SIZES, _RATES)
    if kind == "albert":
        check_numbers(path, config, {"embedding_size": 2**16, "num_hidden_groups": config["num_hidden_layers"]}, ())
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
        "inner_group_num": (1, None),
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
    is_albert = config["model_type"] == "albert"
    width = config["embedding_size"] if is_albert else size
    found.take("embeddings.word_embeddings.weight", (config["vocab_size"], width))
    found.take("embeddings.position_embeddings.weight", (config["max_position_embeddings"], width))
    names = ARCHITECTURES[config["model_type"]].layer
    for number in range(config["num_hidden_groups" if is_albert else "num_hidden_layers"]):  # up to a missing one
        found.take(f"{names.layer.format(number)}.{names.inner}.weight", (config["intermediate_size"], size))
    return found


def _has_sentences(weights, kind):
    names = ARCHITECTURES[kind].head
    return names.sentence is not None and all(
        f"{name}.weight" in weights.names for name in (names.sentence, names.sentence_pooler)
    )


def _check_vocabulary(folder, config, vocabulary):
    """Returns the number of rows of the table of positions that are not used. Raises `UserError`."""
    path, published = f"{folder}/config.json", vocabulary.ids
    if -1 in published:
        lacking = ("padding", "end", "unknown text")[published.index(-1)]
        raise UserError(f"{vocabulary.path}: no token for {lacking}. Expected the vocabulary of the model.")
    check_rows(path, config["vocab_size"], published, vocabulary.path)
    padding = config["pad_token_id"]
    check(path, "pad_token_id", padding, padding == published[PAD_ID], f"{published[PAD_ID]}, the id of padding")
    first = padding + 1 if config["model_type"] == "roberta" else 0
    least = config["max_position_embeddings"]
    check(path, "max_position_embeddings", least, least > first + 1, f"more than {first + 1}")
    return first


def _problem_name(path, kind, head, has_sentences, given):
    """Returns the name of the problem that the run belongs to. Raises `UserError` if that is not the one `given`."""
    possible = [name for name in _PROBLEMS[head] if kind != "roberta" or "pair" not in name]
    if head == "masked_lm" and has_sentences:
        possible.insert(0, ARCHITECTURES[kind].sentence_problem)
    if given and given not in possible:
        why = "" if kind != "roberta" else "; RoBERTa reads two ends between the texts of a pair, here there is one"
        raise UserError(f"--problem={given}: {path} is a model of {' or '.join(possible)}. Expected that{why}.")
    return given or possible[0]


def _remembered(path, config, head, longest):
    """Returns what the run's problem stores beside its vocabulary."""
    if head in (None, "masked_lm"):
        return {"sequence_length": longest, "mask_rate": 0.15, "mask_unit": "token"}
    if head == "span":
        return {"sequence_length": min(SpanProblem.sequence_length, longest), "doc_stride": SpanProblem.doc_stride}
    if head == "real":
        return {"label_range": [0.0, 1.0]}  # so that a place in it is the number that the model says
    return {"class_labels" if head == "class" else "tags": _labels(path, config)}


def _hparams(config, positions):
    kind = config["model_type"]
    own = {
        "layer_prepostprocess_dropout": "hidden_dropout_prob",
        "attention_dropout": "attention_probs_dropout_prob",
        **({"embedding_size": "embedding_size", "num_hidden_groups": "num_hidden_groups"} if kind == "albert" else {}),
    }
    hparams = registry.hparams(ARCHITECTURES[kind].hparams_set).of_model(TransformerEncoder)
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
            "num_task_types": config["task_type_vocab_size"] if kind == "ernie" and config["use_task_id"] else 0,
            **{ours: config[theirs] for ours, theirs in own.items() if theirs in config},
        }
    )

"""Imports and exports encoders (BERT, its relatives and XLNet) as Hugging Face folders.

A folder may also hold files of other packages, such as those of sentence-transformers. Each kind of file is handled by
a class, which is registered with `@registry.register_folder_part("name")`. Its method `read(folder, family, vocabulary,
most)` returns {argument of our model: value}. Its method `written(family, predictor)` returns the `title`, `use`,
`library` and `contents` of a `Folder`, {attribute: value}, or {} for a model without such files.
"""

import numpy as np

from t2t_lite import registry
from t2t_lite.errors import LOGGER, UserError
from t2t_lite.extras.hugging_face import named_weights
from t2t_lite.extras.hugging_face.family import check, hparams_of, only
from t2t_lite.extras.hugging_face.hugging_face_folder import Folder, read_weights, usage_of_transformers
from t2t_lite.extras.hugging_face.named_weights import NEVER
from t2t_lite.extras.hugging_face.published_vocabulary import published, vocabulary_of
from t2t_lite.registry import Registries
from t2t_lite.runs.saving import write_imported_run
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID, UNK_ID

_HEAD_THERE = {"real": "class"}  # foreign models predict a number as a single class


def import_encoder(family, path, config, output_dir, problem=""):
    """Makes a run from an encoder and its head, which predicts masked words, classes, tags, spans or a number.

    Given the same ids, our model and the foreign model compute the same logits and hidden states. A body without a head
    becomes a masked-word model whose head is untrained. Such a model is meant for extracting features and for
    `--warm_start_from`, and a warning is logged.

    Args:
        family: Family.
        path: str, a folder with `config.json`, `model.safetensors` and a vocabulary. The files of a vocabulary are
            `vocab.txt`; `vocab.json` and `merges.txt`; `spiece.model`; `sentencepiece.bpe.model`; or `tokenizer.json`.
        config: dict, see `Family.read`.
        output_dir: str, folder of the new run; it must not exist or must be empty.
        problem: str, the problem of the run. "" is the head's default problem, for single texts.

    Returns:
        The path of the new checkpoint, without suffix.

    Raises:
        UserError: a file is missing or damaged, or a setting of the model is not supported (the message names it).
        Failure: writing failed; nothing is left behind.
    """
    head = _head(family, f"{path}/config.json", config)
    arguments = family.arguments(config)
    weights = read_weights(path, family, "AutoModel")
    weights.check_sizes(arguments)
    heads = (table for ours, table in family.heads.values() if ours == _HEAD_THERE.get(head, head))
    table = family.weights | next(heads, {})
    sentences = [f"{name}.weight" for ours, name in table.items() if ours.startswith("sentence_head")]
    has_sentences = bool(sentences) and all(name in weights for name in sentences)
    if head is None:
        LOGGER.warning(f"{path}: the model has no head. Use it for features or as a starting point for training.")
    with vocabulary_of(path) as vocabulary:
        _check_vocabulary(path, config, vocabulary, family)
        if vocabulary.reads_two_ends and head == "span":
            LOGGER.warning(f"{path}: RoBERTa puts two end tokens between question and context, but we put one.")
        problem = _problem_name(path, family, head, has_sentences, vocabulary.reads_two_ends, problem)
        settings = registry.problem(problem).settings
        arguments |= {
            "head": head or "masked_lm",
            family.row_id: vocabulary.special_ids[vocabulary.first_token],
            "sentence_classes": 2 if problem == family.sentence_problem else 0,
        }
        hparams = registry.hparams(family.hparams_set)
        if "position" in family.weights:
            first_position = _first_position(path, family, config)
            arguments["max_position"] = config["max_position_embeddings"] - first_position
            weights.drop_rows(f"{family.weights['position']}.weight", first_position)
            hparams = hparams.override_from_dict({"max_length": arguments["max_position"] - 1})
        for part in _folder_parts():
            arguments |= part.read(path, family, vocabulary, arguments.get("max_position"))
        labels = _labels(path, config) if head in ("class", "tag") else []
        remembered = remembered_values(head, labels, hparams.max_length, settings)
        hparams = hparams_of(arguments, family.model, hparams)
        return write_imported_run(
            output_dir,
            problem,
            lambda own_problem, folder: own_problem.hold_vocabulary(folder, vocabulary.path, **remembered),
            model=family.model.REGISTERED_NAME,
            hparams=hparams,
            hparams_set=family.hparams_set,
            fill=lambda model: weights.fill(model, table, vocabulary.ids, config["vocab_size"]),
        )


def _folder_parts():
    return [Registries.folder_parts.get(name)() for name in Registries.folder_parts.names()]


def _head(family, path, config):
    """Returns the head of the class in `config.json`, or None. Raises `UserError`."""
    classes = {family.class_prefix + end: head for end, (head, _) in family.heads.items()}
    classes[f"{family.class_prefix}Model"] = None
    name = config["architectures"][0] if config["architectures"] else None
    expected = f"{', '.join(list(classes)[:-1])} or {list(classes)[-1]}, which has no head"
    check(path, "architectures", name, name in classes, expected)
    check(path, "pruned_heads", config.get("pruned_heads"), not config.get("pruned_heads"), "none")
    head = classes[name]
    if head == "masked_lm":
        only("tie_word_embeddings", True).read(path, config)
        arguments = family.arguments(config) | {"head": head}
        activations = family.limits(arguments).get("activation", (arguments["activation"],))
        if arguments["activation"] not in activations:
            only("hidden_act", *activations).read(path, config)
    if head == "class":
        kind = config["problem_type"]
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


def _check_vocabulary(folder, config, vocabulary, family):
    """Raises `UserError` if the vocabulary does not match the model."""
    path, published = f"{folder}/config.json", vocabulary.ids
    if -1 in published:
        lacking = ("padding", "end", "unknown text")[published.index(-1)]
        raise UserError(f"{vocabulary.path}: no token for {lacking}. Expected the model's vocabulary.")
    vocabulary.check_rows(path, config["vocab_size"])
    if family.first_position(0):  # the positions depend on the id of padding
        padding = config["pad_token_id"]
        check(path, "pad_token_id", padding, padding == published[PAD_ID], f"{published[PAD_ID]}, the id of padding")
    first, tokens = vocabulary.first_token, {i: token for token, i in vocabulary.special_ids.items()}
    end, unknown = tokens[EOS_ID], tokens[UNK_ID]
    vocabulary.check_roles(folder, {"cls_token": first, "sep_token": end, "unk_token": unknown})
    vocabulary.check_frame(folder, f"{first} A {end}" if family.row_id == "first_id" else f"A {end} {first}")


def _first_position(folder, family, config):
    """Returns the number of unused rows at the start of the position table.

    Raises `UserError` if the table is too short.
    """
    first, count = family.first_position(config["pad_token_id"]), config["max_position_embeddings"]
    expected = f"more than {first + 1}"
    check(f"{folder}/config.json", "max_position_embeddings", count, count > first + 1, expected)
    return first


def _problem_name(path, family, head, has_sentences, reads_two_ends, requested):
    """Returns the name of the run's problem. Raises `UserError` if the model does not support the `requested` one."""
    if head in (None, "masked_lm"):
        possible = [*([family.sentence_problem] if head and has_sentences else []), family.text_problem]
    else:
        tasks = [task for task in map(registry.task, registry.list_tasks()) if task.head == head]
        possible = [name for task in tasks for name in task.problems if not reads_two_ends or "pair" not in name]
    if not possible:
        raise UserError(f"{path}: no installed extra has a task for the model's {head} head.")
    if requested and requested not in possible:
        why = "; for pairs, RoBERTa needs two end tokens between the texts, not one" if reads_two_ends else ""
        raise UserError(
            f"--problem={requested}: the model {path} does not support this problem. Expected "
            f"{' or '.join(possible)}{why}."
        )
    return requested or possible[0]


def remembered_values(head, labels, longest, settings):
    """Returns the settings that the run's problem stores with its vocabulary, {name: value}.

    Args:
        head: str, the head of our model, or None.
        labels: list of str, the classes or tags.
        longest: int, the maximum length of a row, in ids.
        settings: {name: Setting} of the problem.
    """
    values = {
        "sequence_length": longest,
        "mask_rate": 0.15,
        "mask_unit": "token",
        "label_range": [0.0, 1.0],  # with this range, the model predicts the number itself
    }
    if head in ("class", "tag"):
        values |= dict.fromkeys(("class_labels", "tags"), labels)
    if head == "span":
        values |= {"sequence_length": min(settings["sequence_length"].default, longest)}
        values |= {"doc_stride": settings["doc_stride"].default}
    return {name: value for name, value in values.items() if name in settings}


def encoder_folder(family, predictor):
    """Returns the Folder of an encoder, for the auto classes of Transformers to load.

    The head determines the foreign class: masked words (with or without sentence pairs), classes, a number, tags or
    spans. The vocabulary's files and ids are kept, and the logits are the same. If our model puts a zero vector before
    each text (`first_id=0`) or after it (`last_id=0`), the exported embedding of the first or last special token is
    zero, and the exported model never predicts this token. If the folder also holds files of other packages, the head
    for masked words is left out.

    Args:
        family: Family.
        predictor: Predictor whose model the family supports; the caller has checked this.

    Raises:
        UserError: the vocabulary lacks a token, the model's first token differs from the vocabulary's, or the model
            joins two texts in another way.
    """
    model, vocabulary = predictor.model, published(predictor.encoders["inputs"])
    if vocabulary.reads_two_ends and getattr(predictor.problem, "num_texts", 1) > 1:
        raise UserError(
            f"{predictor.problem.full_name}: RoBERTa puts two end tokens between texts, but this model was trained "
            "with one. Expected a model for single texts, or a BERT with two segments (num_segments=2)."
        )
    first_token, ids = vocabulary.first_token, vocabulary.ids
    first_id = vocabulary.special_ids[first_token]
    if -1 in ids:
        raise UserError(
            f"{vocabulary.path}: a token for padding, the end or unknown text is missing. Expected the vocabulary of a "
            "published encoder."
        )
    parts = [part for part in (kind.written(family, predictor) for kind in _folder_parts()) if part]
    own_id = model.config[family.row_id]
    if own_id not in (0, first_id):
        raise UserError(f"{family.row_id}={own_id}: expected 0, or {first_id}, the id of {first_token}.")
    first_position = family.first_position(ids[PAD_ID])
    end, table = class_of_head(family, model) if not parts or model.config["head"] != "masked_lm" else ("Model", {})
    table = family.weights | table
    tensors = named_weights.state(named_weights.parts(model, table, family.is_transposed), ids)
    if "position" in table:
        positions = f"{table['position']}.weight"
        tensors[positions] = np.pad(tensors[positions], [(first_position, 0), (0, 0)])
    if own_id == 0:
        tensors[f"{table['embedding']}.weight"][ids[first_id]] = 0
        if "embedding.bias" in table:
            tensors[table["embedding.bias"]][ids[first_id]] = NEVER
    tensors = {name: array(model.config) for name, array in family.constants.items()} | tensors
    if model.config["head"] == "real":  # our model predicts a share: 0 is the lowest number, 1 the highest
        numbers, name = predictor.encoders["targets"], table["class_head.dense"]
        width = np.float32(numbers.highest - numbers.lowest)
        tensors[f"{name}.weight"] = tensors[f"{name}.weight"] * width
        tensors[f"{name}.bias"] = tensors[f"{name}.bias"] * width + np.float32(numbers.lowest)
    facts = {**_facts(predictor, vocabulary), "max_position_embeddings": model.config["max_position"] + first_position}
    folder = Folder(
        title="An encoder for Hugging Face Transformers",
        use=usage_of_transformers(
            f"AutoModel{end.removeprefix('Model')}", 'print(model(**tokenizer("A text.", return_tensors="pt")))'
        ),
        config=family.written(model.config, family.class_prefix + end, facts),
        tokenizer=_tokenizer_config(predictor, vocabulary) | family.tokenizer,
        tensors=tensors,
        contents=vocabulary.contents,
    )
    for part in parts:
        folder = folder._replace(**part | {"contents": folder.contents | part["contents"]})
    return folder


def class_of_head(family, model):
    """Returns (suffix of the foreign class name, table of the head's weights) for a model."""
    head = model.config["head"]
    ends = [end for end, (ours, _) in family.heads.items() if ours == _HEAD_THERE.get(head, head)]
    end = ends[-1] if head == "masked_lm" and not model.config.get("sentence_classes") else ends[0]
    return end, family.heads[end][1]


def _facts(predictor, vocabulary):
    """Returns the fields of `config.json` that depend on the vocabulary and the labels."""
    head = predictor.model.config["head"]
    ids = {"pad": PAD_ID, "bos": vocabulary.special_ids[vocabulary.first_token], "eos": EOS_ID}
    labels = {"class": predictor.labels, "tag": predictor.labels, "real": ["LABEL_0"]}.get(head)
    facts = {"vocab_size": len(vocabulary.ids)} | {f"{role}_token_id": vocabulary.ids[i] for role, i in ids.items()}
    if labels:
        facts["id2label"] = {str(i): label for i, label in enumerate(labels)}
        facts["label2id"] = {label: i for i, label in enumerate(labels)}
    if head == "real":
        facts["problem_type"] = "regression"
    return facts


def _tokenizer_config(predictor, vocabulary):
    """Returns the contents of `tokenizer_config.json`."""
    first, (pad, end, unknown) = vocabulary.first_token, predictor.encoders["inputs"].pieces([PAD_ID, EOS_ID, UNK_ID])
    roberta = {
        "tokenizer_class": "RobertaTokenizer", "add_prefix_space": False, "bos_token": first, "eos_token": end
    }  # fmt: skip
    config = {"cls_token": first, "sep_token": end, "pad_token": pad, "unk_token": unknown}
    config |= vocabulary.tokenizer or roberta
    if masks := [token for token in vocabulary.special_ids if token in ("[MASK]", "<mask>")]:
        config["mask_token"] = masks[0]
    if predictor.model.max_length is not None:
        config["model_max_length"] = predictor.model.config["max_position"]
    return config | {"clean_up_tokenization_spaces": False} | vocabulary.added_settings

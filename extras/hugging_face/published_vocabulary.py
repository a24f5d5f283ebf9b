"""Converts the vocabulary of a Hugging Face folder, such as its `tokenizer.json`, to our vocabulary files and back.

WordPiece and BPE are read here. For any other kind of vocabulary, a function is registered with
`@registry.register_vocabulary("name")`. The function returns an object with these attributes:

    type: the type in tokenizer.json.
    file: the name of the vocabulary's file.
    is_in(folder, tokenizer): whether a folder has such a vocabulary. `tokenizer` is its tokenizer.json, or None.
    settings(tokenizer, path): see `_settings`.
    read(folder, work_dir, tokenizer, settings): see `_read_folder`.
    is_of(encoder): whether an encoder is such a vocabulary.
    published(encoder): the Published of such an encoder.
"""

import contextlib
import itertools
import json
import os
import re
import tempfile
from typing import NamedTuple

from t2t_lite import files
from t2t_lite.errors import LOGGER, UserError, shown
from t2t_lite.extras.hugging_face.family import check
from t2t_lite.files.safe_json import check_schema
from t2t_lite.registry import Registries
from t2t_lite.text.published import published_encoder
from t2t_lite.text.published.bpe_files import WORD_END
from t2t_lite.text.published.wordpiece import LONGEST_WORD
from t2t_lite.text.vocabulary_files import open_encoder

_FILES = {"WordPiece": ("vocab.txt",), "BPE": ("vocab.json", "merges.txt")}
_WHOLE, _CONFIG = "tokenizer.json", published_encoder.CONFIG
_SCHEMA = {
    "model": {"type?": str, "vocab": dict | list, "merges?": list},
    "added_tokens?": list,
    **dict.fromkeys(("normalizer?", "pre_tokenizer?", "post_processor?"), dict | None),
}
_ADDED = ("add_prefix_space", "add_bos_token", "add_eos_token")
_CONFIG_SCHEMA = dict.fromkeys((f"{name}?" for name in ("do_lower_case", "keep_accents", *_ADDED)), bool | None)
_FIRST = ("[CLS]", "<cls>", "<s>")
_ROBERTAS_FIRST = "<s>"  # <s> is also the first token of XLM-RoBERTa
# The supported {part of tokenizer.json: {setting: value}}. Except for "type", the values are also the defaults. None
# means that the setting is off or the part is missing.
_BERT_TOKENIZER = {
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
}
_WORD_PIECE = {"unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": LONGEST_WORD}
_BPE = dict.fromkeys(("dropout", "continuing_subword_prefix", "byte_fallback", "ignore_merges"))
_GPT2_TOKENIZER = {
    "normalizer": {"type": None},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
    "model": _BPE | {"end_of_word_suffix": None},
}
_GPT_TOKENIZER = {**_BERT_TOKENIZER, "normalizer": _BERT_TOKENIZER["normalizer"] | {"lowercase": True}, "model": _BPE}
# Transformers' classes that split texts as one of our kinds of vocabularies, by the class that an export names.
_CLASSES = {
    None: ("RobertaTokenizer", "GPT2Tokenizer"),
    "BertTokenizer": ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"),
}
_WAYS = {"WordPiece": _BERT_TOKENIZER | {"model": _WORD_PIECE}, "BPE": _GPT2_TOKENIZER, WORD_END: _GPT_TOKENIZER}


class Published(NamedTuple):
    """A published vocabulary, whose ids differ from ours.

    Attributes:
        path: str, path of our main vocabulary file.
        ids: list with the published id for each of our ids, or -1 for an id that only our model has.
        special_ids: {token: our id}.
        contents: {name of a published file: bytes}.
        tokenizer: {name: value} for `tokenizer_config.json`; empty for the vocabularies of RoBERTa and GPT-2.
        frame: str, the special tokens around a text, such as "[CLS] A [SEP]", or None if the files do not show them.
    """

    path: str
    ids: list
    special_ids: dict
    contents: dict
    tokenizer: dict = {}  # noqa: RUF012
    frame: str | None = None

    @property
    def reads_two_ends(self):
        """Whether the tokenizer puts two end tokens between the texts of a pair."""
        return self.first_token == _ROBERTAS_FIRST

    @property
    def added_settings(self):
        """The settings of the added tokens, {"added_tokens_decoder": {id: settings}}, or {}."""
        config = json.loads(self.contents.get(_CONFIG, b"{}"))
        return {published_encoder.KEY: config[published_encoder.KEY]} if published_encoder.KEY in config else {}

    @property
    def first_token(self):
        """The special token that precedes every text. Raises `UserError` if the vocabulary lacks such a token."""
        if tokens := [token for token in _FIRST if token in self.special_ids]:
            return tokens[0]
        raise UserError(f"{self.path}: no special token {' or '.join(_FIRST)}. Expected the vocabulary of an encoder.")

    def check_frame(self, folder, expected):
        """Raises `UserError` if the tokenizer puts other special tokens around a text than the `expected` ones."""
        words = f"{expected}, where A is the text; other special tokens are not supported here"
        check(f"{folder}/{_WHOLE}", "post_processor", self.frame, self.frame in (None, expected), words)

    def check_roles(self, folder, expected):
        """Raises `UserError` if a folder's configuration gives roles such as "cls_token" to other tokens.

        Args:
            folder: str.
            expected: {role: token}.
        """
        for path in (os.path.join(folder, name) for name in (_CONFIG, "special_tokens_map.json")):
            roles = files.read_json(path) if files.exists(path) else {}
            for role, token in expected.items():
                theirs = roles.get(role)
                theirs = theirs.get("content") if isinstance(theirs, dict) else theirs
                check(path, role, theirs, theirs in (None, token), f"{token}; no other token is supported here")

    def check_rows(self, path, size):
        """Raises `UserError` unless each token has a row in the embedding table; logs a warning about additional rows.

        Args:
            path: str, path of `config.json`.
            size: int, the vocab_size in `config.json`.
        """
        count = sum(theirs >= 0 for theirs in self.ids)
        check(path, "vocab_size", size, size >= count, f"at least {count:,}, the number of tokens in {self.path}")
        if size > count:
            LOGGER.warning(f"{path}: vocab_size={size:,}, but only {count:,} tokens. The other ids are dropped.")


def published(encoder):
    """Returns the Published of a TextEncoder. Raises `UserError` if Transformers does not support the vocabulary."""
    if other := next((kind for kind in _others() if kind.is_of(encoder)), None):
        return other.published(encoder)
    return Published(encoder.path, encoder.published_ids, encoder.special_ids, encoder.contents, encoder.tokenizer)


def _others():
    return [Registries.vocabularies.get(name)() for name in Registries.vocabularies.names()]


@contextlib.contextmanager
def vocabulary_of(folder):
    """Context manager that converts a folder's vocabulary and yields its Published.

    Our vocabulary file exists only inside the block. Transformers 5 writes a single file, `tokenizer.json`, instead of
    several.

    Args:
        folder: str.

    Raises:
        UserError: the vocabulary is missing, its kind is not supported, or it splits texts into words in an unsupported
            way.
    """
    with tempfile.TemporaryDirectory() as work_dir:
        try:
            vocabulary = _read_folder(folder, work_dir)
            _check_class(folder, vocabulary)
            yield vocabulary
        except UserError as error:  # the user does not know the temporary folder, so the message must not name it
            raise UserError(_in_users_words(str(error), work_dir, folder)) from None


def _in_users_words(message, work_dir, folder):
    """Changes a message about a file in `work_dir` so that the message names the original file in the user's folder."""

    def name_of_source(match):
        is_part = match[1] in itertools.chain.from_iterable(_FILES.values())  # which a tokenizer.json replaces
        sources = [os.path.join(folder, name) for name in ((_WHOLE, match[1]) if is_part else (match[1], _WHOLE))]
        return next(filter(files.exists, sources), os.path.join(folder, match[1]))

    return re.sub(re.escape(work_dir) + r"/([\w.]+)", name_of_source, message).replace(work_dir, folder)


def _read_folder(folder, work_dir):
    """Returns the Published of a folder; writes its files into `work_dir`."""
    tokenizer_path, config = (os.path.join(folder, name) for name in (_WHOLE, _CONFIG))
    tokenizer = _read_tokenizer(tokenizer_path) if files.exists(tokenizer_path) else None
    if tokenizer:  # replaces the other files, as in Transformers
        kind = tokenizer["model"]["type"]
    else:
        kind = next((kind for kind, names in _FILES.items() if files.exists(os.path.join(folder, names[0]))), None)
    others = _others()
    other = next((other for other in others if kind not in _FILES and other.is_in(folder, tokenizer)), None)
    settings = _settings(config, tokenizer, tokenizer_path, other.settings if other else settings_of)
    frame = _frame(tokenizer, tokenizer_path) if tokenizer else None
    if other:
        return other.read(folder, work_dir, tokenizer, settings)._replace(frame=frame)
    if kind is None:
        names = [*dict.fromkeys(["vocab.txt", "vocab.json and merges.txt", *(other.file for other in others), _WHOLE])]
        raise UserError(f"{folder}: holds no vocabulary. Expected {', '.join(names[:-1])} or {names[-1]}.")
    if kind not in _FILES:
        kinds = " or ".join(dict.fromkeys([*_FILES, *(other.type for other in others)]))
        raise UserError(f"{tokenizer_path}: the vocabulary's type is {kind}. Expected {kinds}.")
    if tokenizer:
        contents = _contents(tokenizer["model"], tokenizer_path)
    else:
        contents = [files.read_bytes(os.path.join(folder, name)) for name in _FILES[kind]]
    if kind == "BPE" and (added := [name for name in _ADDED if settings.get(name)]):
        extra = "space" if added[0] == _ADDED[0] else "token"
        raise UserError(f"{config}: {added[0]}=true. Expected false, because texts get no additional {extra} here.")
    for name, content in zip(_FILES[kind], contents, strict=True):
        files.write_bytes(os.path.join(work_dir, name), content)
    files.write_bytes(os.path.join(work_dir, _CONFIG), json.dumps(settings).encode())
    return published(open_encoder(os.path.join(work_dir, _FILES[kind][0])))._replace(frame=frame)


def _read_tokenizer(path):
    """Returns the contents of a `tokenizer.json`, with the type of the vocabulary."""
    tokenizer = files.read_json(path, _SCHEMA)
    model = tokenizer["model"]
    if "type" not in model:  # as in older files, such as those of gpt2 and distilbert-base-uncased
        marks = {"merges": "BPE", "max_input_chars_per_word": "WordPiece", "unk_id": "Unigram"}
        model["type"] = next((kind for mark, kind in marks.items() if mark in model), "WordLevel")
    return tokenizer


def _frame(tokenizer, path):
    """Returns the special tokens around a text, where "A" stands for the text, or None if the file lacks this part."""
    if "post_processor" not in tokenizer:
        return None

    def tokens(processor):
        kind = processor["type"]
        if kind == "TemplateProcessing":
            return [part["id"] for entry in processor["single"] for part in entry.values()]
        if kind in ("BertProcessing", "RobertaProcessing"):
            return [processor["cls"][0], "A", processor["sep"][0]]
        parts = [tokens(part) for part in processor["processors"]] if kind == "Sequence" else []
        return next((part for part in parts if len(part) > 1), ["A"])

    try:
        return " ".join(tokens(tokenizer["post_processor"] or {"type": None}))
    except (KeyError, IndexError, TypeError, AttributeError):
        raise UserError(f"{path}: 'post_processor' is damaged. Copy the file again.") from None


def _check_class(folder, vocabulary):
    """Raises `UserError` if Transformers reads the vocabulary with a class that may split texts in another way."""
    if files.exists(os.path.join(folder, _WHOLE)):  # shows how texts are split
        return
    ours = vocabulary.tokenizer.get("tokenizer_class")
    known = _CLASSES.get(ours, (ours,))
    for path in (os.path.join(folder, name) for name in (_CONFIG, "config.json")):
        config = files.read_json(path, {"tokenizer_class?": str | None}) if files.exists(path) else {}
        if theirs := config.get("tokenizer_class"):
            expected = f"{' or '.join(known)}, because another way to split texts is not supported here"
            check(path, "tokenizer_class", theirs, theirs.removesuffix("Fast") in known, expected)
            return


def _settings(config, tokenizer, path, settings_of):
    """Returns the settings of `tokenizer_config.json` and `tokenizer.json`. Raises `UserError` if they disagree."""
    settings = files.read_json(config, _CONFIG_SCHEMA) if files.exists(config) else {}
    settings = {name: value for name, value in settings.items() if value is not None}
    if tokenizer and "added_tokens" in tokenizer:
        settings[published_encoder.KEY] = published_encoder.of_tokenizer_json(tokenizer["added_tokens"], path)
    else:
        settings[published_encoder.KEY] = published_encoder.read_settings(config.removesuffix(_CONFIG))
    for name, value in (settings_of(tokenizer, path) if tokenizer else {}).items():
        if settings.setdefault(name, value) != value:
            raise UserError(f"{config}: {name}={settings[name]}, but {path} has {value}. Expected the same value.")
    return settings


def _contents(model, path):
    """Returns the contents of our vocabulary files, as bytes. Raises `UserError` if pieces or merges are invalid."""
    ids, merges = model["vocab"], model.get("merges", [])
    check_schema(ids, {str: int}, f"{path}: 'vocab'")
    check_schema([[merge] if isinstance(merge, str) else merge for merge in merges], [[str]], f"{path}: 'merges'")
    if model["type"] == "WordPiece":
        if sorted(ids.values()) != [*range(len(ids))]:
            raise UserError(f"{path}: 'vocab': expected the ids 0 to {len(ids) - 1:,}, each once.")
        contents = [_lines(sorted(ids, key=ids.get), path)]
    else:
        merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in merges]
        # Transformers 4 skips the first line of merges.txt.
        contents = [json.dumps(ids, ensure_ascii=False), f"#version: 0.2\n{_lines(merges, path)}"]
    try:
        return [content.encode() for content in contents]
    except UnicodeEncodeError:
        raise UserError(f"{path}: 'vocab': a piece has an unpaired surrogate. Expected valid Unicode.") from None


def _lines(parts, path):
    if wrong := [part for part in parts if "\n" in part]:
        raise UserError(f"{path}: 'vocab': {shown(wrong[0])} contains a line break. Remove it.")
    return "".join(f"{part}\n" for part in parts)


def settings_of(tokenizer, path):
    """Checks that texts are split like those of BERT (WordPiece), GPT-2 (BPE) or GPT (BPE whose tokens end in `</w>`).

    Args:
        tokenizer: dict, the contents of a `tokenizer.json`. Other kinds of vocabularies are not checked.
        path: str, the path of this file, for error messages.

    Returns:
        {name: bool}, the corresponding settings of `tokenizer_config.json`.

    Raises:
        UserError: texts are split in an unsupported way.
    """
    kind = tokenizer["model"]["type"]
    way = _WAYS[WORD_END] if tokenizer["model"].get("end_of_word_suffix") == WORD_END else _WAYS.get(kind, {})
    for part, settings in way.items():
        actual = tokenizer.get(part) or {}
        for name, expected in settings.items():
            check_setting(path, f"{part}: {name}", actual.get(name, None if name == "type" else expected), expected)
    normalizer = tokenizer.get("normalizer") or {}
    if normalizer.get("type") != _BERT_TOKENIZER["normalizer"]["type"]:
        return {}
    lower, accents = (normalizer.get(name) for name in ("lowercase", "strip_accents"))
    check_setting(path, "normalizer: strip_accents", lower if accents is None else accents, lower)
    return {"do_lower_case": bool(lower)}


def check_setting(path, name, value, expected):
    """Raises `UserError` unless a setting has the expected value. None means that the setting is off or missing."""
    if (value or None) != (expected or None):  # false, 0 and "" are equivalent to None
        actual = f"{name}={shown(value)}" if value is not None else f"no {name}"
        raise UserError(
            f"{path}: {actual}. Expected {'none' if expected is None else shown(expected)}, because another way to "
            "split texts is not supported here."
        )

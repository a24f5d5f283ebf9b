"""Reads and writes the files that sentence-transformers adds to a Transformers folder: modules, pooling, length.

Reads the formats of versions 2 to 6, and writes the format of version 2, which all of these versions can read.
"""

import os

from t2t_lite import files, registry
from t2t_lite.errors import LOGGER, UserError, shown
from t2t_lite.extras.hugging_face.family import check
from t2t_lite.extras.hugging_face.hugging_face_folder import usage
from t2t_lite.settings.ranges import ALL_POSITIONS
from t2t_lite.text.vocabulary_files import open_encoder

_MODULES, _LENGTH, _PROMPTS = "modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"
_TOKENIZER = "tokenizer_config.json"
_POOLINGS = {"mean": "mean", "cls": "first", "max": "max"}
_FLAG = "pooling_mode_{}"  # up to version 5, there is one setting for each kind of pooling
_FLAGS = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}
_FLAGS |= {name: f"{name}_tokens" for name in ("mean_sqrt_len", "weightedmean")} | {"lasttoken": "lasttoken"}
_TYPE = "sentence_transformers.models.{}"
_ORDER = ("Transformer", "Pooling", "Normalize")
_LEAST = 5  # the smallest number of positions that can hold two texts
_OPTIONAL = {  # settings of the first module, and their supported values
    "transformer_task": ("feature-extraction",),
    "module_output_name": ("token_embeddings",),
    "modality_config": ({"text": {"method": "forward", "method_output_name": "last_hidden_state"}},),
    "processing_kwargs": ({}, None),
}
_USE = usage(
    "sentence-transformers",
    "from sentence_transformers import SentenceTransformer",
    "",
    'model = SentenceTransformer(".")',
    'print(model.encode(["A text.", "Another text."]))',
)


@registry.register_folder_part("sentence_transformers")
class SentenceFolder:
    """The part of an encoder's folder that sentence-transformers reads: see `t2t_lite.extras.hugging_face.encoders`."""

    def read(self, folder, family, vocabulary, most):
        """Returns {argument of our model: value}, or {} if the folder is not from sentence-transformers.

        Args:
            folder: str.
            family: Family of the model.
            vocabulary: Published.
            most: int, the model's number of positions, or None if it is unlimited.

        Raises:
            UserError: a file is damaged, or has a setting that is not supported; the message names the file.
        """
        path = os.path.join(folder, _MODULES)
        if not files.exists(path):
            return {}
        modules = files.read_json(path, [{"type": str, "path": str}])
        names = [module["type"].rpartition(".")[2] for module in modules]
        others = [module["type"] for module, name in zip(modules, names, strict=True) if name not in _ORDER]
        expected = f"{', '.join(_ORDER[:2])} and optionally {_ORDER[2]}, in this order; other modules are not supported"
        check(path, "type", ", ".join(others or names), names in ([*_ORDER[:2]], [*_ORDER]), expected)
        where = modules[0]["path"]
        check(path, "path", where, not where, "an empty path, because the model's files are in the folder itself")
        for part in (module["path"] for module in modules[1:]):
            check(path, "path", part, part and part == os.path.basename(part), "the name of a subfolder")
        pooling = self._pooling(os.path.join(folder, modules[1]["path"], "config.json"), family)
        if len(modules) > 2:
            self._check_normalization(os.path.join(folder, modules[2]["path"], "config.json"))
        self._check_calls(os.path.join(folder, _PROMPTS))
        length = self._length(folder, vocabulary, most)
        return {"features_pooling": pooling, "features_normalized": len(modules) > 2, "features_length": length - 1}

    def written(self, family, predictor):
        """Returns {attribute of `Folder`: value} for a Predictor's model, or {} if it does not pool its positions.

        Raises:
            UserError: sentence-transformers would pool differently.
        """
        config = predictor.model.config
        pooling = config["features_pooling"]
        if pooling == ALL_POSITIONS:
            return {}
        kind = next(theirs for theirs, ours in _POOLINGS.items() if ours == pooling)
        if reason := _strange_first(family, pooling):
            raise UserError(f"features_pooling={pooling}: {reason}. Expected mean or max.")
        is_unit = config["features_normalized"]
        modules = [
            {"idx": at, "name": str(at), "path": f"{at}_{name}" if at else "", "type": _TYPE.format(name)}
            for at, name in enumerate(_ORDER[: 3 if is_unit else 2])
        ]
        modes = {_FLAG.format(flag): kind == name for name, flag in _FLAGS.items()}
        length = {"max_seq_length": 1 + predictor.features_length, "do_lower_case": False}
        return {
            "title": "A sentence encoder",
            "use": _USE,
            "library": "sentence-transformers",
            "contents": {
                _MODULES: modules,
                "1_Pooling/config.json": {"word_embedding_dimension": config["hidden_size"], **modes},
                **({"2_Normalize/config.json": {}} if is_unit else {}),
                _LENGTH: length,
                _PROMPTS: {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"},
            },
        }

    @staticmethod
    def _pooling(path, family):
        """Returns our name for the pooling in the second module's file."""
        config = files.read_json(path)
        modes = config.get("pooling_mode")
        if modes is None:  # before version 6, each kind of pooling had its own flag
            flags = {name: config.get(_FLAG.format(flag), False) for name, flag in _FLAGS.items()}
            modes = [name for name, flag in flags.items() if flag] or ["mean"]
        modes = modes if isinstance(modes, list) else [modes]
        possible = len(modes) == 1 and modes[0] in [*_POOLINGS]
        words = " and ".join(mode if isinstance(mode, str) else shown(mode) for mode in modes)
        check(path, "pooling_mode", words, possible, f"one of {', '.join(_POOLINGS)}; no other pooling is supported")
        pooling = _POOLINGS[modes[0]]
        reason = _strange_first(family, pooling)
        check(path, "pooling_mode", modes[0], not reason, f"mean or max: {reason}")
        return pooling

    @staticmethod
    def _check_normalization(path):
        name = "module_input_name"
        config = files.read_json(path) if files.exists(path) else {}
        vector = config.get(name, "sentence_embedding")
        check(path, name, vector, vector == "sentence_embedding", "sentence_embedding, the vector of a text")

    @staticmethod
    def _check_calls(path):
        """Checks the settings of the package's `encode`."""
        config = files.read_json(path, {"prompts?": dict | None}) if files.exists(path) else {}
        size = config.get("truncate_dim")
        expected = "null, because vectors have all their numbers here. Set it to null, and shorten the vectors yourself"
        check(path, "truncate_dim", size, size is None, expected)
        default = config.get("default_prompt_name")
        expected = "null, because prompts are not supported. Set it to null, and write the prompt before each text"
        check(path, "default_prompt_name", default, default is None, expected)
        if any((config.get("prompts") or {}).values()):
            LOGGER.warning(
                f"{path}: prompts are ignored, because they are not supported. Write the prompt before each text."
            )

    @staticmethod
    def _length(folder, vocabulary, most):
        """Returns the maximum number of positions of a text, including the position before the text."""
        tokenizer = os.path.join(folder, _TOKENIZER)
        # A file of version 1 is named after the family, such as sentence_roberta_config.json.
        path = next(iter(files.list_files(folder, r"sentence_[a-z-]+_config\.json")), "")
        config = files.read_json(path) if path else {}
        for name, possible in _OPTIONAL.items():
            value = config.get(name, possible[0])
            check(path, name, value, value in possible, f"{shown(possible[0])}, or no value")
        lower = config.get("do_lower_case", False)
        encode = open_encoder(vocabulary.path).encode
        keeps_case = lower and encode("A B C") != encode("a b c")
        expected = "false, because the vocabulary distinguishes capital letters"
        check(path, "do_lower_case", lower, not keeps_case, expected)
        name, length = "max_seq_length", config.get("max_seq_length")
        if length is None and files.exists(tokenizer):
            path, name = tokenizer, "model_max_length"
            length = files.read_json(tokenizer).get(name)
        if length is None:
            return most or 1  # a length of 1 means no limit
        is_right = type(length) in (int, float) and length == int(length) >= _LEAST
        check(path, name, length, is_right, f"{_LEAST} or more")
        return min(int(length), most or 2**20)


def _strange_first(family, pooling):
    """Returns the reason why the first position would differ in sentence-transformers, or None."""
    if pooling == "first" and family.row_id != "first_id":
        return f"{family.class_prefix} represents a text by its last position, not by its first"
    return None

"""The vocabulary of a Hugging Face folder, in the files that `vocabulary_files` knows."""

import contextlib
import json
import os
import tempfile

from t2t_lite import files
from t2t_lite.errors import UserError

_FILES = {"WordPiece": ("vocab.txt",), "BPE": ("vocab.json", "merges.txt")}
_WHOLE = "tokenizer.json"
_SCHEMA = {"model": {"type": str, "vocab": dict | list, "merges?": list}}


@contextlib.contextmanager
def vocabulary_of(folder):
    """Yields the path of the vocabulary's main file, which exists inside the block.

    Transformers 5 writes `tokenizer.json` alone, which holds what `vocab.txt`, or `vocab.json` and `merges.txt`, held.

    Args:
        folder: str.

    Raises:
        UserError: the folder has neither, or another kind of vocabulary.
    """
    for names in _FILES.values():
        if files.exists(os.path.join(folder, names[0])):
            yield os.path.join(folder, names[0])
            return
    whole = os.path.join(folder, _WHOLE)
    if not files.exists(whole):
        expected = " or ".join([*(" and ".join(names) for names in _FILES.values()), _WHOLE])
        raise UserError(f"{folder}: holds no vocabulary. Expected {expected}.")
    model = files.read_json(whole, _SCHEMA)["model"]
    if model["type"] not in _FILES:
        raise UserError(f"{whole}: a vocabulary of the kind {model['type']}. Expected {' or '.join(_FILES)}.")
    with tempfile.TemporaryDirectory() as made:
        for name, content in zip(_FILES[model["type"]], _contents(model), strict=True):
            files.write_bytes(os.path.join(made, name), content.encode())
        config = os.path.join(folder, "tokenizer_config.json")
        if files.exists(config):
            files.write_bytes(os.path.join(made, "tokenizer_config.json"), files.read_bytes(config))
        yield os.path.join(made, _FILES[model["type"]][0])


def _contents(model):
    """Returns the contents of the files of a kind."""
    if model["type"] == "WordPiece":
        ids = model["vocab"]
        return ["".join(f"{piece}\n" for piece in sorted(ids, key=ids.get))]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model.get("merges", [])]
    return [json.dumps(model["vocab"], ensure_ascii=False), "".join(f"{merge}\n" for merge in merges)]

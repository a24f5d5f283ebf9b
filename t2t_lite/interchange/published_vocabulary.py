"""The vocabulary of a Hugging Face folder, in the files that `vocabulary_files` knows, and the other way round."""

import contextlib
import json
import os
import tempfile
from typing import NamedTuple

from t2t_lite import files
from t2t_lite.errors import UserError
from t2t_lite.interchange import albert_vocabulary
from t2t_lite.text.vocabulary import SentencePieceEncoder
from t2t_lite.text.vocabulary_files import open_encoder

_FILES = {"WordPiece": ("vocab.txt",), "BPE": ("vocab.json", "merges.txt")}
_UNIGRAM = "Unigram"
_WHOLE, _CONFIG = "tokenizer.json", "tokenizer_config.json"
_SCHEMA = {"model": {"type": str, "vocab": dict | list, "merges?": list}}
_ALBERT_SCHEMA = {"do_lower_case?": bool, "keep_accents?": bool}
_FIRST = ("[CLS]", "<s>")


class Published(NamedTuple):
    """A vocabulary whose tokens are numbered otherwise there.

    Attributes:
        path: str, of our main file.
        ids: list of int by our id: the id there, or -1 for an id that only we have.
        special_ids: {token: our id}.
        contents: {name of a file there: bytes}.
    """

    path: str
    ids: list
    special_ids: dict
    contents: dict

    @property
    def first_token(self):
        """The token that stands before every text. Raises `UserError` if there is none."""
        if found := [token for token in _FIRST if token in self.special_ids]:
            return found[0]
        raise UserError(f"{self.path}: no special token {' or '.join(_FIRST)}. Expected the vocabulary of an encoder.")


def published(encoder):
    """Returns the Published of a TextEncoder. Raises `UserError` if no folder there can hold it."""
    if isinstance(encoder, SentencePieceEncoder):
        return Published(encoder.path, *albert_vocabulary.published(encoder))
    return Published(encoder.path, encoder.published_ids, encoder.special_ids, encoder.contents)


@contextlib.contextmanager
def vocabulary_of(folder):
    """Yields the Published of a folder, whose file exists inside the block.

    Transformers 5 writes `tokenizer.json` alone, which holds what the other files held.

    Args:
        folder: str.

    Raises:
        UserError: there is no vocabulary, or one of another kind.
    """
    sentencepiece, whole = (os.path.join(folder, name) for name in (albert_vocabulary.FILE, _WHOLE))
    for names in _FILES.values():
        if files.exists(os.path.join(folder, names[0])):
            yield published(open_encoder(os.path.join(folder, names[0])))
            return
    with tempfile.TemporaryDirectory() as made:
        if files.exists(sentencepiece):
            yield _of_albert(folder, files.read_bytes(sentencepiece), sentencepiece, made)
            return
        if not files.exists(whole):
            expected = ["vocab.txt", "vocab.json and merges.txt", albert_vocabulary.FILE, _WHOLE]
            raise UserError(f"{folder}: holds no vocabulary. Expected {', '.join(expected[:-1])} or {expected[-1]}.")
        said = files.read_json(whole, _SCHEMA)
        model = said["model"]
        if model["type"] == _UNIGRAM:
            yield _of_albert(folder, albert_vocabulary.of_tokenizer_json(said, whole), whole, made)
            return
        if model["type"] not in _FILES:
            raise UserError(
                f"{whole}: a vocabulary of the kind {model['type']}. Expected {', '.join(_FILES)} or {_UNIGRAM}."
            )
        for name, content in zip(_FILES[model["type"]], _contents(model), strict=True):
            files.write_bytes(os.path.join(made, name), content.encode())
        if files.exists(os.path.join(folder, _CONFIG)):
            files.write_bytes(os.path.join(made, _CONFIG), files.read_bytes(os.path.join(folder, _CONFIG)))
        yield published(open_encoder(os.path.join(made, _FILES[model["type"]][0])))


def _of_albert(folder, model, path, made):
    """Writes the model into the folder `made`; returns its Published."""
    config = os.path.join(folder, _CONFIG)
    said = files.read_json(config, _ALBERT_SCHEMA) if files.exists(config) else {}
    adopted, ids = albert_vocabulary.adopted(
        model, path, said.get("do_lower_case", True), said.get("keep_accents", False)
    )
    files.write_bytes(os.path.join(made, "vocab.model"), adopted)
    return published(SentencePieceEncoder(os.path.join(made, "vocab.model")))._replace(ids=ids)


def _contents(model):
    """Returns the contents of the files of a kind."""
    if model["type"] == "WordPiece":
        ids = model["vocab"]
        return ["".join(f"{piece}\n" for piece in sorted(ids, key=ids.get))]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model.get("merges", [])]
    return [json.dumps(model["vocab"], ensure_ascii=False), "".join(f"{merge}\n" for merge in merges)]

"""Opens and adopts vocabulary files.

The ending of a file's name determines the kind of vocabulary. BPE of bytes and BPE of words have the same endings; the
tokens show which of the two a file contains.

| in a data folder | kind | published as |
|---|---|---|
| `….model`, `….vocab` | SentencePiece | `….model` |
| `….subwords` | tensor2tensor's subwords | `….subwords` |
| `…-vocab.json`, `…-merges.txt` | BPE of bytes or words | `vocab.json`, `merges.txt`; `encoder.json`, `vocab.bpe` |
| `…-vocab.txt` | WordPiece | `vocab.txt` |

The last two kinds also have a `…-tokenizer_config.json` if tokens were added or if the pieces do not show whether text
is lowercased.
"""

from t2t_lite import files
from t2t_lite.errors import UserError, located
from t2t_lite.registry import Registries
from t2t_lite.text import subwords
from t2t_lite.text.published import bpe_files, published_encoder, wordpiece
from t2t_lite.text.published.byte_level_bpe import ByteLevelBPEEncoder
from t2t_lite.text.vocabulary import SentencePieceEncoder

SUBWORDS = ".subwords"  # tensor2tensor's subwords, whose encoder is defined in extras/
BYTE_LEVEL_BPE = "-vocab.json"
WORDPIECE = f"-{wordpiece.ENDING}"
SENTENCEPIECE = ".model"
_ENCODERS = {
    SENTENCEPIECE: SentencePieceEncoder,
    BYTE_LEVEL_BPE: ByteLevelBPEEncoder,
    WORDPIECE: wordpiece.WordPieceEncoder,
}


def ending_of(path):
    """Returns the ending of a vocabulary's file name in a data folder, by default SentencePiece's ending."""
    if path.endswith(SUBWORDS):
        return SUBWORDS
    if path.endswith(tuple(bpe_files.ENDINGS)):
        return BYTE_LEVEL_BPE
    return WORDPIECE if path.endswith(wordpiece.ENDING) else SENTENCEPIECE


def open_encoder(path):
    """Returns the TextEncoder for a vocabulary file. Raises `UserError` if the file is damaged or of unknown kind."""
    ending = ending_of(path)
    if ending == BYTE_LEVEL_BPE and bpe_files.marks_word_ends(path):
        ending = "word_bpe"
    if ending in _ENCODERS:
        return _ENCODERS[ending](path)
    with located(path):
        return Registries.encoders.get(ending)(path)


def has_pieces(encoder):
    """Returns whether an encoder's vocabulary has pieces of words and is of one of the kinds in this module."""
    return isinstance(encoder, SentencePieceEncoder) or hasattr(encoder, "contents")


def files_of(path):
    """Returns the paths of all files of a vocabulary, given its main file."""
    ending = ending_of(path)
    if ending == SENTENCEPIECE:
        return [path, path.removesuffix(ending) + ".vocab"]
    if ending == SUBWORDS:
        return [path]
    paths = list(bpe_files.files_of(path).values()) if ending == BYTE_LEVEL_BPE else [path]
    name = next(name for name in (wordpiece.ENDING, *bpe_files.ENDINGS) if path.endswith(name))
    config = path.removesuffix(name) + published_encoder.CONFIG
    return [*paths, config] if files.exists(config) else paths


def read_by(encoder):
    """Returns the paths of all files from which an encoder was read; [] for an encoder without `path`."""
    path = getattr(encoder, "path", None)
    return [file for file in files_of(path) if files.exists(file)] if path else []


def checked(encoders, name):
    """Returns the {feature: encoder} of the problem `name`. Raises `UserError` for an object that is not an encoder."""
    if odd := [encoder for encoder in encoders.values() if not hasattr(encoder, "fingerprint")]:
        raise UserError(
            f"{name}: feature_encoders returned an object of class {type(odd[0]).__name__}. Expected a class derived "
            "from t2t_lite.text.vocabulary.TextEncoder, whose __init__ takes the vocabulary size."
        )
    return encoders


def adopt(source, path):
    """Copies all files of an existing vocabulary; `path`, its new main file, must end in `ending_of(source)`."""
    if ending_of(path) == SENTENCEPIECE:
        subwords.adopt_sentencepiece(source, path.removesuffix(SENTENCEPIECE))
    else:
        adopted = as_adopted(source, path)
        for file in {*files_of(path)} - {*adopted}:  # settings that are left from another vocabulary
            files.remove(file)
        # The vocabulary's main file is written last, because its existence means that all files are complete.
        for file, content in reversed(adopted.items()):
            files.write_bytes(file, content)


def as_adopted(source, path):
    """Returns {path: bytes} for the files that hold a vocabulary's pieces after it has been adopted as `path`.

    Raises:
        UserError: `source` is damaged, or its name and its contents belong to different vocabulary types.
    """
    if ending_of(source) == SENTENCEPIECE:
        return {path: subwords.with_usual_ids(files.read_bytes(source), source)}
    contents = open_encoder(source).contents
    beginning = path.removesuffix(next(iter(contents)))
    return {beginning + name: content for name, content in contents.items()}

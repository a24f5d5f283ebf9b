"""Command lines with typical mistakes. Commands should report these immediately, without loading TensorFlow."""

import json
import os
import pathlib
import typing

_TABLE = pathlib.Path(__file__).with_suffix(".tsv")
# Work that does not need TensorFlow either: {command: words}.
WORK = {
    "t2t-bleu": "--translation={folder}/a.de --reference={folder}/a.de",
    "t2t-evalb": "--gold={folder}/trees --predicted={folder}/trees",
    "t2t-score": "--task=classification --predictions={folder}/labels --reference={folder}/labels",
}
_SHORT = {
    "{new}": "--problem=translate_ende_wmt32k --hparams_set=transformer_tiny --data_dir={folder}/empty "
    "--output_dir={folder}/new",
    "{own}": "--problem=translate_own --data_dir={folder}/new",
    "{lines}": "--decode_from_file={folder}/a.en",
}


class Mistake(typing.NamedTuple):
    """A command line with a mistake, and a part of the expected message; {folder} is the folder of `make_files`."""

    command: str
    title: str
    words: str
    message: str


def mistakes():
    """Returns every `Mistake` in the table and in the tables of extras, sorted by command."""
    tables = [_TABLE, *sorted(_TABLE.parents[2].glob("tests/extras/*/mistakes.tsv"))]
    lines = [line for table in tables for line in table.read_text(encoding="utf-8").splitlines()[1:]]
    return sorted((Mistake(*line.split("\t")) for line in lines), key=lambda mistake: mistake.command)


def words_of(text, folder):
    """Splits a command line of the table or of `WORK` into words, expanding {new} and similar abbreviations.

    If a flag is repeated, the last value is used.
    """
    for short, words in _SHORT.items():
        text = text.replace(short, words)
    found = {word.partition("=")[0]: word for word in text.replace("{folder}", folder).split()}
    return [*found.values()]


def make_files(folder):
    """Writes the files that the table mentions: texts, and incomplete folders of runs."""
    from t2t_lite import registry

    texts = {
        "a.en": "The red house.\nA green door.\nIt is late.\n",
        "a.de": "Das rote Haus.\nEine grüne Tür.\nEs ist spät.\n",
        "short.de": "Das rote Haus.\n",
        "trees": "(S (NP (DT the) (NN house)) (VP (VBZ stands)))\n",
        "labels": "good\tA red house.\nbad\tA green door.\ngood\tIt is late.\n",
        "damaged/hparams.json": "{",
        "wrong_usr_dir/__init__.py": "undefined_name\n",
    }
    config = {
        "format": 1, "problem": "translate_ende_wmt32k", "model": "transformer", "hparams_set": "transformer_tiny",
        "vocab_size": 512, "target_vocab_size": None, "vocabulary_sha256": {}, "usr_dir": "",
        "hparams": registry.hparams("transformer_tiny").values(),
    }  # fmt: skip
    texts |= {f"{name}/hparams.json": json.dumps(config) for name in ("run", "new_run")}
    # Character-level problems have no vocabulary files.
    of_characters = {**config, "problem": "translate_ende_wmt_characters", "vocab_size": 320}
    texts["copied/hparams.json"] = json.dumps(of_characters)
    texts["characters/hparams.json"] = json.dumps({**config, "problem": "enwik8_l512", "model": "transformer_lm"})
    for name in ("run", "without_settings", "damaged", "copied", "characters"):
        texts |= {f"{name}/model.ckpt-10.index": "", f"{name}/model.ckpt-10.data-00000-of-00001": ""}
    for name, text in texts.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    os.makedirs(os.path.join(folder, "empty"))

"""Small files for the problems on the user's own files, and checks of what each of these problems promises."""

import json
import pathlib
import re

import pytest

from t2t_lite import registry
from t2t_lite.data.manifests import find_manifest
from t2t_lite.data.problem import DatasetSplit
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from tests.data.stored import read_examples

SINGLE = "".join(f"{'odd' if n % 2 else 'even'}\tthe number {n} is here\r\n\n" for n in range(60))
PAIRS = "".join(f"{'less' if n < 30 else 'more'}\tnumber {n}\tnumber 30 or 31\n" for n in range(60))
NUMBERS = "".join(f"{n / 4}\tthe number {n}\tor {n + 1}\n\n" for n in range(41))
CHARACTERS = "languagemodel_own_characters"


def files_of(folder, **contents):
    """Writes `<folder>/<name>.tsv` for each name and content; returns {"<name>_files": [path]}."""
    paths = {}
    for name, content in contents.items():
        path = folder / f"{name}.tsv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        paths[f"{name}_files"] = [str(path)]
    return paths


def configured(name, **arguments):
    """Returns a problem after `configure`."""
    problem = registry.problem(name)
    problem.configure(**arguments)
    return problem


def generated(name, folder, **arguments):
    """Returns a problem that has written its data into a folder."""
    problem = configured(name, **arguments)
    problem.generate_data(str(folder), str(folder))
    return problem


def rows_of(problem, folder, split=DatasetSplit.TRAIN):
    """Returns the records of a split, dicts of lists of ids."""
    return list(read_examples(Records(problem, str(folder), split).paths))


def parts_of(ids):
    """Returns the ids of each text of a row; each text ends in 1."""
    ends = [at for at, i in enumerate(ids) if i == 1]
    assert ends[-1] == len(ids) - 1
    return [ids[start:end] for start, end in zip([0, *(end + 1 for end in ends)], ends, strict=False)]


def removed_of(problem, folder, split="train"):
    """Returns {reason: samples left out of a split}."""
    return find_manifest(problem, str(folder))["splits"][split]["removed"]


def check_mistakes(name, files, mistakes):
    """Each change to a problem's files and flags, in the current folder, is refused with its message.

    A message is what the error contains: its flag and its values.
    """
    before, wrong = sorted(pathlib.Path().rglob("*")), []
    for change, message in mistakes:
        with pytest.raises(UserError) as caught:
            configured(name, **{**files, **change})
        if message not in str(caught.value):
            wrong.append(f"{change}: {caught.value}")
    assert not wrong and sorted(pathlib.Path().rglob("*")) == before, "\n".join(wrong)


def check_damaged(name, sound, contents, message, folder):
    """Files {split: content}, others `sound`, are refused with a message, and nothing is written."""
    paths = {}
    for split in ("train", "dev"):
        content = contents.get(split, sound)
        (folder / split).write_bytes(content if isinstance(content, bytes) else content.encode())
        paths[f"{split}_files"] = [str(folder / split)]
    with pytest.raises(UserError, match=message):
        generated(name, folder / "data", **paths, **_size(name))
    assert not [path.name for path in (folder / "data").glob("*") if re.search("-of-|vocab", path.name)]


def _size(name):
    return {} if name == CHARACTERS else {"vocab_size": 300}


def check_bad_lines(name, data, count, folder):
    """Files with so many bad lines are refused, and read without them where that is asked for."""
    (folder / "file.txt").write_bytes(data)
    paths = [str(folder / "file.txt")]
    problem, data_dir = configured(name, train_files=paths, dev_files=paths, **_size(name)), folder / name
    with pytest.raises(UserError):
        problem.generate_data(str(data_dir), str(folder))
    problem.skip_bad_lines = True
    problem.generate_data(str(data_dir), str(folder))
    assert removed_of(problem, data_dir) == {"bad lines": count}


def check_labels_are_not_smoothed(name):
    """A run of a problem has its head, and refuses label_smoothing."""
    hparams = registry.hparams("bert_tiny").of_model(registry.model("transformer_encoder"))
    assert registry.problem(name).model_hparams(hparams).head == registry.task_of(registry.problem(name)).head
    with pytest.raises(UserError, match=r"label_smoothing=0\.1.*--hparams=label_smoothing=0"):
        registry.problem(name).model_hparams(hparams.parse("label_smoothing=0.1"))


def check_what_is_not_found_yet(name, key, folder):
    """What only generation finds is named where it is missing."""
    problem = registry.problem(name)
    config = {"problem": name, "vocab_size": 300, "files": {}, key: None}
    (folder / f"{name}.json").write_text(json.dumps(config))
    problem.read_config(str(folder))
    with pytest.raises(UserError, match=rf"{name}\.json: no {key} yet"):
        problem.determined(key)

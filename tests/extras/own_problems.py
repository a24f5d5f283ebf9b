"""Checks of problems on the user's own files: mistakes in flags, damaged files and bad lines."""

import json
import pathlib
import re

import pytest

from t2t_lite import registry
from t2t_lite.data.manifests import find_manifest
from t2t_lite.errors import UserError


def check_mistake(name, files, change, message):
    """A change to a problem's files and flags is refused with a message before anything is written in this folder."""
    before = sorted(pathlib.Path().rglob("*"))
    with pytest.raises(UserError, match=message):
        registry.problem(name).configure(**{**files, **change})
    assert sorted(pathlib.Path().rglob("*")) == before


def check_damaged(name, contents, message, folder, **options):
    """Files {split: text} are refused with a message, and nothing is written."""
    problem, paths = registry.problem(name), {}
    for split, content in contents.items():
        (folder / split).write_text(content)
        paths[f"{split}_files"] = [str(folder / split)]
    problem.configure(**paths, **options)
    with pytest.raises(UserError, match=message):
        problem.generate_data(str(folder / "data"), str(folder))
    assert not [path.name for path in (folder / "data").glob("*") if re.search("-of-|vocab", path.name)]


def check_bad_lines(name, data, count, folder, **options):
    """Files with so many bad lines are refused, and read without them where that is asked for."""
    (folder / "file.txt").write_bytes(data)
    paths, data_dir, problem = [str(folder / "file.txt")], folder / name, registry.problem(name)
    problem.configure(train_files=paths, dev_files=paths, **options)
    with pytest.raises(UserError):
        problem.generate_data(str(data_dir), str(folder))
    problem.skip_bad_lines = True
    problem.generate_data(str(data_dir), str(folder))
    assert find_manifest(problem, str(data_dir))["splits"]["train"]["removed"] == {"bad lines": count}


def check_unfinished(name, key, folder):
    """What only generation finds is named where it is missing."""
    config = {"problem": name, "vocab_size": 300, "files": {}, key: None}
    (folder / f"{name}.json").write_text(json.dumps(config))
    problem = registry.problem(name)
    problem.read_config(str(folder))
    with pytest.raises(UserError, match=rf"{name}\.json: no {key} yet"):
        problem.determined(key)

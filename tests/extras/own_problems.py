"""Checks of what each problem on the user's own files promises, for those of extras."""

import json
import pathlib
import re

import pytest

from t2t_lite import registry
from t2t_lite.data.records import Records
from t2t_lite.errors import UserError
from t2t_lite.evaluation.metrics import metric_names, shown_metrics
from t2t_lite.settings.config import HParams
from t2t_lite.tasks.task import unit_of
from tests.problems.own import configured, generated, removed_of

SIZE = {"vocab_size": 300}


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
        generated(name, folder / "data", **paths, **SIZE)
    assert not [path.name for path in (folder / "data").glob("*") if re.search("-of-|vocab", path.name)]


def check_bad_lines(name, data, count, folder):
    """Files with so many bad lines are refused, and read without them where that is asked for."""
    (folder / "file.txt").write_bytes(data)
    paths = [str(folder / "file.txt")]
    problem = configured(name, train_files=paths, dev_files=paths, **SIZE)
    check_bad_files(problem, "", folder / name)
    assert removed_of(problem, folder / name) == {"bad lines": count}


def check_bad_files(problem, message, folder):
    """A problem's files are refused with a message, and read without the bad ones where that is asked for."""
    with pytest.raises(UserError, match=message):
        problem.generate_data(str(folder), str(folder))
    assert not (folder / f"{problem.name}.json").exists()
    problem.skip_bad_lines = True
    problem.generate_data(str(folder), str(folder))
    return Records(problem, str(folder), "eval")


def check_names(name, unit, metric):
    """What an input of a problem is called, and what an evaluation shows beside the loss."""
    problem, hparams = registry.problem(name), HParams()
    assert unit_of(problem) == unit
    assert shown_metrics(problem, hparams, metric_names(problem, hparams)) == ["loss", metric]


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

"""Every setting of every problem on the user's own files: its flag, its key in the data folder, and their checks."""

import json
import pathlib
import re

import pytest

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.problems.own_problem import OwnProblem
from t2t_lite.problems.own_settings import SETTINGS, OwnSetting, declare_settings, own_flags

OWN_FLAGS = own_flags()

PROBLEMS = [name for name in registry.list_problems() if isinstance(registry.problem(name), OwnProblem)]
KEPT = {"vocab_size": 300, "sequence_length": 64, "doc_stride": 9, "mask_rate": 0.2, "mask_unit": "word", "files": {}}
WRONG = {
    "files": [
        {"train": [{"path": 1, "bytes": 2}]},
        {"dev": []},
        *({"train": [{"path": "a", "bytes": size}]} for size in (True, -1, 2**63)),
    ],
    "vocab_from": [{"inputs": "a", "more": "b"}],
    "vocab_type": ["words"],
    "sequence_length": ["64", 10**9],
    "mask_rate": [2.0],
    "class_labels": [[5]],
    "image_size": [[28, 28], [28, 28, 0]],
}
CASES = [(name, key) for name in PROBLEMS for key in registry.problem(name).settings]


def test_values_are_typed_by_the_flag_and_lists_may_be_any_iterable():
    typed = {name: setting.typed for name, setting in SETTINGS.items()}
    assert typed["vocab_size"]("300") == 300 and typed["mask_rate"]("0.25") == 0.25 and typed["header"](True) is True
    assert typed["columns"](iter("ab")) == ["a", "b"] and typed["columns"](()) is None
    assert {typed[name](None) for name in typed} == {None}
    with pytest.raises(UserError, match=r"--vocab_size=many"):
        typed["vocab_size"]("many")
    assert typed["columns"]([2, 1]) == ["2", "1"] and typed["dev_files"]((pathlib.Path("a"), "b")) == ["a", "b"]
    assert typed["corpus_weights"]([1.5, 2]) == ["1.5", "2"]
    for name, value in (
        ("user_defined_symbols", "<2de>"),  # not a list of its characters
        ("train_files", pathlib.Path("a.tsv")),
        ("filters", {"length_ratio": 5}),  # its keys alone would mean the default threshold
    ):
        with pytest.raises(UserError, match=rf"--{name}={re.escape(str(value))}: expected a list"):
            typed[name](value)


def test_another_setting_of_a_name_is_refused_and_the_same_one_is_not():
    declare_settings(SETTINGS["held_out"])
    with pytest.raises(UserError, match="'held_out'"):
        declare_settings(OwnSetting("held_out", int, 7))


def read(folder, name, config):
    problem = registry.problem(name)
    (folder / problem.config_filename).write_text(json.dumps(config))
    return problem.read_config(str(folder))


def test_every_flag_is_one_of_some_problem_and_every_setting_has_a_use():
    assert {flag for name in PROBLEMS for flag in registry.problem(name).flags} == {*OWN_FLAGS}
    assert {key for _, key in CASES} >= {setting.key or name for name, setting in SETTINGS.items()}


@pytest.mark.parametrize("name", PROBLEMS)
def test_help_and_docs_say_what_is_taken_and_the_defaults(name):
    docs = "".join(path.read_text() for path in (pathlib.Path(__file__).parents[2] / "docs").glob("*.md"))
    problem = registry.problem(name)
    for flag in problem.flags:
        assert f"--{flag}" in docs
        default = problem.settings[SETTINGS[flag].key or flag].default
        if default is not None:
            assert str(default).replace("byte_level", "byte-level").replace("_bpe", " BPE") in OWN_FLAGS[flag].meaning


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_folder_without_the_newer_keys_is_read(name, tmp_path):
    problem = registry.problem(name)
    config = {key: value for key, value in KEPT.items() if key in problem.settings}
    assert read(tmp_path, name, config) == config


@pytest.mark.parametrize("name, key", [case for case in CASES if case[1] not in ("format", "problem")])
def test_a_damaged_configuration_is_named(name, key, tmp_path):
    wrong = [{"x": 1.5}, *([None] if key in KEPT else []), *WRONG.get(key, ())]
    for value in wrong:
        with pytest.raises(UserError, match=rf"\.json: '{key}' is missing or has the wrong type"):
            read(tmp_path, name, {**KEPT, key: value})


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_no_setting_of_a_problem_is_refused(name):
    for flag in OWN_FLAGS.keys() - {*registry.problem(name).flags} | {"vocab_sizes"}:
        with pytest.raises(TypeError, match=rf"{name}: configure .* {flag}\. Expected train_files, "):
            registry.problem(name).configure(**{flag: None})

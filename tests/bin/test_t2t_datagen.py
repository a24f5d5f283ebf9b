"""What t2t-datagen hands to the problem."""
# Nearest tests of: t2t_lite/data/named_problems.py

import os

import numpy as np
import pytest

from t2t_lite import registry
from t2t_lite.bin import t2t_datagen
from t2t_lite.cli.commands import flags_of
from t2t_lite.data.problem import Problem

SEEN = []


@registry.register_problem("flags_seen_one")
class One(Problem):
    flags = ("vocab_size", "languages")

    def configure(self, vocab_size=None, languages=None):
        self.configured = {"vocab_size": vocab_size, "languages": languages}

    def generate_data(self, data_dir, tmp_dir, task_id=-1):
        drawn = float(np.random.rand())  # as problems of users draw, from the global generator
        settings = {name: getattr(self, name) for name in ("name", "max_cases", "random_seed", "skip_bad_lines")}
        SEEN.append({**vars(self), **settings, "data_dir": data_dir, "tmp_dir": tmp_dir, "drawn": drawn})


@registry.register_problem("flags_seen_other")
class Other(One):
    max_cases, random_seed, skip_bad_lines = 4, 3, True


@pytest.fixture
def generated(tmp_path):
    def generated(*flags, problem="flags_seen_one"):
        SEEN.clear()
        folders = f"--data_dir={tmp_path / 'data'}", f"--tmp_dir={tmp_path / 'tmp'}"
        assert t2t_datagen.main([f"--problem={problem}", *folders, *flags]) == 0
        return list(SEEN)

    return generated


def test_without_flags_all_is_generated_by_all_cores_that_the_process_may_use(generated, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5, 7}, raising=False)
    (seen,) = generated()
    assert (seen["max_cases"], seen["num_workers"], seen.get("write_shards")) == (0, 3, None)
    assert (seen["random_seed"], "configured" in seen) == (Problem.random_seed, False)
    assert (seen["data_dir"], seen["tmp_dir"]) == (str(tmp_path / "data"), str(tmp_path / "tmp"))
    assert (tmp_path / "tmp").is_dir()


@pytest.mark.parametrize(
    ("flag", "attribute", "value"),
    [
        ("--max_cases=7", "max_cases", 7),
        ("--random_seed=8", "random_seed", 8),
        ("--num_workers=3", "num_workers", 3),
        ("--vocab_size=300", "configured", {"vocab_size": 300, "languages": None}),
        ("--languages=en,xx", "configured", {"vocab_size": None, "languages": ["en", "xx"]}),
    ],
)
def test_a_flag_reaches_the_problem(generated, flag, attribute, value):
    (seen,) = generated(flag)
    assert seen[attribute] == value


def test_settings_of_a_problems_class_apply_unless_a_flag_is_given(generated):
    names = "max_cases", "random_seed", "skip_bad_lines"
    (seen,), (flagged,) = (generated(*flags, problem="flags_seen_other") for flags in ((), ("--max_cases=0",)))
    assert [seen[name] for name in names] == [4, 3, True]
    assert [flagged[name] for name in names] == [0, 3, True]
    assert seen["drawn"] == generated("--random_seed=3")[0]["drawn"]


def test_the_seed_is_that_of_every_problem_whatever_came_before(generated):
    one, other = generated("--random_seed=5", problem="flags_seen_one,flags_seen_other")
    (alone,) = generated("--random_seed=5", problem="flags_seen_other")
    (another,) = generated("--random_seed=6", problem="flags_seen_other")
    assert (one["name"], other["name"]) == ("flags_seen_one", "flags_seen_other")
    assert one["drawn"] == other["drawn"] == alone["drawn"] != another["drawn"]


def test_which_problems_are_meant(generated, capsys):
    assert [seen["name"] for seen in generated(problem="flags_seen_*")] == ["flags_seen_one", "flags_seen_other"]
    assert [seen["name"] for seen in generated(problem="flags_seen_one_rev")] == ["flags_seen_one"]
    assert [seen["name"] for seen in generated("--exclude_problems=one", problem="flags_seen_*")] == [
        "flags_seen_other"
    ]
    assert generated("--only_list", problem="flags_seen_*") == []
    assert capsys.readouterr().out.splitlines() == ["flags_seen_one", "flags_seen_other"]
    assert generated("--only_list", problem="flags_seen_one_rev") == []
    assert capsys.readouterr().out == "flags_seen_one\n"


def test_defaults_are_those_of_tensor2tensors_command():
    flags = flags_of(t2t_datagen)
    flags.parse([])
    assert (flags.values.tmp_dir, flags.values.data_dir, flags.values.problem) == ("/tmp/t2t_datagen", None, None)
    assert (flags.values.random_seed, flags.values.exclude_problems, flags.values.only_list) == (429459, [], False)

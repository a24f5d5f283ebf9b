"""Problems are selected by name, and the command that a message names can be typed as it stands."""

import shlex

import pytest

from t2t_lite import registry
from t2t_lite.bin import t2t_datagen
from t2t_lite.cli import usr_dirs
from t2t_lite.cli.commands import flags_of
from t2t_lite.data.named_problems import (
    datagen_command,
    generate_problems,
    select_problems,
    with_vocabulary_of,
)
from t2t_lite.data.problem import Text2TextProblem
from t2t_lite.errors import UserError


@pytest.mark.parametrize("name", registry.list_problems())
def test_the_command_is_one_that_datagen_takes(name):
    problem = registry.problem(name)
    program, *words = shlex.split(datagen_command(problem, "my data"))
    assert (program, words[0], words[-1]) == ("t2t-datagen", f"--problem={name}", "--data_dir=my data")
    assert words[1:-1] == getattr(problem, "example_flags", "").split()
    flags = flags_of(t2t_datagen)
    flags.parse(words)
    t2t_datagen.check(flags.values)


def test_the_users_folder_is_named_where_it_registers_the_problem(tmp_path, monkeypatch):
    folder = tmp_path / "things of theirs"
    folder.mkdir()
    (folder / "__init__.py").write_text("class Mine: pass\n")
    monkeypatch.setattr(usr_dirs, "_IMPORTED", {})
    registry.import_usr_dir(str(folder))

    class Problem(Text2TextProblem):
        name = "mine"

    assert datagen_command(Problem(), "d") == "t2t-datagen --problem=mine --data_dir=d"
    for module in ("things of theirs", "things of theirs.corpus"):
        Problem.__module__ = module
        assert shlex.split(datagen_command(Problem(), "d"))[-1] == f"--t2t_usr_dir={folder}"
    Problem.__module__ = "things of theirs of others"
    assert "--t2t_usr_dir" not in datagen_command(Problem(), "d")


@pytest.mark.parametrize(
    ("patterns", "excluded", "keeps", "names"),
    [
        ("translate_own", (), False, ["translate_own"]),
        ("translate_own_rev", (), False, ["translate_own"]),
        ("translate_own_rev, classify_own", (), True, ["translate_own_rev", "classify_own"]),
        ("regress_*", (), False, ["regress_own", "regress_pair_own"]),
        ("regress_pair_own,regress_*,regress_own", ["air"], False, ["regress_own"]),
        ("regress_*", (), True, ["regress_own", "regress_pair_own"]),
    ],
)
def test_problems_are_selected_once_in_their_order(patterns, excluded, keeps, names):
    assert select_problems(patterns, excluded, keeps) == names


@pytest.mark.parametrize(
    ("patterns", "excluded", "words"),
    [
        (" , ", (), r"--problem= , "),
        ("algoritm*", (), r"--problem=algoritm\*: "),
        ("regress_*", ["own"], r"--problem=regress_\*: --exclude_problems=own"),
        ("regres_own", (), "'regres_own'.*regress_own"),
    ],
)
def test_a_selection_of_nothing_is_refused(patterns, excluded, words):
    with pytest.raises(UserError, match=words):
        select_problems(patterns, excluded)


def test_what_a_problem_does_not_take_is_named_before_any_work(tmp_path):
    names = ["algorithmic_identity_decimal40", "classify_own"]
    for arguments, words in (
        ({"vocab_size": 300}, "--vocab_size: .*--problem=algorithmic_identity_decimal40.* class determines its data"),
        ({"held_out": 3, "train_files": []}, "--held_out, --train_files: .*--problem=algorithmic_identity_decimal40"),
    ):
        with pytest.raises(UserError, match=words):
            generate_problems(names, str(tmp_path / "d"), str(tmp_path / "t"), arguments)
    with pytest.raises(UserError, match=r"--held_out: .*--problem=classify_own.*--train_files, --dev_files"):
        generate_problems(names[1:], str(tmp_path / "d"), str(tmp_path / "t"), {"held_out": 3})
    assert not list(tmp_path.iterdir())


def test_the_vocabulary_of_a_run_is_taken_by_a_flag_if_the_problem_has_it():
    assert with_vocabulary_of(registry.problem("translate_own"), "my run") == "t2t-datagen --vocab_from='my run'"
    assert with_vocabulary_of(Text2TextProblem(), "my run") == (
        "copy 'my run'/vocab.* into an empty --data_dir, then run t2t-datagen"
    )


def test_settings_and_attributes_reach_the_problem(tmp_path):
    settings, written = {"max_cases": 3, "random_seed": 8, "num_workers": 2, "skip_bad_lines": True}, []

    def write_shards(source, paths, **layout):
        written.append((source, paths, layout))
        raise KeyError

    name = "algorithmic_identity_decimal40"
    with pytest.raises(KeyError):
        attributes = {**settings, "write_shards": write_shards}
        generate_problems([name], str(tmp_path / "d"), str(tmp_path / "t"), None, attributes)
    (source, paths, layout), problem = written[0], written[0][0]._problem
    assert (problem.max_cases, problem.random_seed, problem.num_workers, problem.skip_bad_lines) == (3, 8, 2, True)
    assert len(paths) == 10 and layout == {
        "seed": 8, "groups": [10], "features": ("inputs", "targets"), "is_ordered": False
    }  # fmt: skip
    samples, encode = source.open()
    assert len(list(samples)) == 3 and encode is None and source.counts() == {"removed": {}, "units": {}}

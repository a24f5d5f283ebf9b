"""Commands in messages are ones that can be typed as they stand."""

import shlex

import pytest

from t2t_lite import registry
from t2t_lite.bin import t2t_datagen
from t2t_lite.cli import usr_dirs
from t2t_lite.cli.commands import flags_of
from t2t_lite.data.named_problems import datagen_command
from t2t_lite.data.problem import Text2TextProblem


@pytest.mark.parametrize("name", registry.list_problems())
def test_the_command_is_one_that_datagen_takes(name):
    program, *words = shlex.split(datagen_command(registry.problem(name), "my data"))
    assert (program, words[0], words[-1]) == ("t2t-datagen", f"--problem={name}", "--data_dir=my data")
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

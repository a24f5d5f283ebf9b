"""Extras that are missing, broken, or in each other's way: the others work, and one line says what is wrong.

Each case is a process of its own, in which further folders stand among the extras.
"""
# Nearest tests of: t2t_lite/process/lazy.py, t2t_lite/process/registering_modules.py, t2t_lite/cli/registers.py
# Nearest tests of: t2t_lite/cli/usr_dirs.py

import textwrap

import pytest

from t2t_lite.process.lazy import extras, packages
from tests.processes import python

PROBLEM = """
    from t2t_lite.data.problem import Text2TextProblem
    from t2t_lite.registry import register_problem

    @register_problem("{name}")
    class Mine(Text2TextProblem):
        pass
    """
MODEL = """
    from t2t_lite.models import Transformer
    from t2t_lite.registry import register_model

    @register_model
    class {name}(Transformer):
        pass
    """


@pytest.fixture
def with_extras(tmp_path):
    """Returns a function of {path of a file: its text} and code -> (what the code prints, what is logged)."""

    def run(files, code):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            (path.parent / "__init__.py").touch()
            path.write_text(textwrap.dedent(text))
        script = f"import t2t_lite.extras; t2t_lite.extras.__path__.append({str(tmp_path)!r})\n" + textwrap.dedent(code)
        done = python(script)
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stderr.splitlines() if "extra" in line]
        return done.stdout.splitlines(), lines

    return run


def test_each_folder_is_one():
    assert packages() == [f"t2t_lite.extras.{name}" for name in extras()]
    assert all((path / "__init__.py").is_file() for path in extras().values())


def test_one_more_folder_is_one_more_extra(with_extras):
    files = {
        "mine/mine.py": PROBLEM.format(name="my_problem"),
        "mine/t2t_mine.py": '"""Does it."""\ndef main(): pass\n',
    }
    code = """
        from t2t_lite import registry
        from t2t_lite.cli import commands
        print(registry.problem("my_problem").name, "t2t-mine" in commands.paths())
        """
    assert with_extras(files, code) == (["my_problem True"], [])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "import no_such_package  # register_problem",
            "line 1: ModuleNotFoundError: No module named 'no_such_package'",
        ),
        ("# register_problem\ndef broken(:\n", "line 2: SyntaxError: invalid syntax (problems.py, line 2)"),
        ("1 / 0  # register_problem", "line 1: ZeroDivisionError: division by zero"),
    ],
)
def test_one_that_is_broken_is_named_and_leaves_the_others(with_extras, tmp_path, text, error):
    files = {"broken/problems.py": text, "mine/mine.py": PROBLEM.format(name="my_problem")}
    code = """
        from t2t_lite import registry
        print("my_problem" in registry.list_problems(), "translate_own" in registry.list_problems())
        try:
            registry.problem("of_the_broken")
        except registry.UnknownName as error:
            print(error)
        """
    (there, message), (warning,) = with_extras(files, code)
    assert there == "True True"
    why = f"extra 'broken' cannot be used: {tmp_path}/broken/problems.py, {error}"
    assert warning == f"problems: the {why}"
    assert message.startswith(f"problems: 'of_the_broken' is not registered. The {why}")


def test_a_name_that_two_register_is_the_first_ones(with_extras, tmp_path):
    files = {f"{name}/{name}.py": PROBLEM.format(name="my_problem") for name in ("one", "two")}
    code = 'from t2t_lite import registry; print(type(registry.problem("my_problem")).__module__)'
    printed, (warning,) = with_extras(files, code)
    assert printed == ["t2t_lite.extras.one.one"]
    assert warning.startswith(f"problems: the extra 'two' cannot be used: {tmp_path}/two/two.py, line ")
    assert warning.endswith(f"'my_problem' is already registered in {tmp_path}/one/one.py. Choose another name.")


@pytest.mark.slow
def test_a_model_that_two_register_or_that_is_broken_is_refused(with_extras, tmp_path):
    files = {
        "one/my_model.py": MODEL.format(name="MyModel"),
        "two/my_model.py": MODEL.format(name="MyModel"),
        "broken/other.py": "1 / 0\n\n\n@register_model\nclass Other:\n    pass\n",
    }
    code = """
        from t2t_lite import registry
        for name in ("my_model", "other", "transformer"):
            try:
                print(registry.model(name).__module__)
            except registry.UserError as error:
                print(error)
        """
    (mine, other, transformer), _ = with_extras(files, code)
    folder = str(tmp_path)
    places = f"{folder}/one/my_model.py and in {folder}/two/my_model.py"
    assert mine == f"models: 'my_model' is registered in {places}. Rename one of them."
    assert other.startswith(f"models: other: the extra 'broken' cannot be used: {folder}/broken/other.py, line 1: ")
    assert transformer == "t2t_lite.models.transformer"

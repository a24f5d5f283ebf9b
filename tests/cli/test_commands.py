"""What extras add to commands, by a module in_<command>.py."""

import sys

import pytest

import t2t_lite.extras
from t2t_lite.bin import _app
from t2t_lite.cli import commands, usr_dirs
from t2t_lite.cli.commands import Mode, check_mode, chosen_mode
from t2t_lite.process import lazy

PART = """
'--sing sings.'

from t2t_lite.cli.commands import Mode

def define_flags(flags):
    flags.DEFINE_bool("sing", False, "Sing.")
    flags.DEFINE_string("song", "", "What.")

MODES = {
    "sing": Mode("--sing", ("song",), run=lambda flags: print("la la"), asked=lambda flags: flags.sing)
}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of lazy, of which `singing` has a part of the command t2t-x, and `broken` one with an error."""
    found = {name: tmp_path / name for name in ("broken", "singing")}
    for path in found.values():
        path.mkdir()
        (path / "__init__.py").touch()
    (found["broken"] / "in_t2t_x.py").write_text("undefined_name")
    (found["singing"] / "in_t2t_x.py").write_text(PART)
    for module in lazy, usr_dirs:
        monkeypatch.setattr(module, "extras", lambda: found)
    monkeypatch.setattr(t2t_lite.extras, "__path__", [str(tmp_path)])
    monkeypatch.setattr(t2t_lite.extras.__spec__, "submodule_search_locations", [str(tmp_path)])
    lazy.module_paths.cache_clear()
    commands.parts.cache_clear()
    yield tmp_path
    lazy.module_paths.cache_clear()
    commands.parts.cache_clear()
    for name in [name for name in sys.modules if name.startswith(("t2t_lite.extras.singing", "t2t_lite.extras.brok"))]:
        del sys.modules[name]


def run_x(*argv):
    """Runs a command "t2t-x", which says that it works, or does what the mode of an extra does."""

    def define_flags(flags):
        flags.DEFINE_integer("hours", 8, "How long.", 1, 24)

    def modes():
        return commands.modes("t2t-x", {"work": Mode("work", ("hours",), run=lambda flags: print("working"))})

    def check(flags):
        check_mode(flags, chosen_mode(flags, modes()), modes())

    def run(flags):
        return chosen_mode(flags, modes()).run(flags)

    return _app.main("t2t-x", define_flags, run, argv, check=check, tensorflow=False)


def test_an_extra_adds_flags_help_checks_and_a_mode(folder, capsys):
    assert run_x() == 0 and capsys.readouterr().out == "working\n"
    assert run_x("--sing", "--song=a") == 0 and capsys.readouterr().out == "la la\n"
    assert run_x("--help") == 0
    shown = capsys.readouterr().out
    assert shown.index("--sing sings.") < shown.index("--hours=NUMBER") < shown.index("--song=TEXT")
    for argv, message in (
        (["--song=a"], "--song: not with work, only with --sing. Leave it out."),
        (["--sing", "--hours=3"], "--hours: not with --sing, only with work. Leave it out."),
    ):
        assert run_x(*argv) == 2
        assert capsys.readouterr().err.splitlines()[-1] == f"t2t-x: error: {message}"


def test_a_part_that_is_broken_is_named_and_left_out(folder, capsys):
    assert run_x() == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(
        f"t2t-x: warning: t2t-x: the extra 'broken' cannot be used: {folder}/broken/in_t2t_x.py, line 1"
    )
    assert "NameError" in line


def test_without_extras_nothing_is_added(folder, capsys):
    for path in folder.glob("*/in_t2t_x.py"):
        path.unlink()
    lazy.module_paths.cache_clear()
    commands.parts.cache_clear()
    assert run_x() == 0 and capsys.readouterr().out == "working\n"
    assert run_x("--sing") == 2 and "--sing: unknown flag" in capsys.readouterr().err

"""What extras add to commands, by a module in_<command>.py."""

import sys

import pytest

import t2t_lite.extras
from t2t_lite.bin import _app
from t2t_lite.cli import commands
from t2t_lite.cli.modes import Mode, all_modes, asked_modes, check_mode
from t2t_lite.errors import UserError

PART = """
from t2t_lite.cli.modes import Mode
from t2t_lite.errors import UserError

HELP = "--sing sings."

def define_flags(flags):
    flags.DEFINE_bool("sing", False, "Sing.")
    flags.DEFINE_string("song", "", "What.")

def check(flags):
    if flags.song == "none":
        raise UserError("--song=none: expected a song.")

MODES = {"sing": Mode("--sing", ("song",), run=lambda flags: print("la la"))}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of extras, of which `singing` has a part of the command t2t-x, and `broken` one with an error."""
    found = {name: tmp_path / name for name in ("broken", "singing")}
    for path in found.values():
        path.mkdir()
        (path / "__init__.py").touch()
    (found["broken"] / "in_t2t_x.py").write_text("undefined_name")
    (found["singing"] / "in_t2t_x.py").write_text(PART)
    monkeypatch.setattr(commands, "extras", lambda: found)
    monkeypatch.setattr(t2t_lite.extras, "__path__", [str(tmp_path)])
    commands.parts.cache_clear()
    yield tmp_path
    commands.parts.cache_clear()
    for name in [name for name in sys.modules if name.startswith(("t2t_lite.extras.singing", "t2t_lite.extras.brok"))]:
        del sys.modules[name]


def run_x(*argv):
    """Runs a command "t2t-x", which says that it works, or does what the mode of an extra does."""
    modes = all_modes("t2t-x", {"work": Mode("work", ("hours",))})

    def define_flags(flags):
        flags.DEFINE_integer("hours", 8, "How long.", 1, 24)

    def check(flags):
        check_mode(flags, [*asked_modes(flags, modes), modes["work"]][0], modes)

    def run(flags):
        asked = asked_modes(flags, modes)
        return asked[0].run(flags) if asked else print("working")

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
        (["--sing", "--song=none"], "--song=none: expected a song."),
    ):
        assert run_x(*argv) == 2
        assert capsys.readouterr().err.splitlines()[-1] == f"t2t-x: error: {message}"


def test_a_part_that_is_broken_is_named_and_left_out(folder, caplog):
    assert run_x() == 0
    (line,) = caplog.messages
    assert "the extra 'broken' cannot be used: " in line
    assert f"{folder}/broken/in_t2t_x.py, line 1: NameError" in line


def test_without_extras_nothing_is_added(folder, capsys):
    for path in folder.glob("*/in_t2t_x.py"):
        path.unlink()
    commands.parts.cache_clear()
    assert run_x() == 0 and capsys.readouterr().out == "working\n"
    assert run_x("--sing") == 2 and "--sing: unknown flag" in capsys.readouterr().err


def test_a_mode_that_accepts_all_flags_comes_first():
    from t2t_lite.cli.flags import Flags

    modes = {"a": Mode("--a", ("size",)), "b": Mode("--b", is_lenient=True)}
    flags = Flags()
    for name in "a", "b":
        flags.DEFINE_bool(name, False, "Do it.")
    flags.DEFINE_string("size", "", "The size.")
    flags.parse(["--a", "--b", "--size=1"])
    assert [mode.name for mode in asked_modes(flags.values, modes)] == ["--b", "--a"]
    check_mode(flags.values, modes["b"], modes)
    with pytest.raises(UserError, match="--size: not with --c"):
        check_mode(flags.values, Mode("--c"), modes)

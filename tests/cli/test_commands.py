"""Modes of commands, what a mode reads and needs, and what extras add by a module in_<command>.py."""

import re
import sys

import pytest

import t2t_lite.extras
from t2t_lite.bin import _app
from t2t_lite.cli import commands, usr_dirs
from t2t_lite.cli.commands import Mode, check_mode, chosen_mode, description, module_of_user, require
from t2t_lite.cli.flags import Flags
from t2t_lite.errors import UserError
from t2t_lite.process import lazy

PART = """
'--sing sings.'

from t2t_lite.cli.commands import Mode

def define_flags(flags):
    flags.DEFINE_bool("sing", False, "Sing.")
    flags.DEFINE_string("song", "", "What.")

MODES = {
    "sing": Mode("--sing", ("song",), run=lambda flags: print("la la"), selected_by=lambda flags: flags.sing)
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
        (["--song=a"], "--song cannot be used with work, only with --sing. Remove it."),
        (["--sing", "--hours=3"], "--hours cannot be used with --sing, only with work. Remove it."),
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


MODES = {
    "sing": Mode(
        "--sing", ("song", "loud"), ("song",), instead={"hours": "Sing it twice."}, selected_by=lambda flags: flags.sing
    ),
    "rest": Mode("--rest", ("rest", "hours", "loud"), selected_by=lambda flags: flags.rest),
    "work": Mode("work", ("hours", "tool")),
}


def flags_of(*words):
    flags = Flags()
    for name in ("sing", "rest", "loud"):
        flags.DEFINE_bool(name, False, f"{name.capitalize()}.")
    for name, help in (("song", "What to sing."), ("tool", "A tool.")):
        flags.DEFINE_string(name, None, help)
    flags.DEFINE_list("names", [], "Names.")
    flags.DEFINE_integer("hours", 8, "How long.", 1, 24)
    flags.parse(words)
    return flags.values


@pytest.mark.parametrize(
    ("words", "name", "message"),
    [
        ((), "work", None),
        (("--hours=3", "--tool=x"), "work", None),
        (("--rest", "--hours=3", "--loud"), "--rest", None),
        (("--sing", "--song=a", "--loud"), "--sing", None),
        (("--sing", "--rest", "--song=a"), "--sing", r"--rest cannot be used with --sing\. Remove it\.$"),  # the first
        (("--sing",), "--sing", r"missing --song \(What to sing\)\."),
        (("--sing", "--song="), "--sing", r"missing --song \(What to sing\)\."),
        (("--song=a",), "work", r"--song cannot be used with work, only with --sing\. Remove it\.$"),
        (("--loud",), "work", r"--loud cannot be used with work, only with --sing or --rest\. Remove it\.$"),
        (("--song=a", "--loud"), "work", r"--song.* cannot be used .*, only with --sing\. Remove them\.$"),
        (("--noloud",), "work", None),  # says that nothing is asked for
        (("--song=",), "work", None),
        (
            ("--sing", "--song=a", "--hours=3"),
            "--sing",
            r"--hours cannot .* --rest or work\. Remove it\. Sing it twice\.$",
        ),
        (("--sing", "--song=a", "--tool=x"), "--sing", r"--tool cannot be used .*, only with work\. Remove it\.$"),
    ],
)
def test_what_a_mode_reads_and_needs(words, name, message):
    flags = flags_of(*words)
    mode = chosen_mode(flags, MODES)
    assert mode.name == name
    if message is None:
        check_mode(flags, mode, MODES)
        return
    with pytest.raises(UserError, match=message):
        check_mode(flags, mode, MODES)


def test_flags_that_are_missing_are_named_with_their_meaning():
    require(flags_of("--song=a"), "song", "hours")
    with pytest.raises(
        UserError, match=r"^missing --song \(What to sing\), --tool \(A tool\) and --names \(Names\)\.$"
    ):
        require(flags_of(), "song", "hours", "tool", "names")


def test_the_description_of_a_command(folder):
    (folder / "broken" / "in_t2t_x.py").unlink()
    assert description("t2t-x", " It works. ") == "It works.\n\n--sing sings."
    assert description("t2t-x", None) == "\n\n--sing sings." and description("t2t-y", "It rests.") == "It rests."


def test_the_commands_in_a_description_are_indented():
    """The site shows indented paragraphs as code, and joins the lines of others: docs/extensions/command_pages.py."""
    lines = [
        line for name, module in commands.modules().items() for line in description(name, module.__doc__).split("\n")
    ]
    assert sum(line.startswith("    t2t-") for line in lines) > 40
    assert not [line for line in lines if re.match(r"(t2t-\S+ --\S+[= ]|eval )", line)]


def test_a_module_of_a_user_s_folder(tmp_path):
    for name, text in (("__init__", ""), ("t2t_my_x", "NAME = 1"), ("t2t_bad", "NAME = 1\nundefined_name")):
        (tmp_path / f"{name}.py").write_text(text)
    assert module_of_user("t2t-my-x", str(tmp_path)).NAME == 1
    assert module_of_user("t2t-other", str(tmp_path)) is None and module_of_user("t2t-my-x", "") is None
    with pytest.raises(UserError, match=rf"--t2t_usr_dir={tmp_path}: {tmp_path}/t2t_bad\.py, line 2: NameError"):
        module_of_user("t2t-bad", str(tmp_path))

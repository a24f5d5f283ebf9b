"""The flags of a command, one kind after the other: what each reads, shows and refuses."""

import logging
import os

import pytest

from t2t_lite.cli.flags import Flags, as_typed
from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import Range


@pytest.fixture
def flags():
    flags = Flags()
    flags.DEFINE_string("text", "usual", "A text.")
    flags.DEFINE_path("folder", None, "A folder.")
    flags.DEFINE_list("names", ["a", "b"], "Names.")
    flags.DEFINE_paths("files", [], "Files.")
    flags.DEFINE_bool("on", True, "A switch.")
    flags.DEFINE_enum("kind", "large", ["small", "large"], "A size.")
    flags.DEFINE_integer("steps", 7, "Steps.", 3, 90)
    flags.DEFINE_integer("wait", None, "Minutes.", limits=Range(0, 60, also=(-1,)))
    flags.DEFINE_integers("seeds", [], "Seeds.", Range(0, 9))
    flags.DEFINE_float("rate", 2.0, "A rate.", 0.5, 4)
    flags.DEFINE_string("settings", "", "Settings.")
    flags.DEFINE_pairs("set_", "settings")
    flags.no_effect("tpu", "there is none")
    return flags


HOME = os.path.expanduser("~")


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        (["--text="], "text", ""),
        (["--text", "a b"], "text", "a b"),
        (["-text=x=y"], "text", "x=y"),
        (["--folder=~/x"], "folder", f"{HOME}/x"),
        (["--names="], "names", []),
        (["--names=a"], "names", ["a"]),
        (['--names= a ,"b, c","d""e"'], "names", ["a", "b, c", 'd"e']),
        (["--files=~/a,b~"], "files", [f"{HOME}/a", "b~"]),
        (["--on"], "on", True),
        (["--noon"], "on", False),
        (["--on=false"], "on", False),
        (["--kind=small"], "kind", "small"),
        (["--steps=3"], "steps", 3),
        (["--steps", "90"], "steps", 90),
        (["--wait=-1"], "wait", -1),
        (["--wait=0"], "wait", 0),
        (["--seeds=3,1,2"], "seeds", [3, 1, 2]),
        (["--rate=0.5"], "rate", 0.5),
        (["--rate=4"], "rate", 4.0),
        (["--set_a=1", "--set-b-c", "2=3"], "settings", "a=1,b_c=2=3"),
        (["--set_a=1", "--settings=x=0"], "settings", "x=0,a=1"),
        (["--steps=8", "--steps", "8"], "steps", 8),
        (["--rate", "1.5"], "rate", 1.5),
        (["--text", "-x"], "text", "-x"),
        (["--text=a-b--c"], "text", "a-b--c"),
        (["--set-a", "4"], "settings", "a=4"),
    ],
)
def test_what_a_flag_reads(flags, words, name, value):
    flags.parse(words)
    assert flags.values[name].value == value and flags.values[name].present
    others = {other: flags.values[other] for other in flags.values if other != name}
    flags.parse([as_typed(name, value)])
    assert flags.values[name].value == value
    assert all(flag.value == flag.default and not flag.present for flag in others.values())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--names=a,,b"], "--names=a,,b: an item is empty"),
        (['--names="a'], '--names="a: expected a list a,b'),
        (["--names=,"], "--names=,: an item is empty"),
        (["--files=a,\0"], "--files.*NUL"),
        (["--folder=~\0"], "--folder.*NUL"),
        (["--folder=caf\udce9"], "--folder.*not UTF-8"),
        (["--kind=Small"], "--kind=Small: .*small, large"),
        (["--steps=2"], "--steps=2: .*from 3 to 90"),
        (["--steps=91"], "--steps=91: .*from 3 to 90"),
        (["--wait=-2"], "--wait=-2: .*from 0 to 60.*-1"),
        (["--seeds=1,10"], "--seeds=10: .*from 0 to 9"),
        (["--rate=0.4"], "--rate=0.4: .*from 0.5 to 4"),
        (["--steps=8", "--steps=9"], "--steps is given twice, as 8 and as 9"),
        (["--on", "--noon"], "--on is given twice"),
        (["--settings=a", "--settings=b"], "--settings is given twice, as a and as b"),
        (["--on=perhaps"], "--on=perhaps: .*true or false"),
        (["--noon=1"], "--noon=1: unexpected value.*--noon or --on"),
        (["--steps"], "--steps: its value is missing"),
        (["--steps", "--on"], "--steps: its value is missing"),
        (["--step=3"], "--step: unknown flag"),
        (["--nosteps"], "--nosteps: unknown flag"),
        (["word"], "'word': unexpected argument"),
        (["--", "--on"], "'--on': unexpected argument"),
    ],
)
def test_what_a_flag_refuses(flags, words, message):
    with pytest.raises(UserError, match=f"^{message}"):
        flags.parse(words)


def test_how_flags_are_shown(flags):
    flags.DEFINE_string("grid", "", "A grid.")
    flags.values["grid"].boolean = True
    assert {flag.usage: flag.description for flag in flags.shown()} == {
        "--text=TEXT": "A text. Default: usual.",
        "--folder=PATH": "A folder.",
        "--names=A,B,...": "Names. Default: a,b.",
        "--files=A,B,...": "Files.",
        "--[no]on": "A switch. Default: true.",
        "--kind=small|large": "A size. Default: large.",
        "--steps=NUMBER": "Steps. From 3 to 90. Default: 7.",
        "--wait=NUMBER": "Minutes. From 0 to 60, or -1.",
        "--seeds=A,B,...": "Seeds.",
        "--rate=NUMBER": "A rate. From 0.5 to 4. Default: 2.",
        "--settings=TEXT": "Settings.",
        "--grid[=TEXT]": "A grid.",
    }
    assert [flag.choices for flag in flags.shown() if flag.choices] == [("small", "large")]
    assert [flag.name for flag in flags.shown() if flag.is_path] == ["folder"]
    assert [flag.name for flag in flags.shown() if flag.is_paths] == ["files"]


def test_flags_without_effect(flags, caplog):
    assert [flags.has_effect(name) for name in ("steps", "tpu", "other")] == [True, False, False]
    flags.parse(["--tpu=x"])
    flags.warn_without_effect(logging.getLogger("t2t_lite"))
    assert caplog.messages == ["--tpu has no effect: there is none."]


def test_a_value_that_was_given_earlier(flags):
    flags.parse(["--steps=8"])
    for name, earlier in (("steps", 9), ("rate", 3.5), ("on", False), ("text", None), ("names", "x,y")):
        flags.values[name].recall(earlier)
    values = {name: flags.values[name].value for name in ("steps", "rate", "on", "text", "names")}
    assert values == {"steps": 8, "rate": 3.5, "on": False, "text": None, "names": ["x", "y"]}


@pytest.mark.parametrize("word", ["--folder=nowhere://x/y", "--files=a,nowhere://x"])
def test_file_systems_that_are_not_there(flags, word):
    flags.parse([word])
    with pytest.raises(UserError, match="nowhere://x"):
        flags.check_schemes()


def test_a_file_of_flags_has_a_size(flags, tmp_path):
    (tmp_path / "flags").write_text("--steps=8\n#" + "x" * (2**20 - 11))
    flags.parse([f"--flagfile={tmp_path}/flags"])
    assert flags.values.steps == 8
    (tmp_path / "flags").write_text("--steps=8\n#" + "x" * (2**20 - 10))
    with pytest.raises(UserError, match=r"--flagfile=.*/flags"):
        flags.parse([f"--flagfile={tmp_path}/flags"])


def test_a_file_of_flags_may_begin_with_a_byte_order_mark_and_hold_any_character(flags, tmp_path):
    """Editors on Windows write the mark. Line and paragraph separators do not end a line here, as in a corpus."""
    (tmp_path / "flags").write_bytes("--text=a\u2028b\x0cc\r\n--steps=8\r\n".encode("utf-8-sig"))
    flags.parse([f"--flagfile={tmp_path}/flags"])
    assert flags.values.text == "a\u2028b\x0cc" and flags.values.steps == 8

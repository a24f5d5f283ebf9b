"""Flags that only other modes of a command read are refused, of every command that has a table of modes."""
# Nearest tests of: t2t_lite/cli/commands.py

import pytest

from t2t_lite.bin import t2t_attention, t2t_bleu, t2t_datagen, t2t_decoder, t2t_exporter, t2t_importer, t2t_trainer
from t2t_lite.bin.trainer import training_modes
from t2t_lite.cli import commands
from t2t_lite.cli.commands import Mode, check_mode
from t2t_lite.cli.flags import Flags
from t2t_lite.decoding.command import flag_checks
from t2t_lite.errors import UserError

TABLES = {
    t2t_attention: t2t_attention.modes(),
    t2t_bleu: t2t_bleu.modes(),
    t2t_datagen: t2t_datagen.modes(),
    t2t_decoder: flag_checks.MODES,
    t2t_exporter: t2t_exporter._MODES,
    t2t_importer: t2t_importer.modes(),
    t2t_trainer: training_modes.modes(),
}
MODES = {
    "draw": Mode("--draw", ("draw", "colour", "size"), ("colour",)),
    "print": Mode("--print", ("size",), instead={"colour": "A printer has one."}),
    "stop": Mode("--stop"),
}


def flags_of(*words):
    flags = Flags()
    for name in ("draw", "colour", "name"):
        flags.DEFINE_string(name, None, f"The {name}.")
    flags.DEFINE_integer("size", 3, "The size.", 1, 9)
    flags.DEFINE_bool("quiet", False, "Print nothing.")
    flags.parse(words)
    return flags.values


@pytest.mark.parametrize(
    ("mode", "words", "message"),
    [
        (
            "print",
            ["--colour=red"],
            "--colour cannot be used with --print, only with --draw. Remove it. A printer has one.",
        ),
        ("stop", ["--size=3"], "--size cannot be used with --stop, only with --draw or --print. Remove it."),
        (
            "stop",
            ["--size=4", "--colour=red"],
            "--colour, --size cannot be used with --stop, only with --draw. Remove them.",
        ),
        ("print", ["--draw=x"], "--draw cannot be used with --print. Remove it."),
        ("draw", ["--draw=x"], "missing --colour (The colour)."),
    ],
)
def test_a_flag_of_other_modes(mode, words, message):
    with pytest.raises(UserError) as raised:
        check_mode(flags_of(*words), MODES[mode], MODES)
    assert str(raised.value) == message


@pytest.mark.parametrize("words", [[], ["--name=x", "--quiet"], ["--colour="]])
def test_what_every_mode_reads_or_asks_for_nothing(words):
    check_mode(flags_of(*words), MODES["stop"], MODES)


@pytest.mark.parametrize("command", TABLES, ids=lambda command: command.__name__.rpartition(".")[2])
def test_tables_name_flags_that_there_are(command):
    flags, modes = commands.flags_of(command), TABLES[command].values()
    named = {name for mode in modes for name in (*mode.reads, *mode.needs, *mode.instead)}
    assert not [name for name in named if not flags.has_effect(name)]
    assert not [name for mode in modes for name in mode.instead if name in mode.reads]

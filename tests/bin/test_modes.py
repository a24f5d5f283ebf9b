"""Flags that only other modes of a command read are refused, of every command that has a table of modes."""
# Nearest tests of: t2t_lite/cli/commands.py

import pytest

from t2t_lite.bin import t2t_attention, t2t_bleu, t2t_datagen, t2t_decoder, t2t_exporter, t2t_importer, t2t_trainer
from t2t_lite.bin.trainer import training_modes
from t2t_lite.cli import commands
from t2t_lite.decoding.command import flag_checks

TABLES = {
    t2t_attention: t2t_attention.modes(),
    t2t_bleu: t2t_bleu.modes(),
    t2t_datagen: t2t_datagen.modes(),
    t2t_decoder: flag_checks.MODES,
    t2t_exporter: t2t_exporter._MODES,
    t2t_importer: t2t_importer.modes(),
    t2t_trainer: training_modes.modes(),
}


@pytest.mark.parametrize("command", TABLES, ids=lambda command: command.__name__.rpartition(".")[2])
def test_tables_name_flags_that_there_are(command):
    flags, modes = commands.flags_of(command), TABLES[command].values()
    named = {name for mode in modes for name in (*mode.reads, *mode.needs, *mode.instead)}
    assert not [name for name in named if not flags.has_effect(name)]
    assert not [name for mode in modes for name in mode.instead if name in mode.reads]

"""Every number that a command takes has a finite range, which --help shows and the command holds to."""

import inspect
import math
import re

import pytest

from t2t_lite.cli import commands
from t2t_lite.cli.flags import Flags
from tests.bin.every_command import COMMANDS

HUGE = (
    "9" * 30,
    "9223372036854775808",
    "1" + "0" * 5000,
    "1e300",
    "1e400",
    "inf",
    "-inf",
    "nan",
    "NaN",
    "-" + "9" * 30,
)
NO_NUMBERS = ("", " ", "x", "1,2", "[1]", "0x", "--1", "1\0", "\udcff", "½", "true")


def flags_of(command):
    return commands.flags_of(commands.module(command.replace("_", "-")))


NUMBERS = [(command, flag.name) for command in COMMANDS for flag in flags_of(command).shown() if flag.words == "NUMBER"]


def test_all_commands_are_looked_at():
    assert {"t2t_trainer", "t2t_decoder", "t2t_datagen"} <= {*COMMANDS}
    assert ("t2t_trainer", "train_steps") in NUMBERS
    assert len(NUMBERS) >= 40


def range_in_help(flag):
    """(the smallest, the largest, further numbers), and what is too small, as the help says."""
    number = r"(-?[\d,.]+(?:e[+-]?\d+)?)"
    match = re.search(rf"(?:From|Above) {number} (?:to|and at most) {number}((?:, or {number})*)\.", flag.help)
    assert match, f"--{flag.name}: --help tells no range: {flag.help}"
    least, most = (float(digits.rstrip(".,").replace(",", "")) for digits in match.group(1, 2))
    is_above = "Above" in match[0]
    also = [float(word) for word in match[3].replace(", or", "").split()]
    smallest = least + min(1, most / 2) if is_above else least
    return smallest, most, also, [str(int(least) - 1), repr(least if is_above else least - 0.001)]


@pytest.mark.parametrize(("command", "name"), NUMBERS, ids=lambda word: word)
def test_number(command, name, capsys):
    module = commands.module(command.replace("_", "-"))
    least, most, also, too_small = range_in_help(flags_of(command).values[name])
    assert math.isfinite(least) and math.isfinite(most) and least < most
    for value in [least, most, *also]:
        flags = flags_of(command)
        text = str(int(value)) if value == int(value) else repr(value)
        if value < 2**53:
            flags.parse([f"--{name}={text}"])
            assert flags.values[name].value == value
    beyond = [*too_small, str(int(most) + 1), repr(most * 1.1), *HUGE, *NO_NUMBERS]
    for text in beyond:
        if text in [str(int(number)) for number in also]:
            continue
        assert module.main([f"--{name}={text}"]) == 2, text
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1 and err[:-1].isprintable(), err
        assert f"--{name}=" in err and "expected a" in err and "number" in err


def test_a_number_without_a_range_cannot_be_declared():
    for define in (Flags().DEFINE_integer, Flags().DEFINE_float):
        assert "least" in inspect.signature(define).parameters
        with pytest.raises(TypeError, match="needs a range"):
            define("steps", 1, "Steps.", 1)

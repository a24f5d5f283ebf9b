"""The command line of benchmarks, with a benchmark whose sides are cheap."""

import json
import sys
import types

import pytest

from benchmarks import __main__ as every
from benchmarks.harness import command, record, turns

# One side: warm, then a figure per turn. The second argument is what it does instead.
SIDE = """
import json, sys
if sys.argv[1] == "broken":
    sys.exit("out of memory")
print("a library's greeting")
print(json.dumps({"warm": True}), flush=True)
for number, _ in enumerate(sys.stdin, 1):
    if sys.argv[1] == "dies" and number == 2:
        sys.exit("killed")
    print(json.dumps({"tokens_per_second": number * float(sys.argv[2])}), flush=True)
"""


def side(kind, speed=1):
    return [sys.executable, "-c", SIDE, kind, str(speed)]


def test_sides_take_turns_and_those_that_fail_are_left_out():
    commands = {"ours": side("good", 10), "broken": side("broken"), "dies": side("dies"), "peer": side("good", 5)}
    found, ready, missing = turns.take_turns(commands, 3)
    assert found == {
        "ours": [{"tokens_per_second": speed} for speed in (10, 20, 30)],
        "peer": [{"tokens_per_second": speed} for speed in (5, 10, 15)],
    }
    assert set(ready) == {"ours", "peer"} and all(seconds > 0 for seconds in ready.values())
    assert missing == {
        "broken": "its process ended before it was warm: out of memory",
        "dies": "its process ended in turn 2: killed",
    }


def benchmark(needs=()):
    """Returns a benchmark of two sides, of which the second needs modules."""

    def measure(result, flags):
        result.add("a case", "seconds", {name: [1.0 + at] for at, name in enumerate(flags.sides)})

    return types.SimpleNamespace(
        __doc__="A benchmark.", __file__="benchmarks/toy.py", TITLE="A toy", SIDES={"ours": "t2t_lite", "peer": "Peer"},
        NEEDS={"peer": list(needs)}, measure=measure,
    )  # fmt: skip


def test_a_missing_peer_is_said_and_the_rest_goes_on(capsys):
    assert command.main(benchmark(["no_such_module"]), ["--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert "Peer is left out: needs no_such_module" in printed.err
    assert list(found["measurements"][0]["sides"]) == ["ours"]
    assert found["missing"]["peer"].startswith("needs no_such_module")


def test_without_any_side_nothing_is_measured(capsys):
    toy = benchmark(["no_such_module"])
    assert command.main(toy, ["--sides=peer"]) == 2
    assert "toy: none of --sides can be measured here." in capsys.readouterr().err
    toy.measure = lambda result, flags: command.compare(toy, result, flags, "a case")
    assert command.main(toy, ["--sides=ours"]) == 1  # because benchmarks.toy does not exist
    assert "toy: no side is left. a case: ours: its process ended before it was warm" in capsys.readouterr().err


def test_a_result_is_printed_or_kept(tmp_path, capsys):
    assert command.main(benchmark(), ["--sides=ours,peer"]) == 0
    page = capsys.readouterr().out
    assert "| a case | seconds (less is better) | 1 | 2 | **0.5** |" in page
    assert "python -m benchmarks.toy --sides=ours,peer" in page
    assert command.main(benchmark(), [f"--out={tmp_path}"]) == 0
    folder = capsys.readouterr().out.strip()
    kept = record.read_result(f"{folder}/result.json")
    assert kept.command == f"python -m benchmarks.toy --out={tmp_path}"


def test_an_unknown_side_is_refused(capsys):
    assert command.main(benchmark(), ["--sides=ours,pear"]) == 2
    assert "--sides: unknown values: pear. Choose one or more of ours, peer." in capsys.readouterr().err


def test_every_benchmark_has_a_help_and_sides(capsys):
    import importlib

    there = {path.stem for path in record.BENCHMARKS.rglob("*.py")}  # an extra may be absent
    for name in there & every.BENCHMARKS.keys():
        module = importlib.import_module(command.module_of(name))
        assert set(module.NEEDS) <= set(module.SIDES) and set(command.default_sides(module)) <= set(module.SIDES)
        assert command.name_of(module) == name and len(module.TITLE) < 80
        with pytest.raises(SystemExit, match="0"):
            command.main(module, ["--help"])
        assert f"python -m {command.module_of(name)}" in capsys.readouterr().out


def test_an_unknown_benchmark_is_refused(capsys):
    assert every.main(["decodin"]) == 2
    assert "decodin: unknown benchmark. Choose one or more of startup, decoding" in capsys.readouterr().err

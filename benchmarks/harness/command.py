"""The command line that all benchmarks share, and functions that run a side in a separate process.

A benchmark is a module that defines

    TITLE   str, one line
    SIDES   {side: name in tables}; the first side is ours, the numerator of ratios
    DEFAULT_SIDES  optional: the sides that are compared by default
    NEEDS   {side: modules that the side imports and t2t_lite itself does not require}
    measure(result, flags)          measures everything and adds it to `result`, a `record.Result`
    side(name, **settings)          runs one side in a separate process: warms up, then calls `turns.answer_turns`
    add_flags(parser)               optional: adds the benchmark's own flags

and ends with `sys.exit(main(sys.modules[__name__]))`. A benchmark is started in the repository's root as `python -m
benchmarks.NAME`.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import sys
import time

from benchmarks.harness import record, report
from benchmarks.harness.turns import run_alone, take_turns
from t2t_lite.errors import UserError


def name_of(module):
    """Returns a benchmark's name: the name of its file."""
    return pathlib.Path(module.__file__).stem


def module_of(name):
    """Returns the module name of a benchmark; the benchmarks of extras are in subfolders."""
    path = next(record.BENCHMARKS.glob(f"extras/*/{name}.py"), record.BENCHMARKS / f"{name}.py")
    return ".".join(path.relative_to(record.REPOSITORY).with_suffix("").parts)


def default_sides(module):
    """Returns the sides that a benchmark compares by default."""
    return [*getattr(module, "DEFAULT_SIDES", module.SIDES)]


def parser_of(module):
    """Returns the ArgumentParser of a benchmark."""
    parser = argparse.ArgumentParser(description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes and two turns, as a quick test")
    parser.add_argument("--rounds", type=int, default=None, help="number of turns; default: set by the benchmark")
    parser.add_argument(
        "--sides",
        default="",
        help=f"comma-separated, chosen from {', '.join(module.SIDES)}; "
        f"default: {', '.join(getattr(module, 'DEFAULT_SIDES', module.SIDES))}",
    )
    parser.add_argument("--out", help="folder, such as benchmarks/results, to which the result is added")
    parser.add_argument("--json", action="store_true", help="print the result as JSON instead of Markdown")
    parser.add_argument(
        "--bench_dir", type=os.path.abspath, default="bench", help="folder for data and models that benchmarks share"
    )
    parser.add_argument("--side", help=argparse.SUPPRESS)  # set only in the processes of sides
    parser.add_argument("--settings", type=json.loads, default={}, help=argparse.SUPPRESS)
    if hasattr(module, "add_flags"):
        module.add_flags(parser)
    return parser


def chosen(flag, words, known):
    """Splits a flag's value, such as "a,b", into names.

    Raises:
        UserError: some names are not `known`.
    """
    names = [name for name in words.split(",") if name]
    if unknown := set(names) - set(known):
        raise UserError(
            f"{flag}: unknown values: {', '.join(sorted(unknown))}. Choose one or more of {', '.join(known)}."
        )
    return names


def sizes_of(flags, **small):
    """Returns {name: value of the flag}; with --quick, returns `small` instead."""
    return small if flags.quick else {name: getattr(flags, name) for name in small}


def main(module, argv=None):
    """Runs a benchmark or one of its sides; returns the exit status."""
    flags = parser_of(module).parse_args(argv)
    if flags.side:
        module.side(flags.side, **flags.settings)
        return 0
    try:
        names = chosen("--sides", flags.sides, module.SIDES)
        result = run(module, flags, names or default_sides(module), argv)
        if flags.out:
            print(report.write_result(result, flags.out))
        else:
            print(result.to_json() if flags.json else report.page(result))
    except UserError as error:
        print(f"{name_of(module)}: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:  # a process failed that is not a peer's
        print(f"{name_of(module)}: {error}", file=sys.stderr)
        return 1
    return 0


def run(module, flags, sides, argv=None):
    """Measures and returns the Result; a side whose modules are not installed is listed as missing."""
    argv = None if argv is None else ["python", "-m", module_of(name_of(module)), *argv]
    result = record.new_result(name_of(module), module.TITLE, module.SIDES, argv)
    started = time.monotonic()
    for side in sides:
        absent = [name for name in module.NEEDS.get(side, ()) if importlib.util.find_spec(name) is None]
        if absent:
            result.missing[side] = f"needs {', '.join(absent)}, not installed here: make bench installs it"
            print(f"{name_of(module)}: {module.SIDES[side]} is left out: {result.missing[side]}", file=sys.stderr)
    flags.sides = [side for side in sides if side not in result.missing]
    if not flags.sides:
        raise UserError("none of --sides can be measured here.")
    module.measure(result, flags)
    result.seconds = round(time.monotonic() - started)
    return result


def side_command(module, side, **settings):
    """Returns the command, a list of words, that starts one side of a benchmark."""
    return [sys.executable, "-m", module_of(name_of(module)), "--side", side, "--settings", json.dumps(settings)]


def compare(module, result, flags, case, sides=None, rounds=3, **settings):
    """Lets sides take turns, and adds their figures to the result, including peak memory and seconds until warm.

    Args:
        module: the benchmark's module.
        result: Result.
        flags: the command line's flags.
        case: str, such as "batch 32".
        sides: list of str, or None for all sides. Sides that are missing or that --sides does not name are skipped.
        rounds: int, the default of --rounds.
        **settings: arguments of `module.side`, in addition to the side's name.

    Returns:
        {side: [figures of each turn]}.

    Raises:
        RuntimeError: no side is left, since all have failed.
    """
    sides = [side for side in (sides or flags.sides) if side in flags.sides]
    if not sides:
        return {}
    print(f"{result.name}: {case}", file=sys.stderr, flush=True)
    commands = {side: side_command(module, side, **settings) for side in sides}
    turns, ready, missing = take_turns(commands, rounds_of(flags, rounds))
    result.missing |= {side: f"{case}: {why}" for side, why in missing.items() if side not in result.missing}
    flags.sides = [side for side in flags.sides if side not in missing]
    if not flags.sides:
        raise RuntimeError(f"no side is left. {case}: {'; '.join(f'{side}: {why}' for side, why in missing.items())}")
    if turns:
        result.add_turns(case, turns)
        result.add(case, "ready_seconds", {side: [seconds] for side, seconds in ready.items()})
    return turns


def alone(module, side, **settings):
    """Runs one side in a process that prints its figures once; returns the figures."""
    return run_alone(side_command(module, side, **settings))


def rounds_of(flags, rounds):
    """Returns the number of turns: --rounds, or two with --quick, or the benchmark's default."""
    return flags.rounds or (2 if flags.quick else rounds)

"""The command line that all benchmarks have, and how they start a process per side.

A benchmark is a module with

    TITLE   str, one line
    SIDES   {side: what tables call it}; the first is ours, and ratios are to it
    DEFAULT_SIDES  optional: those that are compared unless --sides says otherwise
    NEEDS   {side: modules that it imports}, where they are not required by t2t_lite itself
    measure(result, flags)          measures everything and adds it to `result`, a `record.Result`
    side(name, **settings)          one side, in a process of its own: warms up, then calls `turns.answer_turns`
    add_flags(parser)               optional: flags of its own

and ends with `sys.exit(main(sys.modules[__name__]))`. It is started in the repository's root, as `python -m
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
    """Returns a benchmark's name: its file's."""
    return pathlib.Path(module.__file__).stem


def module_of(name):
    """Returns the name of a benchmark's module, by which Python runs it: an extra's is in a folder of its own."""
    path = next(record.BENCHMARKS.glob(f"extras/*/{name}.py"), record.BENCHMARKS / f"{name}.py")
    return ".".join(path.relative_to(record.REPOSITORY).with_suffix("").parts)


def default_sides(module):
    """Returns the sides that a benchmark compares unless --sides says otherwise."""
    return [*getattr(module, "DEFAULT_SIDES", module.SIDES)]


def parser_of(module):
    """Returns the ArgumentParser of a benchmark."""
    parser = argparse.ArgumentParser(description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes and two turns, to see that it works")
    parser.add_argument("--rounds", type=int, default=None, help="turns of each side; default: the benchmark's own")
    parser.add_argument(
        "--sides",
        default="",
        help=f"of {', '.join(module.SIDES)}; default: {', '.join(getattr(module, 'DEFAULT_SIDES', module.SIDES))}",
    )
    parser.add_argument("--out", help="a folder, such as benchmarks/results, in which the result is kept")
    parser.add_argument("--json", action="store_true", help="print the result as JSON in place of Markdown")
    parser.add_argument(
        "--bench_dir", type=os.path.abspath, default="bench", help="a folder for data and models that benchmarks share"
    )
    parser.add_argument("--side", help=argparse.SUPPRESS)  # one process of the benchmark
    parser.add_argument("--settings", type=json.loads, default={}, help=argparse.SUPPRESS)
    if hasattr(module, "add_flags"):
        module.add_flags(parser)
    return parser


def chosen(flag, words, known):
    """Returns the names in a flag's words, such as "a,b".

    Raises:
        UserError: some are not `known`.
    """
    names = [name for name in words.split(",") if name]
    if unknown := set(names) - set(known):
        raise UserError(f"{flag}: {', '.join(sorted(unknown))}: unknown. Expected some of {', '.join(known)}.")
    return names


def sizes_of(flags, **small):
    """Returns {name: the flag of this name}, with --quick the `small` ones in place of the flags."""
    return small if flags.quick else {name: getattr(flags, name) for name in small}


def main(module, argv=None):
    """Runs a benchmark, or one side of it. Returns the exit status."""
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
    except RuntimeError as error:  # a process that is not a peer's
        print(f"{name_of(module)}: {error}", file=sys.stderr)
        return 1
    return 0


def run(module, flags, sides, argv=None):
    """Measures; returns the Result. A side whose modules are not installed is left out, and the result says so."""
    argv = None if argv is None else ["python", "-m", module_of(name_of(module)), *argv]
    result = record.new_result(name_of(module), module.TITLE, module.SIDES, argv)
    started = time.monotonic()
    for side in sides:
        absent = [name for name in module.NEEDS.get(side, ()) if importlib.util.find_spec(name) is None]
        if absent:
            result.missing[side] = f"needs {', '.join(absent)}, not installed here: make bench installs it"
            print(f"{name_of(module)}: {module.SIDES[side]} is left out: {result.missing[side]}", file=sys.stderr)
    flags.sides = [side for side in sides if side not in result.missing]
    module.measure(result, flags)
    result.seconds = round(time.monotonic() - started)
    return result


def side_command(module, side, **settings):
    """Returns the words that start one side of a benchmark."""
    return [sys.executable, "-m", module_of(name_of(module)), "--side", side, "--settings", json.dumps(settings)]


def compare(module, result, flags, case, sides=None, rounds=3, **settings):
    """Lets sides take turns, and adds all figures, peak memory and the seconds until they were warm among them.

    Args:
        module: the benchmark.
        result: Result.
        flags: of the command line.
        case: str, such as "batch 32".
        sides: list of str; None: all. Those that are not among --sides, or that are missing, are left out.
        rounds: int, if --rounds does not say.
        **settings: what `module.side` gets besides the side's name.

    Returns:
        {side: [figures of each turn]}.
    """
    sides = [side for side in (sides or flags.sides) if side in flags.sides]
    if not sides:
        return {}
    print(f"{result.name}: {case}", file=sys.stderr, flush=True)
    commands = {side: side_command(module, side, **settings) for side in sides}
    turns, ready, missing = take_turns(commands, rounds_of(flags, rounds))
    result.missing |= {side: f"{case}: {why}" for side, why in missing.items() if side not in result.missing}
    flags.sides = [side for side in flags.sides if side not in missing]
    if turns:
        result.add_turns(case, turns)
        result.add(case, "ready_seconds", {side: [seconds] for side, seconds in ready.items()})
    return turns


def alone(module, side, **settings):
    """Runs one side in a process that prints its figures once, and returns them."""
    return run_alone(side_command(module, side, **settings))


def rounds_of(flags, rounds):
    """Returns the number of turns: what --rounds says, or two with --quick, or a benchmark's own."""
    return flags.rounds or (2 if flags.quick else rounds)

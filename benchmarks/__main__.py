"""Runs benchmarks one after another. Then writes their results, the index of all results, and README's table.

python -m benchmarks                       # the same as `make bench`
python -m benchmarks all                   # also runs some benchmarks that have no peers
python -m benchmarks decoding training     # the same as `make bench BENCH="decoding training"`
python -m benchmarks --quick               # small sizes, into bench/results; `make bench BENCH_FLAGS=--quick`

Flags after the names are passed to each benchmark: `python -m benchmarks.NAME --help` lists its flags. If a benchmark
fails, the other benchmarks still run, and the exit status is 1.
"""

import argparse
import os
import subprocess
import sys
import time

from benchmarks.harness import record, report
from benchmarks.harness.command import module_of

# {name: approximate minutes on two cores}, in order of execution. Models are trained by the first benchmarks that need
# them.
USUAL = {
    "startup": 5,
    "decoding": 6,
    "training": 3,
    "language_model": 2,
    "encoder": 2,
    "formats": 2,
    "attention": 2,
    "pipeline": 2,
    "server_load": 2,
    "growth": 3,
    "long_attention": 3,
    "datagen": 1,
    "decoding_memory": 1,
}
ON_REQUEST = {"export": 3, "serving_load": 2, "training_profile": 2, "kills": 3, "full_passes": 8, "xlnet": 2}
BENCHMARKS = USUAL | ON_REQUEST


def main(argv=None):
    """Runs the requested benchmarks; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all, or one or more of {', '.join(BENCHMARKS)}")
    parser.add_argument("--out", help="folder for the results; default: benchmarks/results, with --quick bench/results")
    flags, others = parser.parse_known_args(argv)
    unknown = set(flags.names) - set(BENCHMARKS) - {"all"}
    if unknown:
        print(
            f"{', '.join(sorted(unknown))}: unknown benchmark. Choose one or more of {', '.join(BENCHMARKS)}.",
            file=sys.stderr,
        )
        return 2
    published = flags.out is None and "--quick" not in others
    out = os.path.abspath(flags.out or (record.RESULTS if published else record.REPOSITORY / "bench" / "results"))
    os.makedirs(out, exist_ok=True)
    names_asked = BENCHMARKS if "all" in flags.names else flags.names or USUAL
    there = {path.stem for path in record.BENCHMARKS.rglob("*.py")}  # an extra, and thus its benchmarks, may be absent
    names, failed = [name for name in BENCHMARKS if name in names_asked and name in there], []
    print(f"{len(names)} benchmarks, about {sum(BENCHMARKS[name] for name in names)} minutes on two cores", flush=True)
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"warning: load {load:.1f}: other programs are running, so figures will be worse", file=sys.stderr)
    for name in names:
        started, out_path = time.monotonic(), os.path.relpath(out, record.REPOSITORY)
        command = [sys.executable, "-m", module_of(name), f"--out={out_path}", *others]
        status = subprocess.run(command, cwd=record.REPOSITORY).returncode
        print(f"{name}: {'done' if status == 0 else 'FAILED'}, {time.monotonic() - started:.0f} s", flush=True)
        if status:
            failed.append(name)
    report.write_index(out, report.README if published else None)
    print(os.path.join(out, "README.md"))
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

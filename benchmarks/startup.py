"""Measures start-up time and memory: imports, --help, mistakes, and the first translation of a new process.

python -m benchmarks.startup
python -m benchmarks.startup --rounds=10

All figures are for whole processes, which take turns. The first translation is made by `t2t-decoder` on a file, and by
a script that loads the same weights into Hugging Face's model and tokenizer and calls generate (beam 4). The model is a
post-norm model of `work.py`, because Marian supports only post-norm. Each process runs once before the first turn; this
run is not counted, because it reads the files from the disk. Memory is the peak resident set. Each mistake in
`harness/mistakes.tsv` is made once; a command's figures are the medians over its mistakes, together with the quickest
and the slowest answer.
"""

import itertools
import os
import subprocess
import sys
import tempfile
import time

from benchmarks import formats
from benchmarks.harness import mistakes, work
from benchmarks.harness.command import main, rounds_of, side_command
from t2t_lite.corpora.plain_text import read_lines

TITLE = "Start-up: imports, --help, mistakes, the first translation"
SIDES = {"ours": "t2t_lite", "hf": "Hugging Face on PyTorch"}
NEEDS = {"hf": ["torch", "transformers"]}
IMPORTS = {
    "ours": "import t2t_lite; t2t_lite.Translator",
    "hf": "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer; AutoModelForSeq2SeqLM, AutoTokenizer",
}
COMMANDS = "t2t-decoder", "t2t-trainer", "t2t-bleu"


def add_flags(parser):
    """Adds this benchmark's flags."""
    work.add_flags(parser)
    parser.add_argument("--lines", type=int, default=1, help="number of lines in the file to translate")


def measure(result, flags):
    """Times imports, --help, mistakes and first translations."""
    rounds, python = rounds_of(flags, 3), [sys.executable, "-c"]
    compare(result, "import", {side: [*python, IMPORTS[side]] for side in flags.sides}, rounds)
    for command in COMMANDS if "ours" in flags.sides else ():
        compare(result, f"{command} --help", {"ours": [work.installed(command), "--help"]}, rounds)
    if "ours" in flags.sides:
        with tempfile.TemporaryDirectory() as folder:
            make_mistakes(result, folder)
    folder = os.path.join(flags.bench_dir, "startup")
    exports = formats.make_exports(flags, folder, ["hugging_face"] if "hf" in flags.sides else [], flags.lines)
    if "hugging_face" in exports["refused"]:
        result.missing["hf"] = f"cannot represent this model: {exports['refused']['hugging_face']}"
        flags.sides.remove("hf")
    path = os.path.join(folder, "inputs")
    ours = [
        *(work.installed("t2t-decoder"), f"--output_dir={folder}/translator", f"--decode_from_file={path}"),
        *(f"--decode_to_file={path}.de", "--decode_hparams=beam_size=4,alpha=0"),
    ]
    hf = side_command(sys.modules[__name__], "hf", folder=os.path.join(folder, "hugging_face"), path=path)
    commands = {side: {"ours": ours, "hf": hf}[side] for side in flags.sides}
    case = f"a new process translates {flags.lines} {'line' if flags.lines == 1 else 'lines'}"
    compare(result, case, commands, rounds, [f"{path}.de"])


def make_mistakes(result, folder):
    """Times the answers to mistakes, each in a separate process."""
    mistakes.make_files(folder)
    for command, made in itertools.groupby(mistakes.mistakes(), lambda mistake: mistake.command):
        words = [[work.installed(command), *mistakes.words_of(mistake.words, folder)] for mistake in made]
        case = f"{command}: a mistake, of {len(words)}"
        print(f"startup: {case}", file=sys.stderr, flush=True)
        result.add_turns(case, {"ours": [whole_process(each, status=2) for each in words]})


def compare(result, case, commands, rounds, outputs=()):
    """Times new processes in turns; removes the files in `outputs` before each process."""
    print(f"startup: {case}", file=sys.stderr, flush=True)
    turns = {side: [] for side in commands}
    for number in range(rounds + 1):
        for side, words in commands.items():
            for path in outputs:
                if os.path.exists(path):
                    os.remove(path)
            figures = whole_process(words)
            if number:
                turns[side].append(figures)
    result.add_turns(case, turns)


def whole_process(words, status=0):
    """Runs a command; returns its seconds, seconds of CPU time, and peak memory.

    Raises:
        RuntimeError: the command ended with an unexpected exit status.
    """
    started = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, ended, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(ended)
    if process.returncode != status:
        raise RuntimeError(f"status {process.returncode}, expected {status}: {' '.join(words)}")
    return {"seconds": seconds, "cpu_seconds": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss * 1024 / 1e6}


def side(name, folder, path):
    """Translates a file with Hugging Face, 32 lines at a time."""
    translate, lines = formats.load_hugging_face(folder, 32), [*read_lines(path)]
    lines.sort(key=len)
    for at in range(0, len(lines), 32):
        translate(lines[at : at + 32])


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))

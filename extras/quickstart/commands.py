"""Runs installed commands, chooses their flags for a corpus, a machine and a time limit, and prints results."""

import functools
import hashlib
import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import typing

from t2t_lite import files
from t2t_lite.cli.console import stop_on_signal
from t2t_lite.cli.flags import as_typed
from t2t_lite.errors import Failure, UserError
from t2t_lite.files.request import Request
from t2t_lite.process.quiet_import import import_tensorflow

SCRIPTS = os.path.dirname(sys.executable)
_FOLDERS = (SCRIPTS, sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath))
_AGAIN = "Run t2t-quickstart again to continue."
MANY_PAIRS = 20_000  # with more pairs, a CPU's time is better spent on more steps than on a larger vocabulary
_CPU_VOCABULARY = 8_000
CPU_SET, _WARMUP = "transformer_cpu", 400  # the hparams set for CPUs, and its learning_rate_warmup_steps
_GPU_PAIRS = 200_000  # a corpus of at least this number of pairs suffices for the paper's base model on a GPU
_DROPOUTS = ((10_000, 0.3), (100_000, 0.2))  # (number of pairs, dropout for fewer pairs); otherwise 0.1
_MOST_PASSES = 40  # maximum number of passes over the corpus; with more, a model would only memorize the corpus
_FEWEST_STEPS = 100
EVALUATIONS = 8
SHARE_OF_STEPS = 0.9  # training's share of the time; the rest is for evaluations and checkpoints
_SCHEMA = {"request": dict, "vocab_size?": int, "hparams_set": str, "hparams": str, "train_steps?": int}


def step(title):
    """Prints a title for the commands that follow."""
    print(f"\n== {title}", flush=True)


def run(*words, is_captured=False):
    """Prints and runs a command. If `is_captured`, prints the command's output and returns it.

    Commands are looked up first in this Python's environment. The first stop signal is forwarded, so that the command
    can finish (the trainer saves a checkpoint). A second signal stops both processes immediately.

    Raises:
        UserError: the command rejected its input and has printed why.
        Failure: the command failed or was stopped.
    """
    print(f"$ {shlex.join(words)}", flush=True)
    env = {**os.environ, "PATH": os.pathsep.join(_FOLDERS)}
    output = subprocess.PIPE if is_captured else None
    child = None
    ask = lambda: child and child.send_signal(signal.SIGTERM)  # noqa: E731
    with stop_on_signal(then=ask, at_second=ask) as stopped:
        # The child gets its own process group. Otherwise a terminal would send Ctrl-C to the child, too, which would
        # count as a second signal and stop the child immediately.
        child = subprocess.Popen(words, env=env, stdout=output, text=True, process_group=0)
        printed, _ = child.communicate()
    if is_captured:
        print(printed, end="", flush=True)
    if stopped.is_set():
        print(f"quickstart: stopped. {_AGAIN}", file=sys.stderr)
        raise KeyboardInterrupt
    if child.returncode == 2:
        raise UserError(f"stopped at {words[0]}; see its message above. {_AGAIN}")
    if child.returncode:
        raise Failure(f"stopped at {words[0]} with exit status {child.returncode}. {_AGAIN}")
    return printed


def make(path, checkpoint, *words):
    """Runs the command `words`, which makes `path` from a model, unless the present model has already made it.

    A note next to `path` has the hash of the model's file. Times of files do not tell what was made first if the clock
    was set back, or if the folder was copied.

    Args:
        path: str, a file or folder.
        checkpoint: str, a file of the model that changes with its weights.
        *words: str, the command.
    """
    note, digest = f"{path}.made_from", hashlib.sha256(files.read_bytes(checkpoint)).hexdigest()
    if os.path.exists(path) and os.path.exists(note) and files.read_bytes(note).decode(errors="replace") == digest:
        print(f"{path} already exists.", flush=True)
        return
    if os.path.isdir(path):
        shutil.rmtree(path)
    run(*words)
    files.write_bytes(note, digest.encode())


class Plan(typing.NamedTuple):
    """The settings that t2t-quickstart chooses for a run.

    Attributes:
        request: dict with the user's flags.
        vocab_size: int, or None to let t2t-datagen choose.
        hparams_set, hparams: str, the flags for t2t-trainer.
        train_steps: int, or None before the speed has been measured.
    """

    request: dict
    vocab_size: int | None
    hparams_set: str
    hparams: str
    train_steps: int | None = None


def choose(request, pairs, has_gpu):
    """Chooses the settings for a corpus; returns a `Plan` without `train_steps`.

    Args:
        request: dict with the user's flags.
        pairs: iterable of the training pairs, of which at most 200,000 are read.
        has_gpu: bool.
    """
    count = sum(1 for _ in itertools.islice(pairs, _GPU_PAIRS))  # the largest number that matters
    if has_gpu and count >= _GPU_PAIRS:
        return Plan(request, None, "transformer_base_v1", "")
    dropout = next((dropout for limit, dropout in _DROPOUTS if count < limit), 0.1)
    vocab_size = _CPU_VOCABULARY if count > MANY_PAIRS else None
    return Plan(request, vocab_size, CPU_SET, f"layer_prepostprocess_dropout={dropout}")


def hparams_for(plan, steps):
    """Returns t2t-trainer's --hparams for a number of steps; a short run warms up for a fifth of its steps."""
    if plan.hparams_set == CPU_SET and steps < 5 * _WARMUP:
        return f"{plan.hparams},learning_rate_warmup_steps={steps // 5}"
    return plan.hparams


def steps_for(seconds, seconds_per_step, passes_per_step):
    """Returns how many steps fit into the time, limited to 40 passes over the corpus but at least 100 steps.

    Args:
        seconds: float, the time for training, evaluations and checkpoints.
        seconds_per_step: float, the measured time per step.
        passes_per_step: float, the fraction of the corpus that one step processes.
    """
    affordable = int(seconds * SHARE_OF_STEPS / seconds_per_step)
    return max(_FEWEST_STEPS, min(affordable, int(_MOST_PASSES / passes_per_step)))


def read_plan(output_dir, request):
    """Reads the `Plan` of a folder; returns None for a new folder.

    Raises:
        UserError: the folder's plan was made with other flags.
    """
    path = _path(output_dir)
    if not files.exists(path):
        return None
    stored = files.read_json(path, _SCHEMA)
    plan = Plan(*map(stored.get, Plan._fields))
    if change := Request(request, plan.request).first:
        raise UserError(
            f"{path}: begun with {_flag(change.name, change.stored)}, but you requested "
            f"{_flag(change.name, change.requested)}. Choose another --output_dir, or repeat the earlier flags."
        )
    return plan


def write_plan(output_dir, plan):
    """Writes a `Plan` to the folder, except for settings that are None."""
    files.make_folder(output_dir)
    files.write_json(_path(output_dir), {name: value for name, value in plan._asdict().items() if value is not None})


def _path(output_dir):
    return os.path.join(output_dir, "quickstart.json")


def _flag(name, value):
    return f"no --{name}" if value in (None, []) else as_typed(name, value)


def write_texts(problem, data_dir, split, paths):
    """Writes the inputs and the targets of a split as text files, one text per line, and prints their paths.

    Args:
        problem: Problem whose inputs and targets are texts.
        data_dir: str, the problem's data folder.
        split: "dev" or "test".
        paths: (path of the inputs, path of the targets).
    """
    import_tensorflow()
    from t2t_lite.data.records import Records
    from t2t_lite.data.splits import named_split
    from t2t_lite.settings.config import HParams

    print(f"(wrote the {split} records of {data_dir} as text to {paths[0]} and {paths[1]})", flush=True)
    encoders = problem.feature_encoders(data_dir)
    examples = list(Records(problem, data_dir, named_split(split)).examples(HParams()))
    for side, path in zip(("inputs", "targets"), paths, strict=True):
        files.write_bytes(path, "".join(encoders[side].decode(example[side]) + "\n" for example in examples).encode())


def translate_and_export(problem, output_dir, split, model, checkpoint):
    """Translates and scores a split, exports the model to `<output_dir>/export/1`, and prints three translations.

    Args:
        problem: Problem of the data in `<output_dir>/data`.
        output_dir: str.
        split: "dev" or "test".
        model: str, the folder of the model.
        checkpoint: see `make`.

    Returns:
        str, the output of t2t-bleu.
    """
    at, (inputs, targets) = functools.partial(os.path.join, output_dir), problem.languages
    source, reference, translation = at(f"{split}.{inputs}"), at(f"{split}.{targets}"), at(f"translation.{targets}")
    step(f"4. Translating and scoring the {split} set")
    if not os.path.exists(reference):
        write_texts(problem, at("data"), split, (source, reference))
    words = f"--output_dir={model}", f"--decode_from_file={source}", f"--decode_to_file={translation}"
    make(translation, checkpoint, "t2t-decoder", *words)
    score = run("t2t-bleu", f"--translation={translation}", f"--reference={reference}", is_captured=True)
    step("5. Exporting a SavedModel: text in, text out")
    make(at("export"), checkpoint, "t2t-exporter", f"--output_dir={model}", f"--export_dir={at('export')}")
    print_translations({"source": source, "translation": translation, "reference": reference})
    return score


def print_translations(paths):
    """Prints the first, the middle and the last line of parallel files.

    Args:
        paths: {title: path} of files with equal numbers of lines.
    """
    step("Three translations")
    texts = {}
    for title, path in paths.items():
        with open(path, encoding="utf-8", newline="\n") as file:
            texts[title] = file.read().split("\n")[:-1]
    count = len(texts[title])
    width = max(map(len, texts))
    for at in dict.fromkeys((0, count // 2, count - 1)):
        for title, lines in texts.items():
            print(f"{title:<{width}} {lines[at]}")
        print()


def print_score(split, printed):
    """Prints BLEU from `printed`, the output of t2t-bleu, as `quickstart: test BLEU 83.21 (signature)`."""
    score = re.search(r"^sacreBLEU = (.*)$", printed, re.MULTILINE)
    print(f"quickstart: {split} BLEU {score[1]}")

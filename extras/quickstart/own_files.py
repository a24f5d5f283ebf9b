"""The quickstart on the user's own pairs: trains a model within a time limit, translates and exports."""

import math
import os
import shlex
import shutil
import time

from t2t_lite import registry
from t2t_lite.cli.flags import as_typed
from t2t_lite.data.manifests import find_manifest
from t2t_lite.errors import LOGGER
from t2t_lite.extras.quickstart import commands
from t2t_lite.runs.log import read_lines

_PROBLEM = "translate_own"
_PROBE_STEPS = 30
_FEW_PASSES = 10
_LATER_STARTS = 3  # trainer, decoder and exporter, each of which takes about as long to start as the probe
_NEXT = """\
== What next
serve it          t2t-server --export_dir={export} --port=8501
try it yourself   t2t-decoder --output_dir={best} --decode_interactive
see it            t2t-insights-server --output_dir={best} --port=8010
curves            t2t-trainer --summary={train}
"""


def run_own_files(output_dir, corpus, minutes):
    """Runs all steps in a folder, reusing existing results.

    Args:
        output_dir: str.
        corpus: {name: value} of t2t-datagen's flags that describe the files, such as train_files, which is required.
        minutes: int, the approximate time limit for all steps together.

    Raises:
        UserError: the files cannot be read, or the folder was created with other flags.
        UserError, Failure: a command stopped: see `commands.run`.
    """
    start = time.monotonic()
    options = {name: value for name, value in corpus.items() if value not in (None, [])}
    request = {"dev_files": [], **options, "minutes": minutes}
    plan = commands.read_plan(output_dir, request)
    if not plan:
        problem = registry.problem(_PROBLEM)
        problem.configure(**options)
        plan = commands.choose(request, problem.generate_samples("", "", "train"), _has_gpu())
    data, train, probe = (os.path.join(output_dir, name) for name in ("data", "train", "probe"))

    commands.step("1. Learning a vocabulary from the pairs, and writing records")
    corpora = [as_typed(name, value) for name, value in options.items()]
    size = [f"--vocab_size={plan.vocab_size}"] if plan.vocab_size else []
    commands.run("t2t-datagen", f"--problem={_PROBLEM}", f"--data_dir={data}", *corpora, *size)
    commands.write_plan(output_dir, plan)

    if not plan.train_steps:
        commands.step(f"2. Measuring the speed of this machine with {_PROBE_STEPS} steps")
        shutil.rmtree(probe, ignore_errors=True)
        plan = plan._replace(train_steps=_measure_steps(plan, data, probe, start))
        commands.write_plan(output_dir, plan)

    commands.step(f"3. Training a Transformer for {plan.train_steps:,} steps, and keeping the best on the dev set")
    steps_between = -(-plan.train_steps // commands.EVALUATIONS)
    _train(plan, data, train, plan.train_steps, f"--local_eval_frequency={steps_between}")

    problem, best = registry.problem(_PROBLEM), os.path.join(train, "best")
    problem.read_config(data)
    score = commands.translate_and_export(problem, output_dir, "dev", best, os.path.join(best, "checkpoint"))
    folders = {"export": os.path.join(output_dir, "export"), "best": best, "train": train}
    print(_NEXT.format(**{name: shlex.quote(path) for name, path in folders.items()}))
    commands.print_score("dev", score)


def _has_gpu():
    import tensorflow as tf

    return bool(tf.config.list_physical_devices("GPU"))


def _train(plan, data, output_dir, steps, *flags):
    hparams = commands.hparams_for(plan, steps)
    commands.run(
        "t2t-trainer", f"--problem={_PROBLEM}", f"--data_dir={data}", f"--output_dir={output_dir}",
        f"--hparams_set={plan.hparams_set}", *([f"--hparams={hparams}"] if hparams else []), f"--train_steps={steps}",
        *flags,
    )  # fmt: skip


def _measure_steps(plan, data, probe, start):
    """Runs a few steps to measure the speed; returns how many steps fit into the remaining time."""
    before = time.monotonic()
    _train(plan, data, probe, _PROBE_STEPS, "--schedule=train", "--log_step_count_steps=10")
    now = time.monotonic()
    *_, last = (line for line in read_lines(os.path.join(probe, "train.log")) if line["event"] == "progress")
    shutil.rmtree(probe)
    seconds_per_step = last["seconds_per_step"]
    start_up = now - before - _PROBE_STEPS * seconds_per_step
    manifest = find_manifest(registry.problem(_PROBLEM), data)
    pairs = manifest["splits"]["train"]["examples"]
    seconds = 60 * plan.request["minutes"] - (now - start) - _LATER_STARTS * start_up
    passes_per_step = last["sentences_per_step"] / pairs
    steps = commands.steps_for(seconds, seconds_per_step, passes_per_step)
    passes = steps * passes_per_step
    print(
        f"{seconds_per_step:.2f} s per step of {last['sentences_per_step']:.0f} pairs: {steps:,} steps take about "
        f"{steps * seconds_per_step / 60:.0f} minutes and make {passes:.{0 if passes >= 10 else 1}f} passes over the "
        f"{pairs:,} pairs",
        flush=True,
    )
    if passes < _FEW_PASSES:
        lacking = (_FEW_PASSES / passes_per_step - steps) * seconds_per_step
        minutes = plan.request["minutes"] + lacking / commands.SHARE_OF_STEPS / 60
        LOGGER.warning(
            f"{passes:.1f} passes are few; {_FEW_PASSES} passes would give a much better model. To train longer, use "
            f"--minutes={10 * math.ceil(minutes / 10)} and another --output_dir."
        )
    return steps

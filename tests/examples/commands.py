"""The commands with an example's folder, called in this process."""

import importlib
import pathlib

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
AGENT_CLASSIFIER = EXAMPLES / "agent_classifier"


def run(command, *words):
    """Calls a command's `main` in this process; returns its exit status."""
    return importlib.import_module(f"t2t_lite.bin.{command}").main([str(word) for word in words])


def train(flags, folder, steps, *more, model="agent_classifier", hparams_set="agent_classifier_tiny", every=4):
    """Trains a tiny model; returns the folder."""
    sizes = (f"--model={model}", f"--hparams_set={hparams_set}")
    when = (f"--local_eval_frequency={every}", f"--log_step_count_steps={every}")
    assert run("t2t_trainer", *flags, *sizes, *when, f"--output_dir={folder}", f"--train_steps={steps}", *more) == 0
    return folder

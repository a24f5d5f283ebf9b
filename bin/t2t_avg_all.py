"""Averages checkpoints, as the paper does for its results (section 6.1).

For each checkpoint in --model_dir from the n-th on, in the order of steps, the command averages that checkpoint and the
n - 1 checkpoints before it, and writes the mean to --output_dir as model.ckpt-<step>. t2t-decoder and t2t-exporter
accept that folder in place of the run's folder. The paper averages the last 5 checkpoints of the base model and the
last 20 of the big model. Each average in a folder is computed from the same number of checkpoints, n.
"""

import collections
import contextlib
import os
import sys

from t2t_lite.bin import _app
from t2t_lite.cli.commands import require
from t2t_lite.errors import LOGGER, UserError, counted
from t2t_lite.settings.ranges import COUNT, MINUTES

_AVERAGES = "averages.json"  # name of the file in --output_dir that holds the number of checkpoints per average


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_path("model_dir", None, "Folder of the run whose checkpoints are averaged.")
    flags.DEFINE_path("output_dir", "avg/", "Folder for the averaged checkpoints.")
    flags.DEFINE_integer("n", 8, "Number of checkpoints per average.", 1, 10**6)
    flags.DEFINE_integer("min_steps", 0, "Ignore checkpoints with fewer steps.", limits=COUNT)
    flags.DEFINE_integer("wait_minutes", 0, "Minutes to wait for another checkpoint.", limits=MINUTES)
    flags.DEFINE_path(
        "t2t_usr_dir", None, "Your own folder with registrations, if it has moved since the run was trained."
    )


def check(flags):
    """Raises `UserError` for flags that are missing or contradict each other."""
    require(flags, "model_dir", "output_dir")
    if os.path.realpath(flags.model_dir) == os.path.realpath(flags.output_dir):
        raise UserError(f"--output_dir={flags.output_dir}: averages would overwrite the checkpoints of --model_dir.")


def run(flags):
    """Writes one averaged checkpoint for each checkpoint from the n-th on."""
    from t2t_lite import files
    from t2t_lite.files import resumable
    from t2t_lite.files.folders import restored_on_failure
    from t2t_lite.runs.directory import check_places

    if not files.is_folder(flags.model_dir):
        raise UserError(f"--model_dir={flags.model_dir}: no such folder. Expected the --output_dir of t2t-trainer.")
    check_places(flags.output_dir, [_AVERAGES])
    window, num_seen, num_written = collections.deque(maxlen=flags.n), 0, 0
    for checkpoint in resumable.follow(flags.model_dir, resumable.CHECKPOINTS, flags.min_steps, flags.wait_minutes):
        if window and checkpoint.seconds < window[-1].seconds - 1:  # the times of copied files may differ by a second
            LOGGER.warning(
                f"model.ckpt-{checkpoint.step} is older than model.ckpt-{window[-1].step}. If {flags.model_dir} holds "
                "checkpoints of two runs, set --min_steps so that they are not averaged together."
            )
        window.append(checkpoint)
        num_seen += 1
        if len(window) < flags.n:
            continue
        averaged = os.path.join(flags.output_dir, f"model.ckpt-{checkpoint.step}")
        try:
            with contextlib.nullcontext() if num_written else restored_on_failure(flags.output_dir):
                if not num_written:
                    _prepare(flags)
                from t2t_lite.runs.checkpoints import average_checkpoints

                average_checkpoints([item.path for item in window], averaged)
        except UserError:
            deleted = [item.step for item in window if not files.exists(item.path + ".index")]
            if not deleted:
                raise
            LOGGER.warning(f"no average for step {checkpoint.step}: the trainer has deleted model.ckpt-{deleted[0]}.")
            continue
        if os.path.exists(f"{averaged}.index"):  # a local file; TensorBoard shows its time as wall time
            os.utime(f"{averaged}.index", (checkpoint.seconds, checkpoint.seconds))
        num_written += 1
        LOGGER.info(f"averaged {counted(flags.n, 'checkpoint')}, steps {window[0].step} to {checkpoint.step}")
        print(averaged)
    if not num_written:
        raise UserError(
            f"--model_dir={flags.model_dir}: {counted(num_seen, 'checkpoint')} from step {flags.min_steps} on, but "
            f"expected at least --n={flags.n}. Train longer, save more often (--local_eval_frequency) or set a smaller "
            "--n."
        )


def _prepare(flags):
    """Copies the settings and the vocabulary to --output_dir, so that commands accept it in place of a run's folder."""
    from t2t_lite import files, registry
    from t2t_lite.data.folder import encoder_files
    from t2t_lite.files import resumable
    from t2t_lite.files.file_system import make_folders, status
    from t2t_lite.runs.run_config import import_usr_dir, read_run_config, write_run_config

    config = read_run_config(flags.model_dir)
    if config is None:
        raise UserError(f"--model_dir={flags.model_dir}: no hparams.json. Expected the --output_dir of t2t-trainer.")
    parent, name = os.path.split(os.path.abspath(flags.output_dir))
    trainer_folders = [flags.output_dir, *([parent] if name == "best" else [])]
    if any(files.exists(os.path.join(folder, "train.log")) for folder in trainer_folders):
        raise UserError(
            f"--output_dir={flags.output_dir}: averages would overwrite checkpoints of t2t-trainer. Choose another "
            "folder."
        )
    earlier = read_run_config(flags.output_dir) or {}
    flags_of_run = {"plan": config.get("plan")}  # may change while a run continues, such as --train_steps
    # Averages written by an earlier version may lack newer settings.
    if {**config, **earlier, **flags_of_run} != {**config, **flags_of_run}:
        raise UserError(
            f"--output_dir={flags.output_dir} holds averages of another run or of a run with other settings. Choose "
            "another folder."
        )
    checkpoints = [resumable.find(folder, resumable.CHECKPOINTS) for folder in (flags.model_dir, flags.output_dir)]
    newest, average = (files_of_folder[-1].step if files_of_folder else 0 for files_of_folder in checkpoints)
    if average > newest:  # other commands use the newest average
        raise UserError(
            f"--output_dir={flags.output_dir} holds an average of step {average}, but the newest checkpoint in "
            f"{flags.model_dir} is of step {newest}, so the average is of an earlier run. Choose another folder."
        )
    record_path = os.path.join(flags.output_dir, _AVERAGES)
    # Existing averages are recognized by their checkpoint's time alone. --min_steps may differ.
    window = files.read_json(record_path, {"n": int})["n"] if files.exists(record_path) else flags.n
    if window != flags.n:
        raise UserError(
            f"--n={flags.n}: --output_dir={flags.output_dir} holds averages of {counted(window, 'checkpoint')} each. "
            "Use the same --n, or another --output_dir."
        )
    if not flags.t2t_usr_dir:  # otherwise the user's folder has been imported already
        import_usr_dir(flags.model_dir, config)
    make_folders(flags.output_dir)
    files.copy_files(encoder_files(registry.problem(config["problem"]), flags.model_dir), flags.output_dir)
    source, target = (os.path.join(folder, "flags.txt") for folder in (flags.model_dir, flags.output_dir))
    if files.exists(source):  # the file's modification time is the start of the run, as in tensor2tensor
        files.write_bytes(target, files.read_bytes(source), status(source).modified_ns / 1e9)
    write_run_config(flags.output_dir, config)
    files.write_json(record_path, {"n": flags.n})


main = _app.command("t2t-avg-all", define_flags, run, check)


if __name__ == "__main__":
    sys.exit(main())

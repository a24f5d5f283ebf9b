"""--describe prints the model's layers, the cost of its training, and the possible export formats.

It needs only --hparams_set. --plot=PICTURE draws the learning rate and the positional encoding.
"""

from t2t_lite.bin._setting_flags import hparams_changes
from t2t_lite.bin.trainer.training_flags import recall
from t2t_lite.bin.trainer.training_modes import check_schedule
from t2t_lite.bin.trainer.training_run import earlier_run, hparams_of_flags
from t2t_lite.cli.commands import Mode
from t2t_lite.settings.ranges import VOCAB_SIZE, Range
from t2t_lite.visualization.drawing import check_picture


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_bool("describe", False, "Print layers, parameters, FLOPs, memory and possible exports, then exit.")
    flags.DEFINE_path(
        "plot", None, "With --describe: file for a picture of the learning rate and the positional encoding."
    )
    flags.DEFINE_integer(
        "vocab_size", None, "With --describe: vocabulary size. Default: as in the data, or 37000.", limits=VOCAB_SIZE
    )
    flags.DEFINE_integer(
        "target_vocab_size", None, "With --describe: the targets' vocabulary size. Default: shared.", limits=VOCAB_SIZE
    )
    flags.DEFINE_float(
        "gpu_memory",
        None,
        "With --describe: a GPU's memory in GB, to print the largest batch_size.",
        limits=Range(most=10**6, above=0),
    )


def check(flags):
    """Raises `UserError` for an unknown schedule, a flag of t2t-decoder, or an unknown picture format."""
    check_schedule(flags)
    if flags.plot:
        check_picture("--plot", flags.plot)


def run(flags):
    """Prints the description and draws the picture."""
    from t2t_lite.runs.directory import check_known, model_name

    earlier = earlier_run(flags, flags.output_dir)
    recall(flags, flags.output_dir, earlier)
    check_known(earlier, flags.hparams_set, hparams_changes(flags))  # before Keras is imported to choose the model
    model = model_name(flags.model or earlier.get("model"), flags.problem or earlier.get("problem"), flags.hparams_set)
    hparams = hparams_of_flags(flags, earlier, model, flags.random_seed)
    from t2t_lite.extras.describe.description import describe_run
    from t2t_lite.training.distribution import hide_gpus

    hide_gpus()  # another run may be using them
    print(describe_run(flags, hparams, earlier, model, _planned_replicas(flags)))
    if flags.plot:
        from t2t_lite.extras.describe.hparams_picture import draw_hparams

        draw_hparams(hparams, flags.train_steps, flags.plot, flags.hparams_set or earlier.get("hparams_set") or "")
        print(f"plot: {flags.plot}")


def _planned_replicas(flags):
    """Returns the number of replicas that a run with these flags would have, without looking for devices."""
    from t2t_lite.training.cluster import read_cluster

    cluster = read_cluster()
    return (flags.logical_cpus or flags.worker_gpu or 1) * (len(cluster.workers) if cluster else 1)


MODES = {
    "describe": Mode(
        "--describe",
        ("plot", "vocab_size", "target_vocab_size", "gpu_memory"),
        run=run,
        selected_by=lambda flags: flags.describe,
        check=check,
    )
}

"""--random_seeds=1,2,3 trains one run per seed, in --output_dir/seed_1, …, and prints the mean and standard deviation
of their metrics.
"""

import functools

from t2t_lite.bin.trainer.training_modes import TRAINING, check_training, prepare
from t2t_lite.cli.commands import Mode
from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import SEED


def define_flags(flags):
    """Declares the flag."""
    flags.DEFINE_integers(
        "random_seeds",
        [],
        "Train one run per seed, in output_dir/seed_N, and print the mean and standard deviation of their metrics.",
        SEED,
    )


def check(flags):
    """Raises `UserError` unless --random_seeds describes several runs with evaluations."""
    flag = f"--random_seeds={','.join(map(str, flags.random_seeds))}"
    if len(flags.random_seeds) < 2 or len({*flags.random_seeds}) < len(flags.random_seeds):
        raise UserError(f"{flag}: expected several different seeds, such as 1,2,3. For one seed, use --random_seed.")
    check_training(flags, flag)


def run(flags):
    """Trains the runs, and prints a table of their metrics."""
    prepare(flags)
    from t2t_lite.bin.trainer.training_run import train_run
    from t2t_lite.extras.seeds.repeated_seeds import as_text, train_seeds
    from t2t_lite.training.distribution import set_threads

    set_threads(flags.inter_op_parallelism_threads, flags.intra_op_parallelism_threads)
    if summary := train_seeds(flags.random_seeds, flags.output_dir, functools.partial(train_run, flags)):
        print(as_text(summary))


MODES = {
    "seeds": Mode(
        "--random_seeds",
        ("random_seeds", *TRAINING),
        run=run,
        selected_by=lambda flags: flags.random_seeds,
        check=check,
    )
}

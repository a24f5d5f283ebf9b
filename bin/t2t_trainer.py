"""Trains a model, with an evaluation every --local_eval_frequency steps.

Running the same command again continues from the last checkpoint in --output_dir; --train_steps counts from
the very beginning. A run remembers its problem, model and hyperparameters, which may be left out then; the name of its
set stands for all hyperparameters as the run has them. What contradicts the run is an error. It also remembers what it
was asked to do, such as --train_steps, --keep_checkpoint_max or --best_checkpoint_metric: what is not given is as it
was, and what is given anew may differ.

--random_seeds=1,2,3 trains a run for each, in --output_dir/seed_1, …, and prints their mean and standard deviation.

--hparams_range=NAME searches for hyperparameters: it trains --autotune_max_trials runs, in --output_dir/trial-0, …,
with values in these ranges, and the best of them again with other seeds. It needs the extra [tune].

--hp_NAME VALUE changes one hyperparameter, as --hparams=NAME=VALUE does.

With --describe it prints what the model is made of, what training it costs and where it can be exported to; only
--hparams_set is needed for that. --plot=PICTURE draws its learning rate and positional encoding.
--summary=OUTPUT_DIR,… draws the curves of runs (curves.png) and, of several, their best evaluations as bars (bars.png).
"""

import functools
import os
import sys

from t2t_lite.bin import _app
from t2t_lite.bin._score_flags import hparams_changes
from t2t_lite.bin.t2t_eval import evaluate
from t2t_lite.bin.trainer.training_flags import define_flags, recall
from t2t_lite.bin.trainer.training_modes import check, chosen_mode
from t2t_lite.bin.trainer.training_run import check_run, earlier_run, hparams_of_flags, train_run
from t2t_lite.extras.autotune.search_command import search_hparams

_DESCRIBED = (
    "problem", "model", "hparams_set", "output_dir", "data_dir", "vocab_size", "target_vocab_size", "train_steps",
)  # fmt: skip


def run(flags):
    """Trains, or evaluates and prints the metrics, or describes the model, or draws curves; returns the exit status."""
    match chosen_mode(flags):
        case "summary":
            from t2t_lite.extras.pictures.run_bars import draw_summary

            print("\n".join(draw_summary(flags.summary)))
        case "describe":
            _describe(flags)
        case "evaluate":
            on_train_data = flags.schedule.endswith("_on_train_data")
            evaluate(flags, once=flags.schedule.startswith("evaluate"), on_train_data=on_train_data)
        case mode:
            return _train(flags, mode)
    return 0


def _describe(flags):
    from t2t_lite.runs.directory import check_known, model_name

    earlier = earlier_run(flags, flags.output_dir)
    recall(flags, flags.output_dir, earlier)
    check_known(earlier, flags.hparams_set, hparams_changes(flags))  # before Keras is imported to choose the model
    problem = flags.problem or earlier.get("problem")
    model = model_name(flags.model or earlier.get("model"), problem, flags.hparams_set)
    hparams = hparams_of_flags(flags, earlier, model, flags.random_seed)
    from t2t_lite.extras.describe.description import describe_run
    from t2t_lite.training.distribution import hide_gpus, planned_replicas

    hide_gpus()  # another run may fill them
    replicas = planned_replicas(flags.worker_gpu, flags.logical_cpus)
    settings = {name: flags[name].value for name in _DESCRIBED} | {"model": model}
    print(describe_run(hparams, earlier, replicas=replicas, gpu_memory=flags.gpu_memory, **settings))
    if flags.plot:
        from t2t_lite.extras.pictures.hparams_picture import draw_hparams

        draw_hparams(hparams, flags.train_steps, flags.plot, flags.hparams_set or earlier.get("hparams_set") or "")
        print(f"plot: {flags.plot}")


def _train(flags, mode):
    """Trains a run, or one for each of --random_seeds, or those of a search."""
    recall(flags, flags.output_dir, earlier_run(flags, flags.output_dir))  # the recalled flags affect what follows
    check_run(flags)
    from t2t_lite.training.distribution import set_threads
    from t2t_lite.training.repeated_seeds import as_text, train_seeds

    inexact = set_threads(flags.inter_op_parallelism_threads, flags.intra_op_parallelism_threads)
    if mode == "search":
        return search_hparams(flags, inexact)
    if mode == "train":
        train_run(flags, inexact, flags.output_dir, flags.random_seed)
    elif summary := train_seeds(flags.random_seeds, flags.output_dir, functools.partial(train_run, flags, inexact)):
        print(as_text(summary))
    return 0


def main(argv=None):
    """Runs the command; returns its exit status."""
    in_cluster = argv is None and os.environ.get("TF_CONFIG")
    what = _run_in_cluster if in_cluster else run
    return _app.main("t2t-trainer", define_flags, what, argv, check=check)


def _run_in_cluster(flags):
    """Calls `run`; a failure exits at once, since TensorFlow's shutdown would wait for machines that may be gone."""
    try:
        return run(flags)
    except Exception as error:
        status = _app.report("t2t-trainer", error)
        if status is None:
            raise
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main())

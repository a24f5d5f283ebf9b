"""The schedules of t2t-trainer (tensor2tensor: utils/trainer_lib.py)."""

import shlex

from t2t_lite.errors import UserError, nearest

TRAINING = {
    "continuous_train_and_eval": "train, and evaluate at every checkpoint",
    "train_and_evaluate": "the same",
    "train": "train without evaluating",
    "train_eval_and_decode": "train, evaluate, and translate the whole dev set into decode/",
    "test": "one step and a batch of an evaluation",
}
EVALUATING = {
    "evaluate": "evaluate the newest checkpoint once",
    "evaluate_on_train_data": "the same, on the first training shard",
    "continuous_eval": "evaluate each checkpoint as it appears, as t2t-eval does",
    "continuous_eval_on_train_data": "the same, on the first training shard",
}
_EACH = "for c in {output_dir}/model.ckpt-*.index; do t2t-decoder --checkpoint_path=${{c%.index}} {files}; done"
_DEV = "t2t-trainer --schedule=train_eval_and_decode translates the dev set at each evaluation; for any text: "
_FILES = "--decode_from_file={source} --decode_to_file=$c.decodes"
# Commands to type instead.
_ELSEWHERE = {
    "decode": "t2t-decoder --output_dir={output_dir} --decode_from_file={source}",
    "continuous_decode": _DEV + _EACH.replace("{files}", _FILES),
    "continuous_decode_on_eval_data": _DEV + _EACH.replace("{files}", _FILES),
    "continuous_decode_on_train_data": _EACH.replace("{files}", _FILES),
    "continuous_decode_from_file": _EACH.replace("{files}", _FILES),
    "run_std_server": "nothing: there are no parameter servers. Start the same t2t-trainer on each machine, with the "
    "TF_CONFIG that t2t-make-tf-configs prints for it",
}


def check(flags):
    """Raises `UserError` for an unknown schedule, or one of another command, which it names."""
    name = flags.schedule
    if name in _ELSEWHERE:
        folder, source = flags.output_dir or "OUTPUT_DIR", flags.decode_from_file or "FILE"
        instead = _ELSEWHERE[name].format(output_dir=shlex.quote(folder), source=shlex.quote(source))
        raise UserError(f"--schedule={name}: not done by t2t-trainer. Type instead: {instead}")
    available = (*TRAINING, *EVALUATING)
    if name not in available:
        raise UserError(
            f"--schedule={name}: not available. {nearest(name, (*available, *_ELSEWHERE), end=' ')}"
            f"Expected one of {', '.join(available)}."
        )


def check_early_stopping(flags):
    """Raises `UserError` for early stopping in a schedule without evaluations."""
    if flags.schedule == "train" and flags["eval_early_stopping_steps"].present:
        raise UserError(
            "--eval_early_stopping_steps: needs evaluations, and --schedule=train makes none. Leave one of them out."
        )


def help_string():
    """Returns a description of all schedules, for --help."""
    return "; ".join(f"{name}: {what}" for name, what in (TRAINING | EVALUATING).items())

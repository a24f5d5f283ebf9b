"""Names of tensor2tensor that do not exist here, with their replacements, for error messages and docs.

Each entry of the tables has an answer of one or two sentences. `make docs` writes these answers into
docs/coming_from_tensor2tensor.md.
"""

import fnmatch
import pathlib

from t2t_lite.errors import UserError


def _rows(kind):
    """Returns the entries of one kind in tensor2tensor_names.tsv, a list of (names, value in tensor2tensor, answer)."""
    lines = pathlib.Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
    return [tuple(cells) for first, *cells in (line.split("\t") for line in lines) if first == kind]


# Hyperparameters of tensor2tensor's Transformer sets (layers/common_hparams.py, models/transformer.py), a list of
# (names, value in tensor2tensor, answer). Names may end in *.
HPARAMS = _rows("hparam")

# Options of tensor2tensor's --decode_hparams (utils/decoding.py) that also exist here.
DECODING = _rows("decoding")[0][0].split()

# Flags that trainer, decoder and exporter accept with a warning: switches, followed by flags with a value.
TF1_SWITCHES = {name: answer for name, _, answer in _rows("switch")}
TF1_VALUES = {name: answer for name, _, answer in _rows("option")}
# Flags of tensor2tensor's commands and modules, in all its versions, that are errors here: a list of (names, answer).
FLAGS = [(names, answer) for names, _, answer in _rows("flag")]
# Methods and attributes of tensor2tensor's problems, in all its versions, that change its data or its training.
PROBLEM_HOOKS = _rows("hook")[0][0].split()
# Modules that users' code imports, and names in them, that `t2t_lite.extras.tensor2tensor` lacks.
MODULES = {name: answer for names, _, answer in _rows("module") for name in names.split()}
# Settings of a run that are flags here, but that users may look for among the hyperparameters.
_NO_HPARAMS = ("data_dir", "eval_steps", "model", "output_dir", "problem", "schedule", "train_steps", "worker_gpu")


def hparam_answer(name):
    """Returns one line of advice on an undeclared hyperparameter, or "" if tensor2tensor has no such hyperparameter."""
    for names, _, answer in HPARAMS:
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in names.split()):
            return _plain(answer)
    if name in DECODING:
        return f"It is a decoding option, not a hyperparameter: use --decode_hparams={name}=VALUE."
    return f"It is a flag: use --{name}=VALUE." if name in _NO_HPARAMS else ""


def flag_answer(name):
    """Returns one line of advice on a flag that no command declares, or "" if tensor2tensor has no such flag."""
    for names, answer in FLAGS:
        if name in names.split():
            return _plain(answer)
    reason = {**TF1_SWITCHES, **TF1_VALUES}.get(name)
    return f"It has no meaning here: {reason}." if reason else ""


def module_answer(name):
    """Returns advice on the replacement of a tensor2tensor module or `module.name`, one line without a final period."""
    instead = f": {MODULES[name]}" if name in MODULES else ""
    return f"tensor2tensor's {name} does not exist here{instead}. See the imports in docs/coming_from_tensor2tensor.md"


def _plain(answer):
    return answer.replace("`", "")


def without_multistep(hparams):
    """Returns the hyperparameters with multistep_adam replaced by adam with gradient accumulation.

    `optimizer=multistep_adam,optimizer_multistep_accumulate_steps=n` is Adam with `gradient_accumulation_steps=n`.
    tensor2tensor averages the gradients of n batches, regardless of their numbers of tokens, and counts n steps. Here
    the n batches are one step, and each token has the same weight.

    Raises:
        UserError: the two settings give different numbers of batches.
    """
    if hparams.optimizer != "multistep_adam":
        return hparams
    steps, accumulation = hparams.optimizer_multistep_accumulate_steps, hparams.gradient_accumulation_steps
    if steps > 1 and accumulation not in (1, steps):
        raise UserError(
            f"optimizer_multistep_accumulate_steps={steps}, gradient_accumulation_steps={accumulation}: both set the "
            "number of batches per step, to different values. Set only one of them."
        )
    return hparams.override_from_dict(
        {
            "optimizer": "adam",
            "gradient_accumulation_steps": max(steps, accumulation),
            "optimizer_multistep_accumulate_steps": 0,
        }
    )

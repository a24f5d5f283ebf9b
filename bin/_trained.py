"""What the commands share that use a trained model: the flags that name it, and loading it."""

import os

from t2t_lite.bin import _app
from t2t_lite.errors import UserError

# In the folder of a run, or of an export's weights; of vocabularies that are beside them, any name.
_RUN_FILES = (
    r"model\.ckpt-.*|variables\..*|checkpoint|hparams\.json|flags.*\.txt|(train|eval)\.log|problem\.json|vocab.*|"
    r".*\.(model|subwords)"
)


def define_flags(flags):
    """Declares the flags that name a trained model."""
    _app.define_common_flags(flags)
    flags.DEFINE_path("checkpoint_path", None, "One checkpoint, …/model.ckpt-N; default: the newest in --output_dir.")
    if "worker_gpu" not in flags:
        flags.no_effect("worker_gpu", "one device is used: the first GPU, or the CPU where there is none")


def check(flags):
    """Raises `UserError` unless a model is named."""
    if not flags.checkpoint_path:
        _app.require(flags, "output_dir")


def decode_defaults(flags):
    """Returns what of the search's settings the problem of the trained model has other defaults for, a dict.

    Raises:
        UserError: there is no such model.
    """
    from t2t_lite import registry

    return registry.problem(read_config(flags)["problem"]).decode_defaults


def checkpoints(flags):
    """Returns the checkpoints (without suffix) that --checkpoint_path, a comma list, or --output_dir mean.

    Raises:
        UserError: there is none.
    """
    from t2t_lite.runs.opening import find_checkpoint

    name = "checkpoint_path" if flags.checkpoint_path else "output_dir"
    paths = flags[name].value.split(",")
    if not all(paths):
        raise UserError(f"--{name}={flags[name].value}: a path is empty. Expected one, or several joined by commas.")
    return [find_checkpoint(os.path.expanduser(path)) for path in paths]


def model_files(flags):
    """Returns the paths of the files that the model is made of: no output may take their place. Raises `UserError`."""
    return [path for checkpoint in checkpoints(flags) for path in run_files(os.path.dirname(checkpoint))]


def run_files(folder):
    """Returns the paths of what t2t-trainer or t2t-exporter left in a folder and its like: weights, settings, logs."""
    from t2t_lite.files import list_files

    return list_files(folder, _RUN_FILES) + list_files(os.path.join(folder, "..", "assets.extra", "t2t_lite"), ".*")


def read_config(flags):
    """Returns the `hparams.json` of the trained model, a dict. Raises `UserError`: there is no such model."""
    from t2t_lite.runs.opening import read_config_of

    return read_config_of(checkpoints(flags)[0])


def load_translator(flags, load=None):
    """Returns the Translator of --checkpoint_path or --output_dir.

    Args:
        flags: absl's FlagValues.
        load: function with the arguments of `Translator.load`, to be called instead of it.

    Raises:
        UserError: nothing there, or another flag contradicts what the model was trained with.
    """
    from t2t_lite.decoding.translator import Translator

    _check_agreement(flags, read_config(flags))
    paths = checkpoints(flags)
    return (load or Translator.load)(paths[0] if len(paths) == 1 else paths, flags.data_dir)


def check_names(flags, config):
    """--problem, --model and --hparams_set may be given, but only as they were in training. Raises `UserError`."""
    from t2t_lite import registry

    for name, look_up in (("problem", registry.problem), ("model", registry.model), ("hparams_set", registry.hparams)):
        given = flags[name].value
        if given and given != config[name]:
            look_up(given)  # an unknown name gets its own message
            raise UserError(
                f"--{name}={given}: this model was trained with {name}={config[name] or '(own)'}. Leave the flag out."
            )


def _check_agreement(flags, config):
    """Flags that were needed in tensor2tensor may be given, but only as they were in training."""
    from t2t_lite.config import HParams
    from t2t_lite.runs.directory import parse_changes

    check_names(flags, config)
    if flags.hparams:
        trained = HParams.from_dict(config["hparams"])
        for name, value in parse_changes(trained, flags.hparams).values().items():
            if value != trained.get(name):
                raise UserError(
                    f"--hparams: {name}={value}, but this model was trained with {name}={trained.get(name)}. "
                    "Leave the flag out."
                )

"""Finds a trained model on disk, and its settings, without loading it: no TensorFlow, no Keras."""

import dataclasses
import os

from t2t_lite import registry
from t2t_lite.errors import UserError
from t2t_lite.files import exists, is_folder, list_files
from t2t_lite.runs import exported
from t2t_lite.runs.checkpoint_files import newest_checkpoint, parts_of_checkpoints
from t2t_lite.runs.run_config import FILE_NAME, check_registered, import_usr_dir, is_registered, read_run_config

# Files in the folder of a run or of an export's weights; vocabularies beside them may have any name.
_RUN_FILES = (
    r"model\.ckpt-.*|variables\..*|checkpoint|hparams\.json|flags.*\.txt|(train|eval)\.log|problem\.json|vocab.*|"
    r".*\.(model|subwords)"
)


@dataclasses.dataclass(frozen=True)
class LocatedRun:
    """A trained model on disk that is not loaded yet.

    Attributes:
        checkpoint: str, without suffix.
        config: dict, the contents of `hparams.json`.
        problem: Problem.
    """

    checkpoint: str
    config: dict

    problem = property(lambda self: registry.problem(self.config["problem"]))

    def check_encoders(self, data_dir=None):
        """Raises `UserError` unless the vocabulary is beside the checkpoint, or in data_dir, and is the run's."""
        encoders_of(self.problem, self.config, exported.folder_of(self.checkpoint), data_dir)


def find_run(path) -> LocatedRun:
    """Finds a trained model; `path` is as for `open_run`, or a `LocatedRun`. Raises `UserError` if there is none."""
    if isinstance(path, LocatedRun):
        return path
    checkpoint = find_checkpoint(path)
    return LocatedRun(checkpoint, read_config_of(checkpoint))


def read_config_of(checkpoint):
    """Returns the `hparams.json` beside a checkpoint, and imports the user's folder that it names if needed.

    Raises:
        UserError: the file or that folder is missing.
    """
    config = read_config(exported.folder_of(checkpoint))
    if not is_registered(config):
        import_usr_dir(exported.export_of(checkpoint) or os.path.dirname(checkpoint), config)
        check_registered(exported.folder_of(checkpoint), config)
    return config


def read_config(folder):
    """Returns the `hparams.json` of a folder, a dict. Raises `UserError` if it is missing."""
    config = read_run_config(folder)
    if config is None:
        raise UserError(
            f"{os.path.join(folder, FILE_NAME)}: no such file. It names the checkpoint's model and is expected in "
            "every folder that t2t-trainer or t2t-avg-all wrote, and in exports."
        )
    return config


def run_files(folder):
    """Returns the paths of a run's or an export's files: weights, settings, logs."""
    return list_files(folder, _RUN_FILES) + list_files(os.path.join(folder, "..", "assets.extra", "t2t_lite"), ".*")


def find_checkpoint(path):
    """Returns the checkpoint (without suffix) for `path`: itself, or the newest one of a folder or of exports.

    Raises:
        UserError: there is none.
    """
    path = str(path).removesuffix(".index")
    if exists(path + ".index"):
        return path
    if not is_folder(path):
        raise UserError(
            f"{path}: no such folder or checkpoint. Expected an output_dir of t2t-trainer, or a checkpoint in one, "
            f"such as {os.path.join(os.path.dirname(path) or '.', 'model.ckpt-1000')}."
        )
    newest = newest_checkpoint(path) or exported.find_variables(path)
    if newest is None:
        parts = parts_of_checkpoints(path)
        only = f", only {parts[0]}, without its index" if parts else ""
        raise UserError(
            f"{path}: holds no checkpoint (model.ckpt-N){only}. Train there first, or wait for its first save."
        )
    return newest


def encoders_of(problem, config, folder, data_dir=None):
    """Returns the encoders of the vocabulary that a model was trained with.

    Args:
        problem: Problem.
        config: dict, the contents of `hparams.json`.
        folder: str, the folder of the vocabulary.
        data_dir: str, another folder that may contain it.

    Raises:
        UserError: the vocabulary is missing, or is not that of the model.
    """
    return encoders_and_folder(problem, config, folder, data_dir)[0]


def encoders_and_folder(problem, config, folder, data_dir=None):
    """Returns `encoders_of` these arguments, and the folder of the vocabulary."""
    try:
        encoders = problem.get_feature_encoders(folder)
    except UserError:
        if not data_dir:
            raise
        encoders, folder = problem.get_feature_encoders(data_dir), data_dir
    for side, expected in config["vocabulary_sha256"].items():
        fingerprint = encoders[side].fingerprint
        if fingerprint != expected:
            raise UserError(
                f"{folder}: the vocabulary of the {side} is not the one that the model was trained with (SHA-256 "
                f"{fingerprint[:12]}…, expected {expected[:12]}…). Put that file back: {config['problem']} needs "
                f"{', '.join(map(os.path.basename, problem.vocabulary_files(folder))) or 'its definition'}."
            )
    return encoders, folder

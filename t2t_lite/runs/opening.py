"""Opens the result of a training run or an exporter: a checkpoint, its model, its problem and its vocabulary."""

from __future__ import annotations

import dataclasses
import os

import keras
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.backend import check_tensorflow
from t2t_lite.config import HParams
from t2t_lite.data.base_problem import Problem
from t2t_lite.data.encoder_files import encoder_files
from t2t_lite.errors import UserError, first_line, located
from t2t_lite.files import list_files
from t2t_lite.runs import exported
from t2t_lite.runs.checkpoint_files import checkpoint_step, newest_checkpoint, parts_of_checkpoints
from t2t_lite.runs.lora import lora_facts, lora_names, merged_config
from t2t_lite.runs.run_config import FILE_NAME, build_model, hparams_of, import_usr_dir, read_run_config
from t2t_lite.runs.size_check import check_size
from t2t_lite.runs.weights import assign_saved, check_fits, named_weights, saved_shapes

# Files in the folder of a run or of an export's weights; vocabularies beside them may have any name.
_RUN_FILES = (
    r"model\.ckpt-.*|variables\..*|checkpoint|hparams\.json|flags.*\.txt|(train|eval)\.log|problem\.json|vocab.*|"
    r".*\.(model|subwords)"
)


@dataclasses.dataclass(frozen=True)
class Run:
    """A trained model and everything that belongs to it.

    Attributes:
        model: keras.Model with the checkpoint's weights.
        problem: Problem.
        hparams: HParams that it was trained with.
        encoders: {"inputs": TextEncoder, "targets": TextEncoder}.
        step: int, the number of training steps; 0 if the checkpoint's name does not have it.
        path: str, the checkpoint, without suffix.
        config: dict, the contents of `hparams.json`: the names of problem, model and hparams_set and more.
        vocabulary_folder: str, the folder of the files that `encoders` were read from.
    """

    model: keras.Model
    problem: Problem
    hparams: HParams
    encoders: dict
    step: int
    path: str
    config: dict
    vocabulary_folder: str

    @property
    def encoder_files(self):
        """{name: path} of the files that the encoders need. Raises `UserError` as `encoder_files`."""
        return encoder_files(self.problem, self.vocabulary_folder)


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


def find_run(path) -> LocatedRun:
    """Finds a trained model; `path` is as for `open_run`, or a `LocatedRun`. Raises `UserError` if there is none."""
    if isinstance(path, LocatedRun):
        return path
    checkpoint = find_checkpoint(path)
    return LocatedRun(checkpoint, read_config_of(checkpoint))


def open_run(path: str | os.PathLike, data_dir: str | None = None) -> Run:
    """Loads a trained model.

    Args:
        path: str, an output_dir or a folder of averages (the newest checkpoint is used), one checkpoint,
            `…/model.ckpt-N`, or an export. `hparams.json` and the vocabulary are beside it, or in the export. Or a
            result of `find_run`.
        data_dir: str, folder of the vocabulary, if it is not beside the checkpoint.

    Raises:
        UserError: there is no checkpoint, it is damaged, of another model or of an ensemble's export, or the vocabulary
            does not match.
    """
    checkpoint = path.checkpoint if isinstance(path, LocatedRun) else find_checkpoint(path)
    exported.check_is_one(checkpoint, path)  # before loading any model
    (run,) = open_runs(path, data_dir)
    return run


def open_runs(path, data_dir=None, dtype_policy=None) -> list[Run]:
    """As `open_run`, but returns all models of an ensemble's export; `path` may also be a result of `find_run`.

    A `dtype_policy` overrides the one that the models were trained with; `Run.hparams` keeps the latter.
    """
    check_tensorflow("A trained model")
    location = find_run(path)
    checkpoint, config = location.checkpoint, location.config
    folder = exported.folder_of(checkpoint)
    with located(os.path.join(folder, FILE_NAME)):
        problem, _ = registry.problem(config["problem"]), registry.model(config["model"])
    encoders, vocabulary_folder = _encoders_and_folder(problem, config, folder, data_dir)

    def run(config, step, name="model"):
        check_size(checkpoint, config, name)
        with located(os.path.join(folder, FILE_NAME)):
            model = build_model(merged_config(config), dtype_policy)
        if dtype_policy and model.compute_dtype != dtype_policy:
            raise UserError(
                f"model={config['model']}: computes in {model.compute_dtype}, whatever dtype_policy={dtype_policy} "
                "says. Leave compute_dtype out, or let its from_hparams read dtype_policy."
            )
        restore_weights(checkpoint, model, name)
        hparams = hparams_of(config)
        return Run(model, problem, hparams, encoders, step, checkpoint, config, vocabulary_folder)

    export = exported.export_of(checkpoint)
    if export is None:
        return [run(config, checkpoint_step(checkpoint))]
    steps = exported.read_facts(export)["steps"]
    names = exported.model_names(len(steps))
    configs = [config, *(_read_config(os.path.join(folder, name)) for name in names[1:])]
    return [run(*facts) for facts in zip(configs, steps, names, strict=True)]


def read_config_of(checkpoint):
    """Returns the `hparams.json` beside a checkpoint, and imports the user's folder that it names if needed.

    Raises:
        UserError: the file or that folder is missing.
    """
    config = _read_config(exported.folder_of(checkpoint))
    if not _is_registered(config):
        import_usr_dir(exported.export_of(checkpoint) or os.path.dirname(checkpoint), config)
    return config


def _read_config(folder):
    config = read_run_config(folder)
    if config is None:
        raise UserError(
            f"{os.path.join(folder, FILE_NAME)}: no such file. It says which model the checkpoint is of; expected in "
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
    if tf.io.gfile.exists(path + ".index"):
        return path
    if not tf.io.gfile.isdir(path):
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


def _is_registered(config):
    base = config["problem"].removesuffix("_rev").removesuffix("_copy")
    return config["model"] in registry.list_models() and base in registry.list_problems()


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
    return _encoders_and_folder(problem, config, folder, data_dir)[0]


def _encoders_and_folder(problem, config, folder, data_dir):
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


def restore_weights(checkpoint, model, name="model"):
    """Loads weights from a checkpoint into a model. LoRA that the model lacks is added to the kernels.

    Args:
        checkpoint: str, without suffix.
        model: a built keras.Model, or some of its weights, {name: variable}.
        name: str, the model's name there; the export of an ensemble has several.

    Raises:
        UserError: the checkpoint is damaged or of another model.
    """
    try:
        weights = named_weights(model) if isinstance(model, keras.Model) else model
        lora = lora_names(saved_shapes(checkpoint, name)) - weights.keys()
        if isinstance(model, keras.Model):
            check_fits(checkpoint, model, apart=lora, name=name)
        assign_saved(checkpoint, weights, name, _added(checkpoint, lora) if lora else None)
    except UserError:
        raise
    except Exception as error:  # the readers raise anything for untrusted bytes
        raise UserError(
            f"{checkpoint}: damaged, or a part of it is missing: {first_line(error)}. "
            "Copy it again, or name an earlier one by --checkpoint_path."
        ) from error


def _added(checkpoint, names):
    """Returns the `added` of `assign_saved` for the matrices of LoRA with these names."""
    rank, factor = lora_facts(read_config_of(checkpoint))
    if not rank:
        raise UserError(f"{checkpoint}: has {min(names)}, but its {FILE_NAME} says lora_rank=0. Copy both again.")
    layers = {name.rpartition("/")[0] for name in names}
    return {f"{layer}/kernel": (f"{layer}/lora_kernel_a", f"{layer}/lora_kernel_b", factor) for layer in layers}

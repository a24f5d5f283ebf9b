"""Opens the result of a training run or an exporter: a checkpoint, its model, its problem and its vocabulary."""

from __future__ import annotations

import dataclasses
import os

import keras

from t2t_lite import registry
from t2t_lite.data.base_problem import Problem
from t2t_lite.data.folder import encoder_files
from t2t_lite.errors import UserError, first_line, located
from t2t_lite.process.backend import check_tensorflow
from t2t_lite.runs import exported
from t2t_lite.runs.checkpoint_files import checkpoint_step
from t2t_lite.runs.locating import (
    LocatedRun,
    encoders_and_folder,
    find_checkpoint,
    find_run,
    read_config,
    read_config_of,
)
from t2t_lite.runs.lora import lora_facts, lora_names, merged_config
from t2t_lite.runs.run_config import FILE_NAME, build_model, hparams_of
from t2t_lite.runs.size_check import check_size
from t2t_lite.runs.weights import assign_saved, check_fits, named_weights, saved_shapes
from t2t_lite.settings.config import HParams


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
    encoders, vocabulary_folder = encoders_and_folder(problem, config, folder, data_dir)

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
    configs = [config, *(read_config(os.path.join(folder, name)) for name in names[1:])]
    return [run(*facts) for facts in zip(configs, steps, names, strict=True)]


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

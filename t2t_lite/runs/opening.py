"""Loads a trained model from a run or an export, with its problem and vocabulary."""

from __future__ import annotations

import dataclasses
import math
import os

import keras

from t2t_lite import registry
from t2t_lite.data.base_problem import Problem
from t2t_lite.data.folder import encoder_files
from t2t_lite.errors import UserError, located
from t2t_lite.models.shapes_only import shapes_only
from t2t_lite.process.backend import check_tensorflow
from t2t_lite.runs.checkpoint_files import checkpoint_step
from t2t_lite.runs.locating import (
    LocatedRun,
    check_is_one,
    encoders_and_folder,
    export_of,
    find_checkpoint,
    find_run,
    folder_of,
    model_names,
    read_config,
    read_config_of,
    read_facts,
)
from t2t_lite.runs.run_config import FILE_NAME, build_model, hparams_of, lora_facts, lora_names, merged_config
from t2t_lite.runs.weights import assign_saved, check_fits, named_weights, saved_shapes, unreadable
from t2t_lite.settings.config import HParams

_SLACK = 2**22  # number of parameters; they take 16 MiB in float32
_LEAST_WEIGHTS_OF_A_LAYER = 12


@dataclasses.dataclass(frozen=True)
class Run:
    """A trained model and everything that belongs to it.

    Attributes:
        model: keras.Model with the checkpoint's weights.
        problem: Problem.
        hparams: HParams with which the model was trained.
        encoders: {"inputs": TextEncoder, "targets": TextEncoder}.
        step: int, the number of training steps, or 0 if the checkpoint's name does not contain it.
        path: str, path of the checkpoint, without suffix.
        config: dict, the contents of `hparams.json`, such as the names of problem, model and hparams_set.
        vocabulary_folder: str, the folder from which `encoders` were read.
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
        """The vocabulary files that the encoders need, {name: path}. Raises the errors of `encoder_files`."""
        return encoder_files(self.problem, self.vocabulary_folder)


def open_run(path: str | os.PathLike, data_dir: str | None = None) -> Run:
    """Loads a trained model.

    Args:
        path: str, an output_dir or a folder of averages (to load its newest checkpoint), a checkpoint such as
            `…/model.ckpt-N`, or an export. The folder must contain `hparams.json` and the vocabulary. Also accepts a
            result of `find_run`.
        data_dir: str, the vocabulary's folder, if the checkpoint's folder does not contain the vocabulary.

    Raises:
        UserError: the checkpoint is missing or damaged, or belongs to another model or to the export of an ensemble; or
            the vocabulary does not match.
    """
    checkpoint = path.checkpoint if isinstance(path, LocatedRun) else find_checkpoint(path)
    check_is_one(checkpoint, path)  # checked before any model is loaded
    (run,) = open_runs(path, data_dir)
    return run


def open_runs(path, data_dir=None, dtype_policy=None) -> list[Run]:
    """Loads a trained model like `open_run`, but returns a list with all models of an ensemble's export.

    A `dtype_policy` overrides the policy with which the models were trained, but does not change `Run.hparams`.
    """
    check_tensorflow("A trained model")
    location = find_run(path)
    checkpoint, config = location.checkpoint, location.config
    folder = folder_of(checkpoint)
    with located(os.path.join(folder, FILE_NAME)):
        problem, _ = registry.problem(config["problem"]), registry.model(config["model"])
    encoders, vocabulary_folder = encoders_and_folder(problem, config, folder, data_dir)

    def run(config, step, name="model"):
        check_size(checkpoint, config, name)
        with located(os.path.join(folder, FILE_NAME)):
            model = build_model(merged_config(config), dtype_policy)
        if dtype_policy and model.compute_dtype != dtype_policy:
            raise UserError(
                f"model={config['model']}: the model computes in {model.compute_dtype}, although "
                f"dtype_policy={dtype_policy}. Remove compute_dtype, or let the model's from_hparams read dtype_policy."
            )
        restore_weights(checkpoint, model, name)
        hparams = hparams_of(config)
        return Run(model, problem, hparams, encoders, step, checkpoint, config, vocabulary_folder)

    export = export_of(checkpoint)
    if export is None:
        return [run(config, checkpoint_step(checkpoint))]
    steps = read_facts(export)["steps"]
    names = model_names(len(steps))
    configs = [config, *(read_config(os.path.join(folder, name)) for name in names[1:])]
    return [run(*facts) for facts in zip(configs, steps, names, strict=True)]


def restore_weights(checkpoint, model, name="model"):
    """Loads weights from a checkpoint into a model.

    If the checkpoint has LoRA matrices but the model does not, their products are added to the kernels.

    Args:
        checkpoint: str, without suffix.
        model: a built keras.Model, or some of a model's weights, {name: variable}.
        name: str, the model's name in the checkpoint, which matters for the export of an ensemble.

    Raises:
        UserError: the checkpoint is damaged or belongs to another model.
    """
    try:
        weights = named_weights(model) if isinstance(model, keras.Model) else model
        lora = lora_names(saved_shapes(checkpoint, name)) - weights.keys()
        if isinstance(model, keras.Model):
            check_fits(checkpoint, model, apart=lora, name=name)
        assign_saved(checkpoint, weights, name, _added(checkpoint, lora) if lora else None)
    except UserError:
        raise
    except Exception as error:  # the readers may raise any error for untrusted bytes
        remedy = "Copy it again, or choose an earlier checkpoint with --checkpoint_path."
        raise UserError(unreadable(checkpoint, error, remedy)) from error


def _added(checkpoint, names):
    """Returns the argument `added` of `assign_saved` for the LoRA matrices with these names."""
    rank, factor = lora_facts(read_config_of(checkpoint))
    if not rank:
        raise UserError(
            f"{checkpoint}: contains {min(names)}, but its {FILE_NAME} has lora_rank=0. Copy both files again."
        )
    layers = {name.rpartition("/")[0] for name in names}
    return {f"{layer}/kernel": (f"{layer}/lora_kernel_a", f"{layer}/lora_kernel_b", factor) for layer in layers}


def check_size(checkpoint, config, name="model"):
    """Raises `UserError` if `hparams.json` describes a model that is much larger or deeper than the checkpoint.

    Args:
        checkpoint: str, without suffix.
        config: dict, the contents of `hparams.json`.
        name: str, the model's name in the checkpoint.
    """
    shapes = saved_shapes(checkpoint, name)
    saved = sum(math.prod(shape) for shape in shapes.values())
    num_parameters, depth = _estimate(hparams_of(config), config)
    if num_parameters <= 2 * saved + _SLACK and depth * _LEAST_WEIGHTS_OF_A_LAYER <= len(shapes):
        return
    # The following check is exact for any model, even if layers share weights, but as slow as building the model, so it
    # comes last.
    check_fits(checkpoint, shapes_of(config), name=name)


def shapes_of(config):
    """Builds the model that a `hparams.json` describes, with weights that have shapes but no values."""
    sizes, features = (config["vocab_size"], config["target_vocab_size"]), registry.problem(config["problem"]).features
    return shapes_only(registry.model(config["model"]), hparams_of(config), *sizes, features)


def _estimate(h, config):
    """Returns (approximate number of a Transformer's parameters, number of layers in its deeper stack)."""
    depths = h.num_encoder_layers or h.num_hidden_layers, h.num_decoder_layers or h.num_hidden_layers
    keys, values = h.attention_key_channels or h.hidden_size, h.attention_value_channels or h.hidden_size
    layer = 2 * h.hidden_size * (h.filter_size + keys + values)
    positions = 2 * h.max_position if h.pos == "emb" else 0
    pieces = config["vocab_size"] + (config["target_vocab_size"] or 0)
    embeddings = (h.embedding_size or h.hidden_size) * pieces
    rest = h.hidden_size * (positions + 2 * h.max_relative_position)
    return sum(depths) * layer + embeddings + rest, max(depths)

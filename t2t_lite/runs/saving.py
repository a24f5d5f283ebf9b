"""Writes a model trained by Keras' `fit` or another program as an output_dir that all commands can open."""

import os

import keras
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.base_problem import Problem
from t2t_lite.data.folder import encoder_files
from t2t_lite.errors import UserError
from t2t_lite.files import copy_files, folders, plain_folder
from t2t_lite.models.arguments import differing_settings, model_hparams
from t2t_lite.runs.run_config import build_model, merged_config, run_config, write_run_config
from t2t_lite.runs.weights import trackable_weights
from t2t_lite.settings.config import HParams
from t2t_lite.settings.ranges import COUNT, typed_value
from t2t_lite.text.vocabulary import vocabulary_sizes


def save_run(
    model: keras.Model,
    output_dir: str,
    *,
    problem: Problem | str,
    data_dir: str,
    hparams: HParams | str | None = None,
    hparams_set: str = "",
    usr_dir: str = "",
    step: int | None = None,
) -> str:
    """Writes a model as a run that t2t-decoder, t2t-exporter, t2t-eval and `Translator.load` can open.

    t2t-trainer cannot resume the run, because the optimizer's state is missing. A new run can start from the
    weights with `--warm_start_from`.

    Args:
        model: a registered and built model, such as `Transformer`.
        output_dir: str, a new or empty folder, which appears only when it is complete.
        problem: Problem, or the name of a problem.
        data_dir: str, the folder in which t2t-datagen wrote the vocabulary.
        hparams: HParams with which the model was made and trained. By default they are derived from the model's
            `config`, and all other settings take the paper's values.
        hparams_set: str, name of the set of `hparams`, or "".
        usr_dir: str, the user's folder that registers the problem or the model; its path is stored for the commands.
        step: int, the number of training steps; by default, the number that the model's optimizer has counted.

    Returns:
        The path of the checkpoint, without suffix.

    Raises:
        UserError: model, vocabulary and hyperparameters do not match, `output_dir` is not empty, or `step` is out of
            range.
        Failure: writing failed. No files are left behind.
    """
    problem = registry.problem(problem) if isinstance(problem, str) else problem
    name = getattr(type(model), "REGISTERED_NAME", None)
    if name is None or registry.model(name) is not type(model):
        raise UserError(
            f"{type(model).__name__}: the model is not registered. Expected @registry.register_model on its class."
        )
    if not model.built:
        raise UserError(
            f"{type(model).__name__}: the model has no weights yet. Expected a model that was fitted or called."
        )
    hparams = _hparams(model, hparams)
    encoders, vocabulary = problem.get_feature_encoders(data_dir), encoder_files(problem, data_dir)
    vocab_size, target_vocab_size = vocabulary_sizes(encoders)
    sizes = vocab_size, target_vocab_size or vocab_size
    of_model = getattr(model, "vocab_size", sizes[0]), getattr(model, "target_vocab_size", sizes[1])
    if of_model != sizes:
        raise UserError(
            f"{data_dir}: the vocabulary of {problem.full_name} has {sizes[0]:,} ids for inputs and {sizes[1]:,} for "
            f"targets, but the model has {of_model[0]:,} and {of_model[1]:,}. Expected the data on which the model was "
            "trained."
        )
    if step is None:
        step = int(model.optimizer.iterations) if getattr(model, "optimizer", None) else 0
    step = typed_value("step", step, int, COUNT)
    config = run_config(problem.full_name, name, hparams, encoders, hparams_set=hparams_set, usr_dir=usr_dir)
    config = merged_config(config)  # assumes that the model has no LoRA; otherwise `fill` raises an error
    model_config = getattr(model, "config", None) or {}
    config["target_vocab_size"] = model_config.get("target_vocab_size", target_vocab_size)

    def prepare(folder):
        copy_files(vocabulary, folder)
        return config

    def fill(built):
        if [w.shape for w in built.weights] != [w.shape for w in model.weights]:
            raise UserError(f"{name}: a model with these hyperparameters would have weights of different shapes.")
        for weight, value in zip(built.weights, model.weights, strict=True):
            weight.assign(value)

    return write_run(output_dir, prepare, fill, step)


def _hparams(model, hparams):
    hparams = None if hparams is None else registry.hparams(hparams)
    if getattr(model, "config", None) is None:
        if hparams is None:
            raise UserError(
                f"{type(model).__name__}: `hparams` is missing. Expected the hyperparameters from which the model was "
                "made."
            )
        return hparams
    if hparams is None:
        return model_hparams(model, HParams())
    if differing := differing_settings(model, hparams):
        (option, (value, actual)), *_ = differing.items()
        raise UserError(
            f"hparams: {option}={value}, but the model was made with {actual}. Expected the hyperparameters from which "
            "the model was made. Without `hparams`, they are derived from the model."
        )
    if "dtype_policy" not in hparams.said:
        return hparams.override_from_dict({"dtype_policy": model.dtype_policy.name})
    return hparams


def write_run(output_dir, prepare, fill, step=0):
    """Writes the settings, vocabulary and checkpoint that commands need to use a trained model.

    Args:
        output_dir: str, a new or empty folder, which appears only when it is complete.
        prepare: function that writes the vocabulary to the given folder, and returns the config for `write_run_config`.
        fill: function that sets the weights of the given built model.
        step: int, the number of training steps.

    Returns:
        The path of the checkpoint, without suffix.

    Raises:
        UserError: `output_dir` is not empty, or the settings are invalid.
        Failure: writing failed. No files are left behind.
    """
    with folders.new_folder(output_dir) as folder:
        config = prepare(folder)
        model = build_model(config)
        fill(model)
        write_run_config(folder, config)
        checkpoint = tf.train.Checkpoint(model=trackable_weights(model), step=tf.Variable(step, dtype=tf.int64))
        tf.train.CheckpointManager(checkpoint, plain_folder(folder), max_to_keep=1, checkpoint_name="model.ckpt").save(
            step
        )
    return os.path.join(output_dir, f"model.ckpt-{step}")


def write_imported_run(output_dir, problem, hold, *, model, hparams, fill, hparams_set="", step=0):
    """Writes a run like `write_run`, for an imported model and a problem on the user's own files.

    The problem has no files yet; t2t-datagen can generate its data with `--vocab_from=<output_dir>`.

    Args:
        output_dir: str, a new or empty folder, which appears only when it is complete.
        problem: str, name of the problem, such as translate_own.
        hold: function that takes (problem, folder) and writes the vocabulary to the folder, using `hold_vocabulary` or
            `hold_vocabularies`.
        model: str, the model's name.
        hparams: HParams of the model.
        fill: function that sets the weights of the given built model.
        hparams_set: str, name of the set of `hparams`, or "".
        step: int, the number of training steps of the model.

    Returns:
        The path of the checkpoint, without suffix.

    Raises:
        UserError: `output_dir` is not empty, or settings or vocabularies are invalid.
        Failure: writing failed. No files are left behind.
    """

    def prepare(folder):
        own_problem = registry.problem(problem)
        hold(own_problem, folder)
        encoders = own_problem.get_feature_encoders(folder)
        usr_dir = registry.usr_dir_of(type(own_problem)) or registry.usr_dir_of(registry.model(model))
        return run_config(own_problem.name, model, hparams, encoders, hparams_set=hparams_set, usr_dir=usr_dir)

    return write_run(output_dir, prepare, fill, step)

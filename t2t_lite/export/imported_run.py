"""Writes the output_dir of a model that another program has trained."""

import os

import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.files import INCOMPLETE, plain_folder
from t2t_lite.errors import Failure, UserError
from t2t_lite.models.run_config import build_model, write_run_config
from t2t_lite.models.weights import trackable_weights

PROBLEM = "translate_own"


def write_imported_run(output_dir, *, hparams, languages, vocabularies, ending, fill, hparams_set="", step=0):
    """Writes settings, vocabulary and a checkpoint: what every command needs that uses a trained model.

    The run is one of `translate_own` without corpora: t2t-datagen makes data for it by `--vocab_from=<output_dir>`.

    Args:
        output_dir: str, which does not exist yet, or is empty. It appears when all is written.
        hparams: HParams of the Transformer.
        languages: (of the inputs, of the targets).
        vocabularies: {"inputs": bytes, "targets": bytes}, the contents of the vocabularies' files; equal: one for both.
        ending: str, of these files: ".model" or ".subwords".
        fill: function of the built model, that gives its weights their values.
        hparams_set: str, name of the set that `hparams` come from, or "".
        step: int, the updates that the model was trained for.

    Returns:
        The path of the checkpoint, without suffix.

    Raises:
        UserError: `output_dir` holds something, or settings or vocabularies that no model can have.
        Failure: writing failed; nothing is left behind.
    """
    check_new(output_dir)
    temporary = output_dir.rstrip("/") + INCOMPLETE
    try:
        if tf.io.gfile.exists(temporary):
            tf.io.gfile.rmtree(temporary)
        tf.io.gfile.makedirs(temporary)
        problem = registry.problem(PROBLEM)
        problem.hold_vocabularies(temporary, languages, vocabularies, ending)
        encoders = problem.get_feature_encoders(temporary)
        is_shared = encoders["inputs"].fingerprint == encoders["targets"].fingerprint
        config = {
            "problem": PROBLEM,
            "model": "transformer",
            "hparams_set": hparams_set,
            "vocab_size": encoders["inputs"].vocab_size,
            "target_vocab_size": None if is_shared else encoders["targets"].vocab_size,
            "vocabulary_sha256": {side: encoder.fingerprint for side, encoder in encoders.items()},
            "usr_dir": "",
            "hparams": hparams.values(),
        }
        model = build_model(config)
        fill(model)
        write_run_config(temporary, config)
        checkpoint = tf.train.Checkpoint(model=trackable_weights(model), step=tf.Variable(step, dtype=tf.int64))
        tf.train.CheckpointManager(
            checkpoint, plain_folder(temporary), max_to_keep=1, checkpoint_name="model.ckpt"
        ).save(step)
        if tf.io.gfile.exists(output_dir):
            tf.io.gfile.rmtree(output_dir)  # it is empty
        tf.io.gfile.rename(temporary, output_dir)
    except BaseException as error:
        if tf.io.gfile.exists(temporary):
            tf.io.gfile.rmtree(temporary)
        if isinstance(error, tf.errors.OpError | OSError):
            raise Failure(f"{output_dir}: could not be written: {str(error).splitlines()[0]}") from error
        raise
    return os.path.join(output_dir, f"model.ckpt-{step}")


def check_new(output_dir):
    """Raises `UserError` unless `output_dir` can be made, or is an empty folder."""
    try:
        if not tf.io.gfile.exists(output_dir):
            tf.io.gfile.makedirs(output_dir)
            tf.io.gfile.rmtree(output_dir)
        elif not tf.io.gfile.isdir(output_dir) or tf.io.gfile.listdir(output_dir):
            raise UserError(f"--output_dir={output_dir}: holds something already. Expected a new folder.")
    except tf.errors.OpError as error:
        raise UserError(f"--output_dir={output_dir}: cannot be made: {str(error).splitlines()[0]}") from None

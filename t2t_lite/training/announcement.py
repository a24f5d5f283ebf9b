"""Logs the start of a run: devices, data, model, batches, and whether it is reproducible."""

import logging

import keras
import numpy as np

from t2t_lite.errors import counted

_LOGGER = logging.getLogger("t2t_lite")


def announce(config, data, model, replicas, accumulation, output_dir, gives_up=()):
    """Logs the start of a run.

    Args:
        config: dict, as in `hparams.json`.
        data: TrainingData.
        model: keras.Model, built.
        replicas: Replicas.
        accumulation: int, batches that each replica accumulates per step.
        output_dir: str.
        gives_up: list of str, the settings that make the run not reproducible, and their purpose.
    """
    hparams, replicas_count = config["hparams"], replicas.count
    weights = sum(int(np.prod(v.shape)) for v in model.trainable_variables)
    left_out = f" ({data.dropped:,} longer than {data.max_length} ids are left out)" if data.dropped else ""
    kept = "" if accumulation == hparams["gradient_accumulation_steps"] else ", to keep the batches of a step"
    exactly = f"but for: {'; '.join(gives_up)}" if gives_up else "the same command on this machine gives the same bits"
    compiled = []
    if data.ladder:
        each = "" if replicas_count == 1 else ", on each replica"
        shapes = f"{len(data.ladder.shapes)} shapes (rows x inputs x targets)"
        compiled = [f"XLA compiles {shapes}, each when it first comes{each}: {data.ladder}"]
    for line in (
        replicas.description,
        f"problem {config['problem']}: {data.examples:,} training examples{left_out}",
        f"model {config['model']}, set {config['hparams_set'] or '(own)'}: {weights:,} parameters, "
        f"{hparams['dtype_policy']}",
        f"batches: up to {hparams['batch_size']:,} tokens a replica, "
        f"{hparams['batch_size'] * replicas_count * accumulation:,} tokens a step (all replicas): "
        f"{counted(replicas_count, 'replica')}, accumulation {accumulation}{kept}",
        *compiled,
        f"seed {hparams['random_seed']}: reproducible, {exactly}",
        f"output: {output_dir}",
    ):
        _LOGGER.info(line)
    if not replicas.is_chief:
        _LOGGER.info("the first worker's log tells of the training")
        _LOGGER.setLevel(logging.WARNING)
    if any(isinstance(layer, keras.layers.Dropout) for layer in model._flatten_layers()):
        _LOGGER.warning(
            f"model {config['model']} has keras.layers.Dropout, whose masks neither resume exactly nor differ between "
            "replicas. Use t2t_lite.layers.Dropout."
        )

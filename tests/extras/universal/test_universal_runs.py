"""Runs of a Universal Transformer: on replicas, in parts, compiled, and with activations that are computed again."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.layers import dropout_seed
from t2t_lite.models import UniversalTransformer
from t2t_lite.training.objectives import mean_loss, objective_sums
from tests.training.runs import assert_replicas_and_parts_give_one_run, trainer

SET = "adaptive_universal_transformer_position_random_timing_tiny"
HPARAMS = (
    "hidden_size=16,filter_size=24,num_heads=2,batch_size=128,layer_prepostprocess_dropout=0.2,act_max_steps=2,"
    "learning_rate_schedule=constant,learning_rate_constant=0.001"
)
IDS = {
    "inputs": np.array([[3, 4, 5, 6, 1], [7, 8, 1, 0, 0]], "int32"),
    "targets": np.array([[6, 5, 4, 3, 1, 0], [8, 7, 9, 9, 9, 1]], "int32"),
}


def run(data_dir, output_dir, hparams="", **more):
    found = trainer(data_dir, output_dir, "", hparams_set=SET, model="universal_transformer", **more)
    found.hparams = registry.hparams(SET).of_model(UniversalTransformer).parse(HPARAMS + hparams)
    return found


@pytest.mark.long
def test_eight_replicas_and_a_run_in_parts_give_one_run(data_dir, tmp_path):
    """Also of random starts, which come from the step's seed, and of ponder costs, by the counts of all replicas."""
    assert_replicas_and_parts_give_one_run(functools.partial(run, data_dir), tmp_path, 8)


def gradients(compiled=False, recompute=False):
    """Returns {path: gradient} of one training step of a model, always the same one."""
    keras.utils.set_random_seed(3)
    hparams = registry.hparams(SET).of_model(UniversalTransformer).parse(HPARAMS)
    model = UniversalTransformer.from_hparams(hparams, 12, recompute_grad=recompute)

    def step():
        with tf.GradientTape() as tape, dropout_seed(tf.constant(5), 1, in_xla=compiled):
            sums = objective_sums(model(IDS, training=True), IDS, 0.1)
            loss = mean_loss(sums, {name: tf.constant(float((ids != 0).sum())) for name, ids in IDS.items()})
        return tape.gradient(loss, [weight.value for weight in model.trainable_weights])

    found = (tf.function(step, jit_compile=True) if compiled else step)()
    paths = [weight.path.partition("/")[2] for weight in model.trainable_weights]
    return {path: tf.convert_to_tensor(gradient).numpy() for path, gradient in zip(paths, found, strict=True)}


@pytest.fixture(scope="module")
def plain():
    return gradients()


def test_every_weight_has_a_gradient(plain):
    assert {"encoder/encoder_halting/gate/kernel", "decoder/decoder_signals/table"} <= plain.keys()
    for path, gradient in plain.items():
        assert np.abs(gradient).max() > 0, path


@pytest.mark.slow
@pytest.mark.parametrize("way", ["recompute", pytest.param("compiled", marks=pytest.mark.long)])
def test_recomputed_and_compiled_it_has_the_same_gradient(plain, way):
    for path, gradient in gradients(**{way: True}).items():
        scale = np.abs(plain[path]).max()
        np.testing.assert_allclose(gradient, plain[path], atol=1e-5 * max(scale, 1), err_msg=path)

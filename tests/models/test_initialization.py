"""How weights begin, as docs/hparams_sets.md says."""

# Nearest tests of: t2t_lite/models/transformer_parts.py, t2t_lite/layers/base.py

import keras
import numpy as np
import pytest

from t2t_lite.errors import UserError
from t2t_lite.models import Transformer
from t2t_lite.settings.config import HParams

SIZES = HParams().parse("hidden_size=96,filter_size=160,num_heads=4,num_hidden_layers=1,pos=emb,attention_bias=1")
CHANGES = "attention_key_channels=48,self_attention_type=dot_product_relative,max_relative_position=40"


@pytest.fixture(scope="module")
def weights():
    """Path -> value, of a model with every kind of weight."""
    keras.utils.set_random_seed(5)
    model = Transformer.from_hparams(SIZES.parse(CHANGES), 500)
    return {weight.path: keras.ops.convert_to_numpy(weight) for weight in model.trainable_weights}


def test_matrices_are_glorot_uniform_each_by_its_own_size(weights):
    matrices = {path: w for path, w in weights.items() if path.endswith(("kernel", "key_table"))}
    assert len(matrices) == 3 * 4 + 2 * 2 + 2
    for path, matrix in matrices.items():
        limit = np.sqrt(6 / sum(matrix.shape))
        assert np.abs(matrix).max() == pytest.approx(limit, rel=0.01), path
        assert matrix.std() == pytest.approx(limit / np.sqrt(3), rel=0.05), path
        assert abs(matrix.mean()) < 0.05 * limit, path


def test_embeddings_and_learned_positions_are_normal_with_unit_variance_after_scaling(weights):
    tables = {path: w for path, w in weights.items() if path.endswith(("embeddings", "/table"))}
    assert len(tables) == 3
    for path, table in tables.items():
        assert table.std() * np.sqrt(96) == pytest.approx(1, rel=0.02), path
        assert np.abs(table).max() > 3.5 * table.std(), path  # neither uniform nor cut off at two deviations


@pytest.mark.parametrize(
    "name, gain, deviation",
    [
        ("uniform_unit_scaling", 0.25, lambda shape: np.sqrt(0.25 / np.mean(shape))),
        ("normal_unit_scaling", 2.0, lambda shape: np.sqrt(2 / np.mean(shape))),
        ("uniform", 0.5, lambda shape: 0.05 / np.sqrt(3)),
        ("normal", 0.02, lambda shape: 0.02),
        ("orthogonal", 3.0, lambda shape: 3 / np.sqrt(max(shape))),
    ],
)
def test_initializers_of_tensor2tensor(name, gain, deviation):
    hparams = SIZES.parse(f"initializer={name},initializer_gain={gain}")
    for weight in Transformer.from_hparams(hparams, 50).trainable_weights:
        if weight.path.endswith("kernel"):
            value = keras.ops.convert_to_numpy(weight)
            assert value.std() == pytest.approx(deviation(value.shape), rel=0.05), weight.path
        elif weight.path.endswith(("embeddings", "/table")):
            value = keras.ops.convert_to_numpy(weight)
            assert value.std() == pytest.approx(gain if name == "normal" else 96**-0.5, rel=0.05), weight.path


def test_orthogonal_matrices_of_16_bits():
    hparams = SIZES.parse("initializer=orthogonal,dtype_policy=bfloat16")
    kernels = [w for w in Transformer.from_hparams(hparams, 50).trainable_weights if w.path.endswith("kernel")]
    for kernel in (keras.ops.convert_to_numpy(keras.ops.cast(weight, "float32")) for weight in kernels):
        thin = kernel if kernel.shape[0] >= kernel.shape[1] else kernel.T
        np.testing.assert_allclose(thin.T @ thin, np.eye(thin.shape[1]), atol=0.02)


def test_an_unknown_initializer_is_named():
    with pytest.raises(UserError, match=r"`initializer` must be one of uniform_unit_scaling, .*received .*'magic'"):
        Transformer.from_hparams(SIZES.parse("initializer=magic"), 50)


def test_biases_are_0_and_scales_1(weights):
    vectors = {path: w for path, w in weights.items() if w.ndim == 1}
    assert len(vectors) == 3 * 4 + 2 * 2 + 5 * 2
    for path, vector in vectors.items():
        np.testing.assert_array_equal(vector, 1.0 if path.endswith("gamma") else 0.0, path)

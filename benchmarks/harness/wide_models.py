"""Gives a trained model the sizes of a larger one, to measure speed without training the larger one for days.

Every feature is repeated `factor` times, and layers that add nothing follow the trained layers. The large model
therefore has the same outputs as the trained model, including hypotheses and scores, while every matrix product is as
large as in a real model of this size. The additional ids are never probable.
"""

import keras
import numpy as np
from keras import ops

from t2t_lite.models import Transformer


def widened(model, factor, num_heads, num_layers, vocab_size):
    """Returns a Transformer with hidden and filter sizes `factor` times those of `model`, and the same logits.

    Args:
        model: Transformer, pre-norm, tied embeddings, one vocabulary, sinusoids, no attention biases.
        factor: int.
        num_heads: int, a multiple of `model.num_heads` and a divisor of `factor * model.num_heads`.
        num_layers: int, number of encoder layers and of decoder layers, at least as in `model`.
        vocab_size: int, at least as in `model`.
    """
    config = model.config
    assert config["norm"] == "pre" and config["tie_embeddings"] and not config["attention_bias"]
    head_copies = num_heads // config["num_heads"]
    keras.utils.set_random_seed(1)
    wide = Transformer(
        **{
            **config,
            "vocab_size": vocab_size,
            "hidden_size": factor * config["hidden_size"],
            "filter_size": factor * config["filter_size"],
            "num_heads": num_heads,
            "num_encoder_layers": num_layers,
            "num_decoder_layers": num_layers,
            "norm_epsilon": 1e-5,  # as in Hugging Face
            "position": "learned",  # a table, because the sinusoids of a larger model differ
        }
    )
    wide.build()
    matrix = _array(model.input_embedding.embeddings)
    matrix[0] = 0
    matrix = np.concatenate([matrix, _improbable(matrix, vocab_size - len(matrix))])
    wide.input_embedding.embeddings.assign(np.tile(matrix, factor) / factor**0.5)  # the look-up multiplies by √hidden
    table = _array(model.encoder_position.encode(ops.arange(config["max_position"])))
    for position in (wide.encoder_position, wide.decoder_position):
        position.table.assign(np.tile(table, factor))
    for narrow_layers, wide_layers in (
        (model.encoder.layers, wide.encoder.layers),
        (model.decoder.layers, wide.decoder.layers),
    ):
        for i, layer in enumerate(wide_layers):
            if i < len(narrow_layers):
                _fill_layer(layer, narrow_layers[i], config["num_heads"], head_copies, factor)
            else:
                _silence(layer)
    _fill_norm(wide.encoder_norm, model.encoder_norm, factor)
    _fill_norm(wide.decoder_norm, model.decoder_norm, factor, factor**-0.5)  # the softmax sums `factor` equal products
    return wide


def _fill_layer(wide, narrow, heads, head_copies, factor):
    for name in ("self_attention", "cross_attention"):
        if hasattr(narrow, name):
            old, new = getattr(narrow, name), getattr(wide, name)
            _fill_norm(new.normalization, old.normalization, factor)
            _fill_attention(new.layer, old.layer, heads, head_copies, factor)
    old, new = narrow.feed_forward, wide.feed_forward
    _fill_norm(new.normalization, old.normalization, factor)
    for dense in ("inner", "outer"):
        ours, theirs = getattr(new.layer, dense), getattr(old.layer, dense)
        ours.kernel.assign(np.tile(_array(theirs.kernel), (factor, factor)) / factor)
        ours.bias.assign(np.tile(_array(theirs.bias), factor))


def _fill_attention(wide, narrow, heads, head_copies, factor):
    size_copies = factor // head_copies
    for role in ("query", "key", "value"):
        kernel = _array(getattr(narrow, f"{role}_projection").kernel)  # [hidden, heads * size]
        kernel = kernel.reshape(len(kernel), heads, -1)
        kernel = np.tile(kernel, (factor, head_copies, size_copies)) / factor
        if role == "query":
            kernel = kernel / size_copies**0.5  # scores sum `size_copies` equal products, and are divided by √size
        getattr(wide, f"{role}_projection").kernel.assign(kernel.reshape(len(kernel), -1))
    kernel = _array(narrow.output_projection.kernel)  # [heads * size, hidden]
    kernel = np.tile(kernel.reshape(heads, -1, kernel.shape[1]), (head_copies, size_copies, factor)) / factor
    wide.output_projection.kernel.assign(kernel.reshape(-1, kernel.shape[-1]))


def _silence(layer):
    """Makes a layer add nothing to the residual stream, while its cost stays the same."""
    for name in ("self_attention", "cross_attention"):
        if hasattr(layer, name):
            kernel = getattr(layer, name).layer.output_projection.kernel
            kernel.assign(ops.zeros_like(kernel))
    outer = layer.feed_forward.layer.outer
    outer.kernel.assign(ops.zeros_like(outer.kernel))


def _fill_norm(wide, narrow, factor, scale=1.0):
    wide.gamma.assign(np.tile(_array(narrow.gamma), factor) * scale)
    wide.beta.assign(np.tile(_array(narrow.beta), factor) * scale)


def _improbable(matrix, count):
    """Returns embedding rows for `count` ids: near the mean of the rows of rare ids, but four times as long."""
    rare = matrix[-len(matrix) // 8 :]
    noise = np.random.default_rng(1).normal(scale=0.01, size=(count, matrix.shape[1]))
    return (4 * rare.mean(0) + noise).astype("float32")


def _array(weight):
    return np.array(ops.convert_to_numpy(weight), "float32")

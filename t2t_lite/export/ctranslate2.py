"""Models for CTranslate2: its own specification, filled with our weights; neither torch nor a tokenizer is needed."""

import numpy as np
from keras import ops

from t2t_lite.data.vocabulary import EOS_ID
from t2t_lite.errors import UserError

PAD, EOS = "<pad>", "</s>"


def model_spec(model, tokens):
    """Returns the `ctranslate2.specs.TransformerSpec` that computes what a Transformer does.

    Args:
        model: Transformer, built.
        tokens: {"inputs": list of str, "targets": list of str}, the pieces of both vocabularies in the order of ids.

    Raises:
        UserError: an option of the model that CTranslate2 does not have; the message names it.
    """
    from ctranslate2.specs import TransformerSpec
    from ctranslate2.specs.common_spec import Activation

    config = model.config
    _check_supported(config)
    activations = {"relu": Activation.RELU, "gelu": Activation.GELU}
    spec = TransformerSpec.from_config(
        (config["num_encoder_layers"], config["num_decoder_layers"]),
        config["num_heads"],
        pre_norm=config["norm"] == "pre",
        activation=activations[config["activation"]],
    )
    spec.decoder.start_from_zero_embedding = True
    spec.encoder.embeddings[0].weight = _without_padding(model.input_embedding)
    spec.decoder.embeddings.weight = _without_padding(model.target_embedding)
    spec.decoder.projection.weight = _array(model.softmax.embeddings)
    for side, position in ((spec.encoder, model.encoder_position), (spec.decoder, model.decoder_position)):
        side.scale_embeddings = True
        side.position_encodings.encodings = _positions(position, config)
    if config["target_space_embedding"]:  # one more vector at every position
        spec.encoder.position_encodings.encodings += _array(model.target_space)
    for layer, theirs in zip(model.encoder_layers, spec.encoder.layer, strict=True):
        _fill_self_attention(layer.self_attention, theirs.self_attention)
        _fill_feed_forward(layer.feed_forward, theirs.ffn)
    for layer, theirs in zip(model.decoder_layers, spec.decoder.layer, strict=True):
        _fill_self_attention(layer.self_attention, theirs.self_attention)
        _fill_cross_attention(layer.cross_attention, theirs.attention)
        _fill_feed_forward(layer.feed_forward, theirs.ffn)
    if config["norm"] == "pre":
        _fill_norm(model.encoder_norm, spec.encoder.layer_norm)
        _fill_norm(model.decoder_norm, spec.decoder.layer_norm)
    spec.register_source_vocabulary(tokens["inputs"])
    spec.register_target_vocabulary(tokens["targets"])
    spec.config.unk_token, spec.config.bos_token = tokens["targets"][2], tokens["targets"][0]
    spec.config.eos_token = spec.config.decoder_start_token = tokens["targets"][EOS_ID]
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.config.layer_norm_epsilon = config["norm_epsilon"]
    return spec


def _check_supported(config):
    head_size = config["hidden_size"] // config["num_heads"]
    for name, supported in (
        ("activation", ("relu", "gelu")),
        ("max_relative_position", (None,)),
        ("neighborhood", (None,)),
        ("position", ("sinusoidal", "learned")),
        ("key_dim", (None, head_size)),
        ("value_dim", (None, head_size)),
    ):
        if config[name] not in supported:
            raise UserError(f"CTranslate2 has no Transformer with {name}={config[name]}.")


def _positions(layer, config):
    """float32 [max_position, hidden]."""
    if config["position"] == "learned":
        return _array(layer.table)
    return _array(layer.encode(ops.arange(config["max_position"])))


def _without_padding(embedding):
    """Our padding embeds to zero whatever its row; as an output its row counts."""
    matrix = _array(embedding.embeddings)
    matrix[0] = 0
    return matrix


def _fill_self_attention(residual, theirs):
    attention = residual.layer
    _fill_dense([attention.query_projection, attention.key_projection, attention.value_projection], theirs.linear[0])
    _fill_dense([attention.output_projection], theirs.linear[1])
    _fill_norm(residual.normalization, theirs.layer_norm)


def _fill_cross_attention(residual, theirs):
    attention = residual.layer
    _fill_dense([attention.query_projection], theirs.linear[0])
    _fill_dense([attention.key_projection, attention.value_projection], theirs.linear[1])
    _fill_dense([attention.output_projection], theirs.linear[2])
    _fill_norm(residual.normalization, theirs.layer_norm)


def _fill_feed_forward(residual, theirs):
    _fill_dense([residual.layer.inner], theirs.linear_0)
    _fill_dense([residual.layer.outer], theirs.linear_1)
    _fill_norm(residual.normalization, theirs.layer_norm)


def _fill_dense(layers, theirs):
    """Several projections become one, their outputs side by side. CTranslate2 holds [outputs, inputs]."""
    theirs.weight = np.ascontiguousarray(np.concatenate([_array(layer.kernel) for layer in layers], axis=1).T)
    if layers[0].use_bias:
        theirs.bias = np.concatenate([_array(layer.bias) for layer in layers])


def _fill_norm(norm, theirs):
    theirs.gamma, theirs.beta = _array(norm.gamma), _array(norm.beta)


def _array(weight):
    return np.array(ops.convert_to_numpy(weight), "float32")

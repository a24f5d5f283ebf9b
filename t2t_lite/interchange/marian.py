"""Converts between our weights and the names and layouts of Hugging Face's MarianMTModel.

Dense kernels are [inputs, outputs] here and [outputs, inputs] there. Marian's sinusoids are sines, then cosines; the
paper's alternate. A Transformer computes the same if the hidden features of all its weights are permuted alike, so one
permutation converts the paper's layout to Marian's.
"""

from typing import NamedTuple

import numpy as np
from keras import ops

# A logit that no search chooses, but small enough to be summed, since label smoothing sums all logits.
NEVER = -100.0


class Part(NamedTuple):
    """A layer's weight in both models.

    Attributes:
        name: str, Marian's name.
        owner: our layer.
        attribute: str, of `owner`: the weight.
        hidden_axis: int, the axis of the hidden features in our weight, or None.
        is_added: bool, whether its output is added to the hidden features.
    """

    name: str
    owner: object
    attribute: str
    hidden_axis: int | None
    is_added: bool = False

    def value(self):
        """Returns our weight, float32; zeros for a projection without bias."""
        return rows(self.owner, self.attribute)


def marian_state(model):
    """Returns {name in MarianMTModel's state dict: float32 array} of a Transformer.

    The caller has checked that Marian supports the model. Marian starts decoding from the padding's row, which is zero;
    if the softmax shares that row, a bias of -100 replaces its logit. Tied matrices occur only once.
    """
    config, order = model.config, hidden_order(model.config)
    source, target = (rows(embedding)[:, order] for embedding in (model.input_embedding, model.target_embedding))
    source[0] = target[0] = 0
    if shares_embeddings(config):
        state = {"model.shared.weight": target}
    else:
        state = {"model.encoder.embed_tokens.weight": source, "model.decoder.embed_tokens.weight": target}
    if not config["tie_embeddings"]:
        state["lm_head.weight"] = rows(model.softmax)[:, order]
    state["final_logits_bias"] = logits_bias(model)
    for part in parts(model):
        array = part.value()
        if part.hidden_axis is not None:
            array = np.take(array, order, axis=part.hidden_axis)
        state[part.name] = np.ascontiguousarray(array.T)
    return state


def logits_bias(model):
    """Returns a Transformer's logits bias, float32 [1, ids], with -100 for padding if the softmax is tied."""
    config, size = model.config, model.target_vocab_size
    bias = rows(model.softmax, "bias") if config["softmax_bias"] else np.zeros(size, "float32")
    if config["tie_embeddings"]:
        bias[0] = NEVER
    return bias[None]


def fill(model, take):
    """Fills a Transformer with the weights of a MarianMTModel, except embeddings and softmax.

    Args:
        model: Transformer, built, with attention's biases and position_layout="marian".
        take: function of (name, shape) that returns the tensor of that name, an array of that shape.
    """
    for part in parts(model):
        variable = getattr(part.owner, part.attribute)
        variable.assign(take(part.name, tuple(reversed(variable.shape))).T)


def hidden_order(config):
    """Returns int [hidden], for each of Marian's hidden features the index of ours."""
    size = config["hidden_size"]
    if config["position_layout"] == "interleaved":
        return np.r_[0:size:2, 1:size:2]
    return np.arange(size)


def shares_embeddings(config):
    """Whether inputs, targets and softmax share one matrix."""
    return config["tie_embeddings"] and config["target_vocab_size"] is None


def parts(model):
    """Yields the Parts of all layers of both stacks."""
    stacks = (("encoder", model.encoder.layers), ("decoder", model.decoder.layers))
    for stack, number, layer in ((s, i, layer) for s, layers in stacks for i, layer in enumerate(layers)):
        prefix = f"model.{stack}.layers.{number}"
        attentions = [("self_attn", layer.self_attention)]
        if stack == "decoder":
            attentions.append(("encoder_attn", layer.cross_attention))
        for name, residual in attentions:
            for role, theirs in (("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj")):
                yield from _reads(f"{prefix}.{name}.{theirs}", getattr(residual.layer, f"{role}_projection"))
            yield from _writes(f"{prefix}.{name}.out_proj", residual.layer.output_projection)
            yield from norm_parts(f"{prefix}.{name}_layer_norm", residual.normalization)
        yield from _reads(f"{prefix}.fc1", layer.feed_forward.layer.inner)
        yield from _writes(f"{prefix}.fc2", layer.feed_forward.layer.outer)
        yield from norm_parts(f"{prefix}.final_layer_norm", layer.feed_forward.normalization)


def _reads(name, dense):
    """Yields the Parts of a layer that reads the hidden features."""
    yield Part(f"{name}.weight", dense, "kernel", 0)
    yield Part(f"{name}.bias", dense, "bias", None)


def _writes(name, dense):
    """Yields the Parts of a layer whose outputs are added to the hidden features."""
    yield Part(f"{name}.weight", dense, "kernel", 1, is_added=True)
    yield Part(f"{name}.bias", dense, "bias", 0, is_added=True)


def norm_parts(name, norm):
    """Yields the Parts of a normalization."""
    yield Part(f"{name}.weight", norm, "gamma", 0)
    yield Part(f"{name}.bias", norm, "beta", 0)


def rows(layer, attribute="embeddings"):
    """Returns a copy of a layer's weight, float32; zeros for a dense layer, or an embedding, without bias."""
    if getattr(layer, attribute, None) is None:
        return np.zeros(layer.units if hasattr(layer, "units") else layer.vocab_size, "float32")
    return np.array(ops.convert_to_numpy(getattr(layer, attribute)), "float32")

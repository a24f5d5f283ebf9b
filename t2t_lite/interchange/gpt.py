"""The weights of Hugging Face's GPT and GPT-2: one table of their names, for import and export.

Their dense kernels are [inputs, outputs] as ours; the kernels of queries, keys and values are joined to one. GPT is
post-norm and has no final normalisation; GPT-2 is pre-norm.
"""

from typing import NamedTuple

import numpy as np

from t2t_lite.interchange.marian import rows

# Computed when a model is loaded, or stored under another name, too.
UNUSED = (".attn.bias", ".attn.masked_bias", "lm_head.weight")
PREFIX = "transformer."  # which the files of the first models do not have


class Architecture(NamedTuple):
    """What differs between the two.

    Attributes:
        norm: str, of `TransformerLM`.
        embedding, position, final_norm: names of weights there; None: there is none.
        activation: the setting in `config.json`.
        activations: {its value: our activation}; of several the first one is written.
    """

    norm: str
    embedding: str
    position: str
    final_norm: str | None
    activation: str
    activations: dict


_OTHERS = {"relu": "relu", "silu": "swish", "swish": "swish"}
ARCHITECTURES = {
    "gpt2": Architecture(
        "pre", "wte", "wpe", "ln_f", "activation_function",
        {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", **_OTHERS},
    ),
    "openai-gpt": Architecture(
        "post", "tokens_embed", "positions_embed", None, "afn",
        {"gelu": "gelu_tanh", **_OTHERS},
    ),
}  # fmt: skip


class Part(NamedTuple):
    """One tensor there, some weights here.

    Attributes:
        name: str, their name, without prefix.
        weights: list of (layer, attribute); the tensor is their concatenation along the last axis.
        is_by_id: bool, whether rows are ids, which are numbered otherwise there.
    """

    name: str
    weights: list
    is_by_id: bool = False


def kind_of(model):
    """Returns the key in `ARCHITECTURES` of a `TransformerLM`."""
    return next(kind for kind, architecture in ARCHITECTURES.items() if architecture.norm == model.config["norm"])


def parts(model, kind):
    """Yields the Parts of a `TransformerLM` with one matrix of embeddings and a table of positions."""
    architecture = ARCHITECTURES[kind]
    yield Part(f"{architecture.embedding}.weight", [(model.target_embedding, "embeddings")], is_by_id=True)
    yield Part(f"{architecture.position}.weight", [(model.decoder_position, "table")])
    for number, layer in enumerate(model.decoder.layers):
        attention, feed_forward = layer.self_attention, layer.feed_forward
        joined = [getattr(attention.layer, f"{role}_projection") for role in ("query", "key", "value")]
        yield from _dense(f"h.{number}.attn.c_attn", joined)
        yield from _dense(f"h.{number}.attn.c_proj", [attention.layer.output_projection])
        yield from _dense(f"h.{number}.mlp.c_fc", [feed_forward.layer.inner])
        yield from _dense(f"h.{number}.mlp.c_proj", [feed_forward.layer.outer])
        yield from _norm(f"h.{number}.ln_1", attention.normalization)
        yield from _norm(f"h.{number}.ln_2", feed_forward.normalization)
    if architecture.final_norm:
        yield from _norm(architecture.final_norm, model.decoder_norm)


def state(model, published_ids):
    """Returns {their name: float32 array}.

    Args:
        model: TransformerLM that the caller has checked.
        published_ids: list of int by our id: the id there, or -1 for an id that only we have.
    """
    found = {}
    for part in parts(model, kind_of(model)):
        array = np.concatenate([_value(*weight) for weight in part.weights], axis=-1)
        found[PREFIX + part.name] = array[ours_by_theirs(published_ids)] if part.is_by_id else array
    return found


def fill(model, kind, take, published_ids):
    """Sets all weights of a built `TransformerLM`; rows of ids that only we have are zero.

    Args:
        model: TransformerLM with biases in its attention.
        kind: key in `ARCHITECTURES`.
        take: function of (name, shape) that returns the tensor of that name, an array of that shape.
        published_ids: as of `state`.
    """
    order = ours_by_theirs(published_ids)
    for part in parts(model, kind):
        variables = [getattr(layer, attribute) for layer, attribute in part.weights]
        *others, last = variables[0].shape
        if part.is_by_id:
            array = np.zeros((*others, last), "float32")
            array[order] = take(part.name, (len(order), last))
        else:
            array = take(part.name, (*others, last * len(variables)))
        for variable, value in zip(variables, np.split(array, len(variables), axis=-1), strict=True):
            variable.assign(value)


def ours_by_theirs(published_ids):
    """Returns int [their ids], our id of each."""
    ours = {theirs: i for i, theirs in enumerate(published_ids) if theirs >= 0}
    return np.array([ours[theirs] for theirs in range(len(ours))])


def _dense(name, layers):
    yield Part(f"{name}.weight", [(layer, "kernel") for layer in layers])
    yield Part(f"{name}.bias", [(layer, "bias") for layer in layers])


def _norm(name, layer):
    yield Part(f"{name}.weight", [(layer, "gamma")])
    yield Part(f"{name}.bias", [(layer, "beta")])


def _value(layer, attribute):
    """Returns a weight, float32; zeros for a layer without bias."""
    if getattr(layer, attribute, None) is None:
        return np.zeros(layer.units, "float32")
    return rows(layer, attribute)

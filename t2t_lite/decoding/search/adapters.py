"""Adapts models to the decoding interface of `decoding.search.beam_search`, and calls a model's own `search`."""

import tensorflow as tf

from t2t_lite.decoding.search.beam_search import SearchResult
from t2t_lite.errors import LOGGER, UserError, shown
from t2t_lite.layers.checks import shape_of
from t2t_lite.models.outputs import attention_weights, named_outputs
from t2t_lite.settings.search_options import SearchOptions

_INTERFACE = ("encode", "init_cache", "decode_step")


def decodable(model):
    """Returns `model` if it has the decoding interface; otherwise warns and wraps it in a `FullPass`."""
    missing = [name for name in _INTERFACE if not callable(getattr(model, name, None))]
    if not missing:
        return model
    LOGGER.warning(
        f"{type(model).__name__} has no method {', '.join(missing)}, so decoding is slow: every step runs the whole "
        "model. For the interface see t2t_lite.decoding.search.beam_search."
    )
    return FullPass(model)


class FullPass:
    """Adapts a plain model, `model({"inputs", "targets"}) -> logits [B, T, V]`, to the interface of `beam_search`.

    If the model predicts several features, "targets" is decoded. The model itself must shift targets right, as in
    training: logits at position i depend only on the targets before i.
    """

    def __init__(self, model):
        self.model = model
        self.max_length = getattr(model, "max_length", None)

    def encode(self, inputs):
        """Returns int32 [B, S] unchanged, since nothing can be computed in advance."""
        return inputs

    def init_cache(self, memory, max_length, beam_size):
        """Returns a cache of zeros, [B, K, T], for the ids given to the steps. The ids given to step 0 are ignored."""
        batch = shape_of(memory)[0]
        return {"fixed": memory, "beams": tf.zeros((batch, beam_size, max_length), tf.int32)}

    def decode_step(self, ids, position, cache):
        """Returns the logits at `position`, float32 [B*K, V], and the cache to which `ids` were added."""
        beams = cache["beams"]
        ids = tf.reshape(ids, tf.concat([tf.shape(beams)[:2], [1]], 0))  # [B, K, 1]
        beams = tf.where(tf.range(tf.shape(beams)[2]) == position, ids, beams)
        # Later positions have no effect on this step's logits, so they are dropped unless shapes are static.
        known = beams if beams.shape[2] else beams[:, :, : position + 1]
        targets = tf.concat([known[:, :, 1:], tf.zeros_like(ids)], 2)  # step i reads target i - 1
        targets = tf.reshape(targets, (-1, tf.shape(targets)[2]))  # [B*K, T]
        inputs = tf.repeat(cache["fixed"], tf.shape(beams)[1], axis=0)  # [B*K, S]
        logits, _ = named_outputs(self.model({"inputs": inputs, "targets": targets}, training=False))
        return tf.gather(logits["targets"], position, axis=1), cache | {"beams": beams}


class Ensemble:
    """An ensemble, which predicts the mean of its models' probabilities. It has the decoding interface of one model.

    See Sutskever et al. 2014, section 3.6. Beam search, sampling, scoring and alignment use it like a single model.
    Time and memory are the sums over the models.

    Args:
        models: list of models with the same vocabularies, with or without the decoding interface of `beam_search`.

    Raises:
        UserError: a model uses its own search, which does not predict probabilities of the next id.
    """

    def __init__(self, models):
        self.models = list(models)
        for model in filter(searches, self.models):
            refuse(model, "an ensemble")
        self._steppers = [decodable(model) for model in models]
        lengths = [getattr(model, "max_length", None) for model in models]
        self.max_length = min((length for length in lengths if length is not None), default=None)
        self.joins_inputs = any(getattr(model, "joins_inputs", False) for model in models)

    def __call__(self, features, training=False):
        """Returns logits of the mean distribution of targets: {"inputs" [B, S], "targets" [B, T]} -> float32 [B, T, V].

        Other features and the models' own costs are dropped.
        """
        outputs = [named_outputs(model(features, training=training)) for model in self.models]
        return _log_mean([logits["targets"] for logits, _ in outputs])

    def attention_weights(self, features):
        """Returns the mean of the models' attention weights: see `t2t_lite.models.outputs`.

        Raises:
            UserError: the models have different numbers of layers or heads.
        """
        weights = [attention_weights(model, features) for model in self.models]
        try:
            return tf.nest.map_structure(lambda *leaves: tf.add_n(leaves) / len(leaves), *weights)
        except (ValueError, tf.errors.InvalidArgumentError):
            raise UserError(
                "the models of this ensemble have different numbers of layers or heads, so their attention weights "
                "have no mean. Show the attention of one model."
            ) from None

    def encode(self, inputs):
        """Returns each model's memory for inputs int32 [B, S]."""
        return [model.encode(inputs) for model in self._steppers]

    def init_cache(self, memory, max_length, beam_size=1):
        """Joins the models' caches into one, whose "beams" has the leaves that a search reorders."""
        parts = zip(self._steppers, memory, strict=True)
        return _joined([model.init_cache(part, max_length, beam_size) for model, part in parts])

    def decode_step(self, ids, position, cache):
        """Decodes one position of every beam; returns log-probabilities float32 [B * K, V] and the new cache."""
        parts = zip(self._steppers, cache["beams"], cache["shared"], cache["fixed"], strict=True)
        results = [
            model.decode_step(ids, position, {**fixed, "beams": beams, "shared": shared})
            for model, beams, shared, fixed in parts
        ]
        return _log_mean([logits for logits, _ in results]), _joined([cache for _, cache in results])


def _joined(caches):
    """Joins caches to {"beams", "shared", "fixed" (everything else)}, each a list with one part per model."""
    fixed = [{name: part for name, part in cache.items() if name not in ("beams", "shared")} for cache in caches]
    shared = [cache.get("shared", ()) for cache in caches]
    return {"beams": [cache["beams"] for cache in caches], "shared": shared, "fixed": fixed}


def _log_mean(logits):
    """Converts logits of several models, each [..., V], to the log of their mean probabilities, float32 [..., V]."""
    log_probs = tf.stack([tf.nn.log_softmax(tf.cast(one, tf.float32)) for one in logits])
    return tf.reduce_logsumexp(log_probs, 0) - tf.math.log(float(len(logits)))


def check_ensemble(runs):
    """Raises `UserError` for runs that cannot form an ensemble.

    Args:
        runs: list of `t2t_lite.runs.opening.Run`.

    Raises:
        UserError: the problems or vocabularies of the runs differ.
    """
    first = runs[0]
    for run in runs[1:]:
        for name in ("problem", "vocab_size", "target_vocab_size", "vocabulary_sha256"):
            one, other = first.config[name], run.config[name]
            if one != other:
                raise UserError(
                    f"{run.path}: {name} is {shown(other)}, but that of {first.path} is {shown(one)}. The models of an "
                    "ensemble must have the same problem and vocabulary."
                )


# Settings that change which outputs a search finds. A beam size of 4 is the default, so it is not refused.
_MEANINGLESS = ("sampling", "n_best", "no_repeat_ngram_size", "repetition_penalty", "stop", "banned_texts")
_DEFAULTS = SearchOptions()


def searches(model):
    """Returns whether a model defines its own `search`: see `SequenceModel`."""
    return callable(getattr(model, "search", None))


def own_search(model, inputs, limit, options, *, max_length=None, **settings):
    """Runs a model's own search, ignoring options and settings; returns a SearchResult. See `beam_search`."""
    return SearchResult(*model.search(inputs, limit, max_length=max_length)[:3])


def check_own_search(model, options, prefixes=()):
    """Raises `UserError` for options that a model's own search does not support.

    Args:
        model: a model that `searches`.
        options: SearchOptions. The length penalty and the default beam size, 4, have no effect.
        prefixes: lists of ids.
    """
    unsupported = [name for name in _MEANINGLESS if getattr(options, name) != getattr(_DEFAULTS, name)]
    unsupported += ["beam_size"] if options.beam_size not in (1, _DEFAULTS.beam_size) else []
    unsupported += ["prefixes"] if any(map(len, prefixes)) else []
    if unsupported:
        refuse(model, unsupported[0])


def refuse(model, what, instead="Remove it."):
    """Raises `UserError`: a model with its own search does not support `what`. `instead` is advice for the message."""
    raise UserError(
        f"{type(model).__name__}: {what} needs a model that predicts one id after the other, but this model uses its "
        f"own search, which returns one output. {instead}"
    )

"""Computes log-probabilities of known targets, in one pass over source and target and without a search."""

import dataclasses
import functools

import keras
import tensorflow as tf

from t2t_lite.decoding.search.adapters import refuse, searches
from t2t_lite.decoding.search.searcher import plan_batches
from t2t_lite.models.outputs import named_outputs
from t2t_lite.settings.ranges import DECODE_BATCH, typed_value


@dataclasses.dataclass(frozen=True)
class TargetScore:
    """The log-probability of one target, or of a language model's text.

    Attributes:
        log_prob: float, log-probability (nats) of the target given its source, the sum over its tokens.
        token_log_probs: list of float, the log-probability (nats) of each piece, and of a target's EOS, given the
            preceding pieces.
    """

    log_prob: float
    token_log_probs: list[float]

    @property
    def per_token(self) -> float:
        """The mean of `token_log_probs` (nats), negated; its exponential is the perplexity."""
        return 0.0 - self.log_prob / max(len(self.token_log_probs), 1)


class GivenTargets:
    """Runs a function on batches of pairs (source, target); the pairs of a batch have similar lengths.

    Create an instance once, since it keeps its traced function. A model's weights are read at every call.

    Args:
        function: (int32 [B, S], int32 [B, T]) -> [B, T, ...].
        longest: int, the largest S + T if the model reads source and target in one row, or None for no limit.
    """

    def __init__(self, function, longest=None):
        self._longest = longest
        ids = tf.TensorSpec([None, None], tf.int32)
        # Use a partial, since TensorFlow identifies functions by their code and would warn about repeated tracing.
        self._run = tf.function(functools.partial(function), input_signature=[ids, ids], autograph=False)

    def __call__(self, sources, targets, batch_size=16, on_progress=None):
        """Returns a list of arrays [length of the target, ...], one per pair.

        Args:
            sources: list of lists of ids, each ending in EOS.
            targets: list of non-empty lists of ids, one per source.
            batch_size: int, number of pairs per batch; it is reduced for pairs longer than 128 ids.
            on_progress: None, or a function called with the number of pairs in each finished batch.

        Raises:
            UserError: batch_size is out of range.
        """
        batch_size = typed_value("batch_size", batch_size, int, DECODE_BATCH)
        lengths = [max(len(source), len(target)) for source, target in zip(sources, targets, strict=True)]
        outputs = [None] * len(sources)
        for batch in self._fitting(plan_batches(lengths, batch_size), sources, targets):
            results = self._run(_padded(sources, batch), _padded(targets, batch)).numpy()
            for at, row in zip(batch, results, strict=True):
                outputs[at] = row[: len(targets[at])]
            if on_progress:
                on_progress(len(batch))
        return outputs

    def _fitting(self, batches, sources, targets):
        """Yields batches, split so that their longest source and longest target together have at most `longest` ids."""
        for batch in batches:
            rows, source, target = [], 0, 0
            for at in batch:
                source, target = max(source, len(sources[at])), max(target, len(targets[at]))
                if rows and self._longest is not None and source + target > self._longest:
                    yield rows
                    rows, source, target = [], len(sources[at]), len(targets[at])
                rows.append(at)
            yield rows


def token_log_probs(model, longest=None):
    """Returns a `GivenTargets` that computes the log-probability (nats) of each id given the preceding ids.

    Its results are float32 [length].

    Label smoothing, temperature and length penalty are not applied. The sum, including EOS, is the log-probability that
    beam search and sampling compute for the same target.

    Args:
        model: model({"inputs" [B, S], "targets" [B, T]}, training=False) -> logits [B, T, V]; may be an `Ensemble`.
        longest: see `GivenTargets`.

    Raises:
        UserError: the model uses its own search, so its logits are not for the next id.
    """
    if searches(model):
        refuse(model, "scoring targets or tokens")
    return GivenTargets(functools.partial(log_probs_of_targets, model), longest)


def log_probs_of_targets(model, inputs, targets):
    """Returns log-probabilities (nats), float32 [B, T], of targets int32 [B, T]; values at padding are arbitrary."""
    features = {"targets": targets} | ({} if inputs is None else {"inputs": inputs})
    logits = tf.cast(named_outputs(model(features, training=False))[0]["targets"], tf.float32)
    return tf.gather(logits, targets, axis=2, batch_dims=2) - tf.reduce_logsumexp(logits, -1)


def _padded(rows, batch):
    return tf.constant(keras.utils.pad_sequences([rows[at] for at in batch], padding="post"))

"""Keeps a search from repeating itself: no n-gram twice, and a penalty on ids that were there before."""

import tensorflow as tf

_PAD_ID = 0


class Repetition:
    """The rules of Hugging Face's NoRepeatNGramLogitsProcessor and RepetitionPenaltyLogitsProcessor.

    Both look at the outputs so far, after the prompt that they continue, if there is one. The penalty comes first:
    the score of each id that occurs there is divided by it if it is positive, and else multiplied. Then every id that
    would complete an n-gram a second time gets the score -inf.

    Args:
        ngram_size: Python int n; 0: n-grams may be repeated.
        penalty: float32 scalar tensor > 0 (Keskar et al. 2019, "CTRL", section 4.1), or None.
        prompts: int32 [R, P], each row ends in 0s; or None.
    """

    def __init__(self, ngram_size, penalty, prompts=None):
        self.ngram_size = ngram_size
        self.penalty = penalty
        # Room for a whole n-gram, so that windows never begin before the first column.
        self._before = max(ngram_size - 1, 0)
        self.prompts = None
        if prompts is not None:
            prompts = tf.pad(_flushed_right(prompts), ((0, 0), (self._before, 0)))
            self.prompts = tf.cast(prompts, tf.int64)  # as outputs

    def __call__(self, scores, outputs, position, rows):
        """Returns the changed scores.

        Args:
            scores: float32 [R*K, V], logits or log-probabilities.
            outputs: int64 [R, K, T], 0 from `position` on.
            position: int32 [], how many ids each output has.
            rows: int [R], which of the prompts each row continues.
        """
        history, known = self._history(outputs, position, rows)
        width = tf.shape(history)[1]
        at = tf.cast(tf.range(tf.shape(history)[0]), tf.int64)
        at = tf.broadcast_to(at[:, None], tf.shape(history))
        at = tf.stack([at, history], -1)  # [R*K, W, 2], the place of each earlier id among the scores
        if self.penalty is not None:
            found = tf.gather(scores, history, axis=1, batch_dims=1)
            changed = tf.where(found < 0, found * self.penalty, found / self.penalty)
            scores = tf.tensor_scatter_nd_update(scores, at, tf.where(history == _PAD_ID, found, changed))
        if self.ngram_size:
            first = self.ngram_size - 1
            repeats = history[:, first:] != _PAD_ID  # whether the id follows the same n - 1 ids as the next one will
            for back in range(1, self.ngram_size):
                last = tf.gather(history, known - back, axis=1)[:, None]
                repeats &= history[:, first - back : width - back] == last
            scores = tf.tensor_scatter_nd_min(scores, at[:, first:], tf.where(repeats, -float("inf"), float("inf")))
        return scores

    def _history(self, outputs, position, rows):
        """Returns the ids so far, int64 [R*K, W], with 0s before and after them, and the column int32 [] after them."""
        if self.prompts is None:
            nothing = tf.zeros((*tf.unstack(tf.shape(outputs)[:2]), self._before), outputs.dtype)
            outputs = tf.concat([nothing, outputs], -1)  # for GPUs there is no `tf.pad` of int64
            before = self._before
        else:
            prompts = tf.repeat(tf.gather(self.prompts, rows)[:, None], outputs.shape[1], axis=1)
            outputs = tf.concat([prompts, outputs], -1)
            before = tf.shape(self.prompts)[1]
        return tf.reshape(outputs, (-1, tf.shape(outputs)[2])), before + position


def repetition_rules(ngram_size, penalty, prompts):
    """Returns a `Repetition`, or None if nothing is forbidden or penalized."""
    return Repetition(ngram_size, penalty, prompts) if ngram_size or penalty is not None else None


def _flushed_right(ids):
    """[R, P] with 0s at the end -> the same with these 0s at the beginning."""
    width = tf.shape(ids)[1]
    length = tf.reduce_sum(tf.cast(ids != _PAD_ID, tf.int32), 1, keepdims=True)
    at = tf.range(width) - (width - length)
    return tf.where(at < 0, _PAD_ID, tf.gather(ids, tf.maximum(at, 0), axis=1, batch_dims=1))

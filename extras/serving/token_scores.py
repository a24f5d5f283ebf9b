"""Computes log-probabilities of a text's ids and of the most probable ids at each position, as in OpenAI's API."""

import codecs
import functools
import itertools
import threading
import typing

import numpy as np
import tensorflow as tf

from t2t_lite.decoding.scoring import GivenTargets
from t2t_lite.extras.serving.json_tensors import short_floats
from t2t_lite.models.outputs import named_outputs
from t2t_lite.text.vocabulary import EOS_ID, PAD_ID


class TokenScorer:
    """Scores rows of ids with a language model; thread-safe.

    Args:
        model: a language model: ({"targets" [B, T]}, training=False) -> logits [B, T, V].
    """

    def __init__(self, model):
        self._model, self._functions, self._lock = model, {}, threading.Lock()

    def __call__(self, rows, count, on_progress=None):
        """Returns a list of `RowScores`.

        Temperature, penalties and banned texts are not applied.

        Args:
            rows: list of non-empty lists of ids.
            count: int, the number of most probable ids at each position.
            on_progress: None, or a function called after each batch of rows.
        """
        with self._lock:  # so that each function is traced only once
            if count not in self._functions:
                self._functions[count] = GivenTargets(functools.partial(_scores, self._model, count))
            function = self._functions[count]
        outputs = function([[]] * len(rows), rows, on_progress=on_progress)
        return [RowScores(row[:, 0], row[:, 1 : 1 + count], row[:, 1 + count :].astype(int)) for row in outputs]


class RowScores(typing.NamedTuple):
    """The scores of a row of ids.

    Attributes:
        log_probs: float32 [length], the log-probability (nats) of each id given the preceding ids.
        top_log_probs: float32 [length, count], the largest log-probabilities at each position, in descending order.
        top_ids: int [length, count], the ids with these log-probabilities; never the padding id.
    """

    log_probs: np.ndarray
    top_log_probs: np.ndarray
    top_ids: np.ndarray


def _scores(model, count, inputs, targets):  # `inputs` is always empty
    """Returns float32 [B, T, 1 + 2 count]: log-probabilities of the targets, the largest ones, and their ids.

    float32 represents ids up to 2^24, the maximum vocabulary size, exactly.
    """
    logits = tf.cast(named_outputs(model({"targets": targets}, training=False))[0]["targets"], tf.float32)
    log_probs = logits - tf.reduce_logsumexp(logits, -1, keepdims=True)
    target_scores = tf.gather(log_probs, targets, axis=2, batch_dims=2)[..., None]
    is_padding = tf.range(tf.shape(logits)[-1]) == PAD_ID
    top, ids = tf.math.top_k(tf.where(is_padding, -float("inf"), log_probs), count)
    return tf.concat([target_scores, top, tf.cast(ids, tf.float32)], -1)


class TokenTexts:
    """Converts single ids to texts, in the form of OpenAI's API.

    Args:
        encoder: TextEncoder.

    Attributes:
        name: str, the encoder's class.
        end: str, the text of the EOS token, such as </s>.
    """

    def __init__(self, encoder):
        self._encoder, self._bytes = encoder, encoder.piece_bytes
        self.name, self.end = type(encoder).__name__, encoder.pieces([EOS_ID])[0]

    def text(self, i):
        """Returns the text of an id; incomplete characters are written as in OpenAI's API: bytes:\\xc3."""
        spelling = self._bytes_of(i)
        try:
            return spelling.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in spelling)

    def offsets(self, ids, continues, start):
        """Returns the index of each id's first character in the decoded text.

        Args:
            ids: list of int.
            continues: bool, whether other text precedes the ids; if not, decoding may drop their first space.
            start: int, the index of the first id's first character.
        """
        decoder, sizes = codecs.getincrementaldecoder("utf-8")("replace"), []  # counts a character at its last byte
        for at, i in enumerate(ids):
            sizes.append(len(decoder.decode(self._bytes_of(i))))
            begins = ids[at - 1] == EOS_ID if at else not continues
            if begins and i != EOS_ID and self.text(i).startswith(" "):
                sizes[at] -= not self._encoder.decode([i]).startswith(" ")
        return list(itertools.accumulate(sizes, initial=start))[: len(ids)]

    def joined(self, ids):
        """Decodes ids. Unlike `TextEncoder.decode`, keeps the EOS tokens, such as </s>."""
        groups = itertools.groupby(ids, key=lambda i: i == EOS_ID)
        return "".join(
            self.end * len([*group]) if is_end else self._encoder.decode([*group]) for is_end, group in groups
        )

    def logprobs(self, continuation, count, has_echo):
        """Returns the value of `logprobs` in an answer.

        The first id of a prompt has no log-probability, as in OpenAI's API.

        Args:
            continuation: a `_Continuation`, see `completions`; its `scores` cover the ids of its prompt and its own.
            count: int, the number of most probable ids to list at each position.
            has_echo: bool, whether the answer begins with the prompt.
        """
        row, num_begin = continuation.prompt.ids + continuation.ids, continuation.prompt.num_begin
        values = short_floats(continuation.scores.log_probs) if row else []
        top = [self._most_probable(row, at, continuation.scores, values, count) for at in range(len(row))]
        row, values, top = [EOS_ID] * num_begin + row, [None] * num_begin + values, [None] * num_begin + top
        if continuation.prompt.ids or num_begin:
            values[0] = top[0] = None
        first = 0 if has_echo else num_begin + len(continuation.prompt.ids)
        return {
            "tokens": [self.text(i) for i in row[first:]],
            "token_logprobs": values[first:],
            "top_logprobs": top[first:],
            "text_offset": self.offsets(row[first:], first > 0, 0),
        }

    def _most_probable(self, row, at, scores, values, count):
        """Returns {text: log-probability} of the most probable ids at a position, and of the actual id."""
        by_text = {}
        best = zip(scores.top_ids[at, :count].tolist(), short_floats(scores.top_log_probs[at, :count]), strict=True)
        for i, value in [*best, (row[at], values[at])]:
            by_text.setdefault(self.text(i), value)  # if several ids have the same text, the most probable one counts
        return by_text

    def _bytes_of(self, i):
        if i == EOS_ID:
            return self.end.encode()
        return self._encoder.pieces([i])[0].encode() if self._bytes is None else self._bytes[i]

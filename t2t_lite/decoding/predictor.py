"""Predictor: predicts classes, numbers, tags, answers or masked words with an encoder, or returns features."""

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import tensorflow as tf

from t2t_lite import registry
from t2t_lite.decoding.answering import Answerer, Reader
from t2t_lite.decoding.texts import check_text, in_batches
from t2t_lite.decoding.translator import MAX_INPUT_LENGTH
from t2t_lite.errors import UserError, counted
from t2t_lite.models.outputs import named_outputs
from t2t_lite.settings.ranges import ALL_POSITIONS, DECODE_BATCH, JOINS, POOLINGS, Range, typed_value
from t2t_lite.tasks.encoder_task import EncoderTask, Reading
from t2t_lite.tasks.masked_language_model import Candidate
from t2t_lite.tasks.task import check_answered_by

_IDS = tf.TensorSpec([None, None], tf.int32)
_SMALLEST = 1e-12  # minimum divisor when vectors are normalized, as in PyTorch
_SHORTEST = 4  # the shortest row, in ids: one id from each text of a pair, and two end ids
# {value of `layers`: function of the number of states that returns their indices}; state 0 is the embeddings, state n
# the output of layer n.
LAYERS = {
    "first": lambda count: [0],
    "last": lambda count: [count - 1],
    "second_to_last": lambda count: [count - 2],
    "last_four": lambda count: [*range(max(1, count - 4), count)],
    "all": lambda count: [*range(1, count)],
}


class RowReader(Reader):
    """Converts texts to `Reading` for a Predictor.

    Args:
        predictor: the Predictor.
        max_length, long_input: see `Predictor.predict`.
        as_flags: see `Reader`.
        whole: bool, whether the texts are for `Predictor.features`.
    """

    taken = (Reading, list, tuple)

    def __init__(self, predictor, max_length=None, long_input=None, as_flags=False, whole=False):
        limit, choices = predictor.max_input_length, predictor.task.long_input
        if max_length is not None:
            name = "max_input_size" if as_flags else "max_length"
            limit = typed_value(name, max_length, int, Range(_SHORTEST, limit))
        elif whole:
            limit = predictor.features_length
        super().__init__(predictor, limit, long_input or choices[0], as_flags, choices)
        self.whole = whole

    def checked(self, text, at):
        """Reads a text, a pair of texts or a list of words: see `Reader`."""
        return (
            tuple(check_text(one, at) for one in text) if isinstance(text, list | tuple) else super().checked(text, at)
        )

    def read(self, text):
        """See `Reader`."""
        if isinstance(text, Reading):
            return text
        task = self.answerer.task
        reading = (task.whole if self.whole else task.read)(text, self.limit)
        if self.long_input == "refuse" and (reading.truncated or len(reading.rows) > 1):
            raise UserError(f"longer than {self.limit:,} ids. Split the text, or remove {self.argument}=refuse.")
        return reading


class Predictor(Answerer):
    """Makes predictions for texts with a trained encoder. Create a Predictor once and call it often, since it keeps
    traced functions.

    Args:
        model: keras.Model, which maps a batch of the problem's features to logits of "targets". `fill_mask` and
            `features` need a `TransformerEncoder`.
        encoders: {"inputs": encoder of texts, "targets": encoder of labels}.
        problem: Problem with a task that a Predictor supports: see `registry.list_tasks`.

    Attributes:
        task: EncoderTask, the problem's task.
        method: str, the name of the method that answers texts of the task, such as "predict".
        labels: list of str, the classes or tags, or [].
        num_texts: int, the number of texts per row of a batch: 1, or 2 for pairs.
        max_input_length: int, the maximum number of ids per row.
        features_length: int, the maximum number of ids per row that `features` reads by default.
        probabilities: tf.function, int32 [B, S] -> float32, the scores of the task's subclass (see
            `EncoderTask.scores`): probabilities of classes [B, C] or tags [B, S, C]; for numbers [B, 1], positions
            between the lowest and the highest number; for answers [B, 2, 1 + S], logits of the first and of the last
            position.

    Example:
        >>> predictor = t2t_lite.Predictor.load("train/sentiment")                # doctest: +SKIP
        >>> predictor.predict(["What a film!"])[0].label                          # doctest: +SKIP
        'positive'
    """

    task = EncoderTask

    def __init__(self, model, encoders, problem):
        super().__init__(model, encoders, problem)
        check_answered_by(problem, EncoderTask.answered_by, "Predictor")
        self.task = registry.task_of(problem)(problem, self.encoders)
        self.method = self.task.method
        self.search_history = {}  # always empty, since no answer depends on earlier answers: see `Searcher.history`
        self.max_input_length = min(getattr(model, "max_length", None) or MAX_INPUT_LENGTH, MAX_INPUT_LENGTH)
        own_length = (getattr(model, "config", None) or {}).get("features_length")
        self.features_length = min(own_length or self.max_input_length, self.max_input_length)
        self.labels = list(self.task.labels)
        self.num_texts = self.task.num_texts
        self.probabilities = tf.function(self._traced, input_signature=[_IDS], autograph=False)
        self._traced_features = {}  # {selected features: function}

    @classmethod
    def of_runs(cls, runs: list) -> Self:
        """See `Answerer`. Raises `UserError` for an ensemble."""
        if len(runs) != 1:
            raise UserError(
                f"{counted(len(runs), 'checkpoint')}: a Predictor has only one model. Expected one checkpoint."
            )
        return cls(runs[0].model, runs[0].encoders, runs[0].problem)

    def predict(
        self,
        texts: Sequence,
        *,
        batch_size: int = 32,
        max_length: int | None = None,
        long_input: str | None = None,
        n_best: int = 5,
        on_progress: Callable[[int], object] | None = None,
    ) -> list[Any]:
        """Predicts the answers for texts.

        Args:
            texts: list of texts. A text is a str; (str, str) for a problem of pairs; (question, context) for questions;
                or, for tags, a str or a list of words. Items may also be results of `read`.
            batch_size: int, number of rows per pass.
            max_length: int, the maximum number of ids per row, `max_input_length` by default.
            long_input: "refuse" raises an error for a longer text. By default a longer text is truncated ("truncate"),
                or, for tags and for the context of a question, read in parts ("split").
            n_best: int, the number of hypotheses per answer.
            on_progress: None, or a function called with the number of texts in each finished batch.

        Returns:
            A list of one answer per text, as the task defines it: `Prediction` (.label, .probabilities), `Tagging`
            (.words, .tags), `Answer` (.text, .start, .end) or `Value`. Texts do not influence one another.

        Raises:
            UserError: a number is out of range, the vocabulary cannot encode a text, or the task has no `predict`.
        """
        if self.task.method != "predict":
            raise UserError(f"predict: {self.problem.full_name} has no classes. Call fill_mask or features instead.")
        n_best = typed_value("n_best", n_best, int, DECODE_BATCH)
        readings = self.reader(max_length, long_input=long_input).read_all(texts)
        outputs = self._batched(readings, batch_size, self.probabilities, on_progress)
        return [self.task.answer(*one, n_best) for one in zip(readings, outputs, strict=True)]

    def fill_mask(
        self,
        texts: Sequence,
        *,
        top: int = 5,
        batch_size: int = 32,
        max_length: int | None = None,
        long_input: str | None = None,
        on_progress: Callable[[int], object] | None = None,
    ) -> list[list[list[Candidate]]]:
        """Predicts the words at the masks of texts.

        Args:
            texts: list of str, each with one or more masks, "[MASK]" or "<mask>" as in the vocabulary. The space before
                a mask is masked as well. Items may also be results of `read`.
            top: int, number of candidates per mask.
            batch_size, max_length, long_input, on_progress: see `predict`.

        Returns:
            A list with one item per text: a list that has, for each mask, a list of `Candidate`, most probable first.

        Raises:
            UserError: a text has no mask or is too long, or the model is not a masked language model.
        """
        if not (self.task.method == "fill_mask" and hasattr(self.model, "ids_logits")):
            raise UserError(f"fill_mask: {self.problem.full_name} is not a masked language model.")
        top = typed_value("top", top, int, Range(1, self.encoders["inputs"].vocab_size))
        guesses = functools.partial(self._guesses, top=top)
        readings = self.reader(max_length, long_input=long_input).read_all(texts)
        outputs = self._batched(readings, batch_size, guesses, on_progress)
        return [[self.task.candidates(*best) for best in masks] for (masks,) in outputs]

    def features(
        self,
        texts: Sequence,
        *,
        layers: str | list[int] = "last",
        join: str | None = None,
        pooling: str | None = None,
        normalize: bool | None = None,
        batch_size: int = 32,
        max_length: int | None = None,
        long_input: str | None = None,
        on_progress: Callable[[int], object] | None = None,
    ) -> list[np.ndarray]:
        """Returns hidden states, as features for other models (Devlin et al. 2019, section 5.3).

        Args:
            texts: see `predict`; for a masked language model texts or pairs (str, str), with or without masks.
            layers: "first" (the embeddings), "last", "second_to_last", "last_four", "all" (every layer's output, not
                the embeddings), or a list of int: 0 is the embeddings, n the output of layer n.
            join: "sum" or "concat", the way to combine several layers.
            pooling: "mean" or "max" of all positions, "first" (the position before the text), or "none" for all
                positions. None selects the model's own pooling, which an imported sentence encoder has, for example;
                without one, None means "none".
            normalize: bool, whether to divide each vector by its length. None normalizes only if `pooling` is None and
                the model's own pooling includes normalization.
            max_length: int, the maximum number of ids per row. Defaults to `features_length`.
            batch_size, long_input, on_progress: see `predict`.

        Returns:
            A list of one float32 array per text: [n] with a pooling, otherwise [positions, n]. The positions are the
            one before the text ([CLS]), its pieces, and the ends of texts ([SEP]). The end of a long text is dropped.

        Raises:
            UserError: an unknown argument, or a model that does not expose hidden states.
        """
        pooling, normalize = features_pooling(self.model, pooling, normalize)
        choice = repr((layers, join, pooling, normalize))
        if choice not in self._traced_features:
            function = features_of(self.model, layers, join, pooling or ALL_POSITIONS, normalize)
            self._traced_features[choice] = tf.function(function, input_signature=[_IDS], autograph=False)
        readings = self.reader(max_length, long_input=long_input, whole=True).read_all(texts)
        outputs = self._batched(readings, batch_size, self._traced_features[choice], on_progress)
        if pooling:
            return [states for (states,) in outputs]
        return [states[: 1 + len(one.rows[0])] for one, (states,) in zip(readings, outputs, strict=True)]

    def read(self, text, *, max_length=None, whole=False):
        """Converts a text to a `Reading`, which other methods accept in place of the text.

        Args:
            text: a text that `predict` accepts (or, for a masked language model, `fill_mask`).
            max_length: see `predict`.
            whole: bool, whether the reading is for `features`.

        Raises:
            UserError: see `predict` and `fill_mask`.
        """
        return self.reader(max_length, whole=whole).read(text)

    def reader(
        self,
        max_length: int | None = None,
        *,
        long_input: str | None = None,
        as_flags: bool = False,
        whole: bool = False,
    ) -> RowReader:
        """Returns a `Reader` of texts: see `Answerer`, and `read` for `whole`."""
        return RowReader(self, max_length, long_input, as_flags, whole)

    def _batched(self, readings, batch_size, function, on_progress):
        """Applies a function of int32 [B, S] to batches of rows; returns, for each Reading, a list of results.

        Each row has one result. A batch has rows of similar length.
        """
        rows = [row for reading in readings for row in reading.rows]
        owners = [at for at, reading in enumerate(readings) for _ in reading.rows]
        left = [len(reading.rows) for reading in readings]  # number of unfinished rows of each text
        by_row = {}
        for batch in in_batches(rows, batch_size):
            ids = tf.ragged.constant([rows[at] for at in batch], tf.int32).to_tensor()
            results = function(ids)
            results = results.numpy() if isinstance(results, tf.Tensor) else results
            by_row.update(zip(batch, results, strict=True))
            done = 0
            for at in batch:
                left[owners[at]] -= 1
                done += left[owners[at]] == 0
            if on_progress:
                on_progress(done)
        in_order = map(by_row.get, range(len(rows)))
        return [[*itertools.islice(in_order, len(reading.rows))] for reading in readings]

    def _guesses(self, ids, top):
        """Returns the best candidates for the masks of each row, as a list of (probabilities, ids) per row."""
        probabilities, best = self._traced_guesses(ids, top)
        pairs = iter(zip(probabilities.numpy(), best.numpy(), strict=True))
        counts = tf.reduce_sum(tf.cast(ids == self.task.mask[0], tf.int32), -1).numpy()
        return [[next(pairs) for _ in range(count)] for count in counts]

    @functools.cached_property
    def _traced_guesses(self):
        guesses = functools.partial(self.task.guesses, self.model)
        return tf.function(guesses, input_signature=[_IDS, tf.TensorSpec([], tf.int32)], autograph=False)

    def _traced(self, inputs):
        return self.task.scores(self._logits(inputs))

    def _logits(self, inputs):
        """Computes the float32 logits of the targets for int32 [B, S]; the model's other inputs are 0."""
        rows = tf.shape(inputs)[0]
        zeros = {feature: tf.zeros([rows, 1][:rank], tf.int32) for feature, rank in self.problem.features.items()}
        return named_outputs(self.model({**zeros, "inputs": inputs}, training=False))[0]["targets"]


def has_hidden_states(model):
    """Returns whether a model's `encode` can return hidden states, as an encoder's does."""
    encode = getattr(model, "encode", None)
    return callable(encode) and "return_hidden_states" in inspect.signature(encode).parameters


def features_pooling(model, pooling=None, normalize=None):
    """Returns (pooling, one of `POOLINGS` or None for all positions; bool, whether vectors are normalized).

    Args:
        model: an encoder.
        pooling, normalize: see `Predictor.features`.

    Raises:
        UserError: the pooling is unknown, or vectors are to be normalized without a pooling.
    """
    config = getattr(model, "config", None) or {}
    if pooling is None:
        pooling = config.get("features_pooling", ALL_POSITIONS)
        if normalize is None:
            normalize = pooling != ALL_POSITIONS and config.get("features_normalized", False)
    if pooling not in (ALL_POSITIONS, *POOLINGS):
        raise UserError(f"pooling={pooling!r}: expected {', '.join(POOLINGS)}, {ALL_POSITIONS} or None.")
    if normalize and pooling == ALL_POSITIONS:
        raise UserError(f"normalize=True: only for one vector per text. Add pooling={POOLINGS[0]!r}, or remove it.")
    return (None if pooling == ALL_POSITIONS else pooling), bool(normalize)


def features_of(model, layers="last", join=None, pooling=None, normalize=None):
    """Returns a traceable function from ids to features.

    Args:
        model: an encoder, such as `TransformerEncoder`.
        layers, join, pooling, normalize: see `Predictor.features`.

    Returns:
        A function that maps int32 [B, S], padded with 0, to float32 [B, 1 + S, n], which is 0 at padding. With
        `pooling`, it returns [B, n].

    Raises:
        UserError: an unknown argument, or a model that does not expose hidden states.
    """
    if not has_hidden_states(model):
        raise UserError(f"features: a {type(model).__name__} does not expose hidden states. Expected an encoder.")
    count = 1 + model.config["num_layers"]
    indices = LAYERS[layers](count) if layers in [*LAYERS] else layers
    is_list = isinstance(indices, list | tuple) and indices
    if not (is_list and all(type(i) is int and 0 <= i < count for i in indices)):
        raise UserError(f"layers={layers!r}: expected {', '.join(LAYERS)}, or a list of numbers from 0 to {count - 1}.")
    if join not in JOINS and (join is not None or len(indices) > 1):
        raise UserError(f"join={join!r}: expected {' or '.join(JOINS)} for {counted(len(indices), 'layer')}.")
    pooling, normalize = features_pooling(model, pooling, normalize)

    def features(ids):
        encoded = model.encode(ids, return_hidden_states=True)
        every = [*encoded["states"][:-1], encoded["hidden"]]  # the last state includes the final normalization, if any
        chosen = [tf.cast(every[i], tf.float32) for i in indices]
        joined = tf.add_n(chosen) if join == "sum" else tf.concat(chosen, -1)
        is_there = encoded["mask"][..., None]
        if pooling is None:
            return tf.where(is_there, joined, 0.0)
        vectors = pooled(joined, is_there, ids)
        return vectors / tf.maximum(tf.norm(vectors, axis=-1, keepdims=True), _SMALLEST) if normalize else vectors

    def pooled(states, is_there, ids):
        """Pools hidden states: [B, 1 + S, n] -> [B, n]."""
        if pooling == "first":
            return model.of_row(states, ids) if hasattr(model, "of_row") else states[:, 0]
        if pooling == "max":
            return tf.reduce_max(tf.where(is_there, states, -np.inf), 1)
        count = tf.reduce_sum(tf.cast(is_there, tf.float32), 1)
        return tf.reduce_sum(tf.where(is_there, states, 0.0), 1) / count

    return features

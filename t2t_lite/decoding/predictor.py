"""Predictor: what an encoder says of texts: their classes, what is masked in them, and their hidden states."""

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from t2t_lite.backend import check_tensorflow
from t2t_lite.data.masking import mask_of
from t2t_lite.data.text_class_problem import cut_texts
from t2t_lite.decoding.compute_dtype import usable_dtype
from t2t_lite.decoding.hidden_states import features_of
from t2t_lite.decoding.texts import check_texts
from t2t_lite.decoding.translator import MAX_INPUT_LENGTH
from t2t_lite.errors import UserError, counted, located
from t2t_lite.models.outputs import named_outputs
from t2t_lite.ranges import DECODE_BATCH, Range, typed_value
from t2t_lite.tasks import check_task
from t2t_lite.text.vocabulary import EOS_ID


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The class of one text.

    Attributes:
        label: str, the most probable class.
        probabilities: {label: float}, of all classes; they sum up to 1.
        truncated: bool, whether the text was longer than the model's longest input and therefore truncated.
    """

    label: str
    probabilities: dict
    truncated: bool = False


@dataclasses.dataclass(frozen=True)
class Candidate:
    """What may stand at a mask.

    Attributes:
        token: str, the vocabulary's piece.
        probability: float.
    """

    token: str
    probability: float


class Predictor:
    """Answers with an encoder. Create it once and call it often, since it keeps traced functions.

    Args:
        model: keras.Model, which maps a batch of the problem's features to logits of "targets". `fill_mask` and
            `features` need a `TransformerEncoder`.
        encoders: {"inputs": encoder of texts, "targets": encoder of labels}.
        problem: Problem of the task "classification" or "masked_language_model".

    Attributes:
        labels: list of str, the classes; [] for a masked language model.

    Example:
        >>> predictor = t2t_lite.Predictor.load("train/sentiment")                # doctest: +SKIP
        >>> predictor.predict(["What a film!"])[0].label                          # doctest: +SKIP
        'positive'
    """

    task = "classification"

    def __init__(self, model, encoders, problem):
        check_tensorflow("Predictor")
        self.model = model
        self.encoders = encoders
        self.problem = problem
        self.runs = []
        self.max_input_length = min(getattr(model, "max_length", None) or MAX_INPUT_LENGTH, MAX_INPUT_LENGTH)
        classes = range(1, encoders["targets"].vocab_size) if problem.task != "masked_language_model" else ()
        self.labels = [encoders["targets"].decode([label]) for label in classes]
        ids = tf.TensorSpec([None, None], tf.int32)
        self.probabilities = tf.function(self._traced, input_signature=[ids], autograph=False)
        self._traced_features = {}  # what is chosen -> function

    @classmethod
    def load(cls, path, data_dir=None, compute_dtype=None, check_device=True):
        """Loads a trained model.

        Args:
            path: an output_dir (for its newest checkpoint), a checkpoint `…/model.ckpt-N`, a folder of averages, or an
                export of t2t-exporter.
            data_dir: folder of the vocabulary, if it is not beside the checkpoint.
            compute_dtype, check_device: see `Translator.load`.

        Raises:
            UserError: there is no model, its files do not belong together, or it has another task.
        """
        from t2t_lite.runs.opening import find_run, open_runs

        paths = path if isinstance(path, list | tuple) else [path]
        if len(paths) != 1:
            raise UserError(f"{counted(len(paths), 'checkpoint')}: a Predictor has one model. Expected one checkpoint.")
        found = find_run(paths[0])
        if found.problem.task != "masked_language_model":
            check_task(found.problem, cls.task, found.checkpoint)
        (run,) = open_runs(found, data_dir, usable_dtype(compute_dtype, check_device))
        predictor = cls(run.model, run.encoders, run.problem)
        predictor.runs = [run]
        return predictor

    def predict(self, texts, *, batch_size=32):
        """Classifies texts, or pairs of texts.

        Args:
            texts: list of str, or for a problem of pairs of (str, str).
            batch_size: int, texts per pass.

        Returns:
            list of `Prediction`, in the order of `texts`. Texts do not influence one another.

        Raises:
            UserError: a number out of range, a text that the vocabulary cannot encode, or the model has no classes.
        """
        if not self.labels:
            raise UserError(f"predict: {self.problem.full_name} has no classes. Expected fill_mask, or features.")
        rows, truncated = self._rows(texts)
        return [
            Prediction(self.labels[int(np.argmax(row))], dict(zip(self.labels, row.tolist(), strict=True)), is_cut)
            for row, is_cut in zip(self._batched(rows, batch_size, self.probabilities), truncated, strict=True)
        ]

    def fill_mask(self, texts, *, top=5, batch_size=32):
        """Says what may stand at the masks of texts.

        Args:
            texts: list of str, each with one or more "[MASK]", or "<mask>", as the vocabulary has it. The blank before
                a mask belongs to what is masked.
            top: int, candidates per mask.
            batch_size: int, texts per pass.

        Returns:
            For each text a list with one entry per mask: a list of `Candidate`, the most probable first.

        Raises:
            UserError: a text without a mask or one that is too long, or a model or vocabulary that knows none.
        """
        if not self._is_of_masks:
            raise UserError(f"fill_mask: {self.problem.full_name} is no masked language model.")
        top = typed_value("top", top, int, Range(1, self.encoders["inputs"].vocab_size))
        encoder = self.encoders["inputs"]
        mask_id, mask = mask_of(encoder)
        rows = []
        for at, text in enumerate(check_texts(texts), 1):
            with located(f"text {at}"):
                before, *others = text.split(mask)
                if not others:
                    raise UserError(f"there is no {mask} in it. Expected one where something is to be guessed.")
                parts = [*(part.rstrip(" ") for part in (before, *others[:-1])), others[-1]]
                first, *rest = map(encoder.encode, parts)
                rows.append([*first, *(i for ids in rest for i in (mask_id, *ids)), EOS_ID])
                if len(rows[-1]) > self.max_input_length:
                    raise UserError(f"it has {len(rows[-1]):,} ids, and the model reads {self.max_input_length:,}.")
        every = self._batched(rows, batch_size, functools.partial(self._guesses, mask_id=mask_id, top=top))
        return [
            [
                [Candidate(piece, float(p)) for piece, p in zip(encoder.pieces(ids), probabilities, strict=True)]
                for probabilities, ids in masks
            ]
            for masks in every
        ]

    def features(self, texts, *, layers="last", join=None, pooling=None, batch_size=32):
        """Returns hidden states, as features for other models (Devlin et al. 2019, section 5.3).

        Args:
            texts: as `predict`.
            layers: "first" (the embeddings), "last", "second_to_last", "last_four", "all" (every layer's output, not
                the embeddings), or a list of int: 0 is the embeddings, n the output of layer n.
            join: "sum" or "concat", where there are several layers.
            pooling: "mean" of all positions or "first", the position before the text; None: every position.
            batch_size: int, texts per pass.

        Returns:
            For each text float32 [positions, n]: the first position ([CLS]), the pieces and what ends each text
            ([SEP]); with `pooling` [n].

        Raises:
            UserError: an argument that means nothing, or a model that tells no hidden states.
        """
        choice = repr((layers, join, pooling))
        if choice not in self._traced_features:
            function = features_of(self.model, layers, join, pooling)
            ids = tf.TensorSpec([None, None], tf.int32)
            self._traced_features[choice] = tf.function(function, input_signature=[ids], autograph=False)
        rows, _ = self._rows(texts)
        found = self._batched(rows, batch_size, self._traced_features[choice])
        return found if pooling else [states[: 1 + len(row)] for states, row in zip(found, rows, strict=True)]

    @property
    def _is_of_masks(self):
        return self.problem.task == "masked_language_model" and hasattr(self.model, "ids_logits")

    def _rows(self, texts):
        """Returns (a list of ids per text or pair, which of them were cut to the longest that the model reads)."""
        number = getattr(self.problem, "num_texts", 1)
        if number > 1:
            pairs = [text if isinstance(text, list | tuple) else [text] for text in texts]
            if wrong := [at for at, pair in enumerate(pairs, 1) if len(pair) != number]:
                raise UserError(f"text {wrong[0]}: expected {number} texts, as {self.problem.full_name} has in a row.")
            sides = [check_texts([pair[side] for pair in pairs]) for side in range(number)]
        else:
            sides = [check_texts(texts)]
        rows, truncated = [], []
        for at, row_texts in enumerate(zip(*sides, strict=True), 1):
            with located(f"text {at}"):
                ids = []
                for text in row_texts:
                    ids += [*self.encoders["inputs"].encode(self.problem.input_text(text)), EOS_ID]
            truncated.append(len(ids) > self.max_input_length)
            rows.append(cut_texts(tf.constant(ids), self.max_input_length).numpy().tolist() if truncated[-1] else ids)
        return rows, truncated

    def _batched(self, rows, batch_size, function):
        """Returns what a function of int32 [B, S] gives for each row, rows of similar length together."""
        batch_size = typed_value("batch_size", batch_size, int, DECODE_BATCH)
        found, order = {}, sorted(range(len(rows)), key=lambda at: len(rows[at]))
        for start in range(0, len(order), batch_size):
            batch = order[start : start + batch_size]
            ids = tf.ragged.constant([rows[at] for at in batch], tf.int32).to_tensor()
            found.update(zip(batch, map(_as_array, function(ids)), strict=True))
        return [found[at] for at in range(len(rows))]

    def _guesses(self, ids, mask_id, top):
        """Returns for each row a list of (probabilities, ids) of the best candidates, one per mask."""
        logits = self._mask_logits(ids, tf.constant(mask_id))
        best = tf.math.top_k(tf.nn.softmax(logits), top)
        counts = tf.reduce_sum(tf.cast(ids == mask_id, tf.int32), -1).numpy()
        pairs = iter(zip(best.values.numpy(), best.indices.numpy(), strict=True))
        return [[next(pairs) for _ in range(count)] for count in counts]

    @functools.cached_property
    def _mask_logits(self):
        ids = tf.TensorSpec([None, None], tf.int32)

        def logits(inputs, mask_id):
            batch = {"inputs": inputs, "targets": tf.cast(inputs == mask_id, tf.int32)}
            return named_outputs(self.model(batch, training=False))[0]["targets"]

        return tf.function(logits, input_signature=[ids, tf.TensorSpec([], tf.int32)], autograph=False)

    def _traced(self, inputs):
        """int32 [B, S] -> float32 [B, classes]."""
        rows = tf.shape(inputs)[0]
        batch = {feature: tf.zeros([rows, 1][:rank], tf.int32) for feature, rank in self.problem.features.items()} | {
            "inputs": inputs
        }  # the labels are what is asked for
        logits, _ = named_outputs(self.model(batch, training=False))
        return tf.nn.softmax(tf.reshape(logits["targets"], [rows, len(self.labels) + 1])[:, 1:])  # id 0 is no class


def _as_array(row):
    return row.numpy() if isinstance(row, tf.Tensor) else row

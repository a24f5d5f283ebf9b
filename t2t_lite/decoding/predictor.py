"""Predictor: says which class a text belongs to, with a trained model."""

import dataclasses

import numpy as np
import tensorflow as tf

from t2t_lite.backend import check_tensorflow
from t2t_lite.decoding.compute_dtype import usable_dtype
from t2t_lite.decoding.texts import check_texts
from t2t_lite.decoding.translator import MAX_INPUT_LENGTH
from t2t_lite.errors import UserError, counted, located
from t2t_lite.models.outputs import named_outputs
from t2t_lite.ranges import DECODE_BATCH, typed_value
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


class Predictor:
    """Classifies texts. Create it once and call it often, since it keeps a traced function.

    Args:
        model: keras.Model, which maps a batch of the problem's features to logits of "targets".
        encoders: {"inputs": encoder of texts, "targets": encoder of labels}.
        problem: Problem of the task "classification".

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
        size = encoders["targets"].vocab_size
        self.labels = [encoders["targets"].decode([label]) for label in range(1, size)]
        ids = tf.TensorSpec([None, None], tf.int32)
        self.probabilities = tf.function(self._traced, input_signature=[ids], autograph=False)

    @classmethod
    def load(cls, path, data_dir=None, compute_dtype=None, check_device=True):
        """Loads a trained model.

        Args:
            path: an output_dir (for its newest checkpoint), a checkpoint `…/model.ckpt-N`, a folder of averages, or an
                export of t2t-exporter.
            data_dir: folder of the vocabulary, if it is not beside the checkpoint.
            compute_dtype, check_device: see `Translator.load`.

        Raises:
            UserError: there is no model, its files do not belong together, or it is no classifier.
        """
        from t2t_lite.runs.opening import find_run, open_runs

        paths = path if isinstance(path, list | tuple) else [path]
        if len(paths) != 1:
            raise UserError(f"{counted(len(paths), 'checkpoint')}: a Predictor has one model. Expected one checkpoint.")
        found = find_run(paths[0])
        check_task(found.problem, cls.task, found.checkpoint)
        (run,) = open_runs(found, data_dir, usable_dtype(compute_dtype, check_device))
        predictor = cls(run.model, run.encoders, run.problem)
        predictor.runs = [run]
        return predictor

    def predict(self, texts, *, batch_size=32):
        """Classifies texts.

        Args:
            texts: list of str.
            batch_size: int, texts per pass.

        Returns:
            list of `Prediction`, in the order of `texts`. Texts do not influence one another.

        Raises:
            UserError: a number out of range, or a text that the vocabulary cannot encode.
        """
        batch_size = typed_value("batch_size", batch_size, int, DECODE_BATCH)
        ids = []
        for at, text in enumerate(check_texts(texts), 1):
            with located(f"text {at}"):
                ids.append(self.encoders["inputs"].encode(self.problem.input_text(text)))
        found, longest = {}, self.max_input_length - 1  # beside EOS
        order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            sources = tf.ragged.constant([[*ids[at][:longest], EOS_ID] for at in rows], tf.int32).to_tensor()
            found.update(zip(rows, self.probabilities(sources).numpy().tolist(), strict=True))
        return [
            Prediction(
                self.labels[int(np.argmax(row))], dict(zip(self.labels, row, strict=True)), len(ids[at]) > longest
            )
            for at, row in sorted(found.items())
        ]

    def _traced(self, inputs):
        """int32 [B, S] -> float32 [B, classes]."""
        rows = tf.shape(inputs)[0]
        batch = {feature: tf.zeros([rows, 1][:rank], tf.int32) for feature, rank in self.problem.features.items()} | {
            "inputs": inputs
        }  # the labels are what is asked for
        logits, _ = named_outputs(self.model(batch, training=False))
        return tf.nn.softmax(tf.reshape(logits["targets"], [rows, len(self.labels) + 1])[:, 1:])  # id 0 is no class

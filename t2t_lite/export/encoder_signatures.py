"""The signatures of an encoder's export, which return the answers of the task and the encoder's features.

Inputs may be any bytes: invalid UTF-8 becomes U+FFFD, and long texts are truncated. Rows do not influence one another.
"""

import inspect

import tensorflow as tf

from t2t_lite.decoding.predictor import features_of, features_pooling, has_hidden_states
from t2t_lite.decoding.texts import check_options
from t2t_lite.export.signatures import sample_texts
from t2t_lite.settings.ranges import ALL_POSITIONS
from t2t_lite.text.reading_graph import as_many

_TABLE = """\
| signature | inputs | outputs |
|---|---|---|
| `serving_default`, `predict` | {inputs}, string [batch] | {outputs}; `truncated` bool [batch] |
"""
_FEATURES = "| `features` | the same | `features` float32 [batch, {shape}]{lengths}; `truncated` bool [batch] |\n"


class EncoderSignatures:
    """Builds the signatures of an encoder's export; see `t2t_lite.export.by_task`.

    Args:
        predictor: Predictor.
        max_input_length: int, the maximum length of an input in ids, every EOS included. For the default
            see `EncoderTask.export_length`.
        layers, join, pooling: settings of the signature `features`, see `Predictor.features`. A model that does not
            expose hidden states has no such signature.
        **settings: settings of the task, see `EncoderTask.export_settings`.

    Raises:
        UserError: max_input_length or a setting is out of range, or the model cannot return the requested features.
    """

    SETTINGS, HAS_FEATURES = (), True

    def __init__(self, predictor, max_input_length, *, layers="last", join=None, pooling=None, **settings):
        self._predictor, self._task = predictor, predictor.task
        self.max_input_length = self._task.export_length(max_input_length, predictor.max_input_length)
        task_settings = inspect.signature(self._task.export_settings).parameters
        check_options(settings, ["layers", "join", "pooling", *task_settings], "export_saved_model")
        self._settings = self._task.export_settings(**settings)
        pooling, normalize = features_pooling(predictor.model, pooling)
        self._feature_settings = {"layers": layers, "join": join, "pooling": pooling, "normalize": normalize or None}
        self.settings = self._feature_settings | self._settings
        self._features = None
        if has_hidden_states(predictor.model) or [layers, join, pooling] != ["last", None, None]:
            self._features = features_of(predictor.model, layers, join, pooling or ALL_POSITIONS, normalize)

    def functions(self):
        """Returns {name of a signature: tf.function}, as docs/serving.md lists them."""
        specs = [tf.TensorSpec([None], tf.string, name=name) for name in self._task.inputs]
        functions = [self.predict] + ([self.features] if self._features else [])
        tf_functions = {
            function.__name__: tf.function(function, input_signature=specs, autograph=False) for function in functions
        }
        return {"serving_default": tf_functions["predict"], **tf_functions}

    def predict(self, *texts):
        """Maps texts, each string [batch], to {"truncated" bool [batch], and the outputs of `EncoderTask.answers`}.

        A call whose inputs have different numbers of texts fails with the error InvalidArgument.
        """
        return self._task.answers(self._predictor, self._checked(texts), self.max_input_length, **self._settings)

    def features(self, *texts):
        """Maps texts, each string [batch], to {"features" float32 [batch, positions, n], "truncated" bool [batch]}.

        The positions are the same as in `Predictor.features`, padded with 0; "lengths" int32 [batch] contains each
        row's number of positions. With pooling, features are [batch, n], and there is no output "lengths".
        """
        longest = self._task.features_length(self.max_input_length, self._predictor.max_input_length)
        if self._predictor.features_length < self._predictor.max_input_length:  # the model has its own limit
            longest = min(longest, self._predictor.features_length)
        ids, truncated = self._task.whole_rows(self._checked(texts), longest)
        outputs = {"features": self._features(ids), "truncated": truncated}
        lengths = 1 + tf.math.count_nonzero(ids, 1, dtype=tf.int32)
        return outputs if self._feature_settings["pooling"] else {**outputs, "lengths": lengths}

    def warmup(self):
        """Returns warm-up calls, a list of (signature, {name: array})."""
        samples = sample_texts(self._predictor.encoders["inputs"], self.max_input_length)
        texts = [*map(self._task.warmup_text, samples)]
        calls = [("features", texts[:1])] if self._features else []
        calls += [("serving_default", texts[:1]), ("serving_default", texts)]
        return [(signature, dict.fromkeys(self._task.inputs, rows)) for signature, rows in calls]

    def card(self):
        """Returns ({title: text}, table of the signatures in Markdown) for the model card."""
        rows, outputs = self._task.card(**self._settings)
        rows["longest input"] = f"{self.max_input_length} pieces; longer texts are truncated"
        table = _TABLE.format(inputs=" and ".join(f"`{name}`" for name in self._task.inputs), outputs=outputs)
        if self._features:
            shape, lengths = (
                ("n", "") if self._feature_settings["pooling"] else ("positions, n", ", `lengths` int32 [batch]")
            )
            table += _FEATURES.format(shape=shape, lengths=lengths)
            settings = [f"{name} {value}" for name, value in self.settings.items() if value is not None]
            rows["features"] = ", ".join(settings)
        return rows, table

    def _checked(self, texts):
        """Returns texts, each string [batch], after checking in the graph that all have the same number of texts."""
        return as_many(**dict(zip(self._task.inputs, texts, strict=True)))

"""What the exports of encoders have in common: how they read texts, and their features.

They accept any bytes: invalid UTF-8 becomes U+FFFD, and long texts are truncated. Rows do not influence one another.
"""

import tensorflow as tf

from t2t_lite.decoding.hidden_states import features_of, has_hidden_states
from t2t_lite.export.reading import as_many, encoding, longest_input, row_reader
from t2t_lite.export.warmup import sample_texts
from t2t_lite.ranges import Range, typed_value

_TABLE = """\
| signature | inputs | outputs |
|---|---|---|
| `serving_default`, `predict` | {inputs}, string [batch] | {outputs}; `truncated` bool [batch] |
"""
_FEATURES = "| `features` | the same | `features` float32 [batch, {shape}]{lengths}; `truncated` bool [batch] |\n"


class EncoderSignatures:
    """Builds the signatures of an encoder's export; see `t2t_lite.export.by_task`. Subclasses add a task's answers.

    Args:
        predictor: Predictor.
        max_input_length: int, longest row in ids, every EOS included; None: see `longest_input`.
        layers, join, pooling: of the signature `features`, see `Predictor.features`. A model that tells no hidden
            states has no such signature.

    Raises:
        UserError: the number is out of range, or the features are unknown.
    """

    SETTINGS, HAS_FEATURES = (), True
    HUB_TASK = "text-classification"
    NAME, INPUTS, OUTPUT = "predict", ("inputs",), "labels"

    def __init__(self, predictor, max_input_length, *, layers="last", join=None, pooling=None):
        self._predictor, self._encoder = predictor, predictor.encoders["inputs"]
        if getattr(predictor.problem, "num_texts", 1) > 1:
            self.INPUTS = ("first", "second")
        most = predictor.max_input_length
        longest = longest_input(max_input_length, most)
        self.max_input_length = typed_value("max_input_length", longest, int, Range(2 * len(self.INPUTS) - 1, most))
        self.settings = {"layers": layers, "join": join, "pooling": pooling}
        self._features = None
        if has_hidden_states(predictor.model) or [layers, join, pooling] != ["last", None, None]:
            self._features = features_of(predictor.model, layers, join, pooling)
        self._encoding = encoding(self._encoder)
        self._rows = row_reader(self.encode, self.max_input_length, len(self.INPUTS))

    def functions(self):
        """Returns {name of a signature: tf.function}, as docs/serving.md lists them."""
        specs = [tf.TensorSpec([None], tf.string, name=name) for name in self.INPUTS]
        functions = [self.predict] + ([self.features] if self._features else [])
        made = {one.__name__: tf.function(one, input_signature=specs, autograph=False) for one in functions}
        return {"serving_default": made["predict"], **made}

    def predict(self, *texts):
        """Texts, string [batch] each -> {"truncated" bool [batch], and what `answers` says}.

        Unequal numbers of texts give InvalidArgument, since they cannot be paired.
        """
        ids, truncated = self.read(*self.checked(*texts))
        return {**self.answers(ids), "truncated": truncated}

    def read(self, *texts):
        """Texts, string [batch] each -> (ids int32 [batch, width], truncated bool [batch]), what `answers` gets."""
        return self.read_whole(*texts)

    def read_whole(self, *texts):
        """As `read`, what `Predictor.features` reads."""
        return self._rows(*texts)

    def encode(self, texts):
        """string [batch], any bytes -> int32 ragged [batch, (length)]."""
        return self._encoding(texts)

    def answers(self, ids):
        """int32 [batch, width] -> {name: tensor [batch, …]}."""
        raise NotImplementedError

    def features(self, *texts):
        """Texts, string [batch] each -> {"features" float32 [batch, positions, n], "truncated" bool [batch]}.

        Positions are those of `Predictor.features`; "lengths" int32 [batch] are their numbers, and behind them there is
        0. With pooling features are [batch, n], and there are no lengths.
        """
        ids, truncated = self.read_whole(*self.checked(*texts))
        found = {"features": self._features(ids), "truncated": truncated}
        lengths = 1 + tf.math.count_nonzero(ids, 1, dtype=tf.int32)
        return found if self.settings["pooling"] else {**found, "lengths": lengths}

    def warmup(self):
        """Returns a list of (signature, {name: array})."""
        texts = self.sample_texts()
        calls = [("features", texts[:1])] if self._features else []
        calls += [("serving_default", texts[:1]), ("serving_default", texts)]
        return [(signature, dict.fromkeys(self.INPUTS, rows)) for signature, rows in calls]

    def sample_texts(self):
        """Returns texts, bytes, that a server may read before the first user's."""
        return sample_texts(self._encoder, self.max_input_length)

    def card(self):
        """Returns ({title: text}, table of the signatures in Markdown) for the model card."""
        rows, outputs = self.described()
        rows["longest input"] = f"{self.max_input_length} pieces; longer ones are cut"
        table = _TABLE.format(inputs=" and ".join(f"`{name}`" for name in self.INPUTS), outputs=outputs)
        if self._features:
            shape, lengths = ("n", "") if self.settings["pooling"] else ("positions, n", ", `lengths` int32 [batch]")
            table += _FEATURES.format(shape=shape, lengths=lengths)
            chosen = [f"{name} {value}" for name, value in self.settings.items() if value is not None]
            rows["features"] = ", ".join(chosen)
        return rows, table

    def described(self):
        """Returns ({title: text}, the outputs of `predict` in Markdown) for the model card."""
        raise NotImplementedError

    def checked(self, *texts):
        """Returns texts, string [batch] each, after checking in the graph that there are as many of each input."""
        return as_many(**dict(zip(self.INPUTS, texts, strict=True)))

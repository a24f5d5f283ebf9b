"""Problems of texts with one label each, a class or a number."""

import functools
import types

from t2t_lite.data.text_problems.text_problem import Text2TextProblem
from t2t_lite.errors import NotWritten
from t2t_lite.text.rows import cut_texts
from t2t_lite.text.vocabulary import EOS_ID


class LabelledTextProblem(Text2TextProblem):
    """One text or several in, a label out. Subclasses write `generate_samples` and `label_ids`.

    Samples have "inputs", a str, or a list of `num_texts` of them. In a row each text ends in 1. A row longer than the
    hyperparameter `max_length` is truncated, so that every text gets a label: see `cut_texts`.

    Attributes:
        num_texts: int, texts in a row of inputs.
    """

    num_texts = 1
    features = types.MappingProxyType({"inputs": 2, "targets": 1})
    text_features = ("inputs",)
    eval_decode_metric = None
    cuts_rows = True

    def label_ids(self, data_dir):
        """Returns the function that gives the id of a sample's label; it must be picklable."""
        raise NotWritten(f"{type(self).__name__}: write label_ids.")

    def texts(self, sample):
        """See `Text2TextProblem.texts`."""
        inputs = sample.get("inputs")
        if self.num_texts == 1:
            return [inputs]
        return inputs if isinstance(inputs, list | tuple) and len(inputs) == self.num_texts else [None]

    @property
    def expected_sample(self):
        """See `Text2TextProblem.expected_sample`."""
        return f'"inputs": {"str" if self.num_texts == 1 else f"list of {self.num_texts} str"}, …'

    def sample_encoder(self, data_dir):
        """See `Text2TextProblem.sample_encoder`."""
        encoder = self.feature_encoders(data_dir)["inputs"]
        return functools.partial(_encode, encoder, self.inputs_prefix, self.num_texts, self.label_ids(data_dir))

    def preprocess_example(self, example, mode, hparams):
        """Cuts the inputs: see `cut_texts`."""
        return {**example, "inputs": cut_texts(example["inputs"], self.max_length(hparams))}


def _encode(encoder, prefix, num_texts, label_id, samples):
    examples = []
    for sample in samples:
        label = label_id(sample)
        texts = [sample["inputs"]] if num_texts == 1 else sample["inputs"]
        row = [i for text in texts for i in (*encoder.encode(prefix + text), EOS_ID)]
        examples.append({"inputs": row, "targets": [label]})
    return examples

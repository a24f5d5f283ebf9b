"""What a file of records holds, read without the code that trains on it."""

import tensorflow as tf

from t2t_lite.data.records import Records
from t2t_lite.text.vocabulary import EOS_ID


def read_examples(paths):
    """Yields {feature: list of ids} of all records, file after file."""
    for record in tf.data.TFRecordDataset(paths).as_numpy_iterator():
        features = tf.train.Example.FromString(record).features.feature
        yield {name: list(features[name].int64_list.value) for name in sorted(features)}


def decoded(problem, data_dir, split="train"):
    """Returns the (inputs, targets) of a split's records as texts; each row ends in EOS."""
    encoders, found = problem.feature_encoders(str(data_dir)), []
    for example in read_examples(Records(problem, str(data_dir), split).paths):
        assert example["inputs"][-1] == example["targets"][-1] == EOS_ID
        found.append(tuple(encoders[side].decode(example[side]) for side in ("inputs", "targets")))
    return found

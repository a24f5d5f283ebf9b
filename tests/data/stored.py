"""What a file of records holds, read without the code that trains on it."""

import tensorflow as tf


def read_examples(paths):
    """Yields {feature: list of ids} of all records, file after file."""
    for record in tf.data.TFRecordDataset(paths).as_numpy_iterator():
        features = tf.train.Example.FromString(record).features.feature
        yield {name: list(features[name].int64_list.value) for name in sorted(features)}

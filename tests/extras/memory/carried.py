"""What tests of carried states share: a user's small model, its text, its runs and what they save."""

import itertools
import os

import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.records import Records
from t2t_lite.extras.memory.segments import SegmentBatches
from tests.training.runs import trainer

# A row has 3 segments of 4 ids, a batch 5 rows: no two numbers are the same.
PROBLEM, ROW, LENGTH, ROWS = "user_memory_text", 12, 4, 5
HPARAMS = (
    f"hidden_size=8,batch_size={ROWS * LENGTH},segment_length={LENGTH},layer_prepostprocess_dropout=0.2,"
    "learning_rate_schedule=constant,learning_rate_constant=0.01,label_smoothing=0"
)


def hparams(more=""):
    return registry.hparams("transformer_tiny").of_model(registry.model("user_memory")).parse(HPARAMS).parse(more)


def remembering(data, output_dir, more="", **settings):
    """A trainer of the user's model that saves after every second step: a row has three segments."""
    made = hparams(more)
    settings = {"local_eval_frequency": 2, "model": "user_memory", "problem": PROBLEM, **settings}
    found = trainer(data, output_dir, "", **settings)
    found.hparams = made
    return found


def memory(output_dir, step):
    """The saved state of all lanes: {name: array}."""
    return saved(os.path.join(output_dir, f"model.ckpt-{step}.state"))


def saved(path):
    reader = tf.train.load_checkpoint(str(path))
    return {key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()}


def source(data, lanes=1, more=""):
    problem = registry.problem(PROBLEM)
    return SegmentBatches(problem, hparams(more), problem.get_feature_encoders(data), lanes)


def records(data, split):
    return Records(registry.problem(PROBLEM), data, split)


def numbers(iterator, count):
    return [{f: ids.numpy().tolist() for f, ids in batch.items()} for batch in itertools.islice(iterator, count)]

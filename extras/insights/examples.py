"""A text of a run's own dev set, with which the page begins."""

import itertools
import os

import tensorflow as tf

from t2t_lite.data.records import Records
from t2t_lite.data.splits import DatasetSplit
from t2t_lite.errors import Failure, UserError
from t2t_lite.text.vocabulary import EOS_ID

_MOST_EXAMPLES = 100  # that are looked at
_LENGTHS = range(4, 31)  # ids of a text that is neither dull nor slow
_MOST_WORDS = 5  # of a prompt
_MOST_FOLDERS = 3  # above the checkpoint's: of train/avg/model.ckpt-9, export/1/variables/variables


def example_text(answerer, data_dir=None):
    """Returns a text of a model's dev set that it can be asked about, or "".

    Args:
        answerer: Translator, Generator or Predictor.
        data_dir: str, the folder of the records; None: a folder `data` beside the run's, or above it.
    """
    run = next(iter(answerer.runs), None)
    if run is None or answerer.task.inputs != ("inputs",) or answerer.task.output == "candidates":
        return ""  # two texts, or one with masks, are not those of a record
    try:
        for folder in [data_dir] if data_dir else _folders(run.path):
            records = Records(answerer.problem, folder, DatasetSplit.EVAL)
            if records.exist() and _has_vocabulary(answerer, folder):
                examples = itertools.islice(records.examples(run.hparams), _MOST_EXAMPLES)
                return next(filter(None, (_text(answerer, example) for example in examples)), "")
    except (UserError, Failure, OSError, tf.errors.OpError):
        pass  # the model answers without its data, too
    return ""


def _folders(checkpoint):
    folders = [os.path.dirname(os.path.abspath(checkpoint) if "://" not in checkpoint else checkpoint)]
    for _ in range(_MOST_FOLDERS):
        folders.append(os.path.dirname(folders[-1]))
    return [os.path.join(folder, "data") for folder in folders[1:]]


def _has_vocabulary(answerer, folder):
    encoders = answerer.problem.get_feature_encoders(folder)
    return all(encoder.fingerprint == answerer.encoders[side].fingerprint for side, encoder in encoders.items())


def _text(answerer, example):
    """Returns the text of an example that is encoded as it is; of a text to continue, words of its beginning. Or ""."""
    if "inputs" not in example:
        words = answerer.encoders["targets"].decode(example["targets"]).split()
        return " ".join(words[1 : 1 + _MOST_WORDS])  # a row may begin within a word
    ids = [i for i in example["inputs"] if i != EOS_ID]
    text = answerer.encoders["inputs"].decode(ids)
    is_whole = len(ids) in _LENGTHS and answerer.encoders["inputs"].encode(answerer.problem.encoded_text(text)) == ids
    return text if is_whole else ""

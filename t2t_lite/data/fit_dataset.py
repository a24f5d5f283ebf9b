"""The batches of a problem for Keras' own `fit` and `evaluate`."""

import tensorflow as tf

from t2t_lite import registry
from t2t_lite.data.records import Records
from t2t_lite.data.splits import DatasetSplit, named_split
from t2t_lite.errors import UserError
from t2t_lite.settings.config import HParams


def fit_dataset(problem, data_dir, split=DatasetSplit.TRAIN, hparams=None):
    """Returns a `tf.data.Dataset` of ({feature: ids}, labels), int32 [rows, length], padded with 0.

    The labels are the targets. Numbers become float32 [rows], scaled from 0, the lowest, to 1, the highest. Masked ids
    become int32 [n], the masked positions row by row, since `TransformerEncoder` has logits for these alone. A masked
    problem with further tasks has a dict of labels, {feature: ids}.

    Args:
        problem: Problem; its `preprocess_example`, `_rev`, `_copy` and `corrupt` are applied.
        data_dir: str, the folder that t2t-datagen wrote.
        split: "train": an endless stream in a new order for each pass (set `fit`'s `steps_per_epoch`), the same as
            t2t-trainer's on one replica. "eval" (or "dev") or "test": one pass.
        hparams: HParams, or the name of a set; of it batch_size (tokens), max_length, min_length, random_seed and
            bpe_dropout are used, and what `preprocess_example` reads; None: the paper's.

    Raises:
        UserError: the split does not exist, data are missing or damaged, no example is within the length limits, or the
            problem has masked ids and a `tf.distribute` strategy of several replicas is active.
    """
    hparams = HParams() if hparams is None else registry.hparams(hparams)
    split = named_split(split)
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if registry.task_of(problem).labels_are_of_all_rows and replicas > 1:
        raise UserError(  # Keras would split rows and labels independently
            f"{problem.full_name}: `fit` cannot share out masked ids to {replicas} replicas. Expected one, or the "
            "Trainer."
        )
    records = Records(problem, data_dir, split)
    if split == DatasetSplit.TRAIN:
        records.check_training(hparams)
    else:
        records.check()
    batches = records.batches(hparams, problem.get_feature_encoders(data_dir))
    fit_labels = registry.task_of(problem).fit_labels
    return batches.map(lambda batch: (batch, fit_labels(batch, problem.features)))

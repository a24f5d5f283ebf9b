"""The batches of a problem for Keras' own `fit` and `evaluate`."""

from t2t_lite.config import HParams
from t2t_lite.data import batching
from t2t_lite.data.split_facts import check_split
from t2t_lite.data.splits import FILE_TAGS, DatasetSplit
from t2t_lite.errors import UserError, shown
from t2t_lite.text.vocabulary import vocabulary_sizes


def fit_dataset(problem, data_dir, split=DatasetSplit.TRAIN, hparams=None):
    """Returns a `tf.data.Dataset` of ({"inputs", "targets"}, targets), int32 [rows, length], padded with 0.

    Args:
        problem: Problem; `_rev` and `_copy` count.
        data_dir: str, the folder that t2t-datagen wrote.
        split: "train": an endless stream in a new order for each pass (set `fit`'s `steps_per_epoch`), the same as
            t2t-trainer's on one replica. "eval" (or "dev") or "test": one pass.
        hparams: HParams, of which batch_size (tokens), max_length, min_length, random_seed and bpe_dropout are used;
            None: the paper's.

    Raises:
        UserError: the split does not exist, data are missing or damaged, or no example has a length within the limits.
    """
    hparams = HParams() if hparams is None else hparams
    split = DatasetSplit.EVAL if split == FILE_TAGS[DatasetSplit.EVAL] else split
    if split not in FILE_TAGS:
        raise UserError(f"split={shown(split)}: expected one of {', '.join(FILE_TAGS)}.")
    problem.check_data(data_dir)
    encoders = problem.get_feature_encoders(data_dir)
    vocab_size, target_vocab_size = vocabulary_sizes(encoders)
    sizes = vocab_size, target_vocab_size or vocab_size
    if split == DatasetSplit.TRAIN:
        paths, examples, dropped = check_split(
            problem, data_dir, split, problem.max_length(hparams), hparams.min_length
        )
        if not examples:
            raise UserError(
                f"{problem.full_name}: none of the {dropped:,} training examples has between "
                f"min_length={hparams.min_length} and max_length={problem.max_length(hparams)} ids."
            )
        batches = batching.problem_batches(problem, hparams, paths, encoders, sizes)
    else:
        paths, *_ = check_split(problem, data_dir, split)
        batches = batching.evaluation_batches(
            paths,
            batch_size=hparams.batch_size,
            was_reversed=problem.was_reversed,
            was_copy=problem.was_copy,
            vocab_size=sizes,
        )
    return batches.map(lambda batch: (batch, batch["targets"]))

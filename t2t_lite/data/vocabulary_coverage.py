"""Reports how much of the generated data is unknown to a vocabulary: much, if it is one of another language."""

import logging
import re

import numpy as np
import tensorflow as tf

from t2t_lite.data import record_format
from t2t_lite.data.records import Records
from t2t_lite.data.splits import DatasetSplit
from t2t_lite.text.vocabulary import ByteTextEncoder, TextEncoder

_LOGGER = logging.getLogger("t2t_lite")
_EXAMPLES = 4096  # the first ones, which are in a random order
_MOST = 0.05  # a vocabulary learned from such text has hardly any
_BYTE_PIECE = re.compile("<0x[0-9A-F]{2}>")


def report_coverage(problem, data_dir):
    """Logs the shares of unknown ids and of byte pieces in the training data, unless they are 0.0 %.

    A share above 5 % is a warning: words become many byte pieces, or all the same unknown id.
    """
    records = Records(problem, data_dir, DatasetSplit.TRAIN)
    if not records.exist():
        return
    batch = next(iter(tf.data.TFRecordDataset(records.paths).batch(_EXAMPLES)), None)
    if batch is None:
        return
    example = record_format.parse_batch(batch, problem.record_features)
    for feature, encoder in problem.open_encoders(data_dir).items():
        if feature not in example or not isinstance(encoder, TextEncoder):
            continue
        shares = coverage(encoder, example[feature].flat_values.numpy())
        if any(round(100 * share, 1) for share in shares.values()):
            shares_text = " and ".join(f"{100 * share:.1f} % {name}" for name, share in shares.items())
            text = f"{problem.name}: {feature} have {shares_text} among their ids"
            if sum(shares.values()) > _MOST:
                _LOGGER.warning(
                    f"{text}: much of the text is not known to the vocabulary, as if it were one of another language. "
                    "Expected one that was learned from such text."
                )
            else:
                _LOGGER.info(text)


def coverage(encoder, ids):
    """Returns {"<unk>": share, "byte pieces": share} of ids.

    Args:
        encoder: TextEncoder. For an encoder of bytes both shares are 0.
        ids: int [n].
    """
    counts = np.bincount(ids, minlength=encoder.vocab_size)
    unknown = counts[encoder.unknown_id] if encoder.unknown_id is not None else 0
    in_bytes = 0 if isinstance(encoder, ByteTextEncoder) else counts[_bytes_of(encoder)].sum()
    return {"<unk>": unknown / len(ids), "byte pieces": in_bytes / len(ids)}


def _bytes_of(encoder):
    """Returns the ids of pieces that are bytes, or are not text by themselves."""
    pieces = encoder.pieces(range(encoder.vocab_size))
    texts = encoder.piece_bytes or [b""] * len(pieces)
    return [
        i
        for i, (piece, text) in enumerate(zip(pieces, texts, strict=True))
        if _BYTE_PIECE.fullmatch(piece) or "\ufffd" in text.decode("utf-8", errors="replace")
    ]

"""Checks ids that a caller passes in place of a text."""

import numpy as np

from t2t_lite.errors import UserError, shown


def check_ids(ids, vocab_size, least=1):
    """Returns ids as a list of int.

    Args:
        ids: list, tuple or array of whole numbers.
        vocab_size: int.
        least: int, the smallest id: 1 is EOS, and 2 leaves no place for it.

    Raises:
        UserError: another value, or an id outside the vocabulary.
    """
    try:
        array = np.asarray(ids if len(ids) else np.zeros(0, int))
    except (TypeError, ValueError):  # no length; or lists of unequal lengths
        array = np.zeros(0)
    if isinstance(ids, str | bytes) or array.ndim != 1 or not np.issubdtype(array.dtype, np.integer):
        raise UserError(f"{shown(ids)}: expected a text, or a list of ids, whole numbers.")
    if wrong := [i for i in array.tolist() if not least <= i < vocab_size]:
        where = "is EOS, which ends a text" if wrong[0] == 1 else "is outside the vocabulary"
        raise UserError(f"id {wrong[0]} {where}. Expected from {least} to {vocab_size - 1:,}.")
    return array.tolist()


def prefix_ids(encoder, prefix, longest_output):
    """Returns the ids of a text, or list of ids, with which an output of at most `longest_output` ids has to begin.

    Raises:
        UserError: there are as many or more, or one is outside the vocabulary.
    """
    ids = encoder.encode(prefix) if isinstance(prefix, str) else check_ids(prefix, encoder.vocab_size, least=2)
    if len(ids) >= longest_output:
        raise UserError(
            f"its prefix has {len(ids):,} ids, and its output at most {longest_output - 1:,}. Shorten the prefix, or "
            "raise extra_length."
        )
    return ids

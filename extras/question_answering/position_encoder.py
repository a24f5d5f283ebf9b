"""Positions in a row <-> ids."""

import hashlib
import re

from t2t_lite.errors import UserError, shown


class PositionEncoder:
    """Ids of positions, counted from 1; 0 is padding: "3 5" <-> [3, 5].

    Args:
        longest: int, the last position.
    """

    unknown_id = None

    def __init__(self, longest):
        self.vocab_size = longest + 1

    @property
    def fingerprint(self):
        """SHA-256 (hex) of the last position."""
        return hashlib.sha256(f"{type(self).__name__} {self.vocab_size}".encode()).hexdigest()

    def encode(self, text):
        """Returns the ids of numbers separated by spaces. Raises `UserError` for anything else."""
        words = text.split()
        for word in words:
            if not re.fullmatch(r"[0-9]{1,9}", word) or not 1 <= int(word) < self.vocab_size:
                raise UserError(f"{shown(word)} is no position. Expected numbers from 1 to {self.vocab_size - 1}.")
        return list(map(int, words))

    def decode(self, ids):
        """Returns the positions, without padding, separated by spaces."""
        return " ".join(str(int(i)) for i in ids if i)

    def pieces(self, ids):
        """Returns the position of every id, and `<pad>` for 0."""
        return [str(int(i)) if i else "<pad>" for i in ids]

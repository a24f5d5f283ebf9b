"""The settings of a search."""

import dataclasses

from t2t_lite.errors import UserError


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """How to search. Raises `UserError` for values that mean nothing.

    Attributes:
        beam_size: hypotheses kept alive; 1 is greedy search.
        alpha: exponent of the length penalty, >= 0; larger prefers longer outputs.
        extra_length: an output has at most as many ids as its input and this many more, EOS counted on both sides.
        batch_size: sentences searched at a time; fewer where they are longer than 128 ids.
        length_penalty: "gnmt", ((5 + n) / 6)^alpha, or "power", n^alpha; n counts EOS.
        n_best: how many hypotheses to return, at most beam_size.
        compile: whether to compile the search by XLA; None: when enough batches of a size come to pay for it.
    """

    beam_size: int = 4
    alpha: float = 0.6
    extra_length: int = 50
    batch_size: int = 32
    length_penalty: str = "gnmt"
    n_best: int = 1
    compile: bool | None = None

    def __post_init__(self):
        for name, least in (("beam_size", 1), ("alpha", 0), ("extra_length", 0), ("batch_size", 1), ("n_best", 1)):
            value = getattr(self, name)
            if not value >= least:
                raise UserError(f"{name}={value}: expected at least {least}.")
        if self.n_best > self.beam_size:
            raise UserError(f"n_best={self.n_best}: expected at most beam_size={self.beam_size}.")
        if self.length_penalty not in ("gnmt", "power"):
            raise UserError(f"length_penalty={self.length_penalty}: expected gnmt or power.")

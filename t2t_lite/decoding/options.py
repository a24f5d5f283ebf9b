"""The settings of a search."""

import dataclasses

from t2t_lite.errors import UserError

_LEAST = {"beam_size": 1, "alpha": 0, "extra_length": 0, "batch_size": 1, "n_best": 1, "temperature": 0, "top_k": 0}


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """How to search. Raises `UserError` for values that mean nothing.

    Attributes:
        beam_size: hypotheses kept alive; 1 is greedy search.
        alpha: exponent of the length penalty, >= 0; larger prefers longer outputs.
        extra_length: an output has at most as many ids as its input and this many more, EOS counted on both sides.
        batch_size: sentences searched at a time; fewer where they are longer than 128 ids, or have many samples.
        length_penalty: "gnmt", ((5 + n) / 6)^alpha, or "power", n^alpha; n counts EOS.
        n_best: how many hypotheses to return, at most beam_size; of sampling: how many samples to draw.
        ends: which of the 2 * beam_size best continuations of a step may end an output: "any" (tensor2tensor), or the
            "top" beam_size (Hugging Face, CTranslate2).
        compile: whether to compile the search by XLA; None: when enough batches of a size come to pay for it.
        sampling: draw outputs from the model (`t2t_lite.decoding.sampling`) instead of searching; beam_size, alpha and
            length_penalty then don't matter. They come in the order in which they were drawn, each with its
            log-probability as score.
        temperature: of sampling, >= 0: logits are divided by it; below 1 what is probable becomes more so.
        top_k: of sampling: only the ids of the largest logits are drawn; 0: all.
        top_p: of sampling, in (0, 1]: only the most probable ids whose probabilities sum up to this are drawn.
        seed: of sampling, from 0 to 2^32 - 1. What is drawn depends on it and on the sentence alone, so that equal
            sentences get equal samples.
    """

    beam_size: int = 4
    alpha: float = 0.6
    extra_length: int = 50
    batch_size: int = 32
    length_penalty: str = "gnmt"
    n_best: int = 1
    ends: str = "any"
    compile: bool | None = None
    sampling: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self):
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not value >= least:
                raise UserError(f"{name}={value}: expected at least {least}.")
        if self.n_best > self.beam_size and not self.sampling:
            raise UserError(f"n_best={self.n_best}: expected at most beam_size={self.beam_size}.")
        if self.length_penalty not in ("gnmt", "power"):
            raise UserError(f"length_penalty={self.length_penalty}: expected gnmt or power.")
        if self.ends not in ("any", "top"):
            raise UserError(f"ends={self.ends}: expected any or top.")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top_p={self.top_p}: expected more than 0, at most 1.")
        if not 0 <= self.seed < 2**32:
            raise UserError(f"seed={self.seed}: expected from 0 to {2**32 - 1}.")

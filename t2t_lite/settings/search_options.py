"""The settings of a search."""

import dataclasses

from t2t_lite.errors import UserError
from t2t_lite.settings.ranges import (
    ALPHA,
    BEAM_SIZE,
    DECODE_BATCH,
    EXTRA_LENGTH,
    SAMPLING_SEED,
    check_settings,
    setting,
    typed_text,
)

_BEAM = {"excludes": ("samples", "targets")}  # of settings of a beam search
_SAMPLING = {"needs": ("may_sample",), "excludes": ("targets",)}
_OUTPUT = {"excludes": ("targets",)}
_MOST_STOPS, _LONGEST_STOP = 16, 100
_MOST_BANNED, _MOST_BANNED_BYTES = 100, 1000  # a row of the table per byte, as wide as the vocabulary


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """How to search. Raises `UserError` for values of the wrong type or out of range.

    Attributes:
        beam_size: hypotheses kept alive; 1 is greedy search.
        alpha: exponent of the length penalty; larger prefers longer outputs.
        extra_length: an output has at most as many ids as its input, plus this many, EOS counted on both sides.
        batch_size: sentences searched at a time; fewer if they are longer than 128 ids or have many samples.
        length_penalty: "gnmt", ((5 + n) / 6)^alpha, or "power", n^alpha; n counts EOS.
        n_best: how many hypotheses to return, at most beam_size; when sampling, the number of samples.
        ends: which of the 2 * beam_size best continuations of a step may finish: "any" (tensor2tensor), or the
            "top" beam_size (Hugging Face, CTranslate2).
        compile: whether to compile the search with XLA; None: once there are enough batches of a shape to pay off.
        sampling: sample outputs from the model (`t2t_lite.decoding.search.sampling`) instead of searching; beam_size,
            alpha and length_penalty then have no effect. Samples are in the order of sampling; a sample's score is its
            log-probability.
        temperature: for sampling: logits are divided by it; below 1 it makes probable ids more probable.
        top_k: for sampling: only the ids with the k largest logits are candidates; 0: all.
        top_p: for sampling: only the most probable ids whose probabilities sum up to this are candidates.
        seed: for sampling. Samples depend only on the seed and the sentence, so equal sentences get equal samples.
        no_repeat_ngram_size: no n ids in a row occur twice in an output, nor after its prompt; 0: they may.
        repetition_penalty: the scores of ids that an output or its prompt has already are divided by it if they are
            positive, and else multiplied; above 1 it makes them less probable. Both are Hugging Face's, whose beam
            search compares changed log-probabilities: of a beam of several, a score is their sum.
        stop: strings, or one. An output ends when its text contains one, before which the text is cut.
        banned_texts: strings, or one, that no output contains, in whatever pieces: the text that the model writes, not
            what it is given (a prompt, a protected text). Upper and lower case differ; a space at the beginning also
            stands for the beginning of an output. Scores are the model's own, as with `repetition_penalty`.
    """

    beam_size: int = setting(4, limits=BEAM_SIZE)
    alpha: float = setting(0.6, limits=ALPHA, **_BEAM)
    extra_length: int = setting(50, limits=EXTRA_LENGTH)
    batch_size: int = setting(32, limits=DECODE_BATCH, predicts=True)
    length_penalty: str = setting("gnmt", choices=("gnmt", "power"), **_BEAM)
    n_best: int = setting(1, 1, 4096, flag=None)
    ends: str = setting("any", choices=("any", "top"), **_BEAM)
    compile: bool | None = setting(None, flag=None)
    sampling: bool = setting(False, flag="sampling_method")
    temperature: float = setting(1.0, 0, 1000, flag="sampling_temp", **_SAMPLING)
    top_k: int = setting(0, 0, 2**24, flag="sampling_keep_top_k", **_SAMPLING)
    top_p: float = setting(1.0, above=0, most=1, flag="sampling_keep_top_p", **_SAMPLING)
    seed: int = setting(0, limits=SAMPLING_SEED, flag="sampling_seed", **_SAMPLING)
    no_repeat_ngram_size: int = setting(0, 0, 64, **_OUTPUT)
    repetition_penalty: float = setting(1.0, above=0, most=1000, **_OUTPUT)
    stop: list = setting((), **_OUTPUT)  # noqa: RUF009  (immutable)
    banned_texts: list = setting((), **_OUTPUT)  # noqa: RUF009

    def __post_init__(self):
        stop, banned = _as_list(self.stop), _as_list(self.banned_texts)
        object.__setattr__(self, "stop", stop)
        object.__setattr__(self, "banned_texts", banned)
        check_settings(self)
        if len(stop) > _MOST_STOPS or not all(isinstance(one, str) and 0 < len(one) <= _LONGEST_STOP for one in stop):
            raise UserError(
                f"stop={typed_text(stop)}: expected at most {_MOST_STOPS} texts of 1 to {_LONGEST_STOP} characters."
            )
        object.__setattr__(self, "stop", tuple(stop))
        is_text = all(isinstance(one, str) and one and "\ufffd" not in one for one in banned)
        if not is_text or len(banned) > _MOST_BANNED or _size(banned) > _MOST_BANNED_BYTES:
            raise UserError(
                f"banned_texts={typed_text(banned)}: expected at most {_MOST_BANNED} texts, none empty or with U+FFFD, "
                f"of {_MOST_BANNED_BYTES:,} bytes together."
            )
        object.__setattr__(self, "banned_texts", tuple(banned))
        if self.n_best > self.beam_size and not self.sampling:
            raise UserError(f"n_best={self.n_best}: expected at most beam_size={self.beam_size}.")

    def traced(self):
        """Returns the options that are Python values in the graph of a search; all others have their defaults."""
        own = ("top_k",) if self.sampling else ("beam_size", "length_penalty", "ends")
        names = ("sampling", "n_best", "no_repeat_ngram_size", *own)
        return SearchOptions(**{name: getattr(self, name) for name in names})

    def numbers(self):
        """Returns {name: value} of the options that a graph gets as tensors, without some that are off."""
        names = ["temperature"] + ["top_p"] * (self.top_p < 1) if self.sampling else ["alpha"]
        names += ["repetition_penalty"] * (self.repetition_penalty != 1)
        return {name: getattr(self, name) for name in names}

    def changes(self):
        """Returns {name: value} of the options that differ from the defaults."""
        fields = dataclasses.fields(self)
        return {f.name: value for f in fields if (value := getattr(self, f.name)) != f.default}


def kept_settings(options, names):
    """Returns {name: value} of the settings that an export keeps; empty banned texts are left out, as before."""
    return {name: getattr(options, name) for name in names if name != "banned_texts" or options.banned_texts}


def _as_list(given):
    return list(given) if isinstance(given, list | tuple) else [given]


def _size(texts):
    return len("".join(texts).encode("utf-8", "surrogatepass"))

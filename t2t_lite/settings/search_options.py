"""SearchOptions: the settings of beam search, greedy search and sampling."""

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

_BEAM = {"excludes": ("samples", "targets")}  # facts that make settings of beam search ineffective
_SAMPLING = {"needs": ("may_sample",), "excludes": ("targets",)}
_OUTPUT = {"excludes": ("targets",)}
_MOST_STOPS, _LONGEST_STOP = 16, 100
_MOST_BANNED, _MOST_BANNED_BYTES = 100, 1000  # each byte of the texts needs a table row of vocabulary size


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """The settings of search and sampling. Raises `UserError` for values of the wrong type or out of range.

    Attributes:
        beam_size: number of hypotheses kept alive; 1 is greedy search.
        alpha: exponent of the length penalty; larger values prefer longer outputs.
        extra_length: the maximum number of ids by which an output may be longer than its input, counting EOS on both
            sides.
        batch_size: number of sentences searched at a time. It is reduced for sentences longer than 128 ids, and if many
            samples are drawn.
        length_penalty: "gnmt" for ((5 + n) / 6)^alpha or "power" for n^alpha, where the length n counts EOS.
        n_best: how many hypotheses to return, at most beam_size; when sampling, the number of samples.
        ends: which of the 2 * beam_size best continuations of a step may finish: "any" of them (tensor2tensor), or only
            the "top" beam_size (Hugging Face, CTranslate2).
        compile: whether to compile the search with XLA. If None, it is compiled once enough batches have the same
            shape.
        sampling: sample outputs from the model (`t2t_lite.decoding.search.sampling`) instead of searching; beam_size,
            alpha and length_penalty then have no effect. Samples are in the order of sampling; a sample's score is its
            log-probability.
        temperature: for sampling: number by which logits are divided; values below 1 make probable ids more probable.
        top_k: for sampling: number of candidates, which are the ids with the largest logits; 0 means all ids.
        top_p: for sampling: the candidates are the most probable ids whose probabilities add up to this number.
        seed: seed for sampling. Samples depend only on the seed and the sentence, so equal sentences get equal samples.
        no_repeat_ngram_size: n to forbid repeating a sequence of n ids of the prompt or the output; 0 to allow
            repetitions.
        repetition_penalty: for ids that already occur in the prompt or the output, positive scores are divided by this
            number and negative scores are multiplied by it; values above 1 make repetitions less probable. This setting
            and no_repeat_ngram_size work as in Hugging Face's package. With beam_size above 1, hypotheses are ranked by
            the sum of the changed log-probabilities.
        stop: a string or several strings. An output ends as soon as its text contains a stop string, and its text is
            cut before the stop string.
        banned_texts: a string or several strings that generated text never contains, however it is split into pieces.
            Text that you supply, such as a prompt or a protected text, may contain them. Case matters. A space at the
            beginning of a banned text also stands for the beginning of an output. Scores remain the model's own.
    """

    beam_size: int = setting(4, limits=BEAM_SIZE, **_OUTPUT)
    alpha: float = setting(0.6, limits=ALPHA, **_BEAM)
    extra_length: int = setting(50, limits=EXTRA_LENGTH, **_OUTPUT)
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
        vars(self).update(stop=stop, banned_texts=banned)
        check_settings(self)
        if len(stop) > _MOST_STOPS or not all(isinstance(one, str) and 0 < len(one) <= _LONGEST_STOP for one in stop):
            raise UserError(
                f"stop={typed_text(stop)}: expected at most {_MOST_STOPS} texts of 1 to {_LONGEST_STOP} characters."
            )
        is_text = all(isinstance(one, str) and one and "\ufffd" not in one for one in banned)
        size = len("".join(banned).encode("utf-8", "surrogatepass")) if is_text else 0
        if not is_text or len(banned) > _MOST_BANNED or size > _MOST_BANNED_BYTES:
            raise UserError(
                f"banned_texts={typed_text(banned)}: expected at most {_MOST_BANNED} non-empty texts without U+FFFD, "
                f"with {_MOST_BANNED_BYTES:,} bytes in total."
            )
        vars(self).update(stop=tuple(stop), banned_texts=tuple(banned))
        if self.n_best > self.beam_size and not self.sampling:
            raise UserError(f"n_best={self.n_best}: expected at most beam_size={self.beam_size}.")

    def traced(self):
        """Returns a copy with only the options that are constants in the graph of a search."""
        method_options = ("top_k",) if self.sampling else ("beam_size", "length_penalty", "ends")
        names = ("sampling", "n_best", "no_repeat_ngram_size", *method_options)
        return SearchOptions(**{name: getattr(self, name) for name in names})

    def numbers(self):
        """Returns {name: value} of the options that are passed to a graph as tensors, except options that are off."""
        names = ["temperature"] + ["top_p"] * (self.top_p < 1) if self.sampling else ["alpha"]
        names += ["repetition_penalty"] * (self.repetition_penalty != 1)
        return {name: getattr(self, name) for name in names}

    def changes(self):
        """Returns {name: value} of the options that differ from the defaults."""
        fields = dataclasses.fields(self)
        return {f.name: value for f in fields if (value := getattr(self, f.name)) != f.default}


def kept_settings(options, names):
    """Returns {name: value} of the settings that an export keeps; omits `banned_texts` if it is empty."""
    return {name: getattr(options, name) for name in names if name != "banned_texts" or options.banned_texts}


def _as_list(value):
    return list(value) if isinstance(value, list | tuple) else [value]

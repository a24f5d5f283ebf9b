"""Results of decoding: hypotheses, translations, prompts, and additional values that some models report."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from t2t_lite import registry
from t2t_lite.text.vocabulary import EOS_ID

if TYPE_CHECKING:  # NumPy is imported lazily, since commands read the flags of tellers before they need NumPy
    import numpy as np

_SHORT, _LEAST_PIECES = 3, 30  # for sources of 30 or more pieces, an output with less than 1/3 as many is short


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """One possible output of a search or of sampling.

    Attributes:
        text: str.
        score: float, log-probability (nats) / length penalty. The score of a sample is its log-probability, and the
            score of a blank sentence's translation is 0.
        tokens: list of str, the pieces of the output, including the pieces of a stop string.
        ids: list of int, without EOS.
        ended: bool, False if the output was truncated at its maximum length.
        stopped: bool, whether the output was ended by a stop string (whose ids are included) instead of EOS.
        token_scores: list of float, the log-probability (nats) of each id, including a final EOS, or None unless
            requested. If the text was split (see `Translation.parts`), the EOS of each part is included.
        attention: float32 array [ids, pieces of the source + EOS], or None unless requested: how much each decoder step
            attends to each source position (see `t2t_lite.decoding.alignment`), for the same ids as token_scores; if
            the text was split, for `ids`. Rows sum to 1.
        told: {name: value}, the requested values of `Teller`s. The hypothesis also has an attribute with the name of
            each `Teller`, which is None unless its value was requested.
        lost: list of str, protected texts that the model did not write and that were therefore appended to `text`.
        spans: list of (start, end), the slice of `text` that each id stands for, or None unless attention is requested.
    """

    text: str = ""
    score: float = 0.0
    tokens: list[str] = dataclasses.field(default_factory=list)
    ids: list[int] = dataclasses.field(default_factory=list)
    ended: bool = True
    token_scores: list[float] | None = None
    attention: np.ndarray | None = dataclasses.field(default=None, compare=False, repr=False)
    spans: list[tuple[int, int]] | None = dataclasses.field(default=None, compare=False, repr=False)
    stopped: bool = dataclasses.field(default=False, repr=False)
    told: dict = dataclasses.field(default_factory=dict, repr=False)
    lost: list[str] = dataclasses.field(default_factory=list, repr=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in registry.list_tellers():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.told.get(name)

    @property
    def all_ids(self) -> list[int]:
        """The ids, followed by EOS if the output ended with EOS."""
        return [*self.ids, EOS_ID] if self.ended and not self.stopped else self.ids


@dataclasses.dataclass(frozen=True)
class Hypotheses:
    """Base of the results for one input: one or more possible outputs.

    Attributes:
        hypotheses: tuple of `Hypothesis`, at least one.
        truncated: bool, whether part of the input was dropped because the input was too long.
        text, score, tokens: attributes of the first hypothesis.
    """

    hypotheses: tuple[Hypothesis, ...] = (Hypothesis(),)
    truncated: bool = False

    @property
    def text(self) -> str:
        """The text of the first hypothesis."""
        return self.hypotheses[0].text

    @property
    def score(self) -> float:
        """The score of the first hypothesis: see `Hypothesis`."""
        return self.hypotheses[0].score

    @property
    def tokens(self) -> list[str]:
        """The pieces of the first hypothesis."""
        return self.hypotheses[0].tokens


@dataclasses.dataclass(frozen=True)
class Translation(Hypotheses):
    """The translation of one sentence.

    Attributes:
        hypotheses: tuple of one to n_best `Hypothesis`, best first. If the problem reranks outputs
            (`Problem.choose_output`), the selected output comes first.
        truncated: bool, whether the sentence was longer than `max_input_length` and therefore truncated.
        source_tokens: list of str, the pieces of the source that were translated.
        source_spans: list of (start, end), the slice of the text for each source token, or None unless attention is
            requested.
        parts: int, the number of parts into which the text was split.
        is_short: bool, whether a text or part with 30 or more pieces has an output with less than a third as many
            pieces. The search then probably ended before everything was translated.
        text, score, tokens, attention: attributes of the first hypothesis.
    """

    source_tokens: list[str] = dataclasses.field(default_factory=list)
    source_spans: list[tuple[int, int]] | None = dataclasses.field(default=None, compare=False, repr=False)
    parts: int = 1
    is_short: bool = False

    @property
    def attention(self) -> np.ndarray | None:
        """The attention of the first hypothesis: see `Hypothesis`."""
        return self.hypotheses[0].attention


def ends_early(pieces, ids):
    """Returns whether an output has suspiciously few ids for a source with these pieces: see `Translation`."""
    return len(pieces) >= _LEAST_PIECES and len(ids) * _SHORT < len(pieces)


@dataclasses.dataclass(frozen=True)
class Prompt:
    """A prompt, converted to ids.

    Attributes:
        text: str, the whole prompt.
        ids: list of int, the ids that the model reads; for a long prompt, its last ids.
        truncated: bool, whether the prompt has more ids than the model reads.
    """

    text: str
    ids: list
    truncated: bool

    def __len__(self):
        return len(self.ids)


class Teller:
    """An additional value per output that some models report, such as the number of pondering steps.

    `register_teller` gives a subclass its name, which is also the name of the model's method. `Translator.translate`
    accepts `return_<name>`, a `Hypothesis` has an attribute `<name>`, and t2t-decoder has a flag that writes the
    values. The module of a subclass is imported to declare that flag, so it must import TensorFlow and Keras inside
    functions.

    Args:
        model: a model; subclasses raise `UserError` for a model without the method.

    Attributes:
        flag: str, name of the flag for the file to which the values are written, one line per input line.
        help: str, the flag's text in --help.
        own, without: str, the continuations of "each of the models has …" and "a transformer, which …" in messages.
    """

    flag = help = own = without = ""

    def __init__(self, model):
        self.model = model

    def __call__(self, sources, targets):
        """Returns a list with one value per pair of source and target.

        Args:
            sources: list of lists of ids, each ending in EOS.
            targets: list of non-empty lists of ids, one per source.
        """
        raise NotImplementedError

    @staticmethod
    def joined(values):
        """Joins a list of values, one per part of an output, into the value of the whole output."""
        raise NotImplementedError

    @staticmethod
    def text(value):
        """Formats a value as a line of the file that the flag names."""
        raise NotImplementedError


def asked_tellers(options, teller):
    """Removes every `return_<name>` from options; returns {name: Teller} for the options that are True.

    Args:
        options: dict, modified in place.
        teller: function of a name that returns the model's `Teller`.

    Raises:
        UserError: the model lacks the method of a requested teller.
    """
    if not any(option.startswith("return_") for option in options):
        return {}  # without the modules of tellers, which `list_tellers` imports
    return {name: teller(name) for name in registry.list_tellers() if options.pop(f"return_{name}", False)}

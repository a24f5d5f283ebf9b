"""Hypotheses of searches, of a Translator and of a Generator, and what models tell in addition to them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from t2t_lite import registry
from t2t_lite.text.vocabulary import EOS_ID

if TYPE_CHECKING:  # commands ask for tellers' flags before NumPy is imported
    import numpy as np


@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """One possible output.

    Attributes:
        text: str.
        score: float, log-probability (nats) / length penalty; the log-probability of a sample; 0 for the translation
            of a blank sentence.
        tokens: list of str, the vocabulary's pieces, including those of a stop string.
        ids: list of int, without EOS.
        ended: bool, False if the output was truncated at its maximum length.
        stopped: bool, whether a stop string, whose ids are included, and not EOS ended it.
        token_scores: list of float, each id's log-probability (nats), including EOS if it ended so; None unless
            requested.
        attention: float32 array [ids, pieces of the source + EOS], for the same ids as token_scores: how much each
            decoder step attends to each source position (see `t2t_lite.decoding.alignment`). Rows sum to 1. None
            unless requested.
        told: {name: value}, the requested values of `Teller`s. Each is also an attribute of that name, None unless
            requested.
        lost: list of str, protected texts that the model did not write; they were appended to `text`.
        spans: list of (start, end), the slice of `text` that each id stands for. None unless attention is requested.
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
        """The ids, followed by EOS if that ended it."""
        return [*self.ids, EOS_ID] if self.ended and not self.stopped else self.ids


@dataclasses.dataclass(frozen=True)
class Hypotheses:
    """The possible outputs for one input.

    Attributes:
        hypotheses: tuple of `Hypothesis`, at least one.
        truncated: bool, whether the input was too long and part of it was dropped.
        text, score, tokens: those of the first hypothesis.
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
            (`Problem.choose_output`), its choice comes first.
        truncated: bool, whether the sentence was longer than `max_input_length` and therefore truncated.
        source_tokens: list of str, the translated pieces.
        source_spans: list of (start, end), the slice of the text that each of them stands for. None unless attention
            is requested.
        parts: int, the number of parts in which the text was translated.
        is_short: bool, whether a text, or a part, of 30 or more pieces got an output of less than a third as many:
            the search probably ended before all of it was translated.
        text, score, tokens, attention: those of the first hypothesis.
    """

    source_tokens: list[str] = dataclasses.field(default_factory=list)
    source_spans: list[tuple[int, int]] | None = dataclasses.field(default=None, compare=False, repr=False)
    parts: int = 1
    is_short: bool = False

    @property
    def attention(self) -> np.ndarray | None:
        """The attention of the first hypothesis: see `Hypothesis`."""
        return self.hypotheses[0].attention


@dataclasses.dataclass(frozen=True)
class Prompt:
    """A prompt that was read.

    Attributes:
        text: str, the whole prompt.
        ids: list of int, the ids that the model reads, the last ones of the prompt.
        truncated: bool, whether the prompt has more ids.
    """

    text: str
    ids: list
    truncated: bool

    def __len__(self):
        return len(self.ids)


class Teller:
    """Something that models with a method of its name tell about a source and an output, such as pondering steps.

    `register_teller` gives a subclass its name. `Translator.translate` takes `return_<name>`, a `Hypothesis` has the
    value under the name, and t2t-decoder has a flag for it. The module is imported to declare that flag, so it imports
    TensorFlow and Keras inside functions.

    Args:
        model: a model; subclasses raise `UserError` for one without the method.

    Attributes:
        flag: str, the flag that names the file of the values, one line per input line.
        help: str, the meaning of the flag.
        own, without: str, the ends of "each of the models has …" and "a transformer, which …" in messages.
    """

    flag = help = own = without = ""

    def __init__(self, model):
        self.model = model

    def __call__(self, sources, targets):
        """Returns a list with one value per pair.

        Args:
            sources: list of lists of ids, each ending in EOS.
            targets: list of as many non-empty lists of ids.
        """
        raise NotImplementedError

    @staticmethod
    def joined(values):
        """Joins the values of an output's parts, a list, to the value of the output."""
        raise NotImplementedError

    @staticmethod
    def text(value):
        """Formats a value as a line of the flag's file."""
        raise NotImplementedError


class Tellers(dict):
    """{name: `Teller`} of a model; each is created at its first use."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def __missing__(self, name):
        self[name] = registry.teller(name)(self.model)
        return self[name]

    def asked(self, options):
        """Removes `return_<name>` from options; returns {name: Teller} of those that are true.

        Raises:
            UserError: the model does not have the method.
        """
        names = {option.removeprefix("return_"): option for option in options if option.startswith("return_")}
        return {name: self[name] for name in names if name in registry.list_tellers() and options.pop(names[name])}

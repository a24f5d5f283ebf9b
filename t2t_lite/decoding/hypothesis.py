"""Possible outputs, as a search finds them and as a Translator or Generator has them, and what is told beside them."""

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
        score: float, log-probability (nats) / length penalty, which samples have none of; 0 for a blank sentence's
            translation.
        tokens: list of str, the vocabulary's pieces, of a stop string, too.
        ids: list of int, without EOS.
        ended: bool, False if the output was truncated at its maximum length.
        stopped: bool, whether a stop string ended it, not EOS. It is among the ids.
        token_scores: list of float, each id's log-probability (nats), including EOS if it ended so; None unless
            requested.
        attention: float32 array [ids, pieces of the source + EOS], of the same ids as token_scores: how much each
            decoder step attends to each source position (see `t2t_lite.decoding.alignment`). Rows sum up to 1. None
            unless requested.
        told: {name: value}, what else was requested of what a model tells: see `Teller`. An attribute of that name is
            the value; None unless requested.
        lost: list of str, protected texts that the model did not write; they stand at the end of `text`.
        spans: list of (start, end), the characters of `text` that each id stands for, an end being that of a slice.
            None unless attention is requested.
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
        """Its ids, with EOS if it ended so."""
        return [*self.ids, EOS_ID] if self.ended and not self.stopped else self.ids


@dataclasses.dataclass(frozen=True)
class Hypotheses:
    """The possible outputs for one input.

    Attributes:
        hypotheses: tuple of `Hypothesis`, at least one.
        truncated: bool, whether part of the input was not read, because it was too long.
        text, score, tokens: those of the first hypothesis.
    """

    hypotheses: tuple[Hypothesis, ...] = (Hypothesis(),)
    truncated: bool = False

    @property
    def text(self) -> str:
        """The first hypothesis's, as are the next two."""
        return self.hypotheses[0].text

    @property
    def score(self) -> float:
        """Log-probability (nats) / length penalty."""
        return self.hypotheses[0].score

    @property
    def tokens(self) -> list[str]:
        """The vocabulary's pieces."""
        return self.hypotheses[0].tokens


@dataclasses.dataclass(frozen=True)
class Translation(Hypotheses):
    """The translation of one sentence.

    Attributes:
        hypotheses: tuple of at most n_best `Hypothesis`, best first; at least one. If the problem reranks outputs
            (`Problem.choose_output`), its choice comes first.
        truncated: bool, whether the sentence was longer than `max_input_length` and therefore truncated.
        source_tokens: list of str, the translated pieces.
        source_spans: list of (start, end), the characters of the text that each of them stands for. None unless
            attention is requested.
        parts: int, in how many parts the text was translated.
        is_short: bool, whether the output, or that of a part, has less than a third of the pieces of a text of 30 or
            more: probably the search ended before all of it was translated.
        text, score, tokens, attention: those of the first hypothesis.
    """

    source_tokens: list[str] = dataclasses.field(default_factory=list)
    source_spans: list[tuple[int, int]] | None = dataclasses.field(default=None, compare=False, repr=False)
    parts: int = 1
    is_short: bool = False

    @property
    def attention(self) -> np.ndarray | None:
        """The first hypothesis's: see `Hypothesis`."""
        return self.hypotheses[0].attention


@dataclasses.dataclass(frozen=True)
class Prompt:
    """A prompt that was read.

    Attributes:
        text: str, as it was given.
        ids: list of int, at its end, that the model reads.
        truncated: bool, whether it has more ids.
    """

    text: str
    ids: list
    truncated: bool

    def __len__(self):
        return len(self.ids)


class Teller:
    """What the models that have a method of its name tell about pairs of a source and an output.

    `register_teller` gives a subclass its name. `Translator.translate` takes `return_<name>`, and a `Hypothesis` has
    the value under the name. t2t-decoder has a flag for it, for which the module is imported: it imports TensorFlow and
    Keras inside of functions.

    Args:
        model: a model; a subclass raises `UserError` for one that cannot tell.

    Attributes:
        flag: str, of the file that gets a line for each line.
        help: str, the flag's.
        own, without: str, ends of "each of the models has …" and "a transformer, which …", for messages.
    """

    flag = help = own = without = ""

    def __init__(self, model):
        self.model = model

    def __call__(self, sources, targets):
        """Returns a list of values, one for each pair.

        Args:
            sources: list of lists of ids, each ending in EOS.
            targets: list of as many lists of ids, none empty.
        """
        raise NotImplementedError

    @staticmethod
    def joined(values):
        """Returns the value of an output that was made in parts, of a list of theirs."""
        raise NotImplementedError

    @staticmethod
    def text(value):
        """Returns a value as a line of the flag's file."""
        raise NotImplementedError


class Tellers(dict):
    """{name: `Teller`} of a model, which are made when they are first asked for."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def __missing__(self, name):
        self[name] = registry.teller(name)(self.model)
        return self[name]

    def asked(self, options):
        """Takes `return_<name>` of tellers out of options; returns {name: Teller} of those that are true.

        Raises:
            UserError: the model cannot tell it.
        """
        names = {option.removeprefix("return_"): option for option in options if option.startswith("return_")}
        return {name: self[name] for name in names if name in registry.list_tellers() and options.pop(names[name])}

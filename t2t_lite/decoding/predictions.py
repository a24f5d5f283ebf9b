"""What a Predictor says of texts."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The class of one text.

    Attributes:
        label: str, the most probable class.
        probabilities: {label: float}, of all classes; they sum up to 1.
        truncated: bool, whether the text was longer than the model's longest input and therefore truncated.
    """

    label: str
    probabilities: dict[str, float]
    truncated: bool = False


@dataclasses.dataclass(frozen=True)
class Value:
    """The number that belongs to one text.

    Attributes:
        value: float. It may lie a little outside of the training files' numbers.
        truncated: as of `Prediction`.
    """

    value: float
    truncated: bool = False


@dataclasses.dataclass(frozen=True)
class Tagging:
    """The tags of one sentence.

    Attributes:
        words: list of str.
        tags: list of str, the most probable tag of each word.
        probabilities: list of float, that of each tag.
        parts: int, in how many parts the sentence was read; each has at most as many ids as the model reads.
        truncated: False, since every word gets its tag.
    """

    words: list[str]
    tags: list[str]
    probabilities: list[float]
    parts: int = 1
    truncated: bool = False


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer to one question, a part of its context.

    Attributes:
        text: str, context[start:end].
        start, end: int, where it stands in the context, in characters.
        probability: float, among all parts of the context that may be the answer.
        hypotheses: tuple of `Answer` without hypotheses, the most probable first; this is the first one.
        truncated: bool, whether the question was longer than the model reads, and therefore truncated. Of a context
            all is read.
    """

    text: str
    start: int
    end: int
    probability: float
    hypotheses: tuple["Answer", ...] = ()
    truncated: bool = False


@dataclasses.dataclass(frozen=True)
class Candidate:
    """What may stand at a mask.

    Attributes:
        token: str, the vocabulary's piece.
        probability: float.
    """

    token: str
    probability: float
